//! Renews what may be used once, such as a refresh token: one at a time in this process and among all processes.
//!
//! Whoever renews holds a lock that other processes respect, and looks again before it asks, because somebody else may have
//! been faster. A renewal runs in a task of its own: a caller who gives up must not stop it after the old one was voided.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

/// Something that is renewed.
pub trait Renewable: Send + Sync + 'static {
    /// What callers get.
    type Token: Send + Sync + 'static;
    type Error: Send + 'static;
    /// Held between processes.
    type Lock: Send;

    /// Reads what all processes share, and returns its token if that is good and not the refused one.
    fn newer_than(
        &self,
        refused: &Self::Token,
    ) -> impl Future<Output = Result<Option<Self::Token>, Self::Error>> + Send;

    /// Waits for the right to renew, and takes it.
    fn lock(&self) -> impl Future<Output = Result<Self::Lock, Self::Error>> + Send;

    /// Gets another token, and keeps it where all processes find it. Nobody else does the same meanwhile.
    fn renew(
        &self,
        lock: &mut Self::Lock,
    ) -> impl Future<Output = Result<Self::Token, Self::Error>> + Send;

    /// Says that the task was broken off.
    fn broken_off(&self, reason: String) -> Self::Error;
}

/// The renewals of one thing in this process.
#[derive(Debug, Clone)]
pub struct Renewals {
    tasks: TaskTracker,
    turn: Arc<Mutex<()>>,
}

impl Renewals {
    /// `tasks` owns those that run, also when nobody waits for them any more.
    pub fn new(tasks: TaskTracker) -> Self {
        Self {
            tasks,
            turn: Arc::default(),
        }
    }

    /// Returns a token that is not `refused`, from whoever is first to renew it. Dropping the future does not end the
    /// renewal.
    pub async fn renewed<R: Renewable>(
        &self,
        what: Arc<R>,
        refused: R::Token,
    ) -> Result<R::Token, R::Error> {
        let (turn, task) = (Arc::clone(&self.turn), Arc::clone(&what));
        let task = self.tasks.spawn(async move {
            let _alone_here = turn.lock().await;
            renew_once(&*task, &refused).await
        });
        match task.await {
            Ok(renewed) => renewed,
            Err(error) => Err(what.broken_off(error.to_string())),
        }
    }
}

async fn renew_once<R: Renewable>(what: &R, refused: &R::Token) -> Result<R::Token, R::Error> {
    if let Some(token) = what.newer_than(refused).await? {
        return Ok(token);
    }
    let mut lock = what.lock().await?;
    if let Some(token) = what.newer_than(refused).await? {
        return Ok(token);
    }
    match what.renew(&mut lock).await {
        Ok(token) => Ok(token),
        Err(error) => match what.newer_than(refused).await {
            // A program that takes no lock was faster, and its renewal made ours fail.
            Ok(Some(token)) => Ok(token),
            Ok(None) | Err(_) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use crate::lock::{self, FileLock, Sharing};

    /// A token is a number in a file; renewing adds one and takes a while.
    struct Counter {
        folder: tempfile::TempDir,
        renewals: AtomicU32,
        /// What somebody else writes while we renew, which makes ours fail.
        faster: Option<u32>,
    }

    impl Counter {
        fn new(faster: Option<u32>) -> Arc<Self> {
            let counter = Self {
                folder: tempfile::tempdir().unwrap(),
                renewals: AtomicU32::new(0),
                faster,
            };
            counter.write(1);
            Arc::new(counter)
        }

        fn write(&self, token: u32) {
            std::fs::write(self.folder.path().join("token"), token.to_string()).unwrap();
        }

        fn read(&self) -> u32 {
            let text = std::fs::read_to_string(self.folder.path().join("token")).unwrap();
            text.parse().unwrap()
        }
    }

    impl Renewable for Counter {
        type Token = u32;
        type Error = String;
        type Lock = FileLock;

        async fn newer_than(&self, refused: &u32) -> Result<Option<u32>, String> {
            Ok(Some(self.read()).filter(|token| token != refused))
        }

        async fn lock(&self) -> Result<FileLock, String> {
            let path = self.folder.path().join("lock");
            let locked = lock::lock(&path, Sharing::Alone, Duration::from_secs(60)).await;
            locked.map_err(|error| error.to_string())
        }

        async fn renew(&self, _lock: &mut FileLock) -> Result<u32, String> {
            self.renewals.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            if let Some(token) = self.faster {
                self.write(token);
                return Err("used before".to_owned());
            }
            let token = self.read() + 1;
            self.write(token);
            Ok(token)
        }

        fn broken_off(&self, reason: String) -> String {
            reason
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_were_refused_renew_once() {
        let counter = Counter::new(None);
        // As two processes have it.
        let (here, there) = (
            Renewals::new(TaskTracker::new()),
            Renewals::new(TaskTracker::new()),
        );
        let renewed = |renewals: &Renewals| {
            let (renewals, counter) = (renewals.clone(), Arc::clone(&counter));
            async move { renewals.renewed(counter, 1).await }
        };
        let (one, two, three) = tokio::join!(renewed(&here), renewed(&here), renewed(&there));
        assert_eq!((one, two, three), (Ok(2), Ok(2), Ok(2)));
        assert_eq!(counter.renewals.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_who_gives_up_does_not_stop_it() {
        let counter = Counter::new(None);
        let tasks = TaskTracker::new();
        let renewals = Renewals::new(tasks.clone());
        let waited = Duration::from_millis(10);
        let renewal = renewals.renewed(Arc::clone(&counter), 1);
        assert!(tokio::time::timeout(waited, renewal).await.is_err());
        tasks.close();
        tasks.wait().await;
        assert_eq!(counter.read(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_faster_without_a_lock_is_believed() {
        let counter = Counter::new(Some(7));
        let renewals = Renewals::new(TaskTracker::new());
        assert_eq!(renewals.renewed(counter, 1).await, Ok(7));
        let counter = Counter::new(Some(1));
        let refused = renewals.renewed(counter, 1).await;
        assert_eq!(refused, Err("used before".to_owned()));
    }
}
