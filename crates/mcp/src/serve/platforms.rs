//! Chat platforms and permissions: what is true while no platform is connected and chats ask in their own terminal.

use rmcp::model::CallToolResult;
use serde_json::json;

use super::answer::{Answer, Refused};
use super::arguments::Arguments;
use super::catalogue::DECISIONS;

pub(super) fn channels(arguments: &Arguments) -> Answer {
    arguments.optional_text("platform")?;
    Ok(CallToolResult::structured(json!({
        "count": 0,
        "channels": [],
        "note": "no chat platform is connected to this agent",
    })))
}

pub(super) fn send(arguments: &Arguments) -> Answer {
    let target = arguments.text("target")?;
    arguments.text("message")?;
    Err(Refused(format!(
        "nothing was sent to `{target}`: no chat platform is connected to this agent"
    )))
}

pub(super) fn open_permissions() -> Answer {
    Ok(CallToolResult::structured(json!({
        "count": 0,
        "approvals": [],
        "note": "a chat asks for permission in its own terminal; such questions cannot be seen or answered from here",
    })))
}

pub(super) fn respond(arguments: &Arguments) -> Answer {
    let id = arguments.text("id")?;
    arguments.word("decision", DECISIONS)?;
    Err(Refused(format!(
        "there is no open question `{id}` here: a chat asks for permission in its own terminal, and is answered there"
    )))
}
