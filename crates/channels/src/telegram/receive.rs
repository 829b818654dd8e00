//! Receiving: by asking again and again, or by being called.

use std::sync::PoisonError;
use std::time::Duration;

use hermes_core::{
    ChannelError, Identity, Inlet, Trouble, Update, Updates, WebRequest, WebResponse,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Telegram;
use super::cursor::Cursor;
use super::settings::Webhook;
use super::update::{self, Us};
use super::wire::RawUpdate;

/// How long Telegram keeps a question for updates open while there are none.
const POLL_SECS: u64 = 30;
/// How much longer than that an answer may take before the connection counts as dead.
const POLL_MARGIN: Duration = Duration::from_secs(10);
const UPDATES_COUNT_MAX: u32 = 100;
/// Servers that do not wait are not asked more often than this.
const PAUSE_BETWEEN_EMPTY: Duration = Duration::from_millis(300);
/// How often we look whether Telegram still calls us.
const WEBHOOK_PROBE_INTERVAL: Duration = Duration::from_secs(30);
/// Nothing heard for this long: one poll with its margin, and one more that was lost.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(90);
/// An update is a message and what it replies to.
pub(super) const WEBHOOK_BODY_BYTES_MAX: usize = 1024 * 1024;

const KINDS: [&str; 5] = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
];

impl Telegram {
    pub(super) async fn run(&self, inlet: &dyn Inlet) -> ChannelError {
        let ended = match &self.settings.webhook {
            Some(webhook) => self.be_called(webhook, inlet).await,
            None => self.poll(inlet).await,
        };
        match ended {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn poll(&self, inlet: &dyn Inlet) -> Result<std::convert::Infallible, ChannelError> {
        self.api.renew();
        let mut offset = self.take_up(inlet).offset;
        let identity = self.who_are_we().await?;
        // What waits at Telegram stays there: a webhook of before goes, its updates come to us.
        self.done("deleteWebhook", json!({"drop_pending_updates": false}))
            .await?;
        inlet.connected(identity);
        loop {
            let asked = Instant::now();
            let updates = self.updates_from(offset).await?;
            inlet.heard();
            if updates.is_empty() {
                tokio::time::sleep_until(asked + PAUSE_BETWEEN_EMPTY).await;
                continue;
            }
            let next = self.take(updates, inlet).await?;
            // Numbers begin anew after a quiet week, or on another server. Whoever answers without regard to what is confirmed
            // is not asked more often than one that does not wait.
            if let Some(before) = offset.filter(|before| next <= *before) {
                tracing::info!(before, next, "Telegram numbers its updates anew");
                tokio::time::sleep_until(asked + PAUSE_BETWEEN_EMPTY).await;
            }
            offset = Some(next);
        }
    }

    /// Goes on where the last process was.
    fn take_up(&self, inlet: &dyn Inlet) -> Cursor {
        let cursor = Cursor::read(inlet.cursor());
        for (from, to) in &cursor.moves {
            self.remember_move(from, to);
        }
        cursor
    }

    /// How far was read, to be kept.
    fn cursor(&self, offset: Option<i64>) -> String {
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        let moves = moves.clone();
        Cursor { offset, moves }.write()
    }

    async fn updates_from(&self, offset: Option<i64>) -> Result<Vec<Value>, ChannelError> {
        let mut body = json!({
            "timeout": POLL_SECS,
            "limit": UPDATES_COUNT_MAX,
            "allowed_updates": KINDS,
        });
        if let Some(offset) = offset {
            body["offset"] = offset.into();
        }
        let deadline = Duration::from_secs(POLL_SECS) + POLL_MARGIN;
        let answer = self.api.call_within("getUpdates", &body, deadline).await;
        match answer.map_err(|failure| failure.error)? {
            Value::Array(updates) => Ok(updates),
            _ => Err(ChannelError::new(
                Trouble::Passing,
                "Telegram's updates are no list",
            )),
        }
    }

    /// Hands updates over, and returns where to read on: Telegram forgets what is before it, so not before they are kept.
    async fn take(&self, updates: Vec<Value>, inlet: &dyn Inlet) -> Result<i64, ChannelError> {
        let numbered: Vec<RawUpdate> = updates.into_iter().filter_map(RawUpdate::read).collect();
        let last = numbered.iter().map(|update| update.id).max();
        let next = last.map(|id| id.saturating_add(1)).ok_or_else(|| {
            ChannelError::new(Trouble::Passing, "Telegram's updates have no numbers")
        })?;
        let us = self.us();
        let updates = numbered
            .into_iter()
            .filter_map(|update| self.read(update, &us))
            .collect();
        let accepted = inlet
            .accept(Updates {
                updates,
                cursor: Some(self.cursor(Some(next))),
            })
            .await;
        accepted.map_err(|error| ChannelError::new(Trouble::Passing, error.to_string()))?;
        Ok(next)
    }

    async fn be_called(
        &self,
        webhook: &Webhook,
        inlet: &dyn Inlet,
    ) -> Result<std::convert::Infallible, ChannelError> {
        self.api.renew();
        // Before we know our name, and so before anything is read.
        self.take_up(inlet);
        let identity = self.who_are_we().await?;
        let body = json!({
            "url": webhook.url,
            "secret_token": webhook.secret.expose(),
            "allowed_updates": KINDS,
            "drop_pending_updates": false,
        });
        self.done("setWebhook", body).await?;
        inlet.connected(identity);
        let mut told = None;
        loop {
            tokio::time::sleep(WEBHOOK_PROBE_INTERVAL).await;
            let info = self.api.call("getWebhookInfo", &json!({})).await;
            let info = info.map_err(|failure| failure.error)?;
            inlet.heard();
            if let Some(words) = new_error(&info, &mut told) {
                tracing::warn!("Telegram could not reach the webhook: {words}");
            }
            check_webhook(webhook, &info)?;
        }
    }

    /// Asks who we are: the proof that the token is right, and the name that people mention.
    pub(super) async fn who_are_we(&self) -> Result<Identity, ChannelError> {
        let me = self.api.call("getMe", &json!({})).await;
        let me = me.map_err(|failure| failure.error)?;
        let username = me["username"].as_str().unwrap_or_default().to_owned();
        let id = me["id"].as_i64().unwrap_or(self.settings.bot_id);
        let name = match me["first_name"].as_str() {
            _ if !username.is_empty() => format!("@{username}"),
            Some(name) => name.to_owned(),
            None => id.to_string(),
        };
        self.set_us(Us { id, username });
        Ok(Identity {
            id: id.to_string(),
            name,
        })
    }

    async fn done(&self, method: &str, body: Value) -> Result<(), ChannelError> {
        let done = self.api.call(method, &body).await;
        done.map(|_| ()).map_err(|failure| failure.error)
    }

    /// Reads an update; `None` if it is not for us.
    fn read(&self, update: RawUpdate, us: &Us) -> Option<Update> {
        let id = update.id;
        if let Some((from, to)) = update::moved(&update.raw) {
            tracing::info!(from, to, "a group of Telegram is a supergroup now");
            self.remember_move(&from.to_string(), &to.to_string());
        }
        let mut read = update::read(update, us);
        if let Some(update) = &mut read {
            let chat = update.incoming.chat_mut();
            chat.former = self.former(&chat.id);
        }
        let read =
            read.filter(|update| self.settings.topics.are_listened_in(update.incoming.chat()));
        if read.is_none() {
            tracing::debug!(update = id, "an update of Telegram that is not for us");
        }
        read
    }

    pub(super) async fn called(&self, request: &WebRequest, inlet: &dyn Inlet) -> WebResponse {
        let Some(webhook) = &self.settings.webhook else {
            return WebResponse::status(404);
        };
        if request.method != "POST" {
            return WebResponse::status(405);
        }
        let shown = request
            .header("x-telegram-bot-api-secret-token")
            .unwrap_or_default();
        if !is_same(shown.as_bytes(), webhook.secret.expose().as_bytes()) {
            return WebResponse::status(401);
        }
        inlet.heard();
        let us = self.us();
        if us.username.is_empty() {
            // Until we know our name nobody can tell who is meant: it comes again.
            return WebResponse::status(503);
        }
        // What cannot be read now cannot be read when it comes again either.
        let raw = serde_json::from_slice(&request.body)
            .ok()
            .and_then(RawUpdate::read);
        let is_move = raw
            .as_ref()
            .is_some_and(|raw| update::moved(&raw.raw).is_some());
        let update = raw.and_then(|raw| self.read(raw, &us));
        if update.is_none() && !is_move {
            return WebResponse::status(200);
        }
        let offset = Cursor::read(inlet.cursor()).offset;
        let accepted = inlet
            .accept(Updates {
                updates: update.into_iter().collect(),
                cursor: is_move.then(|| self.cursor(offset)),
            })
            .await;
        WebResponse::status(if accepted.is_ok() { 200 } else { 503 })
    }
}

/// What went wrong on Telegram's way to us since that was last told: it repeats the last error for ever.
fn new_error<'a>(info: &'a Value, told: &mut Option<i64>) -> Option<&'a str> {
    let words = info["last_error_message"].as_str()?;
    let date = info["last_error_date"].as_i64();
    let date = Some(date.unwrap_or_default());
    let is_new = *told != date;
    *told = date;
    is_new.then_some(words)
}

fn check_webhook(webhook: &Webhook, info: &Value) -> Result<(), ChannelError> {
    match info["url"].as_str() {
        Some(url) if url == webhook.url => Ok(()),
        _ => Err(
            ChannelError::new(Trouble::Conflict, "the webhook of this bot was taken away")
                .with_hint(
                    "another program uses this token: stop it, or give Hermes a bot of its own",
                ),
        ),
    }
}

/// Compares in a time that does not depend on what is the same.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let differences = left
        .iter()
        .zip(right)
        .fold(0, |seen, (left, right)| seen | (left ^ right));
    left.len() == right.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_webhook_is_told_once() {
        let mut told = None;
        let error = |date: i64| json!({"last_error_message": "timed out", "last_error_date": date});
        assert_eq!(new_error(&json!({}), &mut told), None);
        assert_eq!(new_error(&error(5), &mut told), Some("timed out"));
        assert_eq!(new_error(&error(5), &mut told), None);
        assert_eq!(new_error(&json!({}), &mut told), None);
        assert_eq!(new_error(&error(5), &mut told), None);
        assert_eq!(new_error(&error(6), &mut told), Some("timed out"));
        let undated = json!({"last_error_message": "timed out"});
        assert_eq!(new_error(&undated, &mut told), Some("timed out"));
        assert_eq!(new_error(&undated, &mut told), None);
    }
}
