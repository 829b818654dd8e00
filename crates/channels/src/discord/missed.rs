//! What was said while no session was there to tell of it. Discord forgets a session some minutes after its socket is gone;
//! messages it keeps.

use futures_util::{StreamExt as _, TryStreamExt as _};
use hermes_core::{ChannelError, Trouble};
use serde_json::Value;
use tokio::time::Duration;

use super::Discord;
use super::cursor::id_at;

/// What is older than this is not asked for.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);
const PAGE: usize = 100;
/// Pages of one channel: more was said there than anybody answers.
const PAGES_MAX: usize = 5;
/// Channels that are asked at a time.
const AT_ONCE: usize = 4;

/// Messages in the order they were sent.
pub(super) type Missed = Result<Vec<Value>, ChannelError>;

impl Discord {
    /// Asks private chats.
    pub(super) fn missed_in_directs(
        &self,
        chats: Vec<String>,
        since: u64,
    ) -> impl Future<Output = Missed> {
        self.missed_in(chats, None, since)
    }

    /// Asks those channels of a server in which something was said.
    pub(super) fn missed_in_guild(
        &self,
        guild: String,
        channels: &[&Value],
        since: u64,
    ) -> impl Future<Output = Missed> + use<'_> {
        let has_new = |channel: &&&Value| {
            let last = channel["last_message_id"].as_str();
            last.and_then(|id| id.parse::<u64>().ok())
                .is_some_and(|id| id > since)
        };
        let has_messages = |channel: &&&Value| !matches!(channel["type"].as_u64(), Some(15 | 16));
        let chats = channels
            .iter()
            .filter(has_new)
            .filter(has_messages)
            .filter_map(|channel| channel["id"].as_str().map(ToOwned::to_owned))
            .collect();
        self.missed_in(chats, Some(guild), since)
    }

    async fn missed_in(&self, chats: Vec<String>, guild: Option<String>, since: u64) -> Missed {
        let oldest = id_at(self.clock.now().minus(AGE_MAX).as_millis());
        let since = since.max(oldest);
        let asked = chats
            .into_iter()
            .map(|chat| self.missed_in_chat(chat, since));
        let found: Vec<Vec<Value>> = futures_util::stream::iter(asked)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut messages: Vec<Value> = found.into_iter().flatten().collect();
        if let Some(guild) = guild {
            for message in &mut messages {
                message["guild_id"] = guild.clone().into();
            }
        }
        messages.sort_by_key(id_of);
        Ok(messages)
    }

    async fn missed_in_chat(&self, chat: String, since: u64) -> Missed {
        let mut messages: Vec<Value> = Vec::new();
        let mut after = since;
        for _ in 0..PAGES_MAX {
            let page = match self.page(&chat, after).await? {
                Some(page) => page,
                None => break,
            };
            let is_last = page.len() < PAGE;
            after = page.iter().map(id_of).max().unwrap_or(after).max(after);
            messages.extend(page);
            if is_last {
                break;
            }
        }
        Ok(messages)
    }

    /// The next messages of a chat; `None` if it may not be read any more.
    async fn page(&self, chat: &str, after: u64) -> Result<Option<Vec<Value>>, ChannelError> {
        let path = format!("/channels/{chat}/messages?after={after}&limit={PAGE}");
        loop {
            let error = match self.api.get(&path).await {
                Ok(Value::Array(page)) => return Ok(Some(page)),
                Ok(_) => return Ok(None),
                Err(failure) => failure.error,
            };
            match error.trouble {
                Trouble::Throttled { wait } => tokio::time::sleep(wait).await,
                // It is asked again on the next connection.
                Trouble::Passing | Trouble::Ambiguous | Trouble::NotAuthorised => {
                    return Err(error);
                }
                _ => {
                    tracing::info!(%error, chat, "what was missed in a chat cannot be read");
                    return Ok(None);
                }
            }
        }
    }
}

fn id_of(message: &Value) -> u64 {
    let id = message["id"].as_str().and_then(|id| id.parse().ok());
    id.unwrap_or(0)
}
