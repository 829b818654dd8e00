//! What a parent is told of its subagent, and what its person is asked.

use std::collections::HashMap;
use std::time::Duration;

use hermes_core::exact::{self, exact};
use hermes_core::{
    ApprovalAnswer, ApprovalId, ApprovalRequest, BoxFuture, CallId, CancellationToken, Elicitation,
    ElicitationId, ElicitationRequest, Event, Field, FieldKind, FieldOption, Notice, Op, Person,
    Response, Verdict, Wanted, text, wording,
};
use serde_json::Value;

use super::report;
use crate::events::EventLog;

/// One row of a terminal, more or less.
const LINE_CHARS_MAX: usize = 120;
/// Of a change, as much as leaves room for the answers on a screen; the rest is a command away.
const CHANGE_LINES_MAX: usize = 24;
const DECISION: &str = "decision";

/// Passes what a subagent does on to its parent's events, and what it asks to the parent's person.
pub(super) struct Watch {
    events: EventLog,
    /// The parent's call.
    call: CallId,
    /// From 1.
    number: usize,
    person: Person,
    /// What the person is being asked; stopping it takes the question off their screen.
    open: HashMap<OpenQuestion, CancellationToken>,
}

/// What a subagent asks, by its name in the subagent's session.
#[derive(Debug, PartialEq, Eq, Hash)]
enum OpenQuestion {
    Consent(ApprovalId),
    Elicitation(ElicitationId),
}

/// What to tell the subagent once the person has answered. Nothing, if they did not.
pub(super) type PendingAnswer = BoxFuture<'static, Option<Op>>;

impl Watch {
    /// Watches subagent `number` of a call.
    pub(super) fn new(events: EventLog, call: CallId, number: usize, person: Person) -> Self {
        Self {
            events,
            call,
            number,
            person,
            open: HashMap::new(),
        }
    }

    /// Passes an event on. Returns the answer to wait for, if it asks something.
    pub(super) fn note(&mut self, event: Event) -> Option<PendingAnswer> {
        match event {
            Event::CallStarted {
                tool, arguments, ..
            } => {
                let brief = wording::brief(&arguments);
                self.show(&format!("{tool} {brief}"));
            }
            Event::SubagentProgress { subagent, text, .. } => {
                self.show(&format!("[{subagent}] {text}"));
            }
            Event::Notice { notice } => {
                self.show(&wording::notice(&notice));
                // What nobody was here to allow is counted with the parent's own.
                if matches!(notice, Notice::NotAllowed { .. }) {
                    self.tell(Event::Notice { notice });
                }
            }
            Event::CompactionStarted { .. } => self.show("makes its conversation shorter"),
            Event::TurnResumed { .. } => self.show("goes on after a crash"),
            Event::TurnEnded { end, .. } => {
                let words = report::shortfall(&end);
                self.show(words.as_deref().unwrap_or("finished"));
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
                });
            }
            Event::ApprovalRequested(question) => return Some(self.ask_consent(question)),
            Event::ElicitationRequested(elicitation) => return Some(self.ask_on(elicitation)),
            // Somebody else may have answered, or the time was up.
            Event::ApprovalClosed { approval, .. } => {
                self.take_back(&OpenQuestion::Consent(approval));
            }
            Event::ElicitationClosed { elicitation } => {
                self.take_back(&OpenQuestion::Elicitation(elicitation));
            }
            _ => {}
        }
        None
    }

    /// Shows what the subagent is doing, in one line.
    pub(super) fn show(&self, text: &str) {
        let first = text.lines().next().unwrap_or_default();
        self.tell(Event::SubagentProgress {
            call: self.call.clone(),
            subagent: self.number,
            text: text::shorten(first, LINE_CHARS_MAX),
        });
    }

    /// Tells whoever follows the parent.
    fn tell(&self, event: Event) {
        self.events.tell(event);
    }

    /// Asks the parent's person whether something may run.
    fn ask_consent(&mut self, question: ApprovalRequest) -> PendingAnswer {
        let request = ElicitationRequest {
            asker: format!("subagent {}", self.number),
            message: consent_message(&question),
            wanted: Wanted::Form {
                fields: vec![decision(&question.choices)],
            },
            timeout: Duration::from_millis(question.expires_in_ms),
        };
        let approval = question.approval;
        let response = self.ask_person(OpenQuestion::Consent(approval.clone()), request);
        Box::pin(async move {
            let answer = answer(&response.await?)?;
            Some(Op::Answer { approval, answer })
        })
    }

    /// Asks the parent's person what a call of the subagent wants to know.
    fn ask_on(&mut self, asked: Elicitation) -> PendingAnswer {
        let request = ElicitationRequest {
            asker: format!("{}, for subagent {}", asked.asker, self.number),
            message: asked.message,
            wanted: asked.wanted,
            timeout: Duration::from_millis(asked.expires_in_ms),
        };
        let elicitation = asked.id;
        let response = self.ask_person(OpenQuestion::Elicitation(elicitation.clone()), request);
        Box::pin(async move {
            let response = response.await?;
            Some(Op::Respond {
                elicitation,
                response,
            })
        })
    }

    /// Asks until somebody answers or it is taken back.
    fn ask_person(
        &mut self,
        asked: OpenQuestion,
        request: ElicitationRequest,
    ) -> impl Future<Output = Option<Response>> + Send + use<> {
        let (person, closed) = (self.person.clone(), CancellationToken::new());
        self.open.insert(asked, closed.clone());
        async move { closed.run_until_cancelled(person.elicit(request)).await }
    }

    fn take_back(&mut self, asked: &OpenQuestion) {
        if let Some(closed) = self.open.remove(asked) {
            closed.cancel();
        }
    }
}

/// Says what a subagent wants to do, why it is asked, and how a file would change.
fn consent_message(question: &ApprovalRequest) -> String {
    let wants = wording::wants(question);
    let what = exact(&question.what);
    let parts = exact::parts(&what);
    let mut message = format!("{} {wants}: {}", question.tool, parts[0]);
    if parts.len() > 1 {
        let command = format!("hermes approvals show {}", question.approval);
        message.push_str(&format!("\n… and more: `{command}` shows all of it"));
    }
    if let Some(folder) = &question.folder {
        message.push_str(&format!("\nin {}", exact(&folder.to_string_lossy())));
    }
    message.push_str(&format!("\n{}", question.reason));
    if let Some(diff) = &question.diff {
        let (lines, more) = wording::change_lines(diff, CHANGE_LINES_MAX);
        message.push_str(&format!("\n{}", lines.join("\n")));
        if more > 0 {
            let command = format!("hermes approvals show {}", question.approval);
            message.push_str(&format!("\n… {more} more lines: `{command}`"));
        }
    }
    message
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

/// What a person said; anything but a clear yes is a no. Silence is neither: the question ends by itself.
fn answer(response: &Response) -> Option<ApprovalAnswer> {
    let decision = match response {
        Response::Accepted { values } => values.get(DECISION).and_then(Value::as_str),
        Response::Declined { .. } => None,
        Response::Cancelled => return None,
    };
    let verdict = match decision {
        Some("once") => Verdict::Once,
        Some("session") => Verdict::Session,
        _ => Verdict::Deny,
    };
    Some(verdict.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_shown_with_the_question_and_its_rest_is_named() {
        let question = |lines: usize| ApprovalRequest {
            approval: "a1".into(),
            call: "c1".into(),
            tool: "write_file".into(),
            what: "/home/me/.bashrc".into(),
            code: hermes_core::ApprovalCode::default(),
            folder: None,
            patterns: Vec::new(),
            diff: Some("+x\u{1b}[2K\n".repeat(lines)),
            reason: "changes what runs when the user logs in".into(),
            choices: Verdict::ALL.to_vec(),
            expires_in_ms: 1,
        };
        let short = consent_message(&question(1));
        assert!(
            short.starts_with("write_file wants to change: /home/me/.bashrc\n"),
            "{short}"
        );
        assert!(short.ends_with("\n│ +x\\x1b[2K"), "{short}");
        let long = consent_message(&question(CHANGE_LINES_MAX + 3));
        assert!(
            long.ends_with("\n… 3 more lines: `hermes approvals show a1`"),
            "{long}"
        );
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let said = |value: &str| Response::Accepted {
            values: json!({ DECISION: value }).as_object().unwrap().clone(),
        };
        assert_eq!(answer(&said("once")), Some(Verdict::Once.into()));
        assert_eq!(answer(&said("session")), Some(Verdict::Session.into()));
        for no in [said("no"), Response::nobody()] {
            assert_eq!(answer(&no), Some(Verdict::Deny.into()), "{no:?}");
        }
        assert_eq!(answer(&Response::Cancelled), None);
    }
}
