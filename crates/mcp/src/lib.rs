//! MCP: a supervised client for servers that come and go.
//!
//! The only crate that names `rmcp`. One task per server owns its connection and its state, shared by all sessions;
//! sessions see tools behind the [`hermes_core::Tool`] port, which stay the same while a server is away. Start at
//! [`Mcp::start`], then read `supervisor` for how a connection is kept and `server` for how a call survives its loss.
//!
//! Knows nothing of turns or screens: what a server asks of a person or a model goes through the ports of `hermes-core`.
//!
//! What servers ask of us is answered in `respond`; tokens are got and renewed in `auth`. The other direction, where
//! other programs are the clients, is in `serve`, which shares nothing with the rest.

mod auth;
mod client;
mod conformance;
mod diagnose;
mod known;
mod roster;
mod settings;
mod status;

mod server;
mod supervisor;

mod classify;
mod expected;
mod failure;
mod signal;
mod view;

mod dial;
mod handler;
mod http;
mod in_flight;
mod listed;
mod listen;
mod message;
mod stdio;

mod log;
mod respond;

mod media;
mod name;
mod render;
mod schema;
mod suspicion;
mod tool;
mod utility;

mod serve;

pub use auth::{Callback, CallbackError, Login, LoginError, Returned, forget_login};
pub use client::{Mcp, McpPorts, OfferedTool, UnknownServer, Unseen};
pub use conformance::try_everything;
pub use diagnose::{Fault, Phase, Step, diagnose};
pub use known::Remembered;
pub use respond::Models;
pub use roster::Reloaded;
pub use serve::{HttpServer, ServeError, Served, serve_streams};
pub use settings::{
    ClientIdentity, ElicitationSettings, HttpWire, LogLevel, OAuthSettings, Protocol, Retry,
    SamplingSettings, ServerSettings, SettingsError, Sharing, TlsSettings, ToolSettings,
    TransportSettings, Verify,
};
pub use status::{BreakerStatus, ServerEvent, ServerState, ServerStatus};
pub use supervisor::RestSettings;
