//! The client against a server that fails on command.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod bad_input;
mod calling;
mod client;
mod contract;
mod faults;
mod healing;
mod http;
mod listen;
mod lockout;
mod malware;
mod matrix;
mod oauth;
mod oauth_home;
mod oauth_secrets;
mod outage;
mod random_faults;
mod reload;
mod servers;
mod soak;
mod sse;
mod stdio;
mod tls;
mod words;
