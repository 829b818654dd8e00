//! Telegram's side: a Bot API server that is as strict as the real one, and Telegram's own reader of MarkdownV2.
//!
//! Start at [`TelegramServer`]; what people do there and see is in [`people`]. It refuses parameters that do not exist, texts
//! that Telegram cannot read, and edits of what is not there; a second receiver ends the first one.

pub mod markup;
pub mod people;

mod form;
mod methods;
mod server;
mod tdlib;
mod world;

pub use server::{CallFault, Called, TOKEN, TelegramServer, WAITING};
pub use tdlib::{ParsedText, TdLib};
pub use world::{BOT_ID, BOT_NAME};
