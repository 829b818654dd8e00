//! The binary as its users meet it: real processes, a real wire, a real terminal.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod approvals;
mod asking;
mod bad_input;
mod bad_terminal;
mod chat;
mod checkpoints;
mod clarify;
mod commands;
mod compaction;
mod crash;
mod delegation;
mod demo;
mod edits;
mod everyday;
mod execute_code;
mod fence;
mod files;
mod forwarded;
mod full_disk;
mod gateway;
mod golden;
mod images;
mod interface;
mod mcp;
mod mcp_late;
mod mcp_login;
mod mcp_odd;
mod memory;
mod oneshot;
mod piped;
mod real_model;
mod safety;
mod serve;
mod setting;
mod skills;
mod slash;
mod small_models;
mod star;
mod steering;
mod suggest;
mod tmux;
mod unasked;
mod unused_settings;
mod waiting;
mod web;
mod worktree;
