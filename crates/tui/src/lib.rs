//! The terminal interface: a pure client of [`hermes_core::Op`] and [`hermes_core::Event`].
//!
//! It draws and reads keys; it decides nothing about the conversation. Until it lands, `hermes` talks in plain lines,
//! which is the binary's `chat` module.
