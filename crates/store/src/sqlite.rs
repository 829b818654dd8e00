//! [`SqliteStore`]: the ports of `hermes-core` over one SQLite file. Only wiring; the work is in the modules named here.

mod jobs;

use std::path::{Path, PathBuf};

use hermes_core::{
    Approval, ApprovalId, Approvals, Archive, BoxFuture, CallId, ChangeFilter, ChangeId, Claim,
    Claimed, DueHearing, DueReview, Ending, Entry, Insights, KnownOffer, KnownOffers,
    LearnedChange, LearningLedger, LearningLog, LearningUse, LoadedSession, Message, MoreToHear,
    NewLearnedChange, NewLearningUse, NewSession, Record, RecordKey, Records, ReservationId,
    Reviews, SearchHit, SearchQuery, SessionFilter, SessionId, SessionRecord, Settlement, Settling,
    Spoken, SpokenQuery, Store, StoreError, StoreStats, StoredUserModel, TakenHearing, TakenReview,
    Timestamp, TranscriptLine, UserModels,
};

use crate::approvals::ByCode;
use crate::claim::{self, SessionLock};
use crate::health::{self, Health};
use crate::readers::Readers;
use crate::salvage::{self, Salvage};
use crate::sessions::Left;
use crate::writer::Writer;
use crate::{
    append, approvals, connection, copies, insights, learning, load, offers, records, reviews,
    search, sessions, user_models,
};

/// Sessions in one SQLite file.
///
/// Several processes may have the same file open, each with one writer; they take turns. A *session* belongs to the
/// process that has claimed it. Methods must be called inside a tokio runtime: reads run on its blocking threads.
///
/// Dropping it waits until everything handed in is on disk.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    pub(crate) readers: Readers,
    /// `None` when opened read-only.
    write: Option<WriteSide>,
}

#[derive(Debug)]
pub(crate) struct WriteSide {
    pub(crate) writer: Writer,
    locks_dir: PathBuf,
}

impl SqliteStore {
    /// Opens the database, creating or upgrading it if need be. Its folder must exist; `locks_dir` is made on demand.
    pub fn open(
        path: impl Into<PathBuf>,
        locks_dir: impl Into<PathBuf>,
    ) -> Result<Self, StoreError> {
        let path = path.into();
        connection::require_whole_log(&path)?;
        let writer = Writer::start(connection::open_writer(&path)?, &path)?;
        Ok(Self {
            readers: Readers::new(path.clone()),
            path,
            write: Some(WriteSide {
                writer,
                locks_dir: locks_dir.into(),
            }),
        })
    }

    /// Opens the database to look at it, also while other processes write. Creates nothing, and refuses every change.
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        connection::require_whole_log(&path)?;
        let readers = Readers::new(path.clone());
        readers.open_first()?;
        Ok(Self {
            readers,
            path,
            write: None,
        })
    }

    /// Saves what can be read of a damaged database into a new one in its place, and keeps the damaged files. When nothing
    /// can be read, everything stays as it is.
    pub async fn salvage(path: impl Into<PathBuf>, now: Timestamp) -> Result<Salvage, StoreError> {
        let path = path.into();
        let told = path.clone();
        let task = tokio::task::spawn_blocking(move || salvage::salvage(&path, now));
        task.await.map_err(|error| StoreError::Io {
            action: "recover",
            path: told,
            detail: error.to_string(),
        })?
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Examines the whole file. Slow, and holds up every writer meanwhile.
    pub async fn check(&self) -> Result<Health, StoreError> {
        self.write_side()?.writer.run(health::check).await
    }

    /// Builds the search indexes anew from the messages.
    pub async fn rebuild_index(&self) -> Result<(), StoreError> {
        let rebuild = |conn: &_| search::rebuild_index(conn);
        self.write_side()?.writer.run(rebuild).await
    }

    /// Brings the newest messages into the search indexes. Where that cannot be done (read-only, a full disk), searches
    /// look through those messages themselves.
    async fn catch_up_index(&self) -> Result<(), StoreError> {
        let Some(side) = &self.write else {
            return Ok(());
        };
        while self.readers.run(search::backlog).await? > 0 {
            if side.writer.run(search::index_some).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn write_side(&self) -> Result<&WriteSide, StoreError> {
        self.write.as_ref().ok_or_else(|| StoreError::Io {
            action: "change",
            path: self.path.clone(),
            detail: "it was opened read-only".into(),
        })
    }

    async fn lock(&self, session: &SessionId) -> Result<SessionLock, StoreError> {
        let locks_dir = self.write_side()?.locks_dir.clone();
        let (owned, path) = (session.clone(), self.path.clone());
        let task = tokio::task::spawn_blocking(move || claim::take(&locks_dir, &owned));
        task.await.map_err(|error| StoreError::Io {
            action: "lock a session of",
            path,
            detail: error.to_string(),
        })?
    }
}

impl Store for SqliteStore {
    fn create(
        &self,
        session: NewSession,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| {
                    sessions::create(conn, &session)?;
                    append::append(conn, &session.id, session.created, &entries)
                })
                .await
        })
    }

    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        let session = session.clone();
        Box::pin(async move { self.lock(&session).await.map(Claim::new) })
    }

    fn append(
        &self,
        session: &SessionId,
        at: Timestamp,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| append::append(conn, &session, at, &entries))
                .await
        })
    }

    fn load(&self, session: &SessionId) -> BoxFuture<'_, Result<LoadedSession, StoreError>> {
        let session = session.clone();
        Box::pin(self.readers.run(move |conn| load::load(conn, &session)))
    }

    fn entries_of_copy(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let session = session.clone();
        Box::pin(
            self.readers
                .run(move |conn| copies::entries(conn, &session)),
        )
    }

    fn turn_from_end(
        &self,
        session: &SessionId,
        turns: u32,
    ) -> BoxFuture<'_, Result<Option<(u32, Message)>, StoreError>> {
        let session = session.clone();
        Box::pin(
            self.readers
                .run(move |conn| load::turn_from_end(conn, &session, turns)),
        )
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(self.readers.run(sessions::unfinished))
    }
}

impl SqliteStore {
    async fn delete_alone(&self, session: SessionId) -> Result<(), StoreError> {
        let side = self.write_side()?;
        // Nobody may be writing into it, and nobody may begin to.
        let _lock = self.lock(&session).await?;
        loop {
            let session = session.clone();
            let delete = move |conn: &_| sessions::delete_some(conn, &session);
            if side.writer.run(delete).await? == Left::Nothing {
                return Ok(());
            }
        }
    }
}

impl KnownOffers for SqliteStore {
    fn known_offers(&self) -> BoxFuture<'_, Result<Vec<KnownOffer>, StoreError>> {
        Box::pin(self.readers.run(offers::known))
    }

    fn remember_offer(
        &self,
        offer: KnownOffer,
        at: Timestamp,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| offers::remember(conn, &offer, at))
                .await
        })
    }
}

impl Records for SqliteStore {
    fn claim_record(
        &self,
        key: RecordKey,
        record: Record,
    ) -> BoxFuture<'_, Result<Claimed, StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| records::claim(conn, &key, &record))
                .await
        })
    }

    fn put_record(&self, key: RecordKey, record: Record) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| records::put(conn, &key, &record))
                .await
        })
    }

    fn record_at(
        &self,
        key: RecordKey,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        Box::pin(self.readers.run(move |conn| records::at(conn, &key, now)))
    }

    fn records_in(
        &self,
        scope: &str,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(String, Record)>, StoreError>> {
        let scope = scope.to_owned();
        Box::pin(
            self.readers
                .run(move |conn| records::in_scope(conn, &scope, now, limit)),
        )
    }

    fn remove_record(&self, key: RecordKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| records::remove(conn, &key))
                .await
        })
    }

    fn forget_expired_records(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| records::forget_expired(conn, now))
                .await
        })
    }
}

impl Approvals for SqliteStore {
    fn open_approval(&self, approval: Approval) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| approvals::open(conn, &approval))
                .await
        })
    }

    fn settle(
        &self,
        id: &ApprovalId,
        settlement: Settlement,
    ) -> BoxFuture<'_, Result<Settling, StoreError>> {
        let id = id.clone();
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| approvals::settle(conn, &id, settlement.clone()))
                .await
        })
    }

    fn settle_by_code(
        &self,
        code: &str,
        settlement: Settlement,
    ) -> BoxFuture<'_, Result<(ApprovalId, Settling), StoreError>> {
        let code = code.to_owned();
        Box::pin(async move {
            let side = self.write_side()?;
            let settled = side
                .writer
                .run(move |conn| approvals::settle_by_code(conn, &code, settlement.clone()));
            match settled.await? {
                ByCode::Settled(id, settling) => Ok((id, settling)),
                ByCode::Wrong => Err(StoreError::WrongCode),
                ByCode::Locked => Err(StoreError::CodesLocked),
            }
        })
    }

    fn approval(&self, id: &ApprovalId) -> BoxFuture<'_, Result<Approval, StoreError>> {
        let id = id.clone();
        Box::pin(self.readers.run(move |conn| approvals::approval(conn, &id)))
    }

    fn approval_of_call(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> BoxFuture<'_, Result<Option<Approval>, StoreError>> {
        let (session, call) = (session.clone(), call.clone());
        let read = move |conn: &_| approvals::of_call(conn, &session, &call);
        Box::pin(self.readers.run(read))
    }

    fn open_approvals(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>> {
        Box::pin(
            self.readers
                .run(move |conn| approvals::open_ones(conn, now)),
        )
    }
}

impl LearningLog for SqliteStore {
    fn begin(&self, change: NewLearnedChange) -> BoxFuture<'_, Result<ChangeId, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| learning::begin(conn, &change)).await
        })
    }

    fn finish(&self, id: ChangeId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| learning::finish(conn, id)).await
        })
    }

    fn abandon(&self, id: ChangeId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| learning::abandon(conn, id)).await
        })
    }

    fn changes(
        &self,
        filter: ChangeFilter,
    ) -> BoxFuture<'_, Result<Vec<LearnedChange>, StoreError>> {
        let read = move |conn: &_| learning::changes(conn, &filter);
        Box::pin(self.readers.run(read))
    }

    fn change(&self, id: ChangeId) -> BoxFuture<'_, Result<Option<LearnedChange>, StoreError>> {
        Box::pin(self.readers.run(move |conn| learning::change(conn, id)))
    }
}

impl Reviews for SqliteStore {
    fn set_review_due(&self, due: DueReview) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| reviews::set_due(conn, &due)).await
        })
    }

    fn due_reviews(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<DueReview>, StoreError>> {
        Box::pin(self.readers.run(move |conn| reviews::all_due(conn, now)))
    }

    fn take_review(
        &self,
        session: &SessionId,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<Option<TakenReview>, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| reviews::take(conn, &session, now, until))
                .await
        })
    }

    fn put_off_review(
        &self,
        session: &SessionId,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| reviews::put_off(conn, &session, until))
                .await
        })
    }

    fn finish_review(
        &self,
        session: &SessionId,
        messages: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| reviews::finish(conn, &session, messages))
                .await
        })
    }

    fn reviewed_messages(&self, session: &SessionId) -> BoxFuture<'_, Result<u64, StoreError>> {
        let session = session.clone();
        let read = move |conn: &_| reviews::reviewed(conn, &session);
        Box::pin(self.readers.run(read))
    }

    fn unreviewed(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>> {
        let session = session.clone();
        let read = move |conn: &_| reviews::unreviewed(conn, &session, limit);
        Box::pin(self.readers.run(read))
    }
}

impl LearningLedger for SqliteStore {
    fn reserve_use(
        &self,
        wanted: NewLearningUse,
        budget: LearningUse,
    ) -> BoxFuture<'_, Result<Option<ReservationId>, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| reviews::reserve(conn, &wanted, budget))
                .await
        })
    }

    fn settle_use(
        &self,
        id: ReservationId,
        used: LearningUse,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| reviews::settle(conn, id, used))
                .await
        })
    }

    fn used_on(&self, day: &str) -> BoxFuture<'_, Result<LearningUse, StoreError>> {
        let day = day.to_owned();
        Box::pin(self.readers.run(move |conn| reviews::used_on(conn, &day)))
    }
}

impl UserModels for SqliteStore {
    fn user_model<'a>(
        &'a self,
        person: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<StoredUserModel>, StoreError>> {
        let person = person.map(str::to_owned);
        let read = move |conn: &_| user_models::read(conn, person.as_deref());
        Box::pin(self.readers.run(read))
    }

    fn replace_user_model(
        &self,
        version: u64,
        change: NewLearnedChange,
    ) -> BoxFuture<'_, Result<Option<ChangeId>, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| user_models::replace(conn, version, &change))
                .await
        })
    }

    fn set_hearing_due(&self, due: DueHearing) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| user_models::set_due(conn, &due))
                .await
        })
    }

    fn due_hearings<'a>(
        &'a self,
        person: Option<&'a str>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<DueHearing>, StoreError>> {
        let person = person.map(str::to_owned);
        let read = move |conn: &_| user_models::all_due(conn, person.as_deref(), now);
        Box::pin(self.readers.run(read))
    }

    fn take_hearing<'a>(
        &'a self,
        session: &'a SessionId,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TakenHearing>, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| user_models::take(conn, &session, now, until))
                .await
        })
    }

    fn put_off_hearing<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| user_models::put_off(conn, &session))
                .await
        })
    }

    fn finish_hearing<'a>(
        &'a self,
        taken: &'a TakenHearing,
        heard: u64,
        more: MoreToHear,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let due = taken.due.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| user_models::finish(conn, &due, heard, more))
                .await
        })
    }
}

impl Archive for SqliteStore {
    fn list(&self, filter: SessionFilter) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(self.readers.run(move |conn| sessions::list(conn, &filter)))
    }

    fn record(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        let session = session.clone();
        let read = move |conn: &_| sessions::read_record(conn, &session);
        Box::pin(self.readers.run(read))
    }

    fn subagents(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        let session = session.clone();
        let read = move |conn: &_| sessions::subagents(conn, &session);
        Box::pin(self.readers.run(read))
    }

    fn find(&self, name: &str) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        let name = name.to_owned();
        Box::pin(self.readers.run(move |conn| sessions::find(conn, &name)))
    }

    fn transcript(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<TranscriptLine>, StoreError>> {
        let session = session.clone();
        Box::pin(
            self.readers
                .run(move |conn| load::transcript(conn, &session)),
        )
    }

    fn spoken(&self, query: SpokenQuery) -> BoxFuture<'_, Result<Vec<Spoken>, StoreError>> {
        Box::pin(self.readers.run(move |conn| load::spoken(conn, &query)))
    }

    fn message_at(&self, place: u64) -> BoxFuture<'_, Result<Option<Spoken>, StoreError>> {
        Box::pin(self.readers.run(move |conn| load::message_at(conn, place)))
    }

    fn ending(
        &self,
        session: &SessionId,
        exchanges: usize,
    ) -> BoxFuture<'_, Result<Ending, StoreError>> {
        let session = session.clone();
        let read = move |conn: &_| load::ending(conn, &session, exchanges);
        Box::pin(self.readers.run(read))
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, StoreError>> {
        Box::pin(async move {
            self.catch_up_index().await?;
            self.readers
                .run(move |conn| search::search(conn, &query))
                .await
        })
    }

    fn rename(&self, session: &SessionId, title: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (session, title) = (session.clone(), title.to_owned());
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| sessions::rename(conn, &session, &title))
                .await
        })
    }

    fn suggest_title(
        &self,
        session: &SessionId,
        title: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (session, title) = (session.clone(), title.to_owned());
        Box::pin(async move {
            let side = self.write_side()?;
            side.writer
                .run(move |conn| sessions::suggest_title(conn, &session, &title))
                .await
        })
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            // Its subagents worked for nobody else. They go first: a crash on the way leaves nobody without a parent.
            for subagent in self.subagents(&session).await? {
                self.delete_alone(subagent.id).await?;
            }
            self.delete_alone(session).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>> {
        Box::pin(self.readers.run(sessions::stats))
    }

    fn insights(&self, since: Timestamp) -> BoxFuture<'_, Result<Insights, StoreError>> {
        Box::pin(
            self.readers
                .run(move |conn| insights::insights(conn, since)),
        )
    }
}
