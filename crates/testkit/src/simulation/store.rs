//! The store of a simulated process: a real one behind it, a disk that can be full, and a death before or behind every commit.
//!
//! Calls are made while the runtime stands still: no time passes, and nothing else happens in the middle of one. So the real
//! store with its threads is as repeatable as one in memory, and none that only agrees with itself is needed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use hermes_core::{
    Accepted, Address, Answers, Approval, ApprovalId, Approvals, Archive, AskRules, Asked,
    BoxFuture, CallId, Chats, Claim, ClaimOutcome, Claimed, Closed, DeadAddress, DeliveryStatus,
    Ending, Entry, Had, Inbox, InboxDepth, InboxEntry, Insights, Job, JobId, KnownChat, Lease,
    Leases, LoadedSession, Message, NewOutboxEntry, NewSession, NewUpdates, Outbox, OutboxDepth,
    OutboxEntry, OutboxId, OutboxStep, PairedPerson, PairingRequest, Pairings, People, Record,
    RecordKey, Records, Run, RunClaim, RunEnd, RunFilter, RunId, RunLease, RunStep, Schedules,
    SearchHit, SearchQuery, SessionFilter, SessionId, SessionRecord, Settlement, Settling, Spoken,
    SpokenQuery, Store, StoreError, StoreStats, Timestamp, TranscriptLine, WantedLease,
};

use super::fate::{Fate, Trace};
use super::ledger::Ledger;
use super::lock;

/// Everything that a gateway keeps.
pub trait GatewayStore:
    Store + Archive + Inbox + Outbox + Leases + Chats + Pairings + People + Records + Schedules
{
}

impl<T: Store + Archive + Inbox + Outbox + Leases + Chats + Pairings + People + Records + Schedules>
    GatewayStore for T
{
}

pub struct SimStore {
    store: Arc<dyn GatewayStore>,
    fate: Arc<Fate>,
    ledger: Arc<Ledger>,
    trace: Arc<Trace>,
    is_full: Arc<AtomicBool>,
    polled: Mutex<Polled>,
}

/// What is asked for again and again while nothing happens, as it was when something was written last.
#[derive(Default)]
struct Polled {
    outgoing: Vec<(String, Vec<OutboxEntry>)>,
    lanes: Option<Vec<String>>,
    undelivered: Option<Vec<Run>>,
    next_due: Option<Option<Timestamp>>,
    approvals: Vec<Approval>,
    /// No run is under way.
    is_at_rest: Option<bool>,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl SimStore {
    pub fn new(
        store: Arc<dyn GatewayStore>,
        fate: Arc<Fate>,
        ledger: Arc<Ledger>,
        trace: Arc<Trace>,
        is_full: Arc<AtomicBool>,
    ) -> Self {
        Self {
            store,
            fate,
            ledger,
            trace,
            is_full,
            polled: Mutex::default(),
        }
    }

    fn read<'a, T: Send + 'a>(&'a self, work: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            self.fate.live().await;
            block_on(work)
        })
    }

    fn write<'a, T: Send + 'a>(&'a self, what: &'static str, work: Answer<'a, T>) -> Answer<'a, T> {
        self.write_and(what, work, |_| {})
    }

    /// Writes, and has the ledger know what was written even if nobody else learns of it.
    fn write_and<'a, T: Send + 'a>(
        &'a self,
        what: &'static str,
        work: Answer<'a, T>,
        note: impl FnOnce(&T) + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            self.fate.step().await;
            if self.is_full.load(Ordering::Relaxed) {
                self.trace.note(|| format!("disk full: {what}"));
                return Err(StoreError::DiskFull {
                    path: "/simulated".into(),
                });
            }
            let done = block_on(work);
            *lock(&self.polled) = Polled::default();
            match &done {
                Ok(done) => {
                    self.trace.note(|| format!("commit {what}"));
                    note(done);
                }
                Err(error) => self.trace.note(|| format!("refused {what}: {error}")),
            }
            self.fate.step().await;
            done
        })
    }
}

/// Waits for a future while nothing else happens on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    // A task may poll only so often before it must let others in: nobody else can come in here.
    let mut future = std::pin::pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

impl Store for SimStore {
    fn create(&self, session: NewSession, entries: Vec<Entry>) -> Answer<'_, ()> {
        self.write("create", self.store.create(session, entries))
    }
    fn claim(&self, session: &SessionId) -> Answer<'_, Claim> {
        self.read(self.store.claim(session))
    }
    fn append(&self, session: &SessionId, at: Timestamp, entries: Vec<Entry>) -> Answer<'_, ()> {
        self.write("append", self.store.append(session, at, entries))
    }
    fn load(&self, session: &SessionId) -> Answer<'_, LoadedSession> {
        self.read(self.store.load(session))
    }
    fn entries_of_copy(&self, session: &SessionId) -> Answer<'_, Vec<Entry>> {
        self.read(self.store.entries_of_copy(session))
    }
    fn turn_from_end(&self, session: &SessionId, turns: u32) -> Answer<'_, Option<(u32, Message)>> {
        self.read(self.store.turn_from_end(session, turns))
    }
    fn unfinished(&self) -> Answer<'_, Vec<SessionId>> {
        self.read(self.store.unfinished())
    }
}

impl Approvals for SimStore {
    fn open_approval(&self, approval: Approval) -> Answer<'_, ()> {
        self.write("open_approval", self.store.open_approval(approval))
    }
    fn settle(&self, id: &ApprovalId, settlement: Settlement) -> Answer<'_, Settling> {
        self.write("settle", self.store.settle(id, settlement))
    }
    fn settle_by_code(
        &self,
        code: &str,
        settlement: Settlement,
    ) -> Answer<'_, (ApprovalId, Settling)> {
        self.write(
            "settle_by_code",
            self.store.settle_by_code(code, settlement),
        )
    }
    fn approval(&self, id: &ApprovalId) -> Answer<'_, Approval> {
        let id = id.clone();
        Box::pin(async move {
            self.fate.live().await;
            {
                let polled = lock(&self.polled);
                let known = polled.approvals.iter().find(|known| known.id == id);
                if let Some(known) = known {
                    return Ok(known.clone());
                }
            }
            let approval = block_on(self.store.approval(&id))?;
            lock(&self.polled).approvals.push(approval.clone());
            Ok(approval)
        })
    }
    fn approval_of_call(&self, session: &SessionId, call: &CallId) -> Answer<'_, Option<Approval>> {
        self.read(self.store.approval_of_call(session, call))
    }
    fn open_approvals(&self, now: Timestamp) -> Answer<'_, Vec<Approval>> {
        self.read(self.store.open_approvals(now))
    }
}

impl Archive for SimStore {
    fn list(&self, filter: SessionFilter) -> Answer<'_, Vec<SessionRecord>> {
        self.read(self.store.list(filter))
    }
    fn record(&self, session: &SessionId) -> Answer<'_, SessionRecord> {
        self.read(self.store.record(session))
    }
    fn subagents(&self, parent: &SessionId) -> Answer<'_, Vec<SessionRecord>> {
        self.read(self.store.subagents(parent))
    }
    fn find(&self, name: &str) -> Answer<'_, SessionId> {
        self.read(self.store.find(name))
    }
    fn transcript(&self, session: &SessionId) -> Answer<'_, Vec<TranscriptLine>> {
        self.read(self.store.transcript(session))
    }
    fn spoken(&self, query: SpokenQuery) -> Answer<'_, Vec<Spoken>> {
        self.read(self.store.spoken(query))
    }
    fn message_at(&self, place: u64) -> Answer<'_, Option<Spoken>> {
        self.read(self.store.message_at(place))
    }
    fn ending(&self, session: &SessionId, exchanges: usize) -> Answer<'_, Ending> {
        self.read(self.store.ending(session, exchanges))
    }
    fn search(&self, query: SearchQuery) -> Answer<'_, Vec<SearchHit>> {
        self.read(self.store.search(query))
    }
    fn rename(&self, session: &SessionId, title: &str) -> Answer<'_, ()> {
        self.write("rename", self.store.rename(session, title))
    }
    fn suggest_title(&self, session: &SessionId, title: &str) -> Answer<'_, bool> {
        self.write("suggest_title", self.store.suggest_title(session, title))
    }
    fn delete(&self, session: &SessionId) -> Answer<'_, ()> {
        self.write("delete", self.store.delete(session))
    }
    fn stats(&self) -> Answer<'_, StoreStats> {
        self.read(self.store.stats())
    }
    fn insights(&self, since: Timestamp) -> Answer<'_, Insights> {
        self.read(self.store.insights(since))
    }
}

impl Inbox for SimStore {
    fn accept_updates(&self, batch: NewUpdates) -> Answer<'_, Vec<Accepted>> {
        let kept = batch.clone();
        let work = self.store.accept_updates(batch);
        self.write_and("accept", work, move |accepted| {
            self.ledger.accepted(&kept, accepted);
        })
    }
    fn read_cursor(&self, platform: &str, account: &str) -> Answer<'_, Option<String>> {
        self.read(self.store.read_cursor(platform, account))
    }
    fn open_lanes(&self) -> Answer<'_, Vec<String>> {
        Box::pin(async move {
            self.fate.live().await;
            let known = lock(&self.polled).lanes.clone();
            if let Some(lanes) = known {
                return Ok(lanes);
            }
            let lanes = block_on(self.store.open_lanes())?;
            lock(&self.polled).lanes = Some(lanes.clone());
            Ok(lanes)
        })
    }
    fn open_entries(&self, lane: &str, max: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.read(self.store.open_entries(lane, max))
    }
    fn close_entries(&self, closing: Answers, how: Closed, at: Timestamp) -> Answer<'_, ()> {
        let closed = closing.entries.clone();
        let work = self.store.close_entries(closing, how, at);
        self.write_and("close_entries", work, move |()| {
            self.trace.note(|| format!("closed {closed:?} {how:?}"));
            self.ledger.closed(&closed, how, None, at);
        })
    }
    fn inbox_depth(&self) -> Answer<'_, InboxDepth> {
        self.read(self.store.inbox_depth())
    }
    fn forget_raw_updates(&self, before: Timestamp) -> Answer<'_, u64> {
        self.write("forget_raw_updates", self.store.forget_raw_updates(before))
    }
}

impl Outbox for SimStore {
    fn put_outgoing(&self, entry: NewOutboxEntry, answers: Answers) -> Answer<'_, OutboxId> {
        let (put, closed) = (entry.clone(), answers.entries.clone());
        let work = self.store.put_outgoing(entry, answers);
        self.write_and("put_outgoing", work, move |id| {
            self.trace
                .note(|| format!("put {} {} answers {closed:?}", id.0, put.key));
            self.ledger.put(*id, &put);
            self.ledger
                .closed(&closed, Closed::Answered, Some(*id), put.at);
        })
    }
    fn step_outgoing(
        &self,
        id: OutboxId,
        step: OutboxStep,
        answers: Answers,
    ) -> Answer<'_, OutboxEntry> {
        let (noted, closed) = (step.clone(), answers.entries.clone());
        let work = self.store.step_outgoing(id, step, answers);
        self.write_and("step_outgoing", work, move |entry| {
            self.trace
                .note(|| format!("step {} {:?} answers {closed:?}", id.0, noted.what));
            self.ledger.stepped(entry);
            self.ledger
                .closed(&closed, Closed::Answered, Some(id), noted.at);
        })
    }
    fn outgoing(&self, id: OutboxId) -> Answer<'_, Option<OutboxEntry>> {
        self.read(self.store.outgoing(id))
    }
    fn outgoing_by_key(&self, key: &str) -> Answer<'_, Option<OutboxEntry>> {
        self.read(self.store.outgoing_by_key(key))
    }
    fn open_outgoing(&self, platform: &str, max: usize) -> Answer<'_, Vec<OutboxEntry>> {
        self.read(self.store.open_outgoing(platform, max))
    }
    fn next_outgoing(&self, platform: &str) -> Answer<'_, Vec<OutboxEntry>> {
        let platform = platform.to_owned();
        Box::pin(async move {
            self.fate.live().await;
            {
                let polled = lock(&self.polled);
                let mut known = polled.outgoing.iter();
                if let Some((_, entries)) = known.find(|(name, _)| *name == platform) {
                    return Ok(entries.clone());
                }
            }
            let entries = block_on(self.store.next_outgoing(&platform))?;
            let mut polled = lock(&self.polled);
            polled.outgoing.push((platform, entries.clone()));
            Ok(entries)
        })
    }
    fn revive_address(
        &self,
        to: &Address,
        since: Timestamp,
        at: Timestamp,
    ) -> Answer<'_, Vec<OutboxEntry>> {
        let work = self.store.revive_address(to, since, at);
        self.write_and("revive_address", work, |revived| {
            for entry in revived {
                self.ledger.stepped(entry);
            }
        })
    }
    fn dead_addresses(&self) -> Answer<'_, Vec<DeadAddress>> {
        self.read(self.store.dead_addresses())
    }
    fn outbox_depth(&self) -> Answer<'_, OutboxDepth> {
        self.read(self.store.outbox_depth())
    }
    fn forget_outgoing(&self, before: Timestamp) -> Answer<'_, u64> {
        self.write("forget_outgoing", self.store.forget_outgoing(before))
    }
}

impl Records for SimStore {
    fn claim_record(&self, key: RecordKey, record: Record) -> Answer<'_, Claimed> {
        self.write("claim_record", self.store.claim_record(key, record))
    }
    fn put_record(&self, key: RecordKey, record: Record) -> Answer<'_, ()> {
        self.write("put_record", self.store.put_record(key, record))
    }
    fn record_at(&self, key: RecordKey, now: Timestamp) -> Answer<'_, Option<Record>> {
        self.read(self.store.record_at(key, now))
    }
    fn records_in(
        &self,
        scope: &str,
        now: Timestamp,
        limit: usize,
    ) -> Answer<'_, Vec<(String, Record)>> {
        self.read(self.store.records_in(scope, now, limit))
    }
    fn remove_record(&self, key: RecordKey) -> Answer<'_, bool> {
        self.write("remove_record", self.store.remove_record(key))
    }
    fn forget_expired_records(&self, now: Timestamp) -> Answer<'_, u64> {
        self.write("forget_records", self.store.forget_expired_records(now))
    }
}

impl Leases for SimStore {
    fn acquire_lease(&self, wanted: WantedLease) -> Answer<'_, Option<Lease>> {
        self.write("acquire_lease", self.store.acquire_lease(wanted))
    }
    fn renew_lease(&self, lease: &Lease, until: Timestamp) -> Answer<'_, bool> {
        self.write("renew_lease", self.store.renew_lease(lease, until))
    }
    fn release_lease(&self, lease: &Lease) -> Answer<'_, ()> {
        self.write("release_lease", self.store.release_lease(lease))
    }
}

impl Chats for SimStore {
    fn chat(&self, key: &str) -> Answer<'_, Option<KnownChat>> {
        self.read(self.store.chat(key))
    }
    fn keep_chat(&self, chat: KnownChat) -> Answer<'_, ()> {
        self.write("keep_chat", self.store.keep_chat(chat))
    }
    fn chats(&self, platform: Option<&str>, max: usize) -> Answer<'_, Vec<KnownChat>> {
        self.read(self.store.chats(platform, max))
    }
    fn chat_of(&self, session: &SessionId) -> Answer<'_, Option<KnownChat>> {
        self.read(self.store.chat_of(session))
    }
}

impl People for SimStore {
    fn linked_person(&self, account: &str) -> Answer<'_, Option<String>> {
        self.read(self.store.linked_person(account))
    }
    fn link_account(&self, account: &str, person: &str, at: Timestamp) -> Answer<'_, ()> {
        let work = self.store.link_account(account, person, at);
        self.write("link_account", work)
    }
    fn unlink_account(&self, account: &str) -> Answer<'_, bool> {
        self.write("unlink_account", self.store.unlink_account(account))
    }
    fn accounts_of(&self, person: &str) -> Answer<'_, Vec<String>> {
        self.read(self.store.accounts_of(person))
    }
    fn note_use(&self, person: &str, at: Timestamp, had: Had) -> Answer<'_, ()> {
        self.write("note_use", self.store.note_use(person, at, had))
    }
    fn had_since(&self, person: &str, since: Timestamp) -> Answer<'_, Had> {
        self.read(self.store.had_since(person, since))
    }
}

impl Pairings for SimStore {
    fn ask_pairing(&self, request: PairingRequest, rules: AskRules) -> Answer<'_, Asked> {
        self.write("ask_pairing", self.store.ask_pairing(request, rules))
    }
    fn pairing_requests(
        &self,
        platform: Option<&str>,
        since: Timestamp,
    ) -> Answer<'_, Vec<PairingRequest>> {
        self.read(self.store.pairing_requests(platform, since))
    }
    fn approve_pairing(&self, request: &str, at: Timestamp) -> Answer<'_, Option<PairedPerson>> {
        self.write("approve_pairing", self.store.approve_pairing(request, at))
    }
    fn pair(&self, person: PairedPerson) -> Answer<'_, ()> {
        self.write("pair", self.store.pair(person))
    }
    fn paired_people(&self, platform: Option<&str>) -> Answer<'_, Vec<PairedPerson>> {
        self.read(self.store.paired_people(platform))
    }
    fn is_paired(&self, platform: &str, user: &str) -> Answer<'_, bool> {
        self.read(self.store.is_paired(platform, user))
    }
    fn revoke_pairing(&self, platform: &str, user: &str) -> Answer<'_, bool> {
        self.write("revoke_pairing", self.store.revoke_pairing(platform, user))
    }
    fn clear_pairing_requests(&self, platform: Option<&str>) -> Answer<'_, u64> {
        self.write("clear_pairing", self.store.clear_pairing_requests(platform))
    }
    fn note_pairing_failure(
        &self,
        platform: &str,
        at: Timestamp,
        since: Timestamp,
    ) -> Answer<'_, u64> {
        let work = self.store.note_pairing_failure(platform, at, since);
        self.write("pairing_failure", work)
    }
    fn pairing_failures(&self, platform: &str, since: Timestamp) -> Answer<'_, u64> {
        self.read(self.store.pairing_failures(platform, since))
    }
}

impl Schedules for SimStore {
    fn add_job(&self, job: Job) -> Answer<'_, ()> {
        self.write("add_job", self.store.add_job(job))
    }
    fn import_jobs(&self, jobs: Vec<Job>) -> Answer<'_, Vec<JobId>> {
        self.write("import_jobs", self.store.import_jobs(jobs))
    }
    fn change_job(&self, job: Job) -> Answer<'_, bool> {
        self.write("change_job", self.store.change_job(job))
    }
    fn remove_job(&self, job: &JobId) -> Answer<'_, bool> {
        self.write("remove_job", self.store.remove_job(job))
    }
    fn job(&self, job: &JobId) -> Answer<'_, Option<Job>> {
        self.read(self.store.job(job))
    }
    fn jobs(&self) -> Answer<'_, Vec<Job>> {
        self.read(self.store.jobs())
    }
    fn due_jobs(&self, now: Timestamp) -> Answer<'_, Vec<Job>> {
        Box::pin(async move {
            self.fate.live().await;
            let known = lock(&self.polled).next_due;
            if let Some(next) = known
                && next.is_none_or(|next| now < next)
            {
                return Ok(Vec::new());
            }
            block_on(self.store.due_jobs(now))
        })
    }
    fn next_due(&self) -> Answer<'_, Option<Timestamp>> {
        Box::pin(async move {
            self.fate.live().await;
            let known = lock(&self.polled).next_due;
            if let Some(next) = known {
                return Ok(next);
            }
            let next = block_on(self.store.next_due())?;
            lock(&self.polled).next_due = Some(next);
            Ok(next)
        })
    }
    fn claim_run(&self, claim: RunClaim) -> Answer<'_, ClaimOutcome> {
        self.write("claim_run", self.store.claim_run(claim))
    }
    fn abandoned_runs(&self, now: Timestamp, lease_max: Timestamp) -> Answer<'_, Vec<Run>> {
        Box::pin(async move {
            self.fate.live().await;
            let known = lock(&self.polled).is_at_rest;
            let is_at_rest = match known {
                Some(is_at_rest) => is_at_rest,
                None => {
                    let filter = RunFilter {
                        limit: 32,
                        ..RunFilter::default()
                    };
                    let runs = block_on(self.store.runs(filter))?;
                    let is_at_rest = runs.iter().all(|run| run.status.is_over());
                    lock(&self.polled).is_at_rest = Some(is_at_rest);
                    is_at_rest
                }
            };
            match is_at_rest {
                true => Ok(Vec::new()),
                false => block_on(self.store.abandoned_runs(now, lease_max)),
            }
        })
    }
    fn take_run(&self, seen: RunLease, holder: &str, until: Timestamp) -> Answer<'_, Option<Run>> {
        self.write("take_run", self.store.take_run(seen, holder, until))
    }
    fn renew_run(&self, lease: RunLease, until: Timestamp) -> Answer<'_, bool> {
        self.write("renew_run", self.store.renew_run(lease, until))
    }
    fn note_run(&self, lease: RunLease, step: RunStep) -> Answer<'_, bool> {
        self.write("note_run", self.store.note_run(lease, step))
    }
    fn put_off_run(&self, lease: RunLease, until: Timestamp, error: &str) -> Answer<'_, bool> {
        self.write("put_off_run", self.store.put_off_run(lease, until, error))
    }
    fn finish_run(&self, lease: RunLease, end: RunEnd) -> Answer<'_, bool> {
        self.write("finish_run", self.store.finish_run(lease, end))
    }
    fn undelivered(&self) -> Answer<'_, Vec<Run>> {
        Box::pin(async move {
            self.fate.live().await;
            let known = lock(&self.polled).undelivered.clone();
            if let Some(runs) = known {
                return Ok(runs);
            }
            let runs = block_on(self.store.undelivered())?;
            lock(&self.polled).undelivered = Some(runs.clone());
            Ok(runs)
        })
    }
    fn set_delivery(&self, run: RunId, target: &str, status: DeliveryStatus) -> Answer<'_, ()> {
        let work = self.store.set_delivery(run, target, status);
        self.write("set_delivery", work)
    }
    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<Run>> {
        self.read(self.store.runs(filter))
    }
}
