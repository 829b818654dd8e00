//! What a turn came to: what an answer that is not streamed says, and what is kept for those who ask again.

use hermes_core::report::Report;
use hermes_core::text::head;
use hermes_core::{
    CallId, Event, ModelName, ResultStatus, SessionFacts, SessionId, TurnEnd, TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Of a result, so much is kept for those who want to see calls afterwards.
const RESULT_BYTES_KEPT: usize = 64 * 1024;
/// Of all results together.
const RESULTS_BYTES_KEPT: usize = 1024 * 1024;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) session: SessionId,
    #[serde(default)]
    pub(crate) turn: Option<TurnId>,
    /// The answer: what was said after the last call.
    pub(crate) text: String,
    /// What was said and called, in order.
    pub(crate) items: Vec<Item>,
    pub(crate) end: TurnEnd,
    pub(crate) usage: Usage,
    pub(crate) model: ModelName,
}

/// Something in an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Item {
    Said(String),
    Called {
        call: CallId,
        tool: String,
        arguments: Value,
    },
    Finished {
        call: CallId,
        status: ResultStatus,
        result: String,
    },
}

/// What separates what was said before a call from what was said after it.
pub(crate) const GAP: &str = "\n\n";

impl Outcome {
    /// An answer that was given before, of which only the words are known.
    pub(crate) fn of_answer(session: SessionId, model: ModelName, text: String) -> Self {
        Self {
            session,
            turn: None,
            items: vec![Item::Said(text.clone())],
            text,
            end: TurnEnd::Finished,
            usage: Usage::default(),
            model,
        }
    }

    /// Everything that was said, as a stream shows it.
    pub(crate) fn shown(&self) -> String {
        let said: Vec<&str> = self.items.iter().filter_map(Item::said).collect();
        said.join(GAP)
    }

    pub(crate) fn calls(&self) -> usize {
        let is_call = |item: &&Item| matches!(item, Item::Called { .. });
        self.items.iter().filter(is_call).count()
    }

    /// Why there is no answer, or none that is complete, and what to do next.
    pub(crate) fn problem(&self) -> Option<String> {
        let mut report = Report::new(self.session.clone(), self.model.clone());
        report.end = self.end.clone();
        let (problem, hint) = report.problem()?;
        Some(if hint.is_empty() {
            problem
        } else {
            format!("{problem}; {hint}")
        })
    }

    /// Whether there is nothing to show but the problem.
    pub(crate) fn is_failure(&self) -> bool {
        self.text.trim().is_empty() && !self.end.is_success()
    }
}

impl Item {
    fn said(&self) -> Option<&str> {
        match self {
            Self::Said(text) => Some(text),
            Self::Called { .. } | Self::Finished { .. } => None,
        }
    }
}

/// An outcome in the making.
pub(crate) struct Collected {
    report: Report,
    turn: Option<TurnId>,
    items: Vec<Item>,
    result_bytes: usize,
    pub(crate) is_over: bool,
}

impl Collected {
    pub(crate) fn new(session: SessionId, facts: Option<&SessionFacts>) -> Self {
        let unknown = || ModelName {
            provider: String::new(),
            model: String::new(),
        };
        let model = facts.map_or_else(unknown, |facts| facts.model.clone());
        Self {
            report: Report::new(session, model),
            turn: None,
            items: Vec::new(),
            result_bytes: 0,
            is_over: false,
        }
    }

    pub(crate) fn add(&mut self, event: &Event) {
        self.report.add(event);
        match event {
            Event::Text { text } => match self.items.last_mut() {
                Some(Item::Said(said)) => said.push_str(text),
                _ => self.items.push(Item::Said(text.clone())),
            },
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => self.items.push(Item::Called {
                call: call.clone(),
                tool: tool.clone(),
                arguments: arguments.clone(),
            }),
            Event::CallFinished {
                call, status, text, ..
            } => {
                let room = RESULTS_BYTES_KEPT - self.result_bytes;
                let result = head(text, RESULT_BYTES_KEPT.min(room)).to_owned();
                self.result_bytes += result.len();
                self.items.push(Item::Finished {
                    call: call.clone(),
                    status: *status,
                    result,
                });
            }
            Event::TurnEnded { turn, .. } => {
                self.turn = Some(turn.clone());
                self.is_over = true;
            }
            _ => {}
        }
    }

    pub(crate) fn finished(self) -> Outcome {
        let end = if self.is_over {
            self.report.end
        } else {
            TurnEnd::Broken {
                error: "the conversation ended in the middle of the turn".to_owned(),
                hint: "ask again; what was said is kept".to_owned(),
            }
        };
        Outcome {
            session: self.report.session,
            turn: self.turn,
            text: self.report.text,
            items: self.items,
            end,
            usage: self.report.usage,
            model: self.report.model,
        }
    }
}
