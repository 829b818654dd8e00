//! Which tools a conversation has: toolsets by name, what of them its model is told of, and those of servers.

pub mod offer;
pub(crate) mod references;
pub mod switch;
pub mod toolsets;
pub(crate) mod web;
