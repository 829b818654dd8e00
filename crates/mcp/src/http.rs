//! HTTP: our own client under the protocol library's streamable transport, and the older transport with two channels.
//!
//! The library's worker keeps the session, the streams and their resumption; this side decides what an answer is. Every
//! answer that is not a success becomes an error of the very request it answers, also when its body carries no id.

mod answer;
mod client;
mod drained;
mod events;
mod fetch;
mod proxy;
mod sse;
mod streamable;
mod tls;
mod token;

pub(crate) use client::{Address, HttpClient, HttpFailure, client_builder};
pub(crate) use drained::Drained;
pub(crate) use fetch::fetch_json;
pub(crate) use sse::SseTransport;
