//! Many conversations in one process, against a scripted model server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod curator;
mod files_out;
mod handoff;
mod honcho;
mod imported;
mod learning;
mod many;
mod one_of_many;
mod prompts;
mod schedules;
mod skills;
mod skills_elsewhere;
mod skills_published;
mod support;
mod user_model;
