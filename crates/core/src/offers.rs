//! The port for what servers of tools offered last, kept between runs: a conversation begins with it, however slow a
//! server is today.

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::tool::BoxFuture;

/// What a server offered when it was last asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownOffer {
    pub server: String,
    /// Tells the settings it was asked with from others.
    pub settings: String,
    /// As whoever wrote it understands it.
    pub offer: String,
}

/// Keeps what servers offered last. Shared by all processes of a home; the last word counts.
pub trait KnownOffers: Send + Sync {
    /// Everything that is known, of whatever settings.
    fn known_offers(&self) -> BoxFuture<'_, Result<Vec<KnownOffer>, StoreError>>;

    /// Replaces what was known of this server with these settings. Of other settings only the newest few are kept.
    fn remember_offer(
        &self,
        offer: KnownOffer,
        at: Timestamp,
    ) -> BoxFuture<'_, Result<(), StoreError>>;
}
