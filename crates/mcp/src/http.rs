//! Streamable HTTP: our own client under the protocol library's transport.
//!
//! The library's worker keeps the session, the streams and their resumption; this side decides what an answer is. Every
//! answer that is not a success becomes an error of the very request it answers, also when its body carries no id.

mod answer;
mod client;
mod events;
mod retry_after;
mod streamable;
mod token;

pub(crate) use client::{HttpClient, HttpFailure, client_builder};
