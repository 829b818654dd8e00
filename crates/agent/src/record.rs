//! Writes the step log of a turn to the store, each entry before what it announces is done.

use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::{Clock, Entry, SessionId, Store, StoreError};

/// Buffers entries that may wait for the next commit, so that one step costs few of them.
pub(crate) struct Recorder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    buffer: Mutex<Vec<Entry>>,
}

impl Recorder {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, session: SessionId) -> Self {
        Self {
            store,
            clock,
            session,
            buffer: Mutex::default(),
        }
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Adds an entry to the next commit.
    pub(crate) fn add(&self, entry: Entry) {
        self.buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(entry);
    }

    /// Makes everything added so far durable, in order.
    pub(crate) async fn commit(&self) -> Result<(), StoreError> {
        let entries =
            std::mem::take(&mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        if entries.is_empty() {
            return Ok(());
        }
        self.store
            .append(&self.session, self.clock.now(), entries)
            .await
    }
}
