//! Writes the step log of a turn to the store, each entry before what it announces is done.

use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::{BoxFuture, Clock, Entry, SessionId, Store, StoreError};

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

    /// Writes an entry by itself, beside whatever waits for the next commit. It is handed in when the future is first polled.
    pub(crate) fn append_apart(&self, entry: Entry) -> BoxFuture<'static, Result<(), StoreError>> {
        let (store, session) = (Arc::clone(&self.store), self.session.clone());
        let at = self.clock.now();
        Box::pin(async move { store.append(&session, at, vec![entry]).await })
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
