//! One process that serves any number of conversations: opens the store, models, MCP servers and terminals once, and
//! sessions with [`hermes_core::SessionOptions`] as often as asked.
//!
//! It joins the leaves, and is the only library that knows them all. It must not print, know the command line, or know any
//! screen: errors are data with hints, and what a slash command shows is data that a surface renders, or takes as the text
//! that [`shown`] makes of it. Start at [`Runtime::start`].

pub mod commands;
pub mod hooks;
mod runtime;
mod sessions;
pub mod setup;

pub mod base;
mod clock;
mod error;

pub mod checkpoints;
pub mod clipboard;
pub mod curating;
pub mod delegation;
pub mod doctor;
pub mod export;
pub mod files_out;
pub mod former_home;
pub mod git;
pub mod guests;
mod hearings;
pub mod image;
pub mod layout;
pub mod learned;
pub mod logging;
pub mod mcp;
pub mod models;
pub mod notes;
mod own_sessions;
pub mod personality;
pub mod piped;
pub mod publishing;
pub mod quick;
pub mod recall;
pub mod reviews;
pub mod safety;
pub mod schedules;
pub mod shown;
pub mod skills;
pub mod style;
pub mod terminals;
pub mod toolkit;
pub mod tools;
pub mod user_model;
pub mod worktree;
mod zones;

pub use clock::SystemClock;
pub use commands::Conversation;
pub use error::{Error, ErrorKind, Result};
pub use runtime::{Runtime, TellGateway, open_archive, open_store};
pub use setup::{Setup, Start};
pub use zones::{zone_or_system, zone_problem};
