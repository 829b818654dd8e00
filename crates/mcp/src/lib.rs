//! MCP: a supervised client for servers that come and go.
//!
//! The only crate that names `rmcp`. One task per server owns its connection and its state, shared by all sessions;
//! sessions see tools behind the [`hermes_core::Tool`] port, which stay the same while a server is away. Start at
//! [`Mcp::start`], then read `supervisor` for how a connection is kept and `server` for how a call survives its loss.
//!
//! Absent on purpose, until they are built: sampling, elicitation, the older HTTP+SSE transport.

mod auth;
mod client;
mod settings;
mod status;

mod server;
mod supervisor;

mod classify;
mod failure;
mod pace;
mod refresh;
mod signal;
mod view;

mod dial;
mod handler;
mod http;
mod probe;
mod stdio;

mod name;
mod render;
mod schema;
mod tool;
mod utility;

pub use auth::{Callback, CallbackError, Login, LoginError, Returned, forget_login};
pub use client::{Mcp, McpPorts, UnknownServer};
pub use settings::{
    OAuthSettings, Protocol, Retry, ServerSettings, SettingsError, ToolSettings, TransportSettings,
};
pub use status::{BreakerStatus, ServerEvent, ServerState, ServerStatus};
