//! What a gateway keeps: inbox, outbox, leases, chats and who was let in. Only wiring; the work is in the modules named here.

mod chats;
pub(crate) mod inbox;
mod leases;
mod outbox;
mod pairing;
mod people;

use hermes_core::{
    Accepted, Address, Answers, AskRules, Asked, BoxFuture, Chats, Closed, DeadAddress, Had, Inbox,
    InboxDepth, InboxEntry, KnownChat, Lease, Leases, NewOutboxEntry, NewUpdates, Outbox,
    OutboxDepth, OutboxEntry, OutboxId, OutboxStep, PairedPerson, PairingRequest, Pairings, People,
    SessionId, StoreError, Timestamp, WantedLease,
};
use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::sqlite::SqliteStore;

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl SqliteStore {
    fn change<T: Send + 'static>(
        &self,
        job: impl Fn(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move { self.write_side()?.writer.run(job).await })
    }

    fn look<T: Send + 'static>(
        &self,
        job: impl Fn(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(self.readers.run(job))
    }
}

impl Inbox for SqliteStore {
    fn accept_updates(&self, batch: NewUpdates) -> Answer<'_, Vec<Accepted>> {
        self.change(move |conn| inbox::accept(conn, &batch))
    }

    fn read_cursor(&self, platform: &str, account: &str) -> Answer<'_, Option<String>> {
        let (platform, account) = (platform.to_owned(), account.to_owned());
        self.look(move |conn| inbox::cursor(conn, &platform, &account))
    }

    fn open_lanes(&self) -> Answer<'_, Vec<String>> {
        self.look(inbox::open_lanes)
    }

    fn open_entries(&self, lane: &str, max: usize) -> Answer<'_, Vec<InboxEntry>> {
        let lane = lane.to_owned();
        self.look(move |conn| inbox::open_entries(conn, &lane, max))
    }

    fn close_entries(&self, closing: Answers, how: Closed, at: Timestamp) -> Answer<'_, ()> {
        self.change(move |conn| inbox::close_under(conn, &closing, how, at))
    }

    fn inbox_depth(&self) -> Answer<'_, InboxDepth> {
        self.look(inbox::depth)
    }

    fn forget_raw_updates(&self, before: Timestamp) -> Answer<'_, u64> {
        self.change(move |conn| inbox::forget_raw(conn, before))
    }
}

impl Outbox for SqliteStore {
    fn put_outgoing(&self, entry: NewOutboxEntry, answers: Answers) -> Answer<'_, OutboxId> {
        self.change(move |conn| outbox::put(conn, &entry, &answers))
    }

    fn step_outgoing(
        &self,
        id: OutboxId,
        step: OutboxStep,
        answers: Answers,
    ) -> Answer<'_, OutboxEntry> {
        self.change(move |conn| outbox::step(conn, id, &step, &answers))
    }

    fn outgoing(&self, id: OutboxId) -> Answer<'_, Option<OutboxEntry>> {
        self.look(move |conn| outbox::entry(conn, id))
    }

    fn outgoing_by_key(&self, key: &str) -> Answer<'_, Option<OutboxEntry>> {
        let key = key.to_owned();
        self.look(move |conn| outbox::by_key(conn, &key))
    }

    fn open_outgoing(&self, platform: &str, max: usize) -> Answer<'_, Vec<OutboxEntry>> {
        let platform = platform.to_owned();
        self.look(move |conn| outbox::open(conn, &platform, max))
    }

    fn next_outgoing(&self, platform: &str) -> Answer<'_, Vec<OutboxEntry>> {
        let platform = platform.to_owned();
        self.look(move |conn| outbox::next(conn, &platform))
    }

    fn revive_address(
        &self,
        to: &Address,
        since: Timestamp,
        at: Timestamp,
    ) -> Answer<'_, Vec<OutboxEntry>> {
        let to = to.clone();
        self.change(move |conn| outbox::revive(conn, &to, since, at))
    }

    fn dead_addresses(&self) -> Answer<'_, Vec<DeadAddress>> {
        self.look(outbox::dead_addresses)
    }

    fn outbox_depth(&self) -> Answer<'_, OutboxDepth> {
        self.look(outbox::depth)
    }

    fn forget_outgoing(&self, before: Timestamp) -> Answer<'_, u64> {
        self.change(move |conn| outbox::forget(conn, before))
    }
}

impl People for SqliteStore {
    fn linked_person(&self, account: &str) -> Answer<'_, Option<String>> {
        let account = account.to_owned();
        self.look(move |conn| people::person(conn, &account))
    }

    fn link_account(&self, account: &str, person: &str, at: Timestamp) -> Answer<'_, ()> {
        let (account, person) = (account.to_owned(), person.to_owned());
        self.change(move |conn| people::link(conn, &account, &person, at))
    }

    fn unlink_account(&self, account: &str) -> Answer<'_, bool> {
        let account = account.to_owned();
        self.change(move |conn| people::unlink(conn, &account))
    }

    fn accounts_of(&self, person: &str) -> Answer<'_, Vec<String>> {
        let person = person.to_owned();
        self.look(move |conn| people::accounts(conn, &person))
    }

    fn note_use(&self, person: &str, at: Timestamp, had: Had) -> Answer<'_, ()> {
        let person = person.to_owned();
        self.change(move |conn| people::note_use(conn, &person, at, had))
    }

    fn had_since(&self, person: &str, since: Timestamp) -> Answer<'_, Had> {
        let person = person.to_owned();
        self.look(move |conn| people::had(conn, &person, since))
    }
}

impl Leases for SqliteStore {
    fn acquire_lease(&self, wanted: WantedLease) -> Answer<'_, Option<Lease>> {
        self.change(move |conn| leases::acquire(conn, &wanted))
    }

    fn renew_lease(&self, lease: &Lease, until: Timestamp) -> Answer<'_, bool> {
        let lease = lease.clone();
        self.change(move |conn| leases::renew(conn, &lease, until))
    }

    fn release_lease(&self, lease: &Lease) -> Answer<'_, ()> {
        let lease = lease.clone();
        self.change(move |conn| leases::release(conn, &lease))
    }
}

impl Chats for SqliteStore {
    fn chat(&self, key: &str) -> Answer<'_, Option<KnownChat>> {
        let key = key.to_owned();
        self.look(move |conn| chats::chat(conn, &key))
    }

    fn keep_chat(&self, chat: KnownChat) -> Answer<'_, ()> {
        self.change(move |conn| chats::keep(conn, &chat))
    }

    fn chats(&self, platform: Option<&str>, max: usize) -> Answer<'_, Vec<KnownChat>> {
        let platform = platform.map(ToOwned::to_owned);
        self.look(move |conn| chats::chats(conn, platform.as_deref(), max))
    }

    fn chat_of(&self, session: &SessionId) -> Answer<'_, Option<KnownChat>> {
        let session = session.clone();
        self.look(move |conn| chats::chat_of(conn, &session))
    }
}

impl Pairings for SqliteStore {
    fn ask_pairing(&self, request: PairingRequest, rules: AskRules) -> Answer<'_, Asked> {
        self.change(move |conn| pairing::ask(conn, &request, rules))
    }

    fn pairing_requests(
        &self,
        platform: Option<&str>,
        since: Timestamp,
    ) -> Answer<'_, Vec<PairingRequest>> {
        let platform = platform.map(ToOwned::to_owned);
        self.look(move |conn| pairing::requests(conn, platform.as_deref(), since))
    }

    fn approve_pairing(&self, request: &str, at: Timestamp) -> Answer<'_, Option<PairedPerson>> {
        let request = request.to_owned();
        self.change(move |conn| pairing::approve(conn, &request, at))
    }

    fn pair(&self, person: PairedPerson) -> Answer<'_, ()> {
        self.change(move |conn| pairing::pair(conn, &person))
    }

    fn paired_people(&self, platform: Option<&str>) -> Answer<'_, Vec<PairedPerson>> {
        let platform = platform.map(ToOwned::to_owned);
        self.look(move |conn| pairing::paired(conn, platform.as_deref()))
    }

    fn is_paired(&self, platform: &str, user: &str) -> Answer<'_, bool> {
        let (platform, user) = (platform.to_owned(), user.to_owned());
        self.look(move |conn| pairing::is_paired(conn, &platform, &user))
    }

    fn revoke_pairing(&self, platform: &str, user: &str) -> Answer<'_, bool> {
        let (platform, user) = (platform.to_owned(), user.to_owned());
        self.change(move |conn| pairing::revoke(conn, &platform, &user))
    }

    fn clear_pairing_requests(&self, platform: Option<&str>) -> Answer<'_, u64> {
        let platform = platform.map(ToOwned::to_owned);
        self.change(move |conn| pairing::clear_requests(conn, platform.as_deref()))
    }

    fn note_pairing_failure(
        &self,
        platform: &str,
        at: Timestamp,
        since: Timestamp,
    ) -> Answer<'_, u64> {
        let platform = platform.to_owned();
        self.change(move |conn| pairing::note_failure(conn, &platform, at, since))
    }

    fn pairing_failures(&self, platform: &str, since: Timestamp) -> Answer<'_, u64> {
        let platform = platform.to_owned();
        self.look(move |conn| pairing::failures(conn, &platform, since))
    }
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::Refused(format!("it cannot be written: {error}")))
}

fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Unreadable(format!("{what}: {error}")))
}
