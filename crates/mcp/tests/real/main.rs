//! The client against servers that others wrote, killed and restarted under it.
//!
//! `scripts/peers` installs them; `scripts/test` runs it. Each test prints how long healing took.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stdout,
    reason = "times are shown and not judged: they are the servers' own"
)]

mod http;
mod oauth;
mod peer;
mod process;
mod stdio;
mod trial;
