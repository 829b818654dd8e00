//! Takes turns back.

use hermes_core::reference::ATTACHED;
use hermes_core::{Entry, Event, Message, Notice, Origin, Part, StoreError, UserMessage, skill};

use super::equip::Equipped;
use super::task::SessionTask;

impl SessionTask {
    /// Takes the last turns back, and returns what the user had said in the first of them.
    pub(super) async fn rewind(&mut self, turns: u32) -> Option<UserMessage> {
        let refusal = match self.try_rewind(turns).await {
            Ok(Some((turns, message))) => {
                let said = Message::from(message.clone()).shown();
                self.equipped = Equipped::default();
                self.tell(Event::Rewound { turns, said });
                return Some(message);
            }
            Ok(None) => "there is nothing to take back".into(),
            Err(error) => format!("{error}; {}", error.hint()),
        };
        let notice = Notice::NotTaken { reason: refusal };
        self.tell(Event::Notice { notice });
        None
    }

    /// Rewinds in the store first: what is on disk is what happened.
    async fn try_rewind(&mut self, turns: u32) -> Result<Option<(u32, UserMessage)>, StoreError> {
        if self.is_stale {
            self.reload().await?;
        }
        if self.unwritten.is_some() {
            return Ok(None);
        }
        // The log knows turns that a summary covers; what is in memory does not.
        let session = self.recorder.session();
        let found = self.ports.store.turn_from_end(session, turns).await?;
        let Some((turns, said)) = found else {
            return Ok(None);
        };
        let said = as_said(said);
        // Before it is used again it is read again: what tools keep is as it was, and what a compaction covered is back.
        self.is_stale = true;
        self.recorder.add(Entry::Rewound { turns });
        self.recorder.commit().await?;
        Ok(Some((turns, said)))
    }
}

/// Returns a message without what is told anew, files that it refers to and news, and without the entries of the inbox that
/// brought it: those are answered. What was sent with it stays: documents, quotes, what was passed on.
fn as_said(message: Message) -> UserMessage {
    let mut has_words = false;
    let mut parts = message.parts;
    parts.retain(|part| match part {
        Part::Text { text } => {
            let is_told_anew = text.trim_start().starts_with(ATTACHED) || skill::is_news(text);
            !std::mem::replace(&mut has_words, true) || !is_told_anew
        }
        _ => true,
    });
    let origin = match message.origin {
        Some(Origin::Person {
            surface,
            id,
            request,
            inbox: _,
            mirrored: _,
        }) => Origin::Person {
            surface,
            id,
            request,
            inbox: Vec::new(),
            mirrored: None,
        },
        other => other.unwrap_or(Origin::person()),
    };
    UserMessage { parts, origin }
}
