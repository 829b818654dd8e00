//! Leases: the right to do something alone for a while, among several processes.
//!
//! A holder that dies or stalls loses its lease when the time is over. Its token tells it apart from whoever came next: what is
//! written under a lease names the token, and a store refuses a token that has been overtaken.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::tool::BoxFuture;

pub trait Leases: Send + Sync {
    /// Takes a lease that nobody has, or whose time is over, or that this holder had: after a crash it is the same holder who
    /// comes back, and need not wait for itself. `None`: somebody else has it.
    fn acquire_lease(
        &self,
        wanted: WantedLease,
    ) -> BoxFuture<'_, Result<Option<Lease>, StoreError>>;

    /// Has a lease last longer. False: it was lost, and what it protects must stop.
    fn renew_lease(
        &self,
        lease: &Lease,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Gives a lease back. One that was lost is no error.
    fn release_lease(&self, lease: &Lease) -> BoxFuture<'_, Result<(), StoreError>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLease {
    /// What it is about: `lane:KEY`, `channel:telegram:42`.
    pub name: String,
    /// Who takes it: the same name after a restart, another for another process beside it.
    pub holder: String,
    pub now: Timestamp,
    pub until: Timestamp,
}

/// A lease that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub name: String,
    /// Higher than that of every lease before it, of whatever name.
    pub token: u64,
}
