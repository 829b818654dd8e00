//! Models: providers, streaming, credentials, fallback, usage and cost.
//!
//! [`resolve()`] turns settings into routes, [`Client`] asks along them and implements the `Model` port, [`providers`]
//! is the table of everybody we know, [`Mixture`] makes one model of several. Reading order: `client` (what happens when
//! something fails), `attempt` (one request), `encode` (what is sent), `frames` and `decode` (what comes back).
//!
//! Knows nothing of sessions, tools or settings files: it is given plain values, and asks one model one thing. Where logins are
//! kept is behind [`login::TokenStore`].
//!
//! The wires are our own: `docs/decisions/0002` says why. No type of the HTTP client leaves this crate but as the source
//! of an error.

mod client;
mod moa;

mod attempt;
mod classify;
mod decode;
mod encode;
mod frames;
mod opening;
mod patience;
mod pool;
mod request;
mod signature;
mod think;
mod transport;
mod wires;

mod address;
mod aliases;
mod http;

pub mod login;

pub mod context;
pub mod discover;
mod prices;
pub mod providers;
pub mod resolve;
pub mod settings;
mod small;

pub use client::Client;
pub use login::{LoginError, LoginServer, Logins};
pub use moa::{Fanout, MOA, Mixture, REFERENCES_MAX};
pub use pool::{KeyLedger, KeyRefusal, Strategy};
pub use prices::{ListPrice, list_price};
pub use providers::{PROVIDERS, Protocol, Provider};
pub use resolve::{ResolveError, Resolved, resolve};
pub use settings::{
    DeadlineSettings, Effort, Endpoint, ModelChoice, ModelOptions, ModelSettings, ProviderOptions,
    Route, StatedWindows,
};
pub use small::is_small_name;
pub use wires::WireMemory;
