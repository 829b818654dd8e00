//! What the server was sent.

use serde_json::Value;

use super::{host::SESSION, rpc};
use crate::server::Request;

/// A message as it was received, whether it was answered or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The JSON-RPC method; `response` for a client's response, `GET` and `DELETE` for those.
    pub method: String,
    pub session: Option<String>,
    /// In the order they came, with lowercase names.
    pub headers: Vec<(String, String)>,
    /// The JSON-RPC message; `Null` for `GET` and `DELETE`.
    pub message: Value,
}

impl Seen {
    pub(super) fn of(request: &Request) -> Self {
        let method = match request.method.as_str() {
            "POST" => rpc::method(&request.json),
            method => method,
        };
        Self {
            method: method.to_owned(),
            session: request.header(SESSION).map(str::to_owned),
            headers: request.headers.clone(),
            message: request.json.clone(),
        }
    }

    /// Returns the first header of this (lowercase) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the tool that is called, if one is.
    pub fn tool(&self) -> Option<&str> {
        match self.method.as_str() {
            "tools/call" => self.message["params"]["name"].as_str(),
            _ => None,
        }
    }
}
