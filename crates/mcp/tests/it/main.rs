//! The client against a server that fails on command.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calling;
mod client;
mod faults;
mod healing;
mod http;
mod oauth;
mod oauth_home;
mod outage;
mod random_faults;
mod servers;
mod stdio;
