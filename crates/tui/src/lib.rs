//! The terminal interface: a pure client of [`hermes_core::Op`] and [`hermes_core::Event`].
//!
//! It draws and reads keys; it decides nothing about the conversation, and knows no model, store or setting. The program around it opens sessions and answers
//! commands, see [`FromHost`] and [`ToHost`]. Start reading at `app.rs`, the whole state, then `run.rs`, the rim that
//! touches the terminal; `screen.rs` is how it is drawn without taking the terminal's scrollback away.

mod app;
mod approval_dialog;
mod host;
mod run;

mod approval_request;
mod conversation;
mod item;
mod markdown;

mod completion;
mod composer;
mod editor;
mod form;
mod history;
mod keymap;
mod keys;
mod past;
mod picker;
mod status;
mod vi;

mod files;
mod fuzzy;
mod images;
mod screen;
mod terminal;
mod theme;
mod unsent;
mod wrap;

pub use host::{
    BusyInput, EditMode, FromHost, Leave, Narrowing, Opened, Settings, ShowReasoning, ToHost,
};
pub use run::{TuiError, run};
