//! What every implementation of a port must do, one suite per port.

pub mod channel;
pub mod files;
pub mod forwarded;
pub mod model;
pub mod processes;
pub mod store;
pub mod terminal;
pub mod tool;
