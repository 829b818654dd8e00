//! Many conversations in one process, against a scripted model server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod learning;
mod many;
mod one_of_many;
mod skills;
mod skills_elsewhere;
mod support;
