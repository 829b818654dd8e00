//! One step: asks the model and makes sure that what comes back can be worked with.
//!
//! Words we add to be asked again (after an empty or a cut reply) are sent but never recorded: the history holds what
//! the user and the model said.

use futures_util::StreamExt as _;
use hermes_core::{
    Cost, Delta, Entry, Event, FinishReason, Finished, Message, ModelError, ModelErrorKind,
    ModelName, ModelRequest, Notice, Part, ReplyBuilder, StoreError, Usage,
};

use crate::circles::{self, Watch};
use crate::compaction::{self, Outcome};
use crate::history::History;
use crate::salvage;
use crate::turn::TurnContext;

/// Requests for one reply that came back empty or broken. A model that is silent three times has nothing to say.
const ATTEMPTS_MAX: u32 = 3;
/// How often an answer that was cut is continued.
const CONTINUATIONS_MAX: u32 = 3;
/// How often a conversation is made shorter because a provider says that it is too long: each time by more, and after
/// this many there is hardly anything left.
const OVERFLOWS_MAX: u32 = 4;
/// The output limit asked for first when a reply hit the model's usual one; doubled each time.
const OUTPUT_TOKENS_RAISED: u32 = 8_192;

const NUDGE_EMPTY: &str = "Your last reply was empty. Answer the user, or call a tool.";
const NUDGE_CIRCLES: &str = "Your last reply repeated the same words over and over and was stopped. Answer briefly, saying each thing once, or call a tool.";
const NUDGE_CONTINUE: &str = "Your reply was cut off. Continue exactly where it stopped, without repeating anything or commenting on the cut.";
const NUDGE_LAST_WORDS: &str = "You have used all steps of this turn. Call no more tools. Tell the user in a few \
     sentences what is done, what is not, and what you would do next.";

pub(crate) enum ReplyOutcome {
    Replied,
    Stopped,
    /// The model had nothing to say, again and again.
    Silent {
        reason: String,
    },
    Failed(ModelError),
}

/// Asks the model until it has said something, and records its reply. `is_asked`: the log has the first request already.
pub(crate) async fn request_reply(
    cx: &TurnContext<'_>,
    history: &mut History,
    is_asked: bool,
) -> Result<ReplyOutcome, StoreError> {
    let mut draft = Draft {
        is_asked,
        ..Draft::default()
    };
    let mut last_error = None;
    let mut went_in_circles = false;
    if compaction::make_room(&cx.compaction(), history).await? == Outcome::Stopped {
        return Ok(ReplyOutcome::Stopped);
    }
    for attempt in 1..=ATTEMPTS_MAX {
        match stream_fitting(cx, history, &mut draft).await? {
            Streamed::Stopped(partial) => {
                record_partial(cx, history, draft.joined_with(partial), &draft);
                return Ok(ReplyOutcome::Stopped);
            }
            Streamed::Failed(error) if error.kind == ModelErrorKind::Broken => {
                if attempt < ATTEMPTS_MAX {
                    ask_again(cx, format!("the reply broke off: {}", error.message));
                }
                last_error = Some(error);
            }
            Streamed::Failed(error) => {
                record_partial(cx, history, Message::assistant(&*draft.text), &draft);
                tell_usage(cx, &draft);
                return Ok(ReplyOutcome::Failed(error));
            }
            Streamed::Circling(_) if !went_in_circles => {
                went_in_circles = true;
                draft.text.clear();
                draft.nudge = Some(NUDGE_CIRCLES);
                cx.tell(Event::TextDiscarded);
                ask_again(cx, "the reply repeated itself and was stopped".to_owned());
            }
            Streamed::Circling(message) => {
                let message = once_round(cx, draft.joined_with(message));
                record_reply(cx, history, message, &draft);
                return Ok(ReplyOutcome::Replied);
            }
            Streamed::Complete(message) if is_blank(&message) => {
                if draft
                    .finish
                    .as_ref()
                    .is_some_and(|finish| finish.reason == FinishReason::ContentFilter)
                {
                    return Ok(ReplyOutcome::Failed(filtered(cx.ports.model.name())));
                }
                if attempt < ATTEMPTS_MAX {
                    ask_again(cx, "the reply was empty".to_owned());
                }
                draft.nudge = Some(NUDGE_EMPTY);
            }
            Streamed::Complete(message) => {
                record_reply(cx, history, message, &draft);
                return Ok(ReplyOutcome::Replied);
            }
        }
    }
    tell_usage(cx, &draft);
    match last_error {
        Some(error) => Ok(ReplyOutcome::Failed(error)),
        None => Ok(ReplyOutcome::Silent {
            reason: format!("the model gave {ATTEMPTS_MAX} empty replies"),
        }),
    }
}

/// Keeps of a reply that goes round in circles again what it said the first time.
fn once_round(cx: &TurnContext<'_>, message: Message) -> Message {
    let text = circles::without_circles(&message.text()).to_owned();
    cx.tell(Event::TextDiscarded);
    cx.tell(Event::Text { text: text.clone() });
    let text_of_notice = "the reply repeated itself again and was cut".to_owned();
    cx.tell(Event::Notice {
        notice: Notice::Context {
            text: text_of_notice,
        },
    });
    Message::assistant(text)
}

fn is_blank(message: &Message) -> bool {
    message.text().trim().is_empty() && message.calls().next().is_none()
}

/// Asks for a summary when the steps are used up. Calls in it are dropped: nothing runs any more.
pub(crate) async fn last_words(
    cx: &TurnContext<'_>,
    history: &mut History,
) -> Result<(), StoreError> {
    let mut draft = Draft {
        nudge: Some(NUDGE_LAST_WORDS),
        ..Draft::default()
    };
    if let Streamed::Complete(mut message) = stream_fitting(cx, history, &mut draft).await? {
        message
            .parts
            .retain(|part| !matches!(part, Part::ToolCall(_)));
        if !message.text().trim().is_empty() {
            record_reply(cx, history, message, &draft);
        }
    }
    Ok(())
}

/// What one reply has cost and collected over several requests.
#[derive(Default)]
struct Draft {
    /// Text of replies that were cut; the next one continues it.
    text: String,
    nudge: Option<&'static str>,
    output_tokens_max: Option<u32>,
    usage: Usage,
    costs: Vec<Cost>,
    finish: Option<Finished>,
    /// The next request is in the log already.
    is_asked: bool,
}

impl Draft {
    /// The messages to send after the history.
    fn tail(&self) -> Vec<Message> {
        let mut tail = Vec::new();
        if !self.text.is_empty() {
            tail.push(Message::assistant(self.text.clone()));
        }
        tail.extend(self.nudge.map(Message::user));
        tail
    }

    fn add(&mut self, finished: Finished) {
        self.usage += finished.usage;
        self.costs.push(finished.cost);
        self.finish = Some(finished);
    }

    /// Who answered last.
    fn model(&self, cx: &TurnContext<'_>) -> ModelName {
        let finish = self.finish.as_ref();
        finish.map_or_else(|| cx.ports.model.name(), |finish| finish.model.clone())
    }

    /// The sum of all requests; unknown as soon as one is.
    fn cost(&self) -> Cost {
        if self.costs.iter().all(|cost| *cost == Cost::Included) && !self.costs.is_empty() {
            return Cost::Included;
        }
        let add = |sum: u64, cost: &Cost| Some(sum.saturating_add(cost.micro_usd()?));
        self.costs
            .iter()
            .try_fold(0, add)
            .map_or(Cost::Unknown, Cost::Estimated)
    }

    fn joined_with(&self, mut message: Message) -> Message {
        if self.text.is_empty() {
            return message;
        }
        let first_text = message.parts.iter_mut().find_map(|part| match part {
            Part::Text { text } => Some(text),
            _ => None,
        });
        match first_text {
            Some(text) => text.insert_str(0, &self.text),
            None => message.parts.insert(0, Part::text(self.text.clone())),
        }
        message
    }
}

enum Streamed {
    Complete(Message),
    Stopped(Message),
    /// It says the same over and over, and was stopped.
    Circling(Message),
    Failed(ModelError),
}

/// Streams one reply; a conversation that is too long for the model is made shorter and sent again.
async fn stream_fitting(
    cx: &TurnContext<'_>,
    history: &mut History,
    draft: &mut Draft,
) -> Result<Streamed, StoreError> {
    let mut times = 0;
    loop {
        let mut error = match stream_reply(cx, history, draft).await? {
            Streamed::Failed(error) if error.kind == ModelErrorKind::ContextTooLong => error,
            streamed => return Ok(streamed),
        };
        times += 1;
        let outcome = if times <= OVERFLOWS_MAX {
            compaction::recover(&cx.compaction(), history, &error, times).await?
        } else {
            Outcome::Unchanged
        };
        match outcome {
            Outcome::Compacted => {}
            Outcome::Stopped => return Ok(Streamed::Stopped(Message::assistant(""))),
            Outcome::Unchanged => {
                error.hint = compaction::hint(&cx.compaction(), history);
                return Ok(Streamed::Failed(error));
            }
        }
    }
}

/// Streams one reply, and continues it while it is cut short.
async fn stream_reply(
    cx: &TurnContext<'_>,
    history: &History,
    draft: &mut Draft,
) -> Result<Streamed, StoreError> {
    let mut continuations = 0;
    loop {
        let (message, finished) = match stream_once(cx, history, draft).await? {
            Once::Complete(message, finished) => (message, finished),
            Once::Stopped(message) => return Ok(Streamed::Stopped(message)),
            Once::Circling(message) => return Ok(Streamed::Circling(message)),
            Once::Failed(error) => return Ok(Streamed::Failed(error)),
        };
        let reason = finished.reason;
        draft.add(finished);
        let is_complete = !reason.is_cut_short() || message.calls().next().is_some();
        if is_complete || continuations == CONTINUATIONS_MAX {
            return Ok(Streamed::Complete(draft.joined_with(message)));
        }
        continuations += 1;
        draft.text.push_str(&message.text());
        draft.nudge = Some(NUDGE_CONTINUE);
        if reason == FinishReason::Length {
            let doubled = draft
                .output_tokens_max
                .map_or(OUTPUT_TOKENS_RAISED, |tokens| tokens.saturating_mul(2));
            draft.output_tokens_max = Some(doubled);
        }
        ask_again(cx, "the reply was cut off".to_owned());
    }
}

enum Once {
    Complete(Message, Finished),
    Stopped(Message),
    Circling(Message),
    Failed(ModelError),
}

/// Sends one request and passes its stream on.
async fn stream_once(
    cx: &TurnContext<'_>,
    history: &History,
    draft: &mut Draft,
) -> Result<Once, StoreError> {
    if !std::mem::take(&mut draft.is_asked) {
        cx.recorder.add(Entry::ModelAsked {
            turn: cx.turn.clone(),
            model: cx.ports.model.name(),
        });
    }
    cx.recorder.commit().await?;
    let tail = draft.tail();
    let with_tail;
    let messages = if tail.is_empty() {
        history.messages()
    } else {
        with_tail = [history.messages(), &tail].concat();
        &with_tail
    };
    let request = ModelRequest {
        session: cx.recorder.session(),
        turn: &cx.turn,
        system: &history.prefix.system,
        tools: &history.prefix.tools,
        messages,
        output_tokens_max: draft.output_tokens_max,
    };
    let mut stream = cx.ports.model.stream(request);
    let mut reply = ReplyBuilder::new();
    let (mut said, mut thought) = (Watch::default(), Watch::default());
    loop {
        // A stream that always has something must not keep an interrupt from being heard.
        tokio::task::coop::consume_budget().await;
        let delta = tokio::select! {
            biased;
            () = cx.stop.cancelled() => return Ok(Once::Stopped(reply.finish_interrupted())),
            delta = stream.next() => delta,
        };
        match delta {
            Some(Ok(Delta::Finished(finished))) => {
                // A connection that broke may have cut a call in half.
                let message = match finished.reason {
                    FinishReason::Cut => reply.finish_interrupted(),
                    _ => reply.finish(),
                };
                return Ok(Once::Complete(message, finished));
            }
            Some(Ok(delta)) => {
                reply.push(&delta);
                let goes_in_circles = match &delta {
                    Delta::Text(text) => said.hears(text),
                    Delta::Reasoning(text) => thought.hears(text),
                    _ => false,
                };
                if let Some(event) = event_of(delta) {
                    cx.tell(event);
                }
                if goes_in_circles {
                    return Ok(Once::Circling(reply.finish_interrupted()));
                }
            }
            Some(Err(error)) => return Ok(Once::Failed(error)),
            None => return Ok(Once::Failed(ended_early(cx.ports.model.name()))),
        }
    }
}

fn event_of(delta: Delta) -> Option<Event> {
    match delta {
        Delta::Text(text) => Some(Event::Text { text }),
        Delta::Reasoning(text) => Some(Event::Reasoning { text }),
        Delta::Notice(notice) => Some(Event::Notice {
            notice: Notice::Model { notice },
        }),
        // Calls are told when they run, with their arguments complete.
        Delta::ReasoningSigned(_)
        | Delta::CallStarted { .. }
        | Delta::CallArguments { .. }
        | Delta::CallSigned { .. }
        | Delta::Finished(_) => None,
    }
}

/// Puts a reply into the history and the next commit.
fn record_reply(cx: &TurnContext<'_>, history: &mut History, mut message: Message, draft: &Draft) {
    if salvage::calls_from_text(&mut message, &history.prefix.tools) {
        cx.tell(Event::TextDiscarded);
    }
    let finish = draft.finish.as_ref();
    cx.recorder.add(Entry::Replied {
        turn: cx.turn.clone(),
        message: message.clone(),
        reason: finish.map_or(FinishReason::Cut, |finish| finish.reason),
        usage: draft.usage,
        cost: draft.cost(),
        model: draft.model(cx),
    });
    history.push(message);
    if let Some(finish) = finish {
        let model = &cx.ports.model;
        history.measure(&finish.usage, model.context_window());
    }
    tell_usage(cx, draft);
}

/// Tells what the requests for a reply cost, also when none came of them.
fn tell_usage(cx: &TurnContext<'_>, draft: &Draft) {
    if !draft.costs.is_empty() {
        cx.tell(Event::ReplyFinished {
            usage: draft.usage,
            cost: draft.cost(),
            model: draft.model(cx),
            requests: draft.costs.len() as u32,
        });
    }
}

/// Keeps what was said before the user stopped it, if anything was.
fn record_partial(cx: &TurnContext<'_>, history: &mut History, message: Message, draft: &Draft) {
    if message.text().trim().is_empty() {
        return;
    }
    cx.recorder.add(Entry::Replied {
        turn: cx.turn.clone(),
        message: message.clone(),
        reason: FinishReason::Cut,
        usage: draft.usage,
        cost: draft.cost(),
        model: cx.ports.model.name(),
    });
    history.push(message);
}

fn ask_again(cx: &TurnContext<'_>, reason: String) {
    cx.tell(Event::Notice {
        notice: Notice::AskedAgain { reason },
    });
}

fn ended_early(model: ModelName) -> ModelError {
    ModelError {
        model,
        kind: ModelErrorKind::Broken,
        message: "the stream ended without saying that it was complete".into(),
        hint: "try again; if it keeps happening, try another model or provider".into(),
    }
}

fn filtered(model: ModelName) -> ModelError {
    ModelError {
        model,
        kind: ModelErrorKind::ContentFilter,
        message: "the provider's content filter refused to answer".into(),
        hint: "rephrase the request, or choose another model with `-m`".into(),
    }
}
