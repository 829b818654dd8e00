//! A store that forgets everything with the test: the contract in its simplest form.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::approval_code::TRIES_MAX;
use hermes_core::{
    Approval, ApprovalId, Approvals, BoxFuture, CallId, Claim, Cost, Entry, Intent, LoadedSession,
    Message, NewSession, OpenTurn, Prefix, QueuedId, QueuedMessage, Role, SessionId, SessionRecord,
    Settled, Settlement, Settling, Shortened, Store, StoreError, Timestamp, ToolStates, TurnEnd,
    TurnId, Usage, history,
};

#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    sessions: BTreeMap<SessionId, Log>,
    claimed: HashSet<SessionId>,
    /// In the order they were opened, each with the number of the reply it belongs to.
    approvals: Vec<(usize, Approval)>,
    /// How many wrong codes were tried while each was open.
    tries: HashMap<ApprovalId, u32>,
    /// The error every write gets, while set.
    refusal: Option<StoreError>,
}

#[derive(Debug, Clone)]
struct Log {
    row: NewSession,
    entries: Vec<Entry>,
    updated: Timestamp,
    commits: usize,
}

impl MemoryStore {
    /// Everything appended to a session, in order.
    pub fn entries(&self, session: &SessionId) -> Vec<Entry> {
        let contents = self.lock();
        let log = contents.sessions.get(session);
        log.map(|log| log.entries.clone()).unwrap_or_default()
    }

    /// How often a session was written to: on a disk, each is a wait.
    pub fn commits(&self, session: &SessionId) -> usize {
        let contents = self.lock();
        contents.sessions.get(session).map_or(0, |log| log.commits)
    }

    /// Refuses writes from now on, or accepts them again.
    pub fn refuse(&self, refusal: Option<StoreError>) {
        self.lock().refusal = refusal;
    }

    /// Cuts a session's log after `entries`, as a crash would.
    pub fn cut(&self, session: &SessionId, entries: usize) {
        if let Some(log) = self.lock().sessions.get_mut(session) {
            log.entries.truncate(entries);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn create(&mut self, row: NewSession, entries: Vec<Entry>) -> Result<(), StoreError> {
        self.refusal.clone().map_or(Ok(()), Err)?;
        if self.sessions.contains_key(&row.id) {
            let detail = format!("session `{}` exists already", row.id);
            return Err(StoreError::Refused { detail });
        }
        let updated = row.created;
        let mut log = Log {
            row,
            entries: Vec::new(),
            updated,
            commits: 0,
        };
        log.append(updated, entries)?;
        self.sessions.insert(log.row.id.clone(), log);
        Ok(())
    }

    fn append(
        &mut self,
        session: &SessionId,
        at: Timestamp,
        entries: Vec<Entry>,
    ) -> Result<(), StoreError> {
        self.refusal.clone().map_or(Ok(()), Err)?;
        let log = self
            .sessions
            .get_mut(session)
            .ok_or_else(|| not_found(session))?;
        // Worked on as a copy, so that it is all or nothing.
        let mut longer = log.clone();
        longer.append(at, entries)?;
        *log = longer;
        Ok(())
    }
}

impl Contents {
    fn open_approval(&mut self, approval: Approval) -> Result<(), StoreError> {
        self.refusal.clone().map_or(Ok(()), Err)?;
        let Some(reply) = self.open_reply(&approval.session, &approval.call) else {
            let detail = format!("call `{}` is not open", approval.call);
            return Err(StoreError::Refused { detail });
        };
        self.approvals.push((reply, approval));
        Ok(())
    }

    fn settle(&mut self, id: &ApprovalId, settlement: Settlement) -> Result<Settling, StoreError> {
        self.refusal.clone().map_or(Ok(()), Err)?;
        let (reply, approval) = self.approval(id)?;
        if let Some(settlement) = approval.settled.clone() {
            let is_ours = false;
            return Ok(Settling {
                settlement,
                is_ours,
            });
        }
        let waits = self.open_reply(&approval.session, &approval.call) == Some(*reply);
        let how = match settlement.how {
            Settled::Answered { .. } if !waits => Settled::Withdrawn,
            Settled::Answered { .. } if !approval.is_open(settlement.at) => Settled::Expired,
            Settled::Answered { verdict, .. } if !approval.offers(verdict, &settlement.said) => {
                let id = id.clone();
                return Err(StoreError::NotOffered { id, verdict });
            }
            how => how,
        };
        let is_ours = how == settlement.how;
        let settlement = Settlement { how, ..settlement };
        for (_, approval) in &mut self.approvals {
            if approval.id == *id {
                approval.settled = Some(settlement.clone());
            }
        }
        Ok(Settling {
            settlement,
            is_ours,
        })
    }

    fn settle_by_code(
        &mut self,
        code: &str,
        settlement: Settlement,
    ) -> Result<(ApprovalId, Settling), StoreError> {
        let open = self.open_approvals(settlement.at);
        let tries = |id: &ApprovalId| self.tries.get(id).copied().unwrap_or(0);
        let (locked, open): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|one| tries(&one.id) >= TRIES_MAX);
        let all = self.approvals.iter().map(|(_, one)| one);
        let is_locked = |one: &&Approval| locked.iter().any(|locked| locked.id == one.id);
        let found = all
            .filter(|one| !is_locked(one))
            .rfind(|one| one.code.is(code));
        if let Some(found) = found {
            let id = found.id.clone();
            let settling = self.settle(&id, settlement)?;
            return Ok((id, settling));
        }
        if open.is_empty() && !locked.is_empty() {
            return Err(StoreError::CodesLocked);
        }
        for one in open {
            *self.tries.entry(one.id).or_default() += 1;
        }
        Err(StoreError::WrongCode)
    }

    fn approval(&self, id: &ApprovalId) -> Result<&(usize, Approval), StoreError> {
        let found = self.approvals.iter().find(|(_, one)| one.id == *id);
        found.ok_or_else(|| StoreError::NoApproval { id: id.clone() })
    }

    fn open_approvals(&self, now: Timestamp) -> Vec<Approval> {
        let is_open = |(reply, one): &&(usize, Approval)| {
            one.is_open(now) && self.open_reply(&one.session, &one.call) == Some(*reply)
        };
        let open = self.approvals.iter().filter(is_open);
        open.map(|(_, approval)| approval.clone()).collect()
    }

    fn approval_of_call(&self, session: &SessionId, call: &CallId) -> Option<Approval> {
        let reply = self.open_reply(session, call)?;
        let is_of_call = |(of, one): &&(usize, Approval)| {
            *of == reply && one.session == *session && one.call == *call
        };
        let newest = self.approvals.iter().rfind(is_of_call);
        newest.map(|(_, approval)| approval.clone())
    }

    /// The number of the last reply, if this call of it has no result.
    fn open_reply(&self, session: &SessionId, call: &CallId) -> Option<usize> {
        let log = self.sessions.get(session)?;
        let is_reply = |entry: &&Entry| matches!(entry, Entry::Replied { .. });
        let is_open =
            log.open_turn().is_some() && history::unanswered(&log.messages()).contains(call);
        is_open.then(|| log.entries.iter().filter(is_reply).count())
    }
}

impl Log {
    fn append(&mut self, at: Timestamp, entries: Vec<Entry>) -> Result<(), StoreError> {
        for entry in entries {
            self.check(&entry)
                .map_err(|detail| StoreError::Refused { detail })?;
            self.entries.push(entry);
        }
        self.updated = at;
        self.commits += 1;
        Ok(())
    }

    /// The rules of the log: one open turn, one result per call, no reply or end before all calls are answered.
    fn check(&self, entry: &Entry) -> Result<(), String> {
        let open = self.open_turn().map(|open| open.turn);
        let (turn, needs_answers, call) = match entry {
            Entry::Rewound { turns } if *turns as usize > self.turns_told().len() => {
                return Err("so many turns were not told".into());
            }
            Entry::ToolKept { turn, .. } => {
                let is_told = self.told().turns.iter().any(|told| told.turn == *turn);
                return is_told
                    .then_some(())
                    .ok_or(format!("turn `{turn}` is not told"));
            }
            Entry::Compacted {
                summary,
                kept,
                shortened,
                prefix,
                used: _,
            } => {
                let is_new = !shortened.is_empty() || prefix.is_some();
                let kept = *kept as usize;
                return self.check_compaction(summary.is_some(), kept, shortened, is_new);
            }
            Entry::Queued { queued } => {
                if self.queued().iter().any(|one| one.id == queued.id) {
                    return Err(format!("words `{}` wait already", queued.id));
                }
                return Ok(());
            }
            Entry::Dequeued { queued } => {
                let waiting = self.queued();
                let is_waiting = |id: &QueuedId| waiting.iter().any(|one| one.id == *id);
                return match queued.iter().find(|id| !is_waiting(id)) {
                    Some(id) => Err(format!("no words `{id}` wait")),
                    None => Ok(()),
                };
            }
            Entry::TurnStarted { .. } | Entry::Rewound { .. } | Entry::Inherited { .. } => {
                return open.map_or(Ok(()), |open| Err(format!("turn `{open}` is still open")));
            }
            Entry::TurnResumed { turn } | Entry::ModelAsked { turn, .. } => (turn, false, None),
            Entry::Replied { turn, .. } | Entry::TurnEnded { turn, .. } => (turn, true, None),
            Entry::CallIntended { turn, call, .. } => (turn, false, Some(call)),
            Entry::CallFinished { turn, result } => (turn, false, Some(&result.call)),
        };
        if open.as_ref() != Some(turn) {
            return Err(format!("turn `{turn}` is not open"));
        }
        let unanswered = history::unanswered(&self.messages());
        match call {
            _ if needs_answers && !unanswered.is_empty() => Err("calls have no result".into()),
            Some(call) if !unanswered.contains(call) => Err(format!("call `{call}` is not open")),
            _ => Ok(()),
        }
    }

    fn check_compaction(
        &self,
        has_summary: bool,
        kept: usize,
        shortened: &[Shortened],
        is_new: bool,
    ) -> Result<(), String> {
        let told = self.told();
        let messages = told.messages();
        let covered = told.compactions.last().map_or(0, |last| last.covers);
        let covers = messages.len().checked_sub(kept);
        let kept = match covers {
            None => return Err("there are not so many".into()),
            Some(covers) if has_summary && covers <= covered => {
                return Err("there is nothing new to compact".into());
            }
            Some(covers) if !has_summary && (covers != covered || !is_new) => {
                return Err("nothing would be shortened".into());
            }
            Some(covers) => &messages[covers..],
        };
        if kept.first().is_some_and(|first| first.role == Role::Tool) {
            return Err("a result would be kept without its call".into());
        }
        let kept = history::in_call_order(kept.to_vec());
        let call_of = |message: &Message| message.tool_result().map(|result| result.call.clone());
        let fits = |one: &Shortened| {
            let said = kept.get(one.at as usize);
            said.is_some_and(|said| {
                said.role == one.message.role && call_of(said) == call_of(&one.message)
            })
        };
        if shortened.iter().all(fits) {
            Ok(())
        } else {
            Err("a message would be shortened to another one".into())
        }
    }

    /// Everything that was said and not taken back.
    fn messages(&self) -> Vec<Message> {
        history::in_call_order(self.told().messages())
    }

    fn turns_told(&self) -> Vec<ToldTurn> {
        self.told().turns
    }

    fn told(&self) -> Told {
        let mut told = Told::default();
        for entry in &self.entries {
            told.take(entry);
        }
        told
    }

    fn open_turn(&self) -> Option<OpenTurn> {
        let mut open: Option<OpenTurn> = None;
        for entry in &self.entries {
            match (entry, &mut open) {
                (Entry::TurnStarted { turn, .. }, _) => {
                    open = Some(OpenTurn {
                        turn: turn.clone(),
                        resumed: 0,
                        steps: 0,
                        replies: 0,
                        intents: Vec::new(),
                    });
                }
                (Entry::TurnEnded { .. }, _) => open = None,
                (Entry::TurnResumed { .. }, Some(open)) => open.resumed += 1,
                (Entry::ModelAsked { .. }, Some(open)) => open.steps += 1,
                (Entry::Replied { .. }, Some(open)) => open.replies += 1,
                (Entry::CallIntended { call, .. }, Some(open)) => {
                    open.intents.retain(|intent| intent.call != *call);
                    open.intents.extend(intent_of(entry));
                }
                (Entry::CallFinished { result, .. }, Some(open)) => {
                    open.intents.retain(|intent| intent.call != result.call);
                }
                _ => {}
            }
        }
        open
    }

    fn queued(&self) -> Vec<QueuedMessage> {
        let mut waiting: Vec<QueuedMessage> = Vec::new();
        for entry in &self.entries {
            match entry {
                Entry::Queued { queued } => waiting.push(queued.clone()),
                Entry::Dequeued { queued } => waiting.retain(|one| !queued.contains(&one.id)),
                _ => {}
            }
        }
        waiting
    }

    fn last_end(&self) -> Option<TurnEnd> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::TurnEnded { end, .. } => Some(end.clone()),
            _ => None,
        })
    }

    fn load(&self) -> LoadedSession {
        let messages = self.messages();
        let open_turn = self.open_turn();
        let told = self.told();
        LoadedSession {
            record: self.record(&messages, open_turn.is_some()),
            prefix: told.prefix().unwrap_or(&self.row.prefix).clone(),
            messages: told.seen_by_model(),
            tool_states: told.tool_states(),
            queued: self.queued(),
            open_turn,
            last_end: self.last_end(),
        }
    }

    fn entries_of_copy(&self) -> Result<Vec<Entry>, StoreError> {
        if let Some(open) = self.open_turn() {
            let detail = format!("turn `{}` has not ended", open.turn);
            return Err(StoreError::Refused { detail });
        }
        Ok(self.told().entries_of_copy())
    }

    fn record(&self, messages: &[Message], has_open_turn: bool) -> SessionRecord {
        let mut usage = Usage::default();
        let mut cost = Some(0);
        let mut requests = 0;
        for entry in &self.entries {
            let Some((used, price)) = use_of(entry) else {
                continue;
            };
            usage += used;
            cost = cost.zip(price.micro_usd()).map(|(sum, more)| sum + more);
            requests += u64::from(matches!(entry, Entry::Replied { .. }));
        }
        let replies = messages
            .iter()
            .filter(|message| message.role == Role::Assistant);
        SessionRecord {
            id: self.row.id.clone(),
            title: self.row.title.clone(),
            preview: messages.first().map(Message::text).unwrap_or_default(),
            source: self.row.source.clone(),
            cwd: self.row.cwd.clone(),
            model: self.row.model.clone(),
            parent: self.row.parent.clone(),
            created: self.row.created,
            updated: self.updated,
            messages: messages.len() as u64,
            calls: replies.map(|reply| reply.calls().count() as u64).sum(),
            requests,
            usage,
            cost_micro_usd: cost,
            has_open_turn,
        }
    }
}

/// A conversation as its log tells it.
#[derive(Default)]
struct Told {
    turns: Vec<ToldTurn>,
    compactions: Vec<Compaction>,
}

/// A turn that was not taken back.
struct ToldTurn {
    turn: TurnId,
    messages: Vec<Message>,
    kept: ToolStates,
}

struct Compaction {
    /// How many of the messages its summary stands for.
    covers: usize,
    summary: Option<Message>,
    /// What is seen in place of the messages behind those, by their places there.
    shortened: BTreeMap<usize, Message>,
    prefix: Option<Prefix>,
}

impl Told {
    fn take(&mut self, entry: &Entry) {
        let more = match entry {
            Entry::TurnStarted { turn, message } => {
                return self.begin(turn, std::slice::from_ref(message));
            }
            Entry::Inherited { turn, messages } => return self.begin(turn, messages),
            Entry::Rewound { turns } => return self.take_back(*turns as usize),
            Entry::ToolKept { turn, tool, state } => {
                let told = self.turns.iter_mut().find(|told| told.turn == *turn);
                if let Some(told) = told {
                    told.kept.insert(tool.clone(), state.clone());
                }
                return;
            }
            Entry::Compacted {
                summary,
                kept,
                shortened,
                prefix,
                used: _,
            } => {
                let covers = self.messages().len() - *kept as usize;
                let last = self.compactions.last();
                let covered = last.map_or(0, |last| last.covers);
                let before = last.map(|last| last.shortened.clone()).unwrap_or_default();
                let before = before.into_iter().filter_map(|(at, message)| {
                    Some(((covered + at).checked_sub(covers)?, message))
                });
                let now = shortened.iter();
                let now = now.map(|one| (one.at as usize, one.message.clone()));
                return self.compactions.push(Compaction {
                    covers,
                    summary: summary
                        .clone()
                        .or_else(|| last.and_then(|last| last.summary.clone())),
                    shortened: before.chain(now).collect(),
                    prefix: prefix.clone(),
                });
            }
            Entry::Replied { message, .. } => Some(message.clone()),
            Entry::CallFinished { result, .. } => Some(Message::result(result.clone())),
            Entry::TurnEnded { closing, .. } => closing.clone(),
            Entry::TurnResumed { .. }
            | Entry::ModelAsked { .. }
            | Entry::CallIntended { .. }
            | Entry::Queued { .. }
            | Entry::Dequeued { .. } => None,
        };
        if let Some(turn) = self.turns.last_mut() {
            turn.messages.extend(more);
        }
    }

    fn begin(&mut self, turn: &TurnId, messages: &[Message]) {
        self.turns.push(ToldTurn {
            turn: turn.clone(),
            messages: messages.to_vec(),
            kept: ToolStates::new(),
        });
    }

    fn take_back(&mut self, turns: usize) {
        self.turns.truncate(self.turns.len().saturating_sub(turns));
        let left = self.messages().len();
        self.compactions
            .retain(|compaction| compaction.covers <= left);
    }

    fn messages(&self) -> Vec<Message> {
        let messages = self.turns.iter().map(|turn| turn.messages.as_slice());
        messages.collect::<Vec<_>>().concat()
    }

    fn seen_by_model(&self) -> Vec<Message> {
        let mut messages = self.messages();
        let Some(compaction) = self.compactions.last() else {
            return history::in_call_order(messages);
        };
        let rest = history::in_call_order(messages.split_off(compaction.covers));
        let rest = rest.into_iter().enumerate();
        let as_seen = rest.map(|(at, message)| {
            let shortened = compaction.shortened.get(&at);
            shortened.cloned().unwrap_or(message)
        });
        compaction
            .summary
            .clone()
            .into_iter()
            .chain(as_seen)
            .collect()
    }

    fn entries_of_copy(&self) -> Vec<Entry> {
        let said = self.turns.iter().map(|turn| Entry::Inherited {
            turn: turn.turn.clone(),
            messages: turn.messages.clone(),
        });
        let kept = self.turns.iter().flat_map(|turn| {
            let kept = turn.kept.iter();
            kept.map(|(tool, state)| Entry::ToolKept {
                turn: turn.turn.clone(),
                tool: tool.clone(),
                state: state.clone(),
            })
        });
        let compacted = self.compactions.last().map(|last| {
            let kept = self.messages().len() - last.covers;
            let shortened = last.shortened.iter().filter(|(at, _)| **at < kept);
            let shortened = shortened.map(|(at, message)| Shortened {
                at: *at as u32,
                message: message.clone(),
            });
            Entry::Compacted {
                summary: last.summary.clone(),
                kept: kept as u32,
                shortened: shortened.collect(),
                prefix: None,
                used: None,
            }
        });
        let is_seen_whole = |entry: &Entry| matches!(entry, Entry::Compacted { summary: None, shortened, .. } if shortened.is_empty());
        let compacted = compacted.filter(|entry| !is_seen_whole(entry));
        said.chain(kept).chain(compacted).collect()
    }

    fn prefix(&self) -> Option<&Prefix> {
        let mut latest = self.compactions.iter().rev();
        latest.find_map(|compaction| compaction.prefix.as_ref())
    }

    fn tool_states(&self) -> ToolStates {
        let kept = self.turns.iter().flat_map(|turn| turn.kept.clone());
        kept.collect()
    }
}

fn intent_of(entry: &Entry) -> Option<Intent> {
    match entry {
        Entry::CallIntended {
            call, tool, effect, ..
        } => Some(Intent {
            call: call.clone(),
            tool: tool.clone(),
            effect: *effect,
        }),
        _ => None,
    }
}

fn use_of(entry: &Entry) -> Option<(Usage, Cost)> {
    match entry {
        Entry::Replied { usage, cost, .. } => Some((*usage, *cost)),
        Entry::Compacted { used, .. } => used.map(|used| (used.usage, used.cost)),
        _ => None,
    }
}

fn not_found(session: &SessionId) -> StoreError {
    StoreError::NotFound {
        name: session.to_string(),
    }
}

impl Store for MemoryStore {
    fn create(
        &self,
        session: NewSession,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.lock().create(session, entries)))
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
        at: Timestamp,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let appended = self.lock().append(session, at, entries);
        Box::pin(std::future::ready(appended))
    }

    fn load(&self, session: &SessionId) -> BoxFuture<'_, Result<LoadedSession, StoreError>> {
        let contents = self.lock();
        let log = contents.sessions.get(session);
        let loaded = log.map(Log::load).ok_or_else(|| not_found(session));
        Box::pin(std::future::ready(loaded))
    }

    fn entries_of_copy(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let contents = self.lock();
        let log = contents.sessions.get(session);
        let entries = log.ok_or_else(|| not_found(session));
        Box::pin(std::future::ready(entries.and_then(Log::entries_of_copy)))
    }

    fn turn_from_end(
        &self,
        session: &SessionId,
        turns: u32,
    ) -> BoxFuture<'_, Result<Option<(u32, Message)>, StoreError>> {
        let contents = self.lock();
        let log = contents.sessions.get(session);
        let found = log.map(Log::turns_told).ok_or_else(|| not_found(session));
        let found = found.map(|told| {
            let counted = (1..).zip(told.iter().rev());
            let (count, turn) = counted.take(turns as usize).last()?;
            Some((count, turn.messages.first()?.clone()))
        });
        Box::pin(std::future::ready(found))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let contents = self.lock();
        let open = contents
            .sessions
            .iter()
            .filter(|(_, log)| log.open_turn().is_some() || !log.queued().is_empty());
        let open = open.map(|(id, _)| id.clone()).collect();
        Box::pin(std::future::ready(Ok(open)))
    }
}

impl Approvals for MemoryStore {
    fn open_approval(&self, approval: Approval) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.lock().open_approval(approval)))
    }

    fn settle(
        &self,
        id: &ApprovalId,
        settlement: Settlement,
    ) -> BoxFuture<'_, Result<Settling, StoreError>> {
        Box::pin(std::future::ready(self.lock().settle(id, settlement)))
    }

    fn settle_by_code(
        &self,
        code: &str,
        settlement: Settlement,
    ) -> BoxFuture<'_, Result<(ApprovalId, Settling), StoreError>> {
        let settled = self.lock().settle_by_code(code, settlement);
        Box::pin(std::future::ready(settled))
    }

    fn approval(&self, id: &ApprovalId) -> BoxFuture<'_, Result<Approval, StoreError>> {
        let found = self.lock().approval(id).map(|(_, one)| one.clone());
        Box::pin(std::future::ready(found))
    }

    fn approval_of_call(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> BoxFuture<'_, Result<Option<Approval>, StoreError>> {
        let found = self.lock().approval_of_call(session, call);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn open_approvals(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.lock().open_approvals(now))))
    }
}

/// Gives a session free when its claim is dropped.
struct Release {
    store: MemoryStore,
    session: SessionId,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.store.lock().claimed.remove(&self.session);
    }
}
