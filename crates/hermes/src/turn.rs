//! Runs single turns for the doors that have one question: `-z`, `chat -q`, recovery.

use hermes_agent::{Opened, Session, SessionStart};
use hermes_core::{Cost, Event, ModelName, Op, SessionId, TurnEnd, Usage, UserMessage};
use tokio::task::JoinSet;

use crate::failure::{Failure, Outcome, code};
use crate::render::Renderer;
use crate::signals::Signals;
use crate::wiring::Wired;

/// What a turn came to.
#[derive(Debug, Clone)]
pub struct Report {
    pub session: SessionId,
    /// The answer: what was said after the last tool call.
    pub text: String,
    pub end: TurnEnd,
    pub usage: Usage,
    /// `None` as soon as one request's price is unknown.
    pub cost_micro_usd: Option<u64>,
    pub requests: u32,
    pub model: ModelName,
}

/// Opens a session, says one thing in it, and follows the turn to its end. A turn that a crash cut short ends first.
pub async fn run(
    wired: &Wired,
    start: SessionStart,
    message: Option<UserMessage>,
    renderer: &mut Renderer,
) -> Outcome<Report> {
    let opened = Session::open(wired.ports.clone(), wired.settings.clone(), start).await?;
    let turns = usize::from(message.is_some())
        + usize::from(opened.resumed.as_ref().is_some_and(|r| r.has_open_turn));
    if let Some(message) = message {
        opened.session.send(Op::Say(message)).await;
    }
    let mut report = Report::new(opened.session.id().clone(), wired.ports.model.name());
    follow(opened, turns, renderer, &mut report).await?;
    Ok(report)
}

async fn follow(
    opened: Opened,
    turns: usize,
    renderer: &mut Renderer,
    report: &mut Report,
) -> Outcome<()> {
    let Opened {
        session,
        mut events,
        task,
        ..
    } = opened;
    let mut tasks = JoinSet::new();
    tasks.spawn(task);
    let mut signals = Signals::listen()?;
    let mut ended = 0;
    let mut shown = Ok(());
    while ended < turns {
        let event = tokio::select! {
            event = events.recv() => event,
            second = signals.interrupted() => {
                if second.is_repeated() {
                    return Err(Failure { code: code::INTERRUPTED, ..Failure::new("interrupted") });
                }
                session.interrupt().await;
                continue;
            }
        };
        let Some(event) = event else { break };
        report.add(&event);
        ended += usize::from(matches!(event, Event::TurnEnded { .. }));
        if shown.is_ok() {
            shown = renderer.show(&event);
            if shown.is_err() {
                // Nobody reads any more: the turn is stopped, but comes to its proper end.
                session.interrupt().await;
            }
        }
    }
    // The door closes; the task has nothing left to do and ends.
    drop(session);
    tasks.join_all().await;
    shown
}

impl Report {
    pub fn new(session: SessionId, model: ModelName) -> Self {
        Self {
            session,
            text: String::new(),
            end: TurnEnd::Finished,
            usage: Usage::default(),
            cost_micro_usd: Some(0),
            requests: 0,
            model,
        }
    }

    pub fn add(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { .. } | Event::CallStarted { .. } | Event::TextDiscarded => {
                self.text.clear();
            }
            Event::Text { text } => self.text.push_str(text),
            Event::ReplyFinished { usage, cost, model } => {
                self.usage += *usage;
                self.add_cost(*cost);
                self.requests += 1;
                self.model = model.clone();
            }
            Event::TurnEnded { end, .. } => self.end = end.clone(),
            _ => {}
        }
    }

    fn add_cost(&mut self, cost: Cost) {
        self.cost_micro_usd = self
            .cost_micro_usd
            .zip(cost.micro_usd())
            .map(|(sum, more)| sum + more);
    }

    /// Returns why there is no answer, or none that is complete.
    pub fn failure(&self) -> Option<Failure> {
        let failure = match &self.end {
            TurnEnd::Finished => return None,
            TurnEnd::Interrupted => Failure {
                code: code::INTERRUPTED,
                ..Failure::new("interrupted")
            }
            .hint(format!(
                "`hermes -r {}` goes on with this session",
                self.session
            )),
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
