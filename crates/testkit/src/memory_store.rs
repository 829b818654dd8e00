//! A store that forgets everything with the test: the contract in its simplest form.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::{
    BoxFuture, Claim, Entry, Intent, LoadedSession, Message, NewSession, OpenTurn, SessionId,
    SessionRecord, Store, StoreError, Timestamp, history,
};

#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    sessions: BTreeMap<SessionId, (NewSession, Vec<Entry>)>,
    claimed: HashSet<SessionId>,
    /// The error every append gets, while set.
    refusal: Option<StoreError>,
}

impl MemoryStore {
    /// Everything appended to a session, in order.
    pub fn entries(&self, session: &SessionId) -> Vec<Entry> {
        self.lock()
            .sessions
            .get(session)
            .map(|(_, entries)| entries.clone())
            .unwrap_or_default()
    }

    pub fn sessions(&self) -> Vec<SessionId> {
        self.lock().sessions.keys().cloned().collect()
    }

    /// Refuses appends from now on, or accepts them again.
    pub fn refuse(&self, refusal: Option<StoreError>) {
        self.lock().refusal = refusal;
    }

    /// Cuts a session's log after `entries`, as a crash would.
    pub fn cut(&self, session: &SessionId, entries: usize) {
        if let Some((_, log)) = self.lock().sessions.get_mut(session) {
            log.truncate(entries);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn create(
        &self,
        session: NewSession,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut contents = self.lock();
        let result = contents.refusal.clone().map_or(Ok(()), Err);
        if result.is_ok() {
            contents
                .sessions
                .insert(session.id.clone(), (session, entries));
        }
        Box::pin(std::future::ready(result))
    }

    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        let is_free = self.lock().claimed.insert(session.clone());
        let claim = if is_free {
            Ok(Claim::new(Release {
                store: self.clone(),
                session: session.clone(),
            }))
        } else {
            Err(StoreError::Busy {
                session: session.clone(),
                owner: None,
            })
        };
        Box::pin(std::future::ready(claim))
    }

    fn append(
        &self,
        session: &SessionId,
        _: Timestamp,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut contents = self.lock();
        let result = match (contents.refusal.clone(), contents.sessions.get_mut(session)) {
            (Some(refusal), _) => Err(refusal),
            (None, None) => Err(StoreError::NotFound {
                name: session.to_string(),
            }),
            (None, Some((_, log))) => {
                log.extend(entries);
                Ok(())
            }
        };
        Box::pin(std::future::ready(result))
    }

    fn load(&self, session: &SessionId) -> BoxFuture<'_, Result<LoadedSession, StoreError>> {
        let contents = self.lock();
        let loaded = match contents.sessions.get(session) {
            Some((row, entries)) => Ok(loaded(row, entries)),
            None => Err(StoreError::NotFound {
                name: session.to_string(),
            }),
        };
        Box::pin(std::future::ready(loaded))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let contents = self.lock();
        let open = contents
            .sessions
            .iter()
            .filter(|(_, (_, entries))| open_turn(entries).is_some());
        let open = open.map(|(id, _)| id.clone()).collect();
        Box::pin(std::future::ready(Ok(open)))
    }
}

struct Release {
    store: MemoryStore,
    session: SessionId,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.store.lock().claimed.remove(&self.session);
    }
}

fn loaded(row: &NewSession, entries: &[Entry]) -> LoadedSession {
    let messages: Vec<Message> = entries.iter().filter_map(message_of).collect();
    let open_turn = open_turn(entries);
    LoadedSession {
        record: SessionRecord {
            id: row.id.clone(),
            title: row.title.clone(),
            preview: messages.first().map(Message::text).unwrap_or_default(),
            source: row.source.clone(),
            cwd: row.cwd.clone(),
            model: row.model.clone(),
            parent: row.parent.clone(),
            created: row.created,
            updated: row.created,
            messages: messages.len() as u64,
            calls: entries
                .iter()
                .filter(|entry| matches!(entry, Entry::CallFinished { .. }))
                .count() as u64,
            requests: entries
                .iter()
                .filter(|entry| matches!(entry, Entry::Replied { .. }))
                .count() as u64,
            usage: hermes_core::Usage::default(),
            cost_micro_usd: None,
            has_open_turn: open_turn.is_some(),
        },
        prefix: row.prefix.clone(),
        messages: history::in_call_order(messages),
        open_turn,
    }
}

fn message_of(entry: &Entry) -> Option<Message> {
    match entry {
        Entry::TurnStarted { message, .. } | Entry::Replied { message, .. } => {
            Some(message.clone())
        }
        Entry::CallFinished { result, .. } => Some(Message::result(result.clone())),
        Entry::TurnEnded { closing, .. } => closing.clone(),
        Entry::TurnResumed { .. } | Entry::ModelAsked { .. } | Entry::CallIntended { .. } => None,
    }
}

fn open_turn(entries: &[Entry]) -> Option<OpenTurn> {
    let mut open: Option<OpenTurn> = None;
    for entry in entries {
        match (entry, &mut open) {
            (Entry::TurnStarted { turn, .. }, _) => {
                open = Some(OpenTurn {
                    turn: turn.clone(),
                    resumed: 0,
                    steps: 0,
                    intents: Vec::new(),
                });
            }
            (Entry::TurnEnded { .. }, _) => open = None,
            (Entry::TurnResumed { .. }, Some(open)) => open.resumed += 1,
            (Entry::ModelAsked { .. }, Some(open)) => open.steps += 1,
            (
                Entry::CallIntended {
                    call, tool, effect, ..
                },
                Some(open),
            ) => {
                open.intents.push(Intent {
                    call: call.clone(),
                    tool: tool.clone(),
                    effect: *effect,
                });
            }
            (Entry::CallFinished { result, .. }, Some(open)) => {
                open.intents.retain(|intent| intent.call != result.call);
            }
            _ => {}
        }
    }
    open
}
