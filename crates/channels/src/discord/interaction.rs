//! Commands and buttons, which want to be noticed within three seconds: where their answers go.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{ChannelError, MessageId, Press};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Discord;
use super::refusal::{Cause, Failure};

/// After this, Discord does not take an answer to it any more.
const ANSWERABLE: Duration = Duration::from_secs(14 * 60);
/// Discord waits three seconds to be told that something was noticed.
const NOTICE_MAX: Duration = Duration::from_secs(2);
const DEFERRED_COUNT_MAX: usize = 500;
const WORDS_CHARS_MAX: usize = 2000;
/// Only who pressed sees it.
const ONLY_FOR_THEM: u64 = 1 << 6;

/// How an interaction is noticed.
const LATER: u64 = 5;
const NOTHING_TO_SHOW: u64 = 6;

/// What is needed to answer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interaction {
    pub(super) id: String,
    application: String,
    token: String,
}

impl std::fmt::Display for Interaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.id, self.application, self.token)
    }
}

impl Interaction {
    pub(super) fn read(raw: &Value) -> Option<Self> {
        let text = |name: &str| raw[name].as_str().map(ToOwned::to_owned);
        Some(Self {
            id: text("id")?,
            application: text("application_id")?,
            token: text("token")?,
        })
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/').map(ToOwned::to_owned);
        Some(Self {
            id: parts.next()?,
            application: parts.next()?,
            token: parts.next()?,
        })
    }

    /// There is no message yet: what replies to this one becomes it.
    pub(super) fn message_id(&self) -> MessageId {
        MessageId::from(self.to_string())
    }

    /// Where the answer that was put off is.
    pub(super) fn answer_path(&self) -> String {
        format!(
            "/webhooks/{}/{}/messages/@original",
            self.application, self.token
        )
    }
}

/// Commands that were promised an answer, by the chat that they came from.
#[derive(Default)]
pub(super) struct Deferred(Mutex<BTreeMap<String, Vec<(Interaction, Instant)>>>);

impl Deferred {
    fn put(&self, chat: &str, interaction: Interaction) {
        let mut deferred = self.lock();
        if deferred.len() >= DEFERRED_COUNT_MAX {
            deferred.pop_first();
        }
        let waiting = deferred.entry(chat.to_owned()).or_default();
        if waiting.iter().all(|(known, _)| *known != interaction) {
            waiting.push((interaction, Instant::now()));
        }
    }

    /// The first that still waits for an answer in a chat.
    pub(super) fn first(&self, chat: &str) -> Option<Interaction> {
        let mut deferred = self.lock();
        let waiting = deferred.get_mut(chat)?;
        waiting.retain(|(_, since)| since.elapsed() < ANSWERABLE);
        waiting.first().map(|(interaction, _)| interaction.clone())
    }

    pub(super) fn done(&self, chat: &str, interaction: &Interaction) {
        let mut deferred = self.lock();
        if let Some(waiting) = deferred.get_mut(chat) {
            waiting.retain(|(known, _)| known != interaction);
            if waiting.is_empty() {
                deferred.remove(chat);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<(Interaction, Instant)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Discord {
    /// Tells Discord that an interaction came: a command is answered later, a button needs no more.
    pub(super) async fn notice(&self, raw: &Value, chat: &str) {
        let Some(interaction) = Interaction::read(raw) else {
            return;
        };
        let is_command = raw["type"] == 2;
        let kind = if is_command { LATER } else { NOTHING_TO_SHOW };
        let path = format!(
            "/interactions/{}/{}/callback",
            interaction.id, interaction.token
        );
        let body = json!({"type": kind});
        let noticing = self.api.post(&path, &body);
        let noticed = match tokio::time::timeout(NOTICE_MAX, noticing).await {
            Ok(noticed) => noticed,
            Err(_) => return,
        };
        // It comes again after a crash, and was noticed then.
        let is_noticed = match noticed {
            Ok(_) => true,
            Err(failure) => failure.is(Cause::Answered) && failure.error.message.contains("40060"),
        };
        if is_command && is_noticed {
            self.deferred.put(chat, interaction);
        }
    }

    /// Takes back the answer that a command was promised, which would be shown as being thought of for minutes.
    pub(super) async fn take_back(&self, chat: &str, id: &MessageId) {
        let Some(interaction) = Interaction::parse(id.as_str()) else {
            return;
        };
        self.deferred.done(chat, &interaction);
        let path = interaction.answer_path();
        let gone = self.api.call(Method::DELETE, &path, None);
        _ = tokio::time::timeout(NOTICE_MAX, gone).await;
    }

    /// Says something to whoever pressed a button, for their eyes only.
    pub(super) async fn answer_press(
        &self,
        press: &Press,
        words: Option<&str>,
    ) -> Result<(), ChannelError> {
        let (Some(interaction), Some(words)) = (Interaction::parse(&press.id), words) else {
            return Ok(());
        };
        let path = format!(
            "/webhooks/{}/{}",
            interaction.application, interaction.token
        );
        let body = json!({
            "content": hermes_core::text::shorten(words, WORDS_CHARS_MAX),
            "flags": ONLY_FOR_THEM,
            "allowed_mentions": {"parse": []},
        });
        match self.api.post(&path, &body).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is(Cause::Answered) => Ok(()),
            Err(Failure { error, .. }) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_promised_is_waited_for_a_while() {
        let interaction = Interaction::parse("1/2/to/ken").expect("one");
        assert_eq!(interaction.to_string(), "1/2/to/ken");
        let deferred = Deferred::default();
        deferred.put("7", interaction.clone());
        deferred.put("7", interaction.clone());
        assert_eq!(deferred.first("7"), Some(interaction.clone()));
        assert_eq!(deferred.first("8"), None);
        deferred.done("7", &interaction);
        assert_eq!(deferred.first("7"), None);
        deferred.put("7", interaction);
        tokio::time::advance(ANSWERABLE).await;
        assert_eq!(deferred.first("7"), None);
        assert_eq!(Interaction::parse("123"), None);
    }
}
