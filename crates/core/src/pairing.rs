//! Who was let in: people who showed a code that their owner approved, and codes that wait for that.
//!
//! A code is shown once, to the stranger, and kept only as a salted digest. The rules (how many, how often, how long) are
//! the caller's; a store counts and keeps.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::tool::BoxFuture;

pub trait Pairings: Send + Sync {
    /// Keeps a request, unless so many of its platform wait already, or its person asked since then.
    fn ask_pairing(
        &self,
        request: PairingRequest,
        rules: AskRules,
    ) -> BoxFuture<'_, Result<Asked, StoreError>>;

    /// Requests that still count, oldest first; of one platform if one is named.
    fn pairing_requests(
        &self,
        platform: Option<&str>,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<PairingRequest>, StoreError>>;

    /// Lets in whoever made a request, and forgets it.
    fn approve_pairing(
        &self,
        request: &str,
        at: Timestamp,
    ) -> BoxFuture<'_, Result<Option<PairedPerson>, StoreError>>;

    /// Lets somebody in who made no request.
    fn pair(&self, person: PairedPerson) -> BoxFuture<'_, Result<(), StoreError>>;

    fn paired_people(
        &self,
        platform: Option<&str>,
    ) -> BoxFuture<'_, Result<Vec<PairedPerson>, StoreError>>;

    fn is_paired(&self, platform: &str, user: &str) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Says whether there was somebody to send away.
    fn revoke_pairing(&self, platform: &str, user: &str)
    -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Forgets all requests; of one platform if one is named. Says how many.
    fn clear_pairing_requests(
        &self,
        platform: Option<&str>,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Notes a wrong code. Says how many there were since then.
    fn note_pairing_failure(
        &self,
        platform: &str,
        at: Timestamp,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Wrong codes since then.
    fn pairing_failures(
        &self,
        platform: &str,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingRequest {
    pub id: String,
    pub platform: String,
    pub user: String,
    /// Untrusted text.
    pub name: Option<String>,
    /// Hexadecimal.
    pub salt: String,
    /// Of salt and code, hexadecimal.
    pub digest: String,
    pub at: Timestamp,
}

/// What a platform's requests are limited by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskRules {
    pub pending_max: usize,
    /// Requests from before this have run out.
    pub valid_since: Timestamp,
    /// Who asked since then has to wait.
    pub asked_since: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Kept,
    TooMany,
    TooSoon,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedPerson {
    pub platform: String,
    pub user: String,
    pub name: Option<String>,
    pub at: Timestamp,
}
