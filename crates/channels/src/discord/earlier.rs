//! What was said before somebody named us: the context of what they ask.

use std::time::Duration;

use hermes_core::{ChannelError, ChatKind, EarlierMessage, IncomingMessage};
use serde_json::Value;

use super::Discord;
use super::interaction::Interaction;

/// Messages that are looked at.
const MESSAGES_MAX: usize = 50;
const CHARS_MAX: usize = 500;
/// An answer is not held up for it.
const PATIENCE: Duration = Duration::from_secs(5);

impl Discord {
    pub(super) async fn said_before(
        &self,
        message: &IncomingMessage,
    ) -> Result<Vec<EarlierMessage>, ChannelError> {
        if !self.settings.looks_back || message.chat.kind == ChatKind::Dm {
            return Ok(Vec::new());
        }
        let id = message.id.as_str();
        let id = Interaction::parse(id).map_or_else(|| id.to_owned(), |command| command.id);
        // A thread that was opened for a message bears its number; what came before it is in the channel.
        let is_opened_for_it = message.chat.id == id;
        let parent = message.chat.parent.as_deref().filter(|_| is_opened_for_it);
        let chat = parent.unwrap_or(&message.chat.id);
        let path = format!("/channels/{chat}/messages?before={id}&limit={MESSAGES_MAX}");
        let page = match tokio::time::timeout(PATIENCE, self.api.get(&path)).await {
            Ok(page) => page.map_err(|failure| failure.error)?,
            Err(_) => return Ok(Vec::new()),
        };
        Ok(since_our_words(&page, &self.us().id))
    }
}

/// Discord tells the newest first; what came before our own words is known already.
fn since_our_words(page: &Value, us: &str) -> Vec<EarlierMessage> {
    let messages = page.as_array().into_iter().flatten();
    let mut earlier: Vec<EarlierMessage> = messages
        .take_while(|message| message["author"]["id"] != us)
        .filter_map(read)
        .collect();
    earlier.reverse();
    earlier
}

fn read(message: &Value) -> Option<EarlierMessage> {
    let text = message["content"].as_str()?.trim();
    let author = &message["author"];
    let name = author["global_name"]
        .as_str()
        .or(author["username"].as_str())?;
    (!text.is_empty()).then(|| EarlierMessage {
        name: name.to_owned(),
        text: hermes_core::text::shorten(text, CHARS_MAX),
    })
}
