//! Chat platforms: what is true while none is connected.

use rmcp::model::CallToolResult;
use serde_json::json;

use super::answer::{CallOutcome, Refused};
use super::arguments::Arguments;

pub(super) fn channels(arguments: &Arguments) -> CallOutcome {
    arguments.optional_text("platform")?;
    Ok(CallToolResult::structured(json!({
        "count": 0,
        "channels": [],
        "note": "no chat platform is connected to this agent",
    })))
}

pub(super) fn send(arguments: &Arguments) -> CallOutcome {
    let target = arguments.text("target")?;
    arguments.text("message")?;
    Err(Refused(format!(
        "nothing was sent to `{target}`: no chat platform is connected to this agent"
    )))
}
