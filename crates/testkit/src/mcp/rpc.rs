//! JSON-RPC messages, and the words of the protocol's two eras.

use serde_json::{Value, json};

/// The versions with a handshake and sessions, newest first.
pub(crate) const LEGACY_VERSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The version without either: each request says who is asking, in its `_meta`.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";

pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

pub(crate) type Outcome = Result<Value, RpcError>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    pub(crate) fn unsupported_version(asked: &Value) -> Self {
        let data = json!({"supported": [MODERN_VERSION], "requested": asked});
        Self {
            data: Some(data),
            ..Self::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        }
    }
}

/// Returns the response to the request with this id.
pub(crate) fn response(id: &Value, outcome: Outcome) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError {
            code,
            message,
            data,
        }) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Returns the method of a request or notification; `response` for what has none.
pub(crate) fn method(message: &Value) -> &str {
    message["method"].as_str().unwrap_or("response")
}

/// Tells whether a message wants an answer.
pub(crate) fn is_request(message: &Value) -> bool {
    message["method"].is_string() && !message["id"].is_null()
}

/// Returns the version a request of the modern era names; `None` in the legacy era.
pub(crate) fn modern_version(message: &Value) -> Option<&str> {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str()
}
