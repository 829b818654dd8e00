//! Runs single turns for the surfaces that have one question: `-z`, `chat -q`, recovery.

use std::time::Duration;

use hermes_agent::Follower;
use hermes_core::{
    CompactionEnd, Cost, Event, Message, ModelName, Notice, Op, Origin, Part, Role, SessionId,
    TurnEnd, Usage, UserMessage,
};
use hermes_runtime::{Conversation, OpenedSession, Start};

use crate::countdown::Countdown;
use crate::failure::{Failure, Outcome, code};
use crate::logging;
use crate::render::Renderer;
use crate::signals::Signals;

const NEWS: &str = "News of a process in the background:\n";

/// What a turn came to.
#[derive(Debug, Clone)]
pub struct Report {
    pub session: SessionId,
    /// The answer: what was said after the last tool call.
    pub text: String,
    pub end: TurnEnd,
    pub usage: Usage,
    /// `None` while nothing was asked.
    pub cost: Option<Cost>,
    pub requests: u32,
    pub model: ModelName,
    /// Calls that nobody was there to allow.
    pub refused: u32,
    /// The code to end with, should it be interrupted.
    signal: u8,
    /// Events went by unseen: the text has to be read in the store.
    is_incomplete: bool,
}

/// Opens a session, says one thing in it, and follows it until it rests. A turn that a crash cut short ends first.
pub async fn run(
    conversation: &Conversation,
    start: Start,
    message: Option<UserMessage>,
    renderer: &mut Renderer,
) -> Outcome<Report> {
    let opened = conversation.open(start).await?;
    if let Some(message) = message {
        opened.session.send(Op::Say(message)).await;
    }
    let mut report = Report::of(conversation, &opened);
    follow(conversation, opened, renderer, &mut report).await?;
    if report.is_incomplete {
        let loaded = conversation
            .setup()
            .ports
            .store
            .load(&report.session)
            .await?;
        let mut said = loaded.messages.iter().rev();
        let answer = said.find(|message| message.role == Role::Assistant);
        report.text = answer.map(Message::text).unwrap_or_default();
    }
    Ok(report)
}

/// Brings a turn that a crash cut short to its end without going on with it.
pub async fn stop(conversation: &Conversation, start: Start) -> Outcome<Report> {
    let opened = conversation.open(start).await?;
    // It waits there before the turn goes on.
    opened.session.interrupt().await;
    let mut report = Report::of(conversation, &opened);
    follow(conversation, opened, &mut Renderer::Quiet, &mut report).await?;
    Ok(report)
}

/// Shows what happens until nothing does any more.
async fn follow(
    conversation: &Conversation,
    opened: OpenedSession,
    renderer: &mut Renderer,
    report: &mut Report,
) -> Outcome<()> {
    let OpenedSession {
        session,
        mut events,
        resumed,
    } = opened;
    drop(resumed);
    let mut signals = Signals::listen()?;
    let mut countdown = Countdown::beside(renderer);
    let mut shown = renderer.begin(session.id());
    if shown.is_err() {
        session.interrupt().await;
    }
    loop {
        let followed = tokio::select! {
            followed = events.next() => followed,
            () = countdown.tick() => continue,
            interrupted = signals.interrupted() => {
                report.signal = signals.code();
                if interrupted.is_repeated() {
                    let failure = give_up(&mut events, session.id()).await;
                    return Err(Failure { code: report.signal, ..failure });
                }
                session.interrupt().await;
                continue;
            }
        };
        let Some(followed) = followed else { break };
        if followed.event() == Some(&Event::Idle) {
            break;
        }
        countdown.clear();
        if shown.is_ok() {
            shown = renderer.show(&followed);
            if shown.is_err() {
                // Nobody reads any more: the turn is stopped, but comes to its proper end.
                session.interrupt().await;
            }
        }
        report.is_incomplete |= followed.event().is_none();
        if let Some(event) = followed.event() {
            logging::log(session.id(), event);
            report.add(event);
            countdown.heed(event);
        }
    }
    conversation.close(session).await?;
    shown
}

/// What the model is told by itself of a process in the background. Its words are no person's, so that nothing in them is a
/// reference to a file.
pub fn news(notice: String) -> UserMessage {
    let parts = vec![Part::text(NEWS), Part::text(notice)];
    UserMessage::of(parts).with_origin(Origin::Notice)
}

/// What remains after a second Ctrl-C: a moment for the end of the turn to be recorded, then out.
pub async fn give_up(events: &mut Follower, session: &SessionId) -> Failure {
    /// The first Ctrl-C ends a turn within 100 ms; this is for a machine that is busy.
    const PATIENCE: Duration = Duration::from_secs(2);
    let end = async {
        while let Some(followed) = events.next().await {
            if matches!(followed.event(), Some(Event::TurnEnded { .. })) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, end).await;
    interrupted(session)
}

fn interrupted(session: &SessionId) -> Failure {
    Failure {
        code: code::INTERRUPTED,
        ..Failure::new("interrupted")
    }
    .hint(format!("`hermes -r {session}` goes on with this session"))
}

impl Report {
    fn of(conversation: &Conversation, opened: &OpenedSession) -> Self {
        let model = conversation.setup().ports.model.name();
        Self::new(opened.session.id().clone(), model)
    }

    pub fn new(session: SessionId, model: ModelName) -> Self {
        Self {
            session,
            text: String::new(),
            end: TurnEnd::Finished,
            usage: Usage::default(),
            cost: None,
            requests: 0,
            model,
            refused: 0,
            signal: code::INTERRUPTED,
            is_incomplete: false,
        }
    }

    pub fn add(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { .. } | Event::CallStarted { .. } | Event::TextDiscarded => {
                self.text.clear();
            }
            Event::Text { text } => self.text.push_str(text),
            Event::ReplyFinished {
                usage,
                cost,
                model,
                requests,
            } => {
                self.usage += *usage;
                self.cost = self.cost.map_or(Some(*cost), |sum| Some(plus(sum, *cost)));
                self.requests += requests;
                self.model = model.clone();
            }
            Event::CallSpent { usage, cost, .. } => {
                self.usage += *usage;
                self.cost = self.cost.map_or(Some(*cost), |sum| Some(plus(sum, *cost)));
                self.requests += 1;
            }
            Event::CompactionEnded {
                end: CompactionEnd::Done { report },
            } => {
                if let Some(cost) = report.cost {
                    self.usage += report.usage;
                    self.cost = self.cost.map_or(Some(cost), |sum| Some(plus(sum, cost)));
                }
            }
            Event::Notice {
                notice: Notice::NotAllowed { .. },
            } => self.refused += 1,
            Event::TurnEnded { end, .. } => self.end = end.clone(),
            _ => {}
        }
    }

    /// Returns why there is no answer, or none that is complete.
    pub fn failure(&self) -> Option<Failure> {
        let failure = match &self.end {
            TurnEnd::Finished => return None,
            TurnEnd::Interrupted => Failure {
                code: self.signal,
                ..interrupted(&self.session)
            },
            TurnEnd::Failed { error } => Failure::new(error.to_string()).hint(error.hint.clone()),
            TurnEnd::Broken { error, hint } => Failure::new(error.clone()).hint(hint.clone()),
            TurnEnd::OutOfSteps { steps } => {
                Failure::new(format!("the turn used all its {steps} steps")).hint(format!(
                    "`hermes -r {}` goes on; --max-turns allows more",
                    self.session
                ))
            }
            TurnEnd::Stuck { reason } => Failure::new(reason.clone())
                .hint("rephrase the request, or try another model with -m"),
            TurnEnd::Abandoned { crashes } => {
                Failure::new(format!("this turn crashed hermes {crashes} times"))
                    .hint("see `hermes logs`; the session can go on with another message")
            }
        };
        Some(failure)
    }
}

/// The sum of two costs; unknown as soon as one is.
fn plus(left: Cost, right: Cost) -> Cost {
    match (left, right) {
        (Cost::Included, Cost::Included) => Cost::Included,
        _ => match left.micro_usd().zip(right.micro_usd()) {
            Some((left, right)) => Cost::Estimated(left.saturating_add(right)),
            None => Cost::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_answer_is_what_was_said_after_the_last_call() {
        let mut report = Report::new(
            "s".into(),
            ModelName {
                provider: "p".into(),
                model: "m".into(),
            },
        );
        let text = |text: &str| Event::Text { text: text.into() };
        let call = Event::CallStarted {
            call: "c".into(),
            tool: "t".into(),
            arguments: json!({}),
        };
        for event in [text("I will look."), call, text("It is "), text("fine.")] {
            report.add(&event);
        }
        assert_eq!(report.text, "It is fine.");
    }
}
