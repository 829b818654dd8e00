//! A model that says what a test tells it to, without a network.

mod answer;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hermes_core::{
    Cost, Delta, FinishReason, Finished, Message, Model, ModelError, ModelErrorKind, ModelName,
    ModelRequest, Prefix, Usage,
};
use serde_json::Value;

/// Answers requests with its steps, in order. Out of steps, it fails the way an unknown model does.
#[derive(Debug, Default)]
pub struct ScriptedModel {
    steps: Mutex<VecDeque<Step>>,
    requests: Mutex<Vec<SeenRequest>>,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Step {
    deltas: Vec<Result<Delta, ModelError>>,
    /// Between two deltas.
    pause: Duration,
    /// Never ends.
    hangs: bool,
}

/// What the model was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenRequest {
    pub prefix: Prefix,
    pub messages: Vec<Message>,
    pub output_tokens_max: Option<u32>,
}

impl ScriptedModel {
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: Mutex::new(steps.into_iter().collect()),
            requests: Mutex::default(),
        }
    }

    pub fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.requests).clone()
    }

    pub fn push(&self, step: Step) {
        lock(&self.steps).push_back(step);
    }
}

impl Step {
    /// An answer in words, one delta per word.
    pub fn text(text: &str) -> Self {
        let words = text
            .split_inclusive(' ')
            .map(|word| Delta::Text(word.to_owned()));
        Self::finished(words.collect(), FinishReason::Stop)
    }

    pub fn call(id: &str, tool: &str, arguments: &Value) -> Self {
        Self::calls(&[(id, tool, &arguments.to_string())])
    }

    /// Several calls in one reply, their arguments as raw text.
    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let deltas = calls
            .iter()
            .enumerate()
            .flat_map(|(index, (id, tool, arguments))| {
                [
                    Delta::CallStarted {
                        index,
                        id: (*id).to_owned(),
                        name: (*tool).to_owned(),
                    },
                    Delta::CallArguments {
                        index,
                        json: (*arguments).to_owned(),
                    },
                ]
            });
        Self::finished(deltas.collect(), FinishReason::ToolCalls)
    }

    pub fn empty() -> Self {
        Self::finished(Vec::new(), FinishReason::Stop)
    }

    pub fn error(kind: ModelErrorKind) -> Self {
        Self {
            deltas: vec![Err(failed(kind, "scripted"))],
            pause: Duration::ZERO,
            hangs: false,
        }
    }

    /// Says nothing, for ever.
    pub fn silence() -> Self {
        Self {
            deltas: Vec::new(),
            pause: Duration::ZERO,
            hangs: true,
        }
    }

    /// Refuses with the words of a provider.
    pub fn refusal(kind: ModelErrorKind, message: &str) -> Self {
        Self {
            deltas: vec![Err(failed(kind, message))],
            pause: Duration::ZERO,
            hangs: false,
        }
    }

    /// Has taken so many tokens for the request.
    pub fn counting(mut self, input: u64) -> Self {
        if let Some(Ok(Delta::Finished(finished))) = self.deltas.last_mut() {
            finished.usage.input = input;
        }
        self
    }

    fn play<'a>(self) -> BoxStream<'a, Result<Delta, ModelError>> {
        let pause = self.pause;
        let deltas = stream::iter(self.deltas).then(move |delta| async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            delta
        });
        if self.hangs {
            deltas.chain(stream::pending()).boxed()
        } else {
            deltas.boxed()
        }
    }

    /// Ends with another reason than usual.
    pub fn because(mut self, reason: FinishReason) -> Self {
        if let Some(Ok(Delta::Finished(finished))) = self.deltas.last_mut() {
            finished.reason = reason;
        }
        self
    }

    /// Waits between two deltas.
    pub fn every(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Goes silent instead of finishing.
    pub fn then_silence(mut self) -> Self {
        self.deltas.pop();
        self.hangs = true;
        self
    }

    fn finished(mut deltas: Vec<Delta>, reason: FinishReason) -> Self {
        let usage = Usage {
            input: 10,
            output: deltas.len() as u64,
            ..Usage::default()
        };
        deltas.push(Delta::Finished(Finished {
            reason,
            usage,
            cost: Cost::Estimated(1_000),
            model: name(),
        }));
        Self {
            deltas: deltas.into_iter().map(Ok).collect(),
            pause: Duration::ZERO,
            hangs: false,
        }
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> ModelName {
        name()
    }

    fn context_window(&self) -> Option<u64> {
        Some(128_000)
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        lock(&self.requests).push(SeenRequest {
            prefix: Prefix {
                system: request.system.to_owned(),
                tools: request.tools.into(),
            },
            messages: request.messages.to_vec(),
            output_tokens_max: request.output_tokens_max,
        });
        let step = lock(&self.steps)
            .pop_front()
            .unwrap_or_else(|| Step::error(ModelErrorKind::UnknownModel));
        step.play()
    }
}

type Answer = dyn Fn(&ModelRequest<'_>) -> Step + Send + Sync;

/// Answers each request by what is in it.
pub struct AnsweringModel {
    window: Option<u64>,
    answer: Box<Answer>,
}

impl AnsweringModel {
    /// States that so many tokens fit into it.
    pub fn new(
        window: Option<u64>,
        answer: impl Fn(&ModelRequest<'_>) -> Step + Send + Sync + 'static,
    ) -> Self {
        Self {
            window,
            answer: Box::new(answer),
        }
    }
}

impl Model for AnsweringModel {
    fn name(&self) -> ModelName {
        name()
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        (self.answer)(&request).play()
    }
}

fn failed(kind: ModelErrorKind, message: &str) -> ModelError {
    ModelError {
        model: name(),
        kind,
        message: message.into(),
        hint: "change the script".into(),
    }
}

fn name() -> ModelName {
    ModelName {
        provider: "scripted".into(),
        model: "script".into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
