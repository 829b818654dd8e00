//! The always-on part: chats, the HTTP API, webhooks, schedules, and what they share.
//!
//! It sends [`hermes_core::Op`]s and renders [`hermes_core::Event`]s like every other surface, and owns what only a
//! long-running process needs. Start at [`Gateway`]; the HTTP API is [`api`], events of other programs are [`webhooks`],
//! chat platforms are [`chat`], jobs at set times [`schedules`].

pub mod api;
pub mod chat;
pub mod deliver;
mod gateway;
pub mod hooks;
pub mod http_server;
pub mod notify;
pub mod presence;
pub mod report;
pub mod schedules;
mod shutdown;
pub mod silence;
mod steady;
pub mod webhooks;

pub use gateway::Gateway;
pub use shutdown::Shutdown;
