//! What a turn came to, collected from its events: for whoever wants an answer rather than a stream of it.

use crate::compaction::CompactionEnd;
use crate::id::SessionId;
use crate::model::{Cost, ModelName, Usage};
use crate::session::{Event, Notice, TurnEnd};

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
}

impl Report {
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

    /// Returns why there is no answer, or none that is complete, and what to do next.
    pub fn problem(&self) -> Option<(String, String)> {
        let session = &self.session;
        Some(match &self.end {
            TurnEnd::Finished => return None,
            TurnEnd::Interrupted => (
                "interrupted".to_owned(),
                format!("`hermes -r {session}` goes on with this session"),
            ),
            TurnEnd::Failed { error } => (error.to_string(), error.hint.clone()),
            TurnEnd::Broken { error, hint } => (error.clone(), hint.clone()),
            TurnEnd::OutOfSteps { steps } => (
                format!("the turn used all its {steps} steps"),
                format!("`hermes -r {session}` goes on; --max-turns allows more"),
            ),
            TurnEnd::Stuck { reason } => (
                reason.clone(),
                "rephrase the request, or try another model with -m".to_owned(),
            ),
            TurnEnd::Abandoned { crashes } => (
                format!("this turn crashed hermes {crashes} times"),
                "see `hermes logs`; the session can go on with another message".to_owned(),
            ),
        })
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
