//! The answers of the scripted server, given by the model without a wire: what a client makes of them, at once.

use hermes_core::{Cost, Delta, FinishReason, Finished, ModelErrorKind, Usage};

use super::{Step, failed, name};
use crate::server::{
    Answer, Ending, Faults, Finish, NoiseKind, Part, Point, Refusal, Usage as Counted,
};

impl From<Answer> for Step {
    fn from(answer: Answer) -> Self {
        if let Some(refusal) = &answer.refusal {
            return Self::ending(Vec::new(), Err(refused(refusal)));
        }
        let (deltas, fault) = match first_fault(&answer.faults) {
            Some((chunks, fault)) => up_to(&answer, chunks, fault),
            None => (all_deltas(&answer), None),
        };
        let end = match fault {
            None => Ok(finish_reason(answer.finish_reason())),
            Some(_) if deltas.iter().any(is_visible) => Ok(FinishReason::Cut),
            Some(fault) => Err((fault.kind(!deltas.is_empty()), fault.to_string())),
        };
        let mut step = Self::ending(deltas, end);
        step.count(answer.usage);
        step.pause = answer.faults.chunk_delay();
        step
    }
}

impl Step {
    fn ending(deltas: Vec<Delta>, end: Result<FinishReason, (ModelErrorKind, String)>) -> Self {
        match end {
            Ok(reason) => Self::finished(deltas, reason),
            Err((kind, message)) => {
                let mut step = Self::error(kind);
                step.deltas = deltas.into_iter().map(Ok).collect();
                step.deltas.push(Err(failed(kind, &message)));
                step
            }
        }
    }

    fn count(&mut self, counted: Counted) {
        if let Some(Ok(Delta::Finished(finished))) = self.deltas.last_mut() {
            *finished = Finished {
                reason: finished.reason,
                usage: usage(counted),
                cost: Cost::Unknown,
                model: name(),
            };
        }
    }
}

/// What ends an answer before its time.
enum Fault<'a> {
    /// Before any byte of it.
    Unanswered,
    Broken(&'a Ending),
    Garbled,
}

impl Fault<'_> {
    /// What a client calls it when nothing worth keeping came. Did anything?
    fn kind(&self, has_begun: bool) -> ModelErrorKind {
        match self {
            Self::Unanswered => ModelErrorKind::Network,
            Self::Broken(Ending::Stall) => ModelErrorKind::Silent,
            Self::Broken(Ending::Error { kind, .. }) if kind == "overloaded_error" => {
                ModelErrorKind::Overloaded
            }
            Self::Broken(Ending::Reset | Ending::Truncate) if !has_begun => ModelErrorKind::Network,
            Self::Broken(_) | Self::Garbled => ModelErrorKind::Broken,
        }
    }
}

impl std::fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unanswered => write!(f, "the script answers with nothing"),
            Self::Broken(ending) => write!(f, "the script breaks off: {ending:?}"),
            Self::Garbled => write!(f, "the script sends no JSON"),
        }
    }
}

/// Finds what goes wrong first, and after how many chunks. Comments and cuts between bytes are nothing to a model
/// without a wire.
fn first_fault(faults: &Faults) -> Option<(usize, Fault<'_>)> {
    let broken = faults.break_off.as_ref().map(|broken| match broken.at {
        Point::BeforeHeaders => (0, Fault::Unanswered),
        Point::Chunks(chunks) => (chunks, Fault::Broken(&broken.how)),
        Point::Bytes(bytes) => panic!("a model without a wire has no byte {bytes}"),
    });
    let garbled = faults.noise.iter().filter_map(|noise| match noise.kind {
        NoiseKind::BadJson => Some((noise.after_chunks, Fault::Garbled)),
        NoiseKind::Comment(_) | NoiseKind::Raw(_) | NoiseKind::Bytes(_) => None,
    });
    garbled.chain(broken).min_by_key(|(chunks, _)| *chunks)
}

/// Returns the deltas of so many chunks, and the fault if the answer is long enough to meet it.
fn up_to<'a>(answer: &Answer, chunks: usize, fault: Fault<'a>) -> (Vec<Delta>, Option<Fault<'a>>) {
    let all = all_deltas(answer);
    let is_chunk =
        |delta: &Delta| !matches!(delta, Delta::CallStarted { .. } | Delta::ReasoningSigned(_));
    if all.iter().filter(|delta| is_chunk(delta)).count() < chunks {
        return (all, None);
    }
    let mut left = chunks;
    let before = all.into_iter().take_while(|delta| {
        let is_before = left > 0;
        left -= usize::from(is_before && is_chunk(delta));
        is_before
    });
    (before.collect(), Some(fault))
}

fn all_deltas(answer: &Answer) -> Vec<Delta> {
    let mut deltas = Vec::new();
    let mut calls = 0;
    for part in &answer.parts {
        let content = part.content();
        let pieces = part.chunking();
        let pieces = pieces.cut(&content).into_iter().map(str::to_owned);
        match part {
            Part::Text { .. } | Part::TextChunks { .. } => deltas.extend(pieces.map(Delta::Text)),
            Part::Reasoning { signature, .. } => {
                deltas.extend(pieces.map(Delta::Reasoning));
                deltas.extend(signature.clone().map(Delta::ReasoningSigned));
            }
            Part::Call { call, id, .. } => {
                let index = calls;
                calls += 1;
                let (id, name) = (id.clone(), call.clone());
                deltas.push(Delta::CallStarted { index, id, name });
                deltas.extend(pieces.map(|json| Delta::CallArguments { index, json }));
            }
        }
    }
    deltas
}

fn is_visible(delta: &Delta) -> bool {
    matches!(delta, Delta::Text(_))
}

fn finish_reason(finish: Finish) -> FinishReason {
    match finish {
        Finish::Stop => FinishReason::Stop,
        Finish::ToolCalls => FinishReason::ToolCalls,
        Finish::Length => FinishReason::Length,
        Finish::ContentFilter => FinishReason::ContentFilter,
    }
}

fn usage(counted: Counted) -> Usage {
    Usage {
        input: counted.prompt - counted.cached,
        output: counted.completion,
        cache_read: counted.cached,
        cache_write: 0,
        reasoning: counted.reasoning,
    }
}

fn refused(refusal: &Refusal) -> (ModelErrorKind, String) {
    let message = refusal.body["error"]["message"]
        .as_str()
        .or(refusal.body.as_str())
        .unwrap_or_default();
    let kind = match refusal.status {
        401 | 403 => ModelErrorKind::Auth,
        402 => ModelErrorKind::Billing,
        404 => ModelErrorKind::UnknownModel,
        429 => ModelErrorKind::RateLimit,
        500.. => ModelErrorKind::Overloaded,
        _ if message.contains("context length") => ModelErrorKind::ContextTooLong,
        _ => ModelErrorKind::BadRequest,
    };
    (kind, format!("{}: {message}", refusal.status))
}
