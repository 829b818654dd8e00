//! The crate at its boundary, on real folders and files.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose world cannot be prepared should stop there"
)]

mod auth_file;
mod changes;
mod faults;
mod home;
mod layers;
mod world;
