//! The model of a simulated world: it answers what was written since its last whole answer, in as many steps as it is told
//! to, and fails now and then.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hermes_core::{
    Cost, Delta, FinishReason, Finished, Message, Model, ModelError, ModelErrorKind, ModelName,
    ModelRequest, Part, Random, Role, Usage,
};
use serde_json::json;

use super::fate::Fate;
use super::{WHOLE, tokens};

/// Long enough for several messages.
const LONG_WORDS: u64 = 260;

pub struct SimModel {
    fate: Arc<Fate>,
    random: Arc<Random>,
}

/// One answer, as it is made up.
struct Plan {
    deltas: Vec<Result<Delta, ModelError>>,
    pause: Duration,
}

impl SimModel {
    pub fn new(fate: Arc<Fate>, random: Arc<Random>) -> Self {
        Self { fate, random }
    }

    fn plan(&self, messages: &[Message]) -> Plan {
        let open = unanswered(messages);
        let said: String = open
            .iter()
            .map(|message| all_text(message) + "\n")
            .collect();
        let has_result = open.iter().any(|message| message.role == Role::Tool);
        let wants = |word: &str| said.split_whitespace().any(|said| said == word);
        let pause = match wants("slow") {
            true => Duration::from_millis(400 + self.random.below(4_000)),
            false => Duration::from_millis(self.random.below(120)),
        };
        if let Some(job) = said.split("do job-").nth(1) {
            let name: String = job.chars().take_while(char::is_ascii_digit).collect();
            return self.words(&format!("{} {WHOLE}", job_words(&name)), pause);
        }
        if self.random.below(60) == 0 || (wants("fail") && self.random.below(2) == 0) {
            return self.failure(pause);
        }
        let called = [("ask", "ask"), ("server", "serve"), ("tool", "act")];
        let called = called.into_iter().find(|(word, _)| wants(word));
        if let Some((_, tool)) = called.filter(|_| !has_result) {
            return self.call(tool, pause);
        }
        let mut named = tokens(&said);
        named.sort_unstable();
        named.dedup();
        let named: Vec<String> = named.iter().map(|token| format!("m{token}")).collect();
        let filler = match wants("long") {
            true => LONG_WORDS,
            false => self.random.below(8),
        };
        let filler = "word ".repeat(usize::try_from(filler).unwrap_or_default());
        let answer = format!("re {}: {filler}{WHOLE}", named.join(" "));
        self.words(&answer, pause)
    }

    fn words(&self, text: &str, pause: Duration) -> Plan {
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        let pieces = words.chunks(words.len().div_ceil(6).max(1));
        let deltas = pieces.map(|piece| Ok(Delta::Text(piece.concat())));
        let mut deltas: Vec<_> = deltas.collect();
        deltas.push(Ok(finished(FinishReason::Stop)));
        Plan { deltas, pause }
    }

    fn call(&self, tool: &str, pause: Duration) -> Plan {
        let id = format!("call-{:x}", self.random.next_u64());
        let mut deltas = Vec::new();
        if self.random.below(2) == 0 {
            deltas.push(Ok(Delta::Text("Let me look first.".into())));
        }
        let json = json!({ "text": "looked" }).to_string();
        let name = tool.to_owned();
        let index = 0;
        deltas.push(Ok(Delta::CallStarted { index, id, name }));
        deltas.push(Ok(Delta::CallArguments { index, json }));
        deltas.push(Ok(finished(FinishReason::ToolCalls)));
        Plan { deltas, pause }
    }

    fn failure(&self, pause: Duration) -> Plan {
        let kinds = [
            ModelErrorKind::Overloaded,
            ModelErrorKind::Network,
            ModelErrorKind::Broken,
            ModelErrorKind::Billing,
        ];
        let kind = kinds[usize::try_from(self.random.below(4)).unwrap_or_default()];
        let mut deltas = Vec::new();
        if self.random.below(2) == 0 {
            deltas.push(Ok(Delta::Text("I was about to ".into())));
        }
        deltas.push(Err(ModelError {
            model: name(),
            kind,
            message: "the provider is having a day".into(),
            hint: "try again".into(),
        }));
        Plan { deltas, pause }
    }
}

/// What a job says, by its number.
pub fn job_words(name: &str) -> String {
    format!("Report of the job number {name}.")
}

/// The words of a message, those of results with them: words for a running turn come with those.
fn all_text(message: &Message) -> String {
    let words = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.as_str(),
        Part::ToolResult(result) => result.text.as_str(),
        _ => "",
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What came since the last answer that is whole.
fn unanswered(messages: &[Message]) -> &[Message] {
    let is_whole =
        |message: &Message| message.role == Role::Assistant && message.text().contains(WHOLE);
    match messages.iter().rposition(is_whole) {
        Some(at) => &messages[at + 1..],
        None => messages,
    }
}

impl Model for SimModel {
    fn name(&self) -> ModelName {
        name()
    }

    fn context_window(&self) -> Option<u64> {
        Some(1_000_000)
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let Plan { deltas, pause } = self.plan(request.messages);
        let fate = Arc::clone(&self.fate);
        stream::iter(deltas)
            .then(move |delta| {
                let fate = Arc::clone(&fate);
                async move {
                    // The end comes with the last words: nobody is heard between them.
                    if !matches!(delta, Ok(Delta::Finished(_))) {
                        tokio::time::sleep(pause).await;
                        fate.step().await;
                    }
                    delta
                }
            })
            .boxed()
    }
}

fn finished(reason: FinishReason) -> Delta {
    Delta::Finished(Finished {
        reason,
        usage: Usage {
            input: 10,
            output: 10,
            ..Usage::default()
        },
        cost: Cost::Estimated(1_000),
        model: name(),
    })
}

fn name() -> ModelName {
    ModelName {
        provider: "simulated".into(),
        model: "world".into(),
    }
}
