//! The one thread that changes the database. Jobs that wait together are committed together: one flush to disk for all
//! of them, which is most of what a commit costs.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use hermes_core::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::search;

/// Jobs in one transaction. More would save little and make the first wait for the last.
const BATCH_JOBS_MAX: usize = 256;

/// Jobs that wait. Beyond that callers wait to hand theirs in, which bounds memory.
const QUEUE_JOBS_MAX: usize = 1024;

/// Messages that may wait to be indexed while nobody else waits: a few milliseconds of work for the next search.
const BACKLOG_IDLE_MAX: i64 = 64;

/// The same under load. Beyond it the queue has to wait instead, or searching would fall behind for good.
const BACKLOG_BUSY_MAX: i64 = 1024;

/// Commits after which the log is copied into the database while nobody waits, so that the next ones are written over it:
/// the disk flushes what it has room for twice as fast as a file that grows. SQLite itself does it too late for that.
const LOG_COMMITS_MAX: u32 = 16;

const ACTION: &str = "write to";

#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    /// `None` only while dropping.
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(conn: Connection, path: &Path) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE_JOBS_MAX);
        let owned_path = path.to_owned();
        let thread = thread::Builder::new()
            .name("hermes-store".into())
            .spawn(move || serve(conn, jobs, &owned_path))
            .map_err(|error| StoreError::Io {
                action: "start the writer of",
                path: path.to_owned(),
                detail: error.to_string(),
            })?;
        Ok(Self {
            path: path.to_owned(),
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Runs a job in a transaction and returns once that is on disk.
    ///
    /// The job may run more than once: when a neighbour in its transaction fails, everybody is rolled back and tried
    /// alone.
    pub(crate) async fn run<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (done, outcome) = oneshot::channel();
        let job = Box::new(WriteJob {
            run: job,
            value: None,
            done,
        });
        let queue = self.queue.as_ref().ok_or_else(|| self.gone())?;
        queue.send(job).await.map_err(|_| self.gone())?;
        outcome.await.map_err(|_| self.gone())?
    }

    fn gone(&self) -> StoreError {
        StoreError::Io {
            action: ACTION,
            path: self.path.clone(),
            detail: "its writer thread has stopped".into(),
        }
    }
}

impl Drop for Writer {
    /// Waits until what was handed in is on disk and the file is closed.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was already told to whoever waited for that job.
            let _ = thread.join();
        }
    }
}

/// A change and the caller who waits for it.
trait Job: Send {
    fn attempt(&mut self, conn: &Connection) -> Result<(), Failure>;
    /// Tells the caller how the last attempt ended, after its transaction has.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct WriteJob<T, F> {
    run: F,
    value: Option<T>,
    done: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for WriteJob<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> Result<T, Failure> + Send,
{
    fn attempt(&mut self, conn: &Connection) -> Result<(), Failure> {
        self.value = Some((self.run)(conn)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let value = self.value;
        // A successful outcome implies a value; without one the caller sees a closed channel, which is an error too.
        if let Some(outcome) = outcome.map(|()| value).transpose() {
            // The caller may have gone; the change stays.
            let _ = self.done.send(outcome);
        }
    }
}

/// Works off the queue, and uses the time when nobody waits to index new messages.
fn serve(mut conn: Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, path: &Path) {
    let mut batch = Vec::new();
    let mut commits = 0;
    while jobs.blocking_recv_many(&mut batch, BATCH_JOBS_MAX) > 0 {
        commit_batch(&mut conn, std::mem::take(&mut batch), path);
        commits += 1;
        if commits >= LOG_COMMITS_MAX && jobs.is_empty() {
            // What cannot be copied now, because somebody reads, is copied another time.
            let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            commits = 0;
        }
        let backlog_max = if jobs.is_empty() {
            BACKLOG_IDLE_MAX
        } else {
            BACKLOG_BUSY_MAX
        };
        // Whoever searches indexes the rest, and hears what is wrong with it.
        let _ = index_backlog(&mut conn, backlog_max);
    }
}

fn index_backlog(conn: &mut Connection, backlog_max: i64) -> Result<(), Failure> {
    if search::backlog(conn)? < backlog_max {
        return Ok(());
    }
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    search::index_some(&transaction)?;
    Ok(transaction.commit()?)
}

fn commit_batch(conn: &mut Connection, mut batch: Vec<Box<dyn Job>>, path: &Path) {
    match commit(conn, &mut batch) {
        Ok(()) => answer_all(batch, &Ok(())),
        // Not savepoints, which would keep the good neighbours at once: at each one FTS5 writes its index to disk, and
        // that costs every batch what is paid here only by the rare one with a failure.
        Err(CommitError::Job(_)) if batch.len() > 1 => {
            for job in batch {
                commit_batch(conn, vec![job], path);
            }
        }
        Err(CommitError::Begin(failure) | CommitError::Job(failure)) => {
            answer_all(batch, &Err(failure.at(ACTION, path)));
        }
    }
}

fn answer_all(batch: Vec<Box<dyn Job>>, outcome: &Result<(), StoreError>) {
    for job in batch {
        job.answer(outcome.clone());
    }
}

enum CommitError {
    /// Nobody's fault here: another process holds the file, or it cannot be written at all.
    Begin(Failure),
    /// One of the jobs, or the sum of them.
    Job(Failure),
}

/// Runs the jobs in one transaction. When one fails nothing is changed.
fn commit(conn: &mut Connection, batch: &mut [Box<dyn Job>]) -> Result<(), CommitError> {
    let transaction = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| CommitError::Begin(error.into()))?;
    for job in batch {
        job.attempt(&transaction).map_err(CommitError::Job)?;
    }
    transaction
        .commit()
        .map_err(|error| CommitError::Job(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::open_writer;

    /// Inserts a row of 10 kB.
    fn fill(conn: &Connection) -> Result<(), Failure> {
        conn.execute(
            "INSERT INTO records VALUES ('x', random(), '', hex(zeroblob(5000)), 0, 0)",
            [],
        )?;
        Ok(())
    }

    fn add_session(conn: &Connection) -> Result<(), Failure> {
        conn.execute(
            "INSERT INTO sessions (id, source, provider, model, created, updated) VALUES ('s', '', '', '', 0, 0)",
            [],
        )?;
        Ok(())
    }

    fn set_pages_max(conn: &Connection, pages: u32) -> Result<(), Failure> {
        Ok(conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    }

    #[tokio::test]
    async fn a_full_disk_is_told_and_work_goes_on_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hermes.db");
        let writer = Writer::start(open_writer(&path).unwrap(), &path).unwrap();
        writer.run(add_session).await.unwrap();
        writer.run(|conn| set_pages_max(conn, 60)).await.unwrap();
        let error = loop {
            if let Err(error) = writer.run(fill).await {
                break error;
            }
        };
        assert_eq!(error, StoreError::DiskFull { path: path.clone() });
        writer.run(|conn| set_pages_max(conn, 1000)).await.unwrap();
        writer.run(fill).await.unwrap();
    }

    #[tokio::test]
    async fn one_failure_in_a_batch_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hermes.db");
        let writer = Writer::start(open_writer(&path).unwrap(), &path).unwrap();
        writer.run(add_session).await.unwrap();
        let refuse = |conn: &Connection| {
            fill(conn)?;
            Err::<(), _>(Failure::Refused("no".into()))
        };
        let (one, two, three) =
            tokio::join!(writer.run(fill), writer.run(refuse), writer.run(fill));
        assert!(one.is_ok() && two.is_err() && three.is_ok());
        let count = |conn: &Connection| {
            Ok(conn.query_row("SELECT count(*) FROM records", [], |row| row.get(0))?)
        };
        assert_eq!(writer.run(count).await, Ok(2));
    }
}
