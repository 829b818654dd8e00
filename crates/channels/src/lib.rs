//! Chat platforms: one module each, and the one list that names them all.
//!
//! A platform turns its updates into messages and our replies into its own; it knows nothing of sessions or models.

mod discord;
mod email;
mod http;
mod setting;
mod telegram;

use hermes_core::Platform;

/// Every platform there is, in the order that setup shows them.
pub const PLATFORMS: &[Platform] = &[telegram::PLATFORM, discord::PLATFORM, email::PLATFORM];
