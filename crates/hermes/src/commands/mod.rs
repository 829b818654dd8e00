//! The commands beside the conversation: looking at what there is, and changing settings. One file per command.

pub(crate) mod approvals;
pub(crate) mod auth;
pub(crate) mod checkpoints;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod cron;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod insights;
pub(crate) mod layout;
pub(crate) mod learning;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod pairing;
pub(crate) mod prompt_size;
pub(crate) mod send;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod skills;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod user;
pub(crate) mod webhook;

mod browser;
mod checklist;
mod confirm;
mod interview;

use crate::failure::Failure;

/// A failure that the output says everything about: `main` prints no more, and only the exit code is left to tell.
fn already_told() -> Failure {
    Failure::new("")
}
