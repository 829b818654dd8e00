//! A simulated world around a gateway: time that passes as fast as it can be computed, platforms with weather, people who
//! write, a disk that fills up, and processes that die at any commit or await. Everything is drawn from one seed.
//!
//! A gateway of this world has its [`SimStore`], its [`SimChannel`]s and its [`SimModel`], all of one [`Fate`]: once that
//! strikes, nothing of the process has any effect any more. What must be true in the end is in [`Ledger::judge`].

mod clock;
mod fate;
mod ledger;
mod model;
mod people;
mod platform;
mod store;

pub use clock::SimClock;
pub use fate::{Fate, Trace};
pub use ledger::{Ledger, Verdict};
pub use model::{SimModel, job_words};
pub use people::People;
pub use platform::{PlatformKind, SimChannel, SimPlatform, Weather};
pub use store::{GatewayStore, SimStore, block_on};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What ends every answer of the model that is whole.
pub const WHOLE: &str = "∎";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The messages that a text speaks of: `m17` is the seventeenth that somebody wrote.
pub(crate) fn tokens(text: &str) -> Vec<u64> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter_map(|word| word.strip_prefix('m')?.parse().ok())
        .collect()
}
