//! Discord's side: an API and a gateway that are as strict as the real ones.
//!
//! Start at [`DiscordServer`]; what people do there and see is in [`people`]. It refuses fields that do not exist, texts that
//! are too long, buttons that cannot be, replies to what is not there, answers to interactions that were answered; sessions are
//! resumed with everything that was missed, and messages that are sent again under the same nonce are known.

pub mod people;

mod gateway;
mod interactions;
mod messages;
mod rest;
mod server;
mod world;

pub use server::{CallFault, Called, DiscordServer, TOKEN};
pub use world::{BOT_ID, BOT_NAME};
