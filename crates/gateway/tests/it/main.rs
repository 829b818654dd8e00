//! What an always-on process does, at its boundary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod complaints;
mod crashes;
mod delivery;
mod jobs;
mod simulation;
mod support;
mod webhooks;
