//! Listens on a platform until somebody writes, without taking the message: it stays with the platform, and the gateway
//! answers it when it runs.

use std::time::Duration;

use hermes_core::{
    BoxFuture, Channel, ChannelError, ChatKind, Identity, Incoming, IncomingMessage, Inlet,
    InletError, Trouble, Updates,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::output::note;

/// Whoever has not written by then wants to do it another time.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Between attempts to connect.
const RETRY: Duration = Duration::from_secs(2);
/// Of what somebody wrote; enough to know it again.
const SHOWN_CHARS_MAX: usize = 80;

/// Somebody who wrote to us alone.
pub(super) struct Writer {
    pub(super) user: String,
    /// Untrusted, as is the text.
    pub(super) name: String,
    pub(super) chat: String,
    pub(super) text: String,
}

pub(super) enum Waited {
    Wrote(Writer),
    /// Somebody pressed Ctrl-C, or nobody wrote.
    Left,
    Failed(ChannelError),
}

enum Heard {
    Connected(Identity),
    Writer(Writer),
}

/// Waits for a message of somebody who was not declined before.
pub(super) async fn wait(channel: &dyn Channel, label: &str, declined: &[String]) -> Waited {
    let (heard, mut hearing) = mpsc::unbounded_channel();
    let inlet = Listening { heard, declined };
    let deadline = Instant::now() + PATIENCE;
    let mut receiving = channel.receive(&inlet);
    let mut is_told = false;
    loop {
        tokio::select! {
            biased;
            Some(heard) = hearing.recv() => match heard {
                Heard::Writer(writer) => return Waited::Wrote(writer),
                Heard::Connected(identity) if !is_told => {
                    is_told = true;
                    note(&format!("connected as {}", identity.name));
                    note(&format!("write something to it now, on {label} (Ctrl-C leaves this for later) …"));
                }
                Heard::Connected(_) => {}
            },
            error = &mut receiving => {
                // Whoever wrote is heard of first: the next round has it.
                if matches!(error.trouble, Trouble::NotAuthorised | Trouble::Conflict) && hearing.is_empty() {
                    return Waited::Failed(error);
                }
                if hearing.is_empty() {
                    sleep(RETRY).await;
                }
                receiving = channel.receive(&inlet);
            }
            _ = tokio::signal::ctrl_c() => return Waited::Left,
            () = tokio::time::sleep_until(deadline) => return Waited::Left,
        }
    }
}

struct Listening<'a> {
    heard: mpsc::UnboundedSender<Heard>,
    declined: &'a [String],
}

impl Listening<'_> {
    fn is_writer(&self, message: &IncomingMessage) -> bool {
        let sender = &message.sender;
        message.chat.kind == ChatKind::Dm
            && !sender.is_bot
            && !sender.id.is_empty()
            && !self.declined.contains(&sender.id)
    }
}

impl Inlet for Listening<'_> {
    fn accept(&self, updates: Updates) -> BoxFuture<'_, Result<(), InletError>> {
        let messages = updates.updates.into_iter();
        let mut messages = messages.filter_map(|update| match update.incoming {
            Incoming::Message(message) => Some(message),
            _ => None,
        });
        let writer = messages.find(|message| self.is_writer(message));
        Box::pin(async move {
            let Some(message) = writer else {
                return Ok(());
            };
            let sender = message.sender;
            let name = sender.name.or(sender.username);
            _ = self.heard.send(Heard::Writer(Writer {
                name: name.unwrap_or_else(|| sender.id.clone()),
                user: sender.id,
                chat: message.chat.id,
                text: hermes_core::text::shorten(&message.text, SHOWN_CHARS_MAX),
            }));
            Err(InletError("it is left for the gateway".to_owned()))
        })
    }

    fn cursor(&self) -> Option<String> {
        None
    }

    fn connected(&self, identity: Identity) {
        _ = self.heard.send(Heard::Connected(identity));
    }

    fn heard(&self) {}

    fn passed_over(&self, _: &str) {}
}
