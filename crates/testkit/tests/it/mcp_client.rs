//! An MCP client that shows the HTTP responses as they are.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use hermes_testkit::mcp::{FaultyMcp, Options};
use serde_json::{Value, json};

use crate::client::{Response, request_with};

pub(crate) const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

#[derive(Debug)]
pub(crate) struct McpClient {
    address: SocketAddr,
    pub(crate) session: String,
    next_id: AtomicU64,
}

pub(crate) fn start() -> FaultyMcp {
    FaultyMcp::start_with(&Options::default()).unwrap()
}

/// Posts a message without a session.
pub(crate) fn post(address: SocketAddr, message: &Value) -> Response {
    request_with(address, "POST", "/mcp", &[ACCEPT], &message.to_string())
}

pub(crate) fn initialize(address: SocketAddr) -> Response {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    post(
        address,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
    )
}

impl McpClient {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let response = initialize(address);
        let client = Self {
            address,
            session: response.header("mcp-session-id").unwrap().to_owned(),
            next_id: AtomicU64::new(1),
        };
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.send(&note).status, 202);
        client
    }

    pub(crate) fn send(&self, message: &Value) -> Response {
        self.http("POST", &[], &message.to_string())
    }

    /// Sends a request with the next id, from 1 on.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Response {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Response {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn http(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut all = vec![
            ACCEPT,
            ("Mcp-Session-Id", self.session.as_str()),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        all.extend(headers);
        request_with(self.address, method, "/mcp", &all, body)
    }
}

/// Returns the messages of an event stream.
pub(crate) fn events(response: &Response) -> Vec<Value> {
    let body = response.body();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Waits for what the server does in its own time.
pub(crate) fn wait_until(is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_true() {
        assert!(Instant::now() < deadline, "it did not happen in time");
        thread::sleep(Duration::from_millis(5));
    }
}
