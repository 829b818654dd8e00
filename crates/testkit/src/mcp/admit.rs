//! Whether a request may come in: what its headers must say in each era, and its session.

use serde_json::Value;

use super::{
    host::{Host, SESSION},
    reply::{self, EVENT_STREAM, NO_VALID_SESSION, Reply},
    rpc::{self, HEADER_MISMATCH, LEGACY_VERSIONS, MODERN_VERSION, RpcError},
};
use crate::server::http::Request;

const VERSION: &str = "mcp-protocol-version";

impl Host {
    /// Returns the session that a POST belongs to, if it needs one; the refusal if it may not
    /// come in.
    pub(super) fn admit(&self, request: &Request) -> Result<Option<String>, Reply> {
        let message = &request.json;
        if !message.is_object() {
            let error = RpcError::new(-32700, "Parse error: the body is not a JSON object");
            return Err(Reply::error(400, &message["id"], error));
        }
        if !accepts(request, "application/json") || !accepts(request, EVENT_STREAM) {
            let text = "Not Acceptable: client must accept application/json and text/event-stream";
            return Err(Reply::text(406, text));
        }
        let era = self.peer.settings().era;
        match rpc::modern_version(message) {
            Some(version) if era.is_modern() => admit_modern(request, version).map(|()| None),
            _ if !era.is_legacy() => {
                let asked = &message["params"]["protocolVersion"];
                let error = RpcError::unsupported_version(asked);
                Err(Reply::error(400, &message["id"], error))
            }
            _ if rpc::method(message) == "initialize" => Ok(None),
            _ if !self.peer.settings().has_sessions => Ok(None),
            _ => self.known_session(request).map(Some),
        }
    }

    /// Returns the session whose notifications a GET may read.
    pub(super) fn admit_reader(&self, request: &Request) -> Result<String, Reply> {
        let settings = self.peer.settings();
        if !settings.has_get_stream || !settings.era.is_legacy() {
            return Err(Reply::text(405, "Method Not Allowed").header("allow", "POST"));
        }
        if !accepts(request, EVENT_STREAM) {
            let text = "Not Acceptable: client must accept text/event-stream";
            return Err(Reply::text(406, text));
        }
        self.known_session(request)
    }

    /// Returns the session that a request names, if it is still known.
    pub(super) fn known_session(&self, request: &Request) -> Result<String, Reply> {
        let bad = |text: &str| Reply::error(400, &Value::Null, RpcError::new(-32000, text));
        let session = request
            .header(SESSION)
            .ok_or_else(|| bad(NO_VALID_SESSION))?;
        if !self.has_session(session) {
            let loss = self.peer.settings().lost_session;
            return Err(reply::session_lost(loss, &request.json));
        }
        match request.header(VERSION) {
            Some(version) if !LEGACY_VERSIONS.contains(&version) => {
                Err(bad("Bad Request: Unsupported protocol version"))
            }
            _ => Ok(session.to_owned()),
        }
    }
}

/// Checks that the headers of a request of the modern era say what its body says.
fn admit_modern(request: &Request, version: &str) -> Result<(), Reply> {
    let message = &request.json;
    let refuse = |error| Err(Reply::error(400, &message["id"], error));
    if version != MODERN_VERSION {
        return refuse(RpcError::unsupported_version(&version.into()));
    }
    let expected = [(VERSION, version), ("mcp-method", rpc::method(message))];
    for (name, value) in expected {
        if request.header(name) != Some(value) {
            let text = format!("Header mismatch: {name} must be `{value}`");
            return refuse(RpcError::new(HEADER_MISMATCH, text));
        }
    }
    Ok(())
}

fn accepts(request: &Request, content_type: &str) -> bool {
    let accept = request.header("accept").unwrap_or_default();
    accept.contains(content_type) || accept.contains("*/*")
}
