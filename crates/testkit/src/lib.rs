//! Peers and worlds for tests; never part of the shipped program.
//!
//! [`server`] is a model provider that says what a script tells it to, over real TCP, with the
//! faults real providers have. [`mcp`] is an MCP server that fails on command, [`oauth`]
//! an authorisation server that does, [`peers`] real hosts for commands, [`mail`] real mail servers. [`process`] runs the built binary, plainly or in a terminal. [`World`] is the same without a network, for tests
//! of the loop. [`corpus`] is a long history with questions to it. `contract` holds what every implementation of a port must do.
//! Helpers panic with a full account of what they saw: a failed helper is a failed test.

pub mod apptainer;
pub mod contract;
pub mod corpus;
pub mod daytona;
pub mod discord;
pub mod honcho;
pub mod mail;
pub mod mcp;
pub mod modal;
pub mod oauth;
pub mod peers;
pub mod process;
pub mod server;
pub mod simulation;
pub mod site;
pub mod telegram;

mod clock;
mod memory_store;
mod pixel;
mod scripted;
mod test_tool;
mod world;

pub use clock::TestClock;
pub use memory_store::MemoryStore;
pub use pixel::{PIXEL_BASE64, PIXEL_PNG};
pub use scripted::{AnsweringModel, ScriptedModel, SeenRequest, Step};
pub use test_tool::{Behaviour, TestTool};
pub use world::World;
