//! How a message lies in its row: what can be searched in one column, everything else in another, nothing twice.

use std::borrow::Cow;

use hermes_core::{CallId, Media, Message, Origin, Part, ResultStatus, Role, ToolResult};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The columns `origin`, `text` and `parts` of a row.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredMessage<'a> {
    /// `None` where it goes without saying.
    pub(crate) origin: Option<String>,
    pub(crate) text: Cow<'a, str>,
    /// `None` for one piece of text, which most messages are.
    pub(crate) parts: Option<String>,
}

/// A part without its searchable text, which is the next `bytes` of the row's text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPart<'a> {
    Text(usize),
    Result {
        call: Cow<'a, CallId>,
        tool: Cow<'a, str>,
        status: ResultStatus,
        bytes: usize,
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        images: Cow<'a, [Media]>,
    },
    Other(Cow<'a, Part>),
}

/// Stands between two pieces of text, so that their words do not run together.
const SEPARATOR: char = '\n';

pub(crate) fn encode(message: &Message) -> Result<StoredMessage<'_>, Failure> {
    let origin = message.origin.as_ref();
    let origin = origin.filter(|origin| **origin != Origin::person());
    let origin = origin.map(json).transpose()?;
    if let [Part::Text { text }] = message.parts.as_slice() {
        return Ok(StoredMessage {
            origin,
            text: text.into(),
            parts: None,
        });
    }
    let pieces: Vec<&str> = message.parts.iter().filter_map(searchable).collect();
    let parts: Vec<StoredPart> = message.parts.iter().map(without_text).collect();
    Ok(StoredMessage {
        origin,
        text: pieces.join("\n").into(),
        parts: Some(json(&parts)?),
    })
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::Refused(format!("a message cannot be written as JSON: {error}")))
}

fn searchable(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::ToolResult(result) => Some(&result.text),
        Part::Image(_) | Part::Audio(_) | Part::Reasoning(_) | Part::ToolCall(_) => None,
    }
}

fn without_text(part: &Part) -> StoredPart<'_> {
    match part {
        Part::Text { text } => StoredPart::Text(text.len()),
        Part::ToolResult(result) => StoredPart::Result {
            call: Cow::Borrowed(&result.call),
            tool: result.tool.as_str().into(),
            status: result.status,
            bytes: result.text.len(),
            images: result.images.as_slice().into(),
        },
        other => StoredPart::Other(Cow::Borrowed(other)),
    }
}

/// The columns of a message, as a row has them.
pub(crate) struct Columns<'a> {
    pub(crate) role: &'a str,
    pub(crate) origin: Option<&'a str>,
    pub(crate) text: &'a str,
    pub(crate) parts: Option<&'a str>,
}

pub(crate) fn decode(columns: Columns<'_>) -> Result<Message, Failure> {
    let role = role_from(columns.role)?;
    let origin = origin_from(role, columns.origin)?;
    let text = columns.text;
    let Some(parts) = columns.parts else {
        return Ok(Message {
            role,
            origin,
            parts: vec![Part::text(text)],
        });
    };
    let stored: Vec<StoredPart> = serde_json::from_str(parts)
        .map_err(|error| Failure::Unreadable(format!("the parts of a message: {error}")))?;
    let mut pieces = Pieces { rest: Some(text) };
    let parts = stored.into_iter().map(|part| match part {
        StoredPart::Text(bytes) => Ok(Part::text(pieces.take(bytes)?)),
        StoredPart::Result {
            call,
            tool,
            status,
            bytes,
            images,
        } => Ok(Part::ToolResult(ToolResult {
            call: call.into_owned(),
            tool: tool.into_owned(),
            text: pieces.take(bytes)?.to_owned(),
            status,
            images: images.into_owned(),
        })),
        StoredPart::Other(part) => Ok(part.into_owned()),
    });
    Ok(Message {
        role,
        origin,
        parts: parts.collect::<Result<_, Failure>>()?,
    })
}

fn origin_from(role: Role, origin: Option<&str>) -> Result<Option<Origin>, Failure> {
    match (role, origin) {
        (Role::User, None) => Ok(Some(Origin::person())),
        (Role::Assistant | Role::Tool, None) => Ok(None),
        (_, Some(origin)) => serde_json::from_str(origin)
            .map(Some)
            .map_err(|error| Failure::Unreadable(format!("the origin of a message: {error}"))),
    }
}

/// The text of a row, piece by piece.
struct Pieces<'a> {
    /// `None` after the last piece.
    rest: Option<&'a str>,
}

impl<'a> Pieces<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a str, Failure> {
        let split = self.rest.and_then(|rest| rest.split_at_checked(bytes));
        let (piece, rest) = split
            .ok_or_else(|| Failure::Unreadable("a message is shorter than its parts say".into()))?;
        self.rest = rest.strip_prefix(SEPARATOR);
        Ok(piece)
    }
}

pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

pub(crate) fn role_from(name: &str) -> Result<Role, Failure> {
    match name {
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        other => Err(Failure::Unreadable(format!("a message of role `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Arguments, Media, MediaSource, Reasoning, ToolCall};
    use serde_json::json;

    fn check(message: &Message, text: &str) {
        let stored = encode(message).unwrap();
        assert_eq!(stored.text, text);
        let back = decode(Columns {
            role: role_name(message.role),
            origin: stored.origin.as_deref(),
            text: &stored.text,
            parts: stored.parts.as_deref(),
        });
        assert_eq!(back.unwrap(), *message);
    }

    #[test]
    fn where_words_came_from_comes_back_and_a_person_needs_no_column() {
        let mut message = Message::user("done");
        assert_eq!(encode(&message).unwrap().origin, None);
        for origin in [
            Origin::person(),
            Origin::Person {
                surface: Some("telegram".into()),
                id: Some("telegram:42".into()),
                request: Some("request:1f".into()),
                inbox: Vec::new(),
                mirrored: None,
            },
            Origin::Steering,
            Origin::Notice,
            Origin::SubagentReport {
                delegation: "d1".into(),
            },
            Origin::Schedule {
                job: "daily".into(),
            },
            Origin::Summary,
        ] {
            message.origin = Some(origin);
            check(&message, "done");
        }
    }

    fn assistant(parts: Vec<Part>) -> Message {
        Message {
            role: Role::Assistant,
            origin: None,
            parts,
        }
    }

    #[test]
    fn one_piece_of_text_needs_no_parts() {
        let message = Message::user("hello");
        assert_eq!(encode(&message).unwrap().parts, None);
        check(&message, "hello");
        check(&Message::user(""), "");
    }

    #[test]
    fn every_kind_of_part_comes_back_as_it_was() {
        let message = assistant(vec![
            Part::Reasoning(Reasoning {
                text: "hidden".into(),
                signature: Some("sig==".into()),
            }),
            Part::text("first\n"),
            Part::text(""),
            Part::text("naïve 😀"),
            Part::ToolCall(ToolCall {
                id: "c1".into(),
                name: "t".into(),
                arguments: Arguments::Json(json!({"z": 1, "a": 2})),
                signatures: vec!["s".into()],
            }),
            Part::Image(Media {
                mime: "image/png".into(),
                source: MediaSource::Base64("AAAA".into()),
            }),
        ]);
        check(&message, "first\n\n\nnaïve 😀");
        check(&assistant(vec![]), "");
        check(&assistant(vec![Part::text(""), Part::text("")]), "\n");
    }

    #[test]
    fn the_text_of_a_result_is_searchable_and_stored_once() {
        let message = Message::result(ToolResult {
            call: "c".into(),
            tool: "read_file".into(),
            text: "the contents".into(),
            status: ResultStatus::Failed,
            images: vec![],
        });
        check(&message, "the contents");
        let parts = encode(&message).unwrap().parts.unwrap();
        assert!(!parts.contains("contents"), "{parts}");
        assert!(!parts.contains("images"), "{parts}");
    }

    #[test]
    fn the_pictures_of_a_result_come_back_and_are_not_searched() {
        let picture = |base64: &str| Media {
            mime: "image/png".into(),
            source: MediaSource::Base64(base64.into()),
        };
        let message = Message::result(ToolResult {
            call: "c".into(),
            tool: "read_file".into(),
            text: "a.png: PNG image".into(),
            status: ResultStatus::Ok,
            images: vec![picture("AAAA"), picture("BBBB")],
        });
        check(&message, "a.png: PNG image");
    }

    #[test]
    fn a_row_that_disagrees_with_itself_is_damage() {
        let row = |role, origin, parts| Columns {
            role,
            origin,
            text: "ab",
            parts,
        };
        let broken = decode(row("user", None, Some(r#"[{"text":5}]"#)));
        assert!(matches!(broken, Err(Failure::Unreadable(_))));
        assert!(decode(row("system", None, None)).is_err());
        assert!(decode(row("user", None, Some("{"))).is_err());
        assert!(decode(row("user", Some("{}"), None)).is_err());
    }
}
