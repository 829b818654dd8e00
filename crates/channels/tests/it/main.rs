//! Channels from outside, against their platforms' sides.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod discord;
mod email;
mod peer;
mod telegram;
