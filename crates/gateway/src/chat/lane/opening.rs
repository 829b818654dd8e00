//! Which session a chat is in, and how it is opened.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{
    Audience, ChatKind, ConsentOption, Event, FollowFrom, SessionId, SessionOptions, StoreError,
};
use tokio::time::timeout;

use super::{Lane, OpenedSession};
use crate::chat::reset::ResetReason;

/// A session that is closed has said everything.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Lane {
    /// Opens the chat's conversation, unless it is open. `Err` has words for the chat.
    pub(super) async fn ensure_session(&mut self) -> Result<Result<(), String>, StoreError> {
        if let Some(reason) = self.reset_due() {
            self.reset(reason).await?;
        }
        if self.session.is_some() {
            return Ok(Ok(()));
        }
        let known = self.chat.as_ref().and_then(|chat| chat.session.clone());
        Ok(self.open_session(known).await)
    }

    /// Whether the conversation is over by itself, and why.
    fn reset_due(&self) -> Option<ResetReason> {
        let ports = &self.lanes.ports;
        let chat = self.chat.as_ref()?;
        chat.session.as_ref()?;
        let (platform, kind) = (&chat.address.platform, chat.chat.kind.name());
        let settings = ports.settings.now();
        settings
            .reset
            .due(platform, kind, chat.updated, ports.clock.now())
    }

    /// Leaves a conversation that is over; chat and model hear why.
    async fn reset(&mut self, reason: ResetReason) -> Result<(), StoreError> {
        let Some(chat) = &self.chat else {
            return Ok(());
        };
        let (platform, last) = (chat.address.platform.clone(), chat.session.clone());
        tracing::info!(lane = self.key, session = ?last, reason = reason.name(), "a new conversation begins by itself");
        self.tell_hooks("session:reset", &[("reason", reason.name().into())]);
        self.leave_session(None).await?;
        let why = reason.words();
        self.reset_note = Some(format!(
            "[A new conversation begins here because {why}. What was said before is in an earlier one.]"
        ));
        if self.ports().settings.now().reset.is_told_on(&platform) {
            let last = last.map(|last| last.to_string()).unwrap_or_default();
            let words = format!(
                "A new conversation begins: {why}. `/resume {last}` goes on with the last one."
            );
            self.speak(words, Vec::new()).await?;
        }
        Ok(())
    }

    /// Opens a conversation: this one, or a new one.
    pub(super) async fn open_session(&mut self, wanted: Option<SessionId>) -> Result<(), String> {
        let ports = self.ports();
        let mut options = self.options();
        options.title = self.title.take().or(options.title);
        let opened = match &wanted {
            // Somebody else in this process has it open: we read along.
            Some(session) if ports.sessions.get(session).is_some() => {
                let Some(handle) = ports.sessions.get(session) else {
                    return Err("the conversation was closed just now".into());
                };
                let events = Mutex::new(handle.follow(FollowFrom::Turn));
                let open = ports.sessions.list_open();
                let open = open.iter().find(|one| one.id == *session);
                let is_idle = open.is_some_and(|one| one.idle.is_some());
                self.session = Some(OpenedSession {
                    handle,
                    events,
                    is_idle,
                    rests_since: None,
                    // A turn that runs is told from its beginning.
                    is_resuming: !is_idle,
                });
                return Ok(());
            }
            Some(session) => ports.sessions.resume(session.clone(), options).await,
            None => ports.sessions.open(options).await,
        };
        let running = opened.map_err(|error| match error.hint {
            Some(hint) => format!("{}; {hint}", error.message),
            None => error.message,
        })?;
        if let Some(chat) = &mut self.chat {
            chat.session = Some(running.handle.id().clone());
        }
        let resumed = running.resumed.as_ref();
        self.session = Some(OpenedSession {
            is_resuming: resumed.is_some_and(|resumed| resumed.has_open_turn),
            handle: running.handle,
            events: Mutex::new(running.events),
            is_idle: false,
            rests_since: None,
        });
        if wanted.is_none() {
            self.tell_hooks("session:start", &[]);
        }
        Ok(())
    }

    /// Closes the session, and returns what it spent since it was last listened to.
    pub(super) async fn close_counting(&mut self) -> u64 {
        let Some(session) = self.session.take() else {
            return 0;
        };
        let id = session.handle.id().clone();
        if let Err(error) = self.ports().sessions.close(&id).await {
            tracing::debug!(lane = self.key, %error, "the session was not closed");
        }
        let events = session.events.into_inner();
        let mut events = events.unwrap_or_else(PoisonError::into_inner);
        let mut micro_usd = 0;
        // It ends with the session; one that others keep open is not waited for.
        while let Ok(Some(followed)) = timeout(LAST_WORDS, events.next()).await {
            if let Some(Event::ReplyFinished { cost, .. } | Event::CallSpent { cost, .. }) =
                followed.into_event()
            {
                micro_usd += cost.micro_usd().unwrap_or_default();
            }
        }
        micro_usd
    }

    pub(super) async fn close_session(&mut self) {
        if let Some(session) = self.session.take() {
            let id = session.handle.id().clone();
            drop(session);
            if let Err(error) = self.ports().sessions.close(&id).await {
                tracing::debug!(lane = self.key, %error, "the session was not closed");
            }
        }
    }

    /// How conversations of this chat are to be. The words are the same every time: they are part of the prefix.
    pub(super) fn options(&self) -> SessionOptions {
        let mut options = self.lanes.ports.settings.now().options.clone();
        options.audience = Audience::Person;
        let (Some(chat), Some(parts)) = (&self.chat, &self.parts) else {
            return options;
        };
        let facts = parts.channel.facts();
        options.source = facts.platform.to_owned();
        options.surface = Some(facts.platform.to_owned());
        // The owner has the notes of the home; everybody else has notes of their own.
        options.person = self.guest();
        parts.manner.apply(&chat.chat, &mut options);
        let choices = &chat.choices;
        options.model = choices.model.clone().or(options.model);
        options.provider = choices.provider.clone().or(options.provider);
        options.reasoning_effort = choices
            .reasoning_effort
            .clone()
            .or(options.reasoning_effort);
        options.personality = choices.personality.clone().or(options.personality);
        let consent = choices.consent.as_deref().and_then(ConsentOption::named);
        // Leave to do anything is the owner's.
        options.consent = consent
            .filter(|_| !self.is_guest)
            .unwrap_or(options.consent);
        let place = match chat.chat.kind {
            ChatKind::Dm => "with one person, alone".to_owned(),
            kind => format!("in a {} where several people may talk", kind.name()),
        };
        let note = format!(
            "This conversation is on {}, {place}. {} To hand over a file, write MEDIA:/absolute/path on a line of its own.",
            facts.platform, facts.hint
        );
        options.hint = Some(note.trim_end().to_owned());
        options
    }
}
