//! The chats that a platform says we are in, whether or not anybody said something there: so that they can be named.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{Channel, Chat};
use tokio::time::{Instant, timeout};

/// How long an answer of a platform counts.
const FRESH: Duration = Duration::from_secs(300);
/// For a platform that is asked which chats there are.
const PATIENCE: Duration = Duration::from_secs(10);
/// More chats than anybody names.
const CHATS_MAX: usize = 5_000;

/// What one channel said last.
#[derive(Default)]
pub(super) struct Directory(Mutex<Option<Listed>>);

#[derive(Clone)]
struct Listed {
    at: Instant,
    chats: Arc<Vec<Chat>>,
}

impl Directory {
    /// The chats there are. A platform that cannot say is not asked again at once, and what it said before counts.
    pub(super) async fn chats(&self, channel: &dyn Channel) -> Arc<Vec<Chat>> {
        let known = self.listed();
        if let Some(listed) = &known
            && listed.at.elapsed() < FRESH
        {
            return Arc::clone(&listed.chats);
        }
        let chats = match timeout(PATIENCE, channel.chats()).await {
            Ok(Ok(mut chats)) => {
                chats.truncate(CHATS_MAX);
                Arc::new(chats)
            }
            Ok(Err(error)) => {
                let platform = channel.facts().platform;
                tracing::debug!(platform, %error, "its chats cannot be listed now");
                known.map(|listed| listed.chats).unwrap_or_default()
            }
            Err(_) => known.map(|listed| listed.chats).unwrap_or_default(),
        };
        let listed = Listed {
            at: Instant::now(),
            chats: Arc::clone(&chats),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listed);
        chats
    }

    fn listed(&self) -> Option<Listed> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
