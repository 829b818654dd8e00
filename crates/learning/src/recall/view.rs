//! What a model is shown of messages and conversations, as JSON with the names it knows.

use hermes_core::text::shorten;
use hermes_core::{Role, SearchHit, SessionRecord, Spoken};
use serde_json::{Value, json};

use super::{Found, Read};

/// Characters of one message. What is longer can be scrolled to.
const MESSAGE_CHARS_MAX: usize = 1_200;

/// Characters of the message that was found.
const ANCHOR_CHARS_MAX: usize = 4_000;

pub(super) const SNIPPET_CHARS_MAX: usize = 240;

const PREVIEW_CHARS_MAX: usize = 160;

pub(super) fn messages(messages: &[Spoken], anchor: Option<u64>) -> Value {
    messages.iter().map(|one| message(one, anchor)).collect()
}

fn message(spoken: &Spoken, anchor: Option<u64>) -> Value {
    let is_anchor = Some(spoken.place) == anchor;
    let chars_max = if is_anchor {
        ANCHOR_CHARS_MAX
    } else {
        MESSAGE_CHARS_MAX
    };
    let mut shown = json!({
        "id": spoken.place,
        "role": role_name(spoken.message.role),
        "when": spoken.at.to_iso(),
        "content": said(spoken, chars_max),
    });
    if is_anchor {
        shown["anchor"] = true.into();
    }
    shown
}

/// What was said, or which tools were called where nothing was.
pub(super) fn said(spoken: &Spoken, chars_max: usize) -> String {
    let text = match spoken.message.tool_result() {
        Some(result) => result.text.clone(),
        None => spoken.message.shown(),
    };
    if !text.trim().is_empty() {
        return shorten(&text, chars_max);
    }
    let calls: Vec<&str> = spoken
        .message
        .calls()
        .map(|call| call.name.as_str())
        .collect();
    format!("[called {}]", calls.join(", "))
}

pub(super) fn found(found: &Found) -> Value {
    let Found {
        record,
        root,
        best,
        more,
    } = found;
    let SearchHit {
        at,
        role,
        place,
        snippet,
        ..
    } = best;
    let mut shown = json!({
        "session_id": record.id,
        "when": at.to_iso(),
        "source": record.source,
        "model": record.model.model,
        "title": record.title,
        "matched_role": role_name(*role),
        "match_message_id": place,
        "snippet": snippet,
        "message_count": record.messages,
    });
    if !more.is_empty() {
        shown["more_match_message_ids"] = json!(more);
    }
    if *root != record.id {
        shown["parent_session_id"] = json!(root);
    }
    shown
}

pub(super) fn record(record: &SessionRecord) -> Value {
    json!({
        "session_id": record.id,
        "title": record.title,
        "source": record.source,
        "model": record.model.model,
        "started_at": record.created.to_iso(),
        "last_active": record.updated.to_iso(),
        "message_count": record.messages,
        "preview": shorten(&record.preview, PREVIEW_CHARS_MAX),
    })
}

pub(super) fn read(read: &Read) -> Value {
    let mut shown = record(&read.record);
    shown["success"] = true.into();
    shown["mode"] = "read".into();
    shown["messages"] = messages(&read.first, None);
    if !read.last.is_empty() {
        shown["last_messages"] = messages(&read.last, None);
        shown["note"] = "there is more between `messages` and `last_messages`, if their ids do not follow each other; \
                         scroll with session_id and around_message_id"
            .into();
    }
    shown
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
