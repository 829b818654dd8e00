//! Models: providers, streaming, credentials, fallback, usage and cost.
//!
//! [`resolve()`] turns settings into routes, [`Client`] asks along them and implements the `Model` port, [`providers`]
//! is the table of everybody we know. Reading order: `client` (what happens when something fails), `attempt` (one
//! request), `request` (what is sent), `decode` (what comes back).
//!
//! No type of the client library leaves this crate. `docs/decisions/0002` says what it is used for and what not.

mod client;

mod attempt;
mod classify;
mod decode;
mod pool;
mod request;
mod signature;
mod think;

mod address;
mod http;

pub mod context;
pub mod discover;
mod prices;
pub mod providers;
pub mod resolve;
pub mod settings;

pub use client::Client;
pub use pool::Strategy;
pub use providers::{PROVIDERS, Protocol, Provider};
pub use resolve::{ResolveError, Resolved, resolve};
pub use settings::{DeadlineSettings, Effort, Endpoint, ModelChoice, ModelSettings, Route};
