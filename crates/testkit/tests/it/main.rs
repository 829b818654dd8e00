//! The testkit's own tests, through a client that reads bytes, not through an HTTP library.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod client;
mod contracts;
mod faults;
mod mcp;
mod mcp_client;
mod mcp_faults;
mod mcp_program;
mod mcp_stdio;
mod process;
mod program;
mod selection;
mod wires;
