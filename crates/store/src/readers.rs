//! A few connections for reading, opened when first needed. Readers never wait for the writer, nor it for them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::connection;
use crate::failure::Failure;

/// Connections, and so reads at one time. Each costs up to 2 MB of cache; three keep a slow search from holding up
/// the loading of a session.
const READERS_MAX: usize = 3;

const ACTION: &str = "read";

#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            permits: Arc::new(Semaphore::new(READERS_MAX)),
            idle: Arc::default(),
        }
    }

    /// Opens one connection now, so that a bad file is told at once.
    pub(crate) fn open_first(&self) -> Result<(), StoreError> {
        let conn = connection::open_reader(&self.path)?;
        lock(&self.idle).push(conn);
        Ok(())
    }

    /// Runs a job on one snapshot of the database. Dropping the future lets the job finish unheard.
    pub(crate) async fn run<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let taken = lock(&idle).pop();
            let conn = match taken {
                Some(conn) => conn,
                None => connection::open_reader(&path)?,
            };
            let outcome = read(&conn, job).map_err(|failure| failure.at(ACTION, &path));
            lock(&idle).push(conn);
            outcome
        });
        task.await.map_err(|error| StoreError::Io {
            action: ACTION,
            path: self.path.clone(),
            detail: error.to_string(),
        })?
    }
}

fn read<T>(
    conn: &Connection,
    job: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let snapshot = conn.unchecked_transaction()?;
    job(&snapshot)
}

/// Nothing can panic while the list is held, and a list of connections has no half-done state anyway.
fn lock(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
