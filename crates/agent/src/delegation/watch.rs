//! What a parent is told of its subagent, and what its person is asked.

use std::time::Duration;

use hermes_core::{
    Ask, BoxFuture, CallId, Enquiry, Event, Field, FieldKind, FieldOption, Op, Person, Question,
    Response, Verdict, Wanted, text, wording,
};
use serde_json::Value;
use tokio::sync::mpsc;

/// One row of a terminal, more or less.
const LINE_CHARS_MAX: usize = 120;
const DECISION: &str = "decision";

/// The parent's ear.
pub(super) struct Watch {
    pub(super) events: mpsc::Sender<Event>,
    /// The parent's call.
    pub(super) call: CallId,
    /// From 1.
    pub(super) number: usize,
    pub(super) person: Person,
}

impl Watch {
    /// Passes an event on. Returns the answer to wait for, if it asks something.
    pub(super) async fn note(&self, event: Event) -> Option<BoxFuture<'static, Op>> {
        match event {
            Event::CallStarted {
                tool, arguments, ..
            } => {
                let brief = wording::brief(&arguments);
                self.show(&format!("{tool} {brief}")).await;
            }
            Event::SubagentProgress { subagent, text, .. } => {
                self.show(&format!("[{subagent}] {text}")).await;
            }
            Event::Notice { notice } => self.show(&wording::notice(&notice)).await,
            Event::TurnResumed { .. } => self.show("goes on after a crash").await,
            Event::TurnEnded { end, .. } => {
                let words = wording::turn_end(&end);
                self.show(words.as_deref().unwrap_or("finished")).await;
            }
            Event::ReplyFinished {
                usage, cost, model, ..
            }
            | Event::CallSpent {
                usage, cost, model, ..
            } => {
                let call = self.call.clone();
                self.tell(Event::CallSpent {
                    call,
                    usage,
                    cost,
                    model,
                })
                .await;
            }
            Event::Asked(question) => return Some(self.ask_consent(question)),
            Event::Enquired(enquiry) => return Some(self.ask_on(enquiry)),
            _ => {}
        }
        None
    }

    /// Shows what the subagent is doing, in one line.
    pub(super) async fn show(&self, text: &str) {
        let first = text.lines().next().unwrap_or_default();
        self.tell(Event::SubagentProgress {
            call: self.call.clone(),
            subagent: self.number,
            text: text::shorten(first, LINE_CHARS_MAX),
        })
        .await;
    }

    /// Tells whoever listens to the parent. A surface that went away does not stop the work.
    async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }

    /// Asks the parent's person whether something may run.
    fn ask_consent(&self, question: Question) -> BoxFuture<'static, Op> {
        let person = self.person.clone();
        let ask = Ask {
            asker: format!("subagent {}", self.number),
            message: format!(
                "{} wants to run: {}\n{}",
                question.tool, question.what, question.reason
            ),
            wanted: Wanted::Form {
                fields: vec![decision(&question.choices)],
            },
            timeout: Duration::from_millis(question.expires_in_ms),
        };
        Box::pin(async move {
            Op::Answer {
                approval: question.approval,
                verdict: verdict(&person.ask(ask).await),
            }
        })
    }

    /// Asks the parent's person what a call of the subagent wants to know.
    fn ask_on(&self, enquiry: Enquiry) -> BoxFuture<'static, Op> {
        let person = self.person.clone();
        let ask = Ask {
            asker: format!("{}, for subagent {}", enquiry.asker, self.number),
            message: enquiry.message,
            wanted: enquiry.wanted,
            timeout: Duration::from_millis(enquiry.expires_in_ms),
        };
        Box::pin(async move {
            Op::Respond {
                enquiry: enquiry.id,
                response: person.ask(ask).await,
            }
        })
    }
}

/// Offers what the question offers. What is allowed for good is for the user's own conversations.
fn decision(choices: &[Verdict]) -> Field {
    let option = |value: &str, title: &str| FieldOption {
        value: value.to_owned(),
        title: Some(title.to_owned()),
    };
    let mut options = vec![option("no", "no"), option("once", "yes, this time")];
    if choices.contains(&Verdict::Session) {
        options.push(option(
            "session",
            "yes, whenever this subagent asks for the same",
        ));
    }
    let default = None;
    let kind = FieldKind::Choice { options, default };
    Field {
        title: Some("allow it?".to_owned()),
        is_required: true,
        ..Field::new(DECISION, kind)
    }
}

/// Anything but a clear yes is a no.
fn verdict(response: &Response) -> Verdict {
    let decision = match response {
        Response::Accepted { values } => values.get(DECISION).and_then(Value::as_str),
        Response::Declined { .. } | Response::Cancelled => None,
    };
    match decision {
        Some("once") => Verdict::Once,
        Some("session") => Verdict::Session,
        _ => Verdict::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_clear_yes_is_one() {
        let said = |value: &str| Response::Accepted {
            values: json!({ DECISION: value }).as_object().unwrap().clone(),
        };
        assert_eq!(verdict(&said("once")), Verdict::Once);
        assert_eq!(verdict(&said("session")), Verdict::Session);
        for no in [said("no"), Response::nobody(), Response::Cancelled] {
            assert_eq!(verdict(&no), Verdict::Deny, "{no:?}");
        }
    }
}
