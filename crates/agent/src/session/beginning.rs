//! The ways a session begins: afresh, for another one, from where it was, or from where another was.

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{Entry, Message, NewSession, Prefix, Role, SessionId, StoreError, TurnId};

use super::task::SessionTask;
use super::{Ports, Resumed};
use crate::history::History;
use crate::record::Recorder;

/// A session that is not in the store yet.
pub(super) struct Unwritten {
    pub(super) row: NewSession,
    pub(super) inherited: Vec<Entry>,
}

impl SessionTask {
    pub(super) fn begin_new(&mut self, source: String, title: Option<String>, prefix: Prefix) {
        self.history = History::new(prefix.clone(), Vec::new());
        self.unwritten = Some(Unwritten {
            row: self.row(source, title, prefix),
            inherited: Vec::new(),
        });
    }

    pub(super) fn begin_errand(&mut self, id: SessionId, parent: SessionId, prefix: Prefix) {
        self.recorder = self.recorder_of(id);
        self.history = History::new(prefix.clone(), Vec::new());
        let row = self.row(SUBAGENT_SOURCE.to_owned(), None, prefix);
        self.unwritten = Some(Unwritten {
            row: NewSession {
                parent: Some(parent),
                ..row
            },
            inherited: Vec::new(),
        });
    }

    /// Begins a session with what another has said, in the same prefix, so that caches go on to serve it.
    pub(super) async fn branch(
        &mut self,
        of: SessionId,
        source: String,
        title: Option<String>,
    ) -> Result<Resumed, StoreError> {
        let parent = self.ports.store.load(&of).await?;
        if parent.open_turn.is_some() {
            return Err(StoreError::Refused {
                detail: format!("session `{of}` has a turn that has not ended"),
            });
        }
        let row = self.row(source, title, parent.prefix.clone());
        self.unwritten = Some(Unwritten {
            row: NewSession {
                parent: Some(of),
                ..row
            },
            inherited: inherited(&parent.messages, &self.ports),
        });
        self.history = History::new(parent.prefix, parent.messages);
        Ok(Resumed {
            record: parent.record,
            messages: self.history.share(),
            has_open_turn: false,
        })
    }

    pub(super) fn recorder_of(&self, session: SessionId) -> Recorder {
        let (store, clock) = (self.ports.store.clone(), self.ports.clock.clone());
        Recorder::new(store, clock, session)
    }

    fn row(&self, source: String, title: Option<String>, prefix: Prefix) -> NewSession {
        NewSession {
            id: self.recorder.session().clone(),
            created: self.ports.clock.now(),
            source,
            title,
            cwd: Some(self.settings.cwd.clone()),
            model: self.ports.model.name(),
            parent: None,
            prefix,
        }
    }

    pub(super) async fn resume(&mut self, id: SessionId) -> Result<Resumed, StoreError> {
        self.recorder = self.recorder_of(id.clone());
        self.claim = Some(self.ports.store.claim(&id).await?);
        let loaded = self.ports.store.load(&id).await?;
        self.history = History::new(loaded.prefix, loaded.messages);
        self.open_turn = loaded.open_turn;
        Ok(Resumed {
            record: loaded.record,
            messages: self.history.share(),
            has_open_turn: self.open_turn.is_some(),
        })
    }
}

/// Returns a conversation as entries of a branch: each turn begins with what the user said.
fn inherited(messages: &[Message], ports: &Ports) -> Vec<Entry> {
    let mut turns: Vec<Vec<Message>> = Vec::new();
    for message in messages {
        match turns.last_mut() {
            Some(turn) if message.role != Role::User => turn.push(message.clone()),
            _ => turns.push(vec![message.clone()]),
        }
    }
    let entry = |messages| Entry::Inherited {
        turn: TurnId::generate(ports.clock.now(), &ports.random),
        messages,
    };
    turns.into_iter().map(entry).collect()
}
