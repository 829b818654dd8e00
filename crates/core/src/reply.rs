//! Collects a model's stream into the message it adds up to.

use crate::id::CallId;
use crate::message::{Arguments, Message, Part, Reasoning, Role, ToolCall};
use crate::model::{Delta, FinishReason, Finished};
use crate::text::head;

/// Calls in one reply. More is a model run wild; the rest is dropped before it is recorded.
pub const CALLS_PER_REPLY_MAX: usize = 128;

/// A call's name. Providers allow 64 to 128 characters; a longer one is no tool of ours, and it is shown, logged and sent
/// back with every later request.
pub const NAME_CHARS_MAX: usize = 128;
/// A call's id. Providers' own stay below 100 bytes; it is sent back twice with every later request.
pub const CALL_ID_BYTES_MAX: usize = 256;

/// Grows with each delta; [`ReplyBuilder::finish`] makes the message.
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    parts: Vec<Draft>,
    calls: Vec<(usize, usize)>, // (index in the stream, position in `parts`)
}

#[derive(Debug)]
enum Draft {
    Text(String),
    Reasoning(Reasoning),
    Call {
        id: String,
        name: String,
        arguments: String,
        signatures: Vec<String>,
    },
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub message: Message,
    pub finished: Finished,
}

impl ReplyBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one delta. Notices and the end carry no content and are ignored.
    pub fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(text) => self.push_text(text),
            Delta::Reasoning(text) => self.push_reasoning(text),
            Delta::ReasoningSigned(signature) => self.sign_reasoning(signature),
            Delta::CallStarted { index, id, name } => self.start_call(*index, id, name),
            Delta::CallArguments { index, json } => {
                if let Some(Draft::Call { arguments, .. }) = self.call(*index) {
                    arguments.push_str(json);
                }
            }
            Delta::CallSigned { index, signature } => {
                if let Some(Draft::Call { signatures, .. }) = self.call(*index) {
                    signatures.push(signature.clone());
                }
            }
            Delta::Notice(_) | Delta::Finished(_) => {}
        }
    }

    /// Returns whether nothing the user could see has come: no text and no call.
    pub fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Draft::Text(text) => text.trim().is_empty(),
            Draft::Reasoning(_) => true,
            Draft::Call { .. } => false,
        })
    }

    pub fn finish(self) -> Message {
        let mut ids = UniqueIds::default();
        let parts = self.parts.into_iter().map(|part| match part {
            Draft::Text(text) => Part::Text { text },
            Draft::Reasoning(reasoning) => Part::Reasoning(reasoning),
            Draft::Call {
                id,
                name,
                arguments,
                signatures,
            } => Part::ToolCall(ToolCall {
                id: ids.take(id),
                name,
                arguments: Arguments::parse(&arguments),
                signatures,
            }),
        });
        Message {
            role: Role::Assistant,
            origin: None,
            parts: parts.collect(),
        }
    }

    /// Makes the message of a reply that was stopped: text and reasoning stay, calls that never ran go.
    pub fn finish_interrupted(mut self) -> Message {
        self.parts
            .retain(|part| !matches!(part, Draft::Call { .. }));
        self.finish()
    }

    fn push_text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(Draft::Text(text)) => text.push_str(more),
            _ => self.parts.push(Draft::Text(more.to_owned())),
        }
    }

    fn push_reasoning(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(Draft::Reasoning(reasoning)) if reasoning.signature.is_none() => {
                reasoning.text.push_str(more);
            }
            _ => self.parts.push(Draft::Reasoning(Reasoning {
                text: more.to_owned(),
                signature: None,
            })),
        }
    }

    fn sign_reasoning(&mut self, signature: &str) {
        let unsigned = self.parts.iter_mut().rev().find_map(|part| match part {
            Draft::Reasoning(reasoning) if reasoning.signature.is_none() => Some(reasoning),
            _ => None,
        });
        match unsigned {
            Some(reasoning) => reasoning.signature = Some(signature.to_owned()),
            None => self.parts.push(Draft::Reasoning(Reasoning {
                text: String::new(),
                signature: Some(signature.to_owned()),
            })),
        }
    }

    fn start_call(&mut self, index: usize, id: &str, name: &str) {
        if self.call(index).is_some() || self.calls.len() >= CALLS_PER_REPLY_MAX {
            return;
        }
        self.calls.push((index, self.parts.len()));
        self.parts.push(Draft::Call {
            id: head(id, CALL_ID_BYTES_MAX).to_owned(),
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            arguments: String::new(),
            signatures: Vec::new(),
        });
    }

    fn call(&mut self, index: usize) -> Option<&mut Draft> {
        let (_, position) = *self.calls.iter().find(|(started, _)| *started == index)?;
        self.parts.get_mut(position)
    }
}

/// Gives every call of a reply an id of its own: results are matched by it, and some servers send none or repeat one.
#[derive(Default)]
struct UniqueIds(Vec<CallId>);

impl UniqueIds {
    fn take(&mut self, id: String) -> CallId {
        let mut number = self.0.len();
        let wanted = if id.is_empty() {
            format!("call_{number}")
        } else {
            id
        };
        let mut id = CallId::from(wanted.as_str());
        while self.0.contains(&id) {
            let suffix = format!("_{number}");
            let stem = head(&wanted, CALL_ID_BYTES_MAX - suffix.len());
            id = CallId::from(format!("{stem}{suffix}"));
            number += 1;
        }
        self.0.push(id.clone());
        id
    }
}

impl FinishReason {
    /// Returns whether the model had more to say.
    pub fn is_cut_short(self) -> bool {
        matches!(self, Self::Length | Self::Cut)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn build(deltas: &[Delta]) -> Message {
        let mut reply = ReplyBuilder::new();
        for delta in deltas {
            reply.push(delta);
        }
        reply.finish()
    }

    fn started(index: usize, id: &str) -> Delta {
        Delta::CallStarted {
            index,
            id: id.into(),
            name: "t".into(),
        }
    }

    fn arguments(index: usize, json: &str) -> Delta {
        Delta::CallArguments {
            index,
            json: json.into(),
        }
    }

    #[test]
    fn interleaved_calls_keep_their_own_arguments() {
        let message = build(&[
            started(0, "a"),
            started(1, "b"),
            arguments(0, r#"{"x""#),
            arguments(1, r#"{"y":2}"#),
            arguments(0, ":1}"),
        ]);
        let calls: Vec<_> = message
            .calls()
            .map(|call| (call.id.as_str(), call.arguments.clone()))
            .collect();
        assert_eq!(
            calls,
            [
                ("a", Arguments::Json(json!({"x": 1}))),
                ("b", Arguments::Json(json!({"y": 2})))
            ]
        );
    }

    #[test]
    fn repeated_and_missing_call_ids_become_unique() {
        let message = build(&[started(0, "same"), started(1, "same"), started(2, "")]);
        let ids: Vec<_> = message.calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["same", "same_1", "call_2"]);
    }

    #[test]
    fn a_made_up_id_does_not_meet_one_that_is_taken() {
        let message = build(&[started(0, "a_2"), started(1, "a"), started(2, "a")]);
        let ids: Vec<_> = message.calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a_2", "a", "a_3"]);
    }

    #[test]
    fn a_name_or_id_of_megabytes_is_cut() {
        let long = "é".repeat(1_000_000);
        let call = |index| Delta::CallStarted {
            index,
            id: long.clone(),
            name: long.clone(),
        };
        let message = build(&[call(0), call(1)]);
        for call in message.calls() {
            assert!(call.id.as_str().len() <= CALL_ID_BYTES_MAX);
            assert_eq!(call.name.chars().count(), NAME_CHARS_MAX);
        }
        assert_eq!(message.calls().count(), 2);
    }

    proptest! {
        #[test]
        fn all_ids_of_a_reply_differ(ids in vec("(call_)?[ab]{0,2}(_[0-9]{1,2}){0,2}|é{127,130}", 0..40)) {
            let calls: Vec<_> = ids.iter().enumerate().map(|(index, id)| started(index, id)).collect();
            let message = build(&calls);
            let unique: HashSet<_> = message.calls().map(|call| call.id.as_str()).collect();
            prop_assert_eq!(unique.len(), ids.len());
            prop_assert!(unique.iter().all(|id| !id.is_empty() && id.len() <= CALL_ID_BYTES_MAX));
        }
    }

    #[test]
    fn a_signature_closes_the_reasoning_before_it() {
        let message = build(&[
            Delta::Reasoning("think".into()),
            Delta::ReasoningSigned("sig".into()),
            Delta::Reasoning("more".into()),
        ]);
        assert_eq!(
            message.parts,
            [
                Part::Reasoning(Reasoning {
                    text: "think".into(),
                    signature: Some("sig".into())
                }),
                Part::Reasoning(Reasoning {
                    text: "more".into(),
                    signature: None
                }),
            ]
        );
    }

    #[test]
    fn a_flood_of_calls_is_bounded() {
        let mut reply = ReplyBuilder::new();
        for index in 0..10_000 {
            reply.push(&started(index, ""));
        }
        assert_eq!(reply.finish().calls().count(), CALLS_PER_REPLY_MAX);
    }

    #[test]
    fn an_interrupted_reply_keeps_text_and_drops_calls() {
        let mut reply = ReplyBuilder::new();
        reply.push(&Delta::Text("so far".into()));
        reply.push(&started(0, "a"));
        let message = reply.finish_interrupted();
        assert_eq!(
            (message.text().as_str(), message.calls().count()),
            ("so far", 0)
        );
    }
}
