//! `hermes-llm` against a real HTTP server that says what it is told to.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod cutting;
mod discovering;
mod hostile;
mod logins;
mod moa;
mod pictures;
mod prefix;
mod real_model;
mod recovery;
mod requests;
mod tls;
mod wires;
mod world;
