//! People who talk to the gateway: one person may have accounts on several platforms, and limits count for persons.
//!
//! An account is `PLATFORM:USER`. A person is known by one of their accounts: the first that others were linked to.

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::tool::BoxFuture;

pub trait People: Send + Sync {
    /// The person that an account belongs to; `None` where nothing is linked to it.
    fn linked_person(&self, account: &str) -> BoxFuture<'_, Result<Option<String>, StoreError>>;

    /// Makes an account one of a person's.
    fn link_account(
        &self,
        account: &str,
        person: &str,
        at: Timestamp,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Makes an account its own person again. Says whether it was linked.
    fn unlink_account(&self, account: &str) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// All accounts of a person, the one they are known by first.
    fn accounts_of(&self, person: &str) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Notes what a person had.
    fn note_use(
        &self,
        person: &str,
        at: Timestamp,
        had: Had,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// What a person had since then. What is older may be forgotten.
    fn had_since(&self, person: &str, since: Timestamp) -> BoxFuture<'_, Result<Had, StoreError>>;
}

/// What somebody had of us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Had {
    pub turns: u64,
    pub micro_usd: u64,
}
