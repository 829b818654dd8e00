//! MCP: a supervised client for servers that come and go, OAuth, and Hermes itself as an MCP server.
//!
//! The only crate that will name `rmcp`. One task per server owns its transport and state; sessions see tools behind
//! the [`hermes_core::Tool`] port, which stay in the prompt while a server is away. Nothing is here before the client is.
