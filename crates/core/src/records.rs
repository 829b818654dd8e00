//! The port for what surfaces keep beside conversations: requests that may come again and what they were answered with,
//! names that were given out, deliveries that were taken.

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::tool::BoxFuture;

/// Where a record is found: each surface has scopes of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordKey {
    pub scope: String,
    pub key: String,
}

impl RecordKey {
    pub fn new(scope: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            scope: scope.into(),
            key: key.into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Tells what it is about from something else under the same key.
    pub fingerprint: String,
    /// As whoever wrote it understands it; `None` while there is nothing to keep yet.
    pub value: Option<String>,
    pub created: Timestamp,
    /// From then on it counts as absent.
    pub expires: Timestamp,
}

/// What became of an attempt to be the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The record was written.
    New,
    /// Somebody was there before.
    Held(Record),
}

/// Small things with an end. Promises what [`crate::Store`] promises: what is acknowledged is on disk.
pub trait Records: Send + Sync {
    /// Writes a record unless there is one that counts at its `created`. Of several attempts, in whatever process, one is
    /// the first.
    fn claim_record(
        &self,
        key: RecordKey,
        record: Record,
    ) -> BoxFuture<'_, Result<Claimed, StoreError>>;

    /// Writes a record in place of the one there is.
    fn put_record(&self, key: RecordKey, record: Record) -> BoxFuture<'_, Result<(), StoreError>>;

    fn record_at(
        &self,
        key: RecordKey,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Record>, StoreError>>;

    /// The records of a scope with their keys, oldest first, so many at most.
    fn records_in(
        &self,
        scope: &str,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(String, Record)>, StoreError>>;

    /// Returns whether there was one.
    fn remove_record(&self, key: RecordKey) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Deletes what no longer counts. Returns how many those were.
    fn forget_expired_records(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;
}
