//! The ways a session begins: new, as a subagent, resumed, or branched from another.

use hermes_core::delegation::{DELEGATE_TASK, SUBAGENT_SOURCE};
use hermes_core::{
    Entry, Import, LoadedSession, Message, NewSession, Prefix, Resumed, SessionId, StoreError,
    TurnId,
};

use super::Ports;
use super::task::SessionTask;
use crate::history::History;
use crate::record::Recorder;

impl SessionTask {
    pub(super) fn begin_new(&mut self, source: String, title: Option<String>, prefix: Prefix) {
        self.history = History::new(prefix.clone());
        self.unwritten = Some(self.row(source, title, prefix));
    }

    /// What was said elsewhere is written with the first thing that is said here.
    pub(super) fn begin_imported(&mut self, import: Import, source: String, title: Option<String>) {
        if let Some(id) = import.id {
            self.recorder = self.recorder_of(id);
        }
        self.begin_new(source, title, Prefix::default());
        self.inherited = inherited_turns(&import.said, &self.ports);
        for message in import.said {
            self.history.push(message);
        }
    }

    pub(super) fn begin_subagent(&mut self, id: SessionId, parent: SessionId, prefix: Prefix) {
        self.recorder = self.recorder_of(id);
        self.history = History::new(prefix.clone());
        let row = self.row(SUBAGENT_SOURCE.to_owned(), None, prefix);
        self.unwritten = Some(NewSession {
            parent: Some(parent),
            ..row
        });
    }

    /// Begins a session with all that another has said, in the same prefix and compacted as it is there, so that caches go
    /// on to serve it.
    pub(super) async fn branch(
        &mut self,
        of: SessionId,
        source: String,
        title: Option<String>,
    ) -> Result<Resumed, StoreError> {
        let mut inherited = self.ports.store.entries_of_copy(&of).await?;
        // Subagents that are under way report to the session that sent them.
        let is_of_subagents =
            |entry: &Entry| matches!(entry, Entry::ToolKept { tool, .. } if tool == DELEGATE_TASK);
        inherited.retain(|entry| !is_of_subagents(entry));
        let prefix = self.ports.store.load(&of).await?.prefix;
        let row = NewSession {
            parent: Some(of),
            ..self.row(source, title, prefix)
        };
        let id = row.id.clone();
        // It has something to lose from the beginning, so that it is written at once.
        self.claim = Some(self.ports.store.claim(&id).await?);
        self.ports.store.create(row, inherited).await?;
        let branch = self.ports.store.load(&id).await?;
        let record = branch.record.clone();
        self.history = History::loaded(branch);
        Ok(Resumed {
            record,
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

    /// Goes on from what the store has.
    pub(super) fn take_in_loaded(&mut self, mut loaded: LoadedSession) {
        self.open_turn = loaded.open_turn.clone();
        let queued = std::mem::take(&mut loaded.queued);
        self.queue
            .load(queued, &self.steering, self.open_turn.is_some());
        // What was learnt of the model holds for what was said before as well.
        let mut gauge = std::mem::take(&mut self.history.gauge);
        gauge.reset();
        self.history = History::loaded(loaded);
        self.history.gauge = gauge;
    }

    pub(super) async fn resume(&mut self, id: SessionId) -> Result<Resumed, StoreError> {
        self.recorder = self.recorder_of(id.clone());
        self.claim = Some(self.ports.store.claim(&id).await?);
        let loaded = self.ports.store.load(&id).await?;
        let record = loaded.record.clone();
        self.take_in_loaded(loaded);
        Ok(Resumed {
            record,
            messages: self.history.share(),
            has_open_turn: self.open_turn.is_some(),
        })
    }
}

/// Returns what was said elsewhere as entries, one for each turn.
fn inherited_turns(messages: &[Message], ports: &Ports) -> Vec<Entry> {
    let mut turns: Vec<Vec<Message>> = Vec::new();
    for message in messages {
        match turns.last_mut() {
            Some(turn) if !message.begins_turn() => turn.push(message.clone()),
            _ => turns.push(vec![message.clone()]),
        }
    }
    let entry = |messages| Entry::Inherited {
        turn: TurnId::generate(ports.clock.now(), &ports.random),
        messages,
    };
    turns.into_iter().map(entry).collect()
}
