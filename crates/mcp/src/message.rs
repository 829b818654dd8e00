//! Reads what a server sent where nothing but the message itself says which request it answers.

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

use crate::listed::mended;

/// Reads a message. Noise is `None`; an answer that cannot be used becomes an error for its request, so that its caller
/// does not wait in vain.
pub(crate) fn read(bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
    let bytes = &*mended(bytes);
    let error = match serde_json::from_slice(bytes) {
        Ok(message) => return Some(message),
        Err(error) => error,
    };
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let is_answer = value.get("result").is_some() || value.get("error").is_some();
    let id = value.get("id").filter(|_| is_answer)?;
    let id = serde_json::from_value(id.clone()).ok()?;
    Some(unusable(
        id,
        format!("its answer is not an MCP message: {error}"),
    ))
}

/// Says that an answer was too large to be read. There was one, so the request was carried out.
pub(crate) fn too_large(bytes_max: usize) -> String {
    format!(
        "it ran, but its answer is larger than {} MiB and was not read; do not run it again for that, ask for less",
        bytes_max >> 20
    )
}

/// Returns what the caller of a request gets instead of an answer that cannot be used.
pub(crate) fn unusable(id: RequestId, cause: String) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::internal_error(cause, None), Some(id))
}
