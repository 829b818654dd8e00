//! A mixture of agents: one model made of several. References advise on the conversation, the aggregator acts on it.
//!
//! Only the aggregator has tools, and only it is heard; the references see the conversation as text. What all of them
//! use is counted with the answer. The advice is added to the request and is not part of the conversation, and system
//! prompt and tools reach the aggregator as they are. Start at [`Mixture`]'s `ask`.

mod memory;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use hermes_core::{
    Delta, Message, Model, ModelError, ModelErrorKind, ModelName, ModelNotice, ModelRequest, Part,
    Role,
};
use tokio::sync::mpsc;

use self::memory::{Bill, Memory};
use crate::context::WINDOW_DEFAULT;

/// The provider whose models are mixtures.
pub const MOA: &str = "moa";
/// More advisers cost more than they tell.
pub const REFERENCES_MAX: usize = 8;
/// A reference that needs longer than this is left out: its own deadlines notice silence, this one endless talk.
const REFERENCE_TIME_MAX: Duration = Duration::from_secs(900);
/// Deltas that a slow reader may be behind.
const DELTAS_WAITING_MAX: usize = 64;

const ADVISER: &str = "You advise another model, which will answer the user and can use tools; you cannot. You are shown \
     its conversation so far. Say what it should consider, do or answer next, and why, as briefly as that allows.";
const REQUEST: &str = "What should the assistant do or say next?";
const HEADING: &str =
    "# Advice of other models, to be weighed and not to be quoted; the user has not seen it";

/// When references are asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fanout {
    /// Before every request, about everything said and done so far.
    #[default]
    PerStep,
    /// Once for each message of the user; their advice stands for the whole turn.
    PerTurn,
}

pub struct Mixture {
    name: ModelName,
    references: Vec<Arc<dyn Model>>,
    aggregator: Arc<dyn Model>,
    fanout: Fanout,
    memory: Memory,
}

type Deltas = mpsc::Sender<Result<Delta, ModelError>>;

/// What one reference said, and what it took.
struct Advice {
    text: String,
    bill: Bill,
}

impl Mixture {
    /// Makes a model of this name. References beyond [`REFERENCES_MAX`] are not asked.
    pub fn new(
        name: &str,
        mut references: Vec<Arc<dyn Model>>,
        aggregator: Arc<dyn Model>,
        fanout: Fanout,
    ) -> Self {
        references.truncate(REFERENCES_MAX);
        Self {
            name: ModelName {
                provider: MOA.to_owned(),
                model: name.to_owned(),
            },
            references,
            aggregator,
            fanout,
            memory: Memory::default(),
        }
    }

    /// Asks the references, then the aggregator, and tells what the latter says.
    async fn answer(&self, request: ModelRequest<'_>, deltas: Deltas) {
        let about = self.fanout.about(request.messages);
        let advice = match self.advice(request, about, &deltas).await {
            Ok(advice) => advice,
            Err(error) => {
                deltas.send(Err(error)).await.ok();
                return;
            }
        };
        let messages = with_advice(request.messages, about.len(), &advice);
        let mut stream = self.aggregator.stream(ModelRequest {
            messages: &messages,
            ..request
        });
        while let Some(mut delta) = stream.next().await {
            if let Ok(Delta::Finished(finished)) = &mut delta {
                let mut bill = self.memory.take_bill(request.session);
                bill.add(finished.usage, finished.cost);
                (finished.usage, finished.cost) = bill.total();
            }
            if deltas.send(delta).await.is_err() {
                return;
            }
        }
    }

    /// Returns what the references say, or said when they were asked the same before.
    async fn advice(
        &self,
        request: ModelRequest<'_>,
        about: &[Message],
        deltas: &Deltas,
    ) -> Result<String, ModelError> {
        let transcript = transcript::of(about);
        if let Some(advice) = self.memory.advice(request.session, &transcript) {
            return Ok(advice);
        }
        let asking = self.references.iter().map(|reference| async {
            let advice = ask_reference(reference.as_ref(), request, &transcript).await;
            if let Err(error) = &advice {
                let failed = ModelNotice::NoAdvice {
                    model: reference.name(),
                    reason: error.message.clone(),
                };
                deltas.send(Ok(Delta::Notice(failed))).await.ok();
            }
            advice
        });
        let (mut bill, mut text, mut errors) = (Bill::default(), String::new(), Vec::new());
        for (reference, advice) in self.references.iter().zip(join_all(asking).await) {
            let words = match advice {
                Ok(advice) => {
                    bill += advice.bill;
                    advice.text
                }
                Err(error) => {
                    let words = format!("[failed: {}]", error.message);
                    errors.push(error);
                    words
                }
            };
            text.push_str(&format!("\n\n## {}\n{words}", reference.name()));
        }
        if errors.len() == self.references.len() {
            return Err(self.unadvised(errors));
        }
        self.memory
            .keep(request.session, &transcript, text.clone(), bill);
        Ok(text)
    }

    /// Nobody gave advice. What a person can do about it is what the first reference says.
    fn unadvised(&self, errors: Vec<ModelError>) -> ModelError {
        let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let (kind, hint) = match errors.into_iter().next() {
            Some(first) => (first.kind, first.hint),
            None => (
                ModelErrorKind::BadRequest,
                format!("give `moa.presets.{}` reference models", self.name.model),
            ),
        };
        ModelError {
            model: self.name.clone(),
            kind,
            message: format!("no reference model gave advice: {}", reasons.join("; ")),
            hint,
        }
    }
}

impl Fanout {
    /// Returns the part of a conversation that references are asked about. Their advice stands right behind it, so that
    /// what comes before stays as it was in the last request.
    fn about(self, messages: &[Message]) -> &[Message] {
        match (self, last_of_user(messages)) {
            (Self::PerTurn, Some(last)) => &messages[..=last],
            _ => messages,
        }
    }
}

impl Model for Mixture {
    fn name(&self) -> ModelName {
        self.name.clone()
    }

    fn context_window(&self) -> Option<u64> {
        self.aggregator.context_window()
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let (deltas, told) = mpsc::channel(DELTAS_WAITING_MAX);
        told_while(self.answer(request, deltas), told).boxed()
    }
}

/// Streams what a future tells while it runs. Dropping the stream drops the future.
fn told_while<'a, T: Send + 'a>(
    work: impl Future<Output = ()> + Send + 'a,
    mut told: mpsc::Receiver<T>,
) -> impl Stream<Item = T> + Send + 'a {
    let silent = stream::once(work).filter_map(|()| std::future::ready(None));
    stream::select(silent, stream::poll_fn(move |cx| told.poll_recv(cx)))
}

async fn ask_reference(
    reference: &dyn Model,
    request: ModelRequest<'_>,
    transcript: &str,
) -> Result<Advice, ModelError> {
    let window = reference.context_window().unwrap_or(WINDOW_DEFAULT);
    let transcript = transcript::fitting(transcript, window);
    let messages = [Message::user(format!("{transcript}\n\n{REQUEST}"))];
    let stream = reference.stream(ModelRequest {
        system: ADVISER,
        tools: &[],
        messages: &messages,
        output_tokens_max: None,
        ..request
    });
    let late = || ModelError {
        model: reference.name(),
        kind: ModelErrorKind::Silent,
        message: format!("no advice within {} s", REFERENCE_TIME_MAX.as_secs()),
        hint: "try again".to_owned(),
    };
    let advice = tokio::time::timeout(REFERENCE_TIME_MAX, collect(reference, stream)).await;
    advice.unwrap_or_else(|_| Err(late()))
}

async fn collect(
    reference: &dyn Model,
    mut stream: BoxStream<'_, Result<Delta, ModelError>>,
) -> Result<Advice, ModelError> {
    let mut text = String::new();
    let mut bill = Bill::default();
    while let Some(delta) = stream.next().await {
        match delta? {
            Delta::Text(more) => text.push_str(&more),
            Delta::Finished(finished) => bill.add(finished.usage, finished.cost),
            _ => {}
        }
    }
    if text.trim().is_empty() {
        return Err(ModelError {
            model: reference.name(),
            kind: ModelErrorKind::Broken,
            message: "it said nothing".to_owned(),
            hint: "try again, or choose another reference model".to_owned(),
        });
    }
    Ok(Advice { text, bill })
}

/// The conversation with advice on its first `about` messages.
fn with_advice(messages: &[Message], about: usize, advice: &str) -> Vec<Message> {
    let mut messages = messages.to_vec();
    let advice = format!("{HEADING}{advice}");
    match about.checked_sub(1).and_then(|last| messages.get_mut(last)) {
        Some(last) if last.role == Role::User => last.parts.push(Part::text(advice)),
        _ => messages.insert(about, Message::user(advice)),
    }
    messages
}

fn last_of_user(messages: &[Message]) -> Option<usize> {
    messages
        .iter()
        .rposition(|message| message.role == Role::User)
}
