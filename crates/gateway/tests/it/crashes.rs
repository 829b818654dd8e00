//! A process that dies at every commit of a run, before it and behind it: nothing is lost, and nothing is done twice in silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hermes_core::{
    BoxFuture, ClaimOutcome, DeliveryStatus, Job, JobId, JobSpec, Run, RunClaim, RunEnd, RunFilter,
    RunId, RunLease, RunStatus, RunStep, Schedules, StoreError, Timestamp,
};
use hermes_testkit::server::{Answer, Script};
use tokio::sync::Notify;

use crate::support::{House, Process, asking};

const HOUR: Duration = Duration::from_secs(3600);

/// Stands in front of a store, and is where the process dies.
struct Dying {
    store: Arc<dyn Schedules>,
    /// Commits until then.
    left: AtomicU32,
    /// Whether the last one still happens.
    commits: bool,
    dies: Arc<Notify>,
}

impl Dying {
    /// Does a commit, unless the process is dead by now: then it never returns.
    fn commit<'a, T: Send + 'a>(
        &'a self,
        work: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let left = self.left.fetch_sub(1, Ordering::SeqCst);
            if left == 1 {
                if self.commits {
                    work.await?;
                }
                self.dies.notify_one();
                return std::future::pending().await;
            }
            work.await
        })
    }
}

type Future<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl Schedules for Dying {
    fn add_job(&self, job: Job) -> Future<'_, ()> {
        self.store.add_job(job)
    }
    fn import_jobs(&self, jobs: Vec<Job>) -> Future<'_, Vec<JobId>> {
        self.store.import_jobs(jobs)
    }
    fn change_job(&self, job: Job) -> Future<'_, bool> {
        self.store.change_job(job)
    }
    fn remove_job(&self, job: &JobId) -> Future<'_, bool> {
        self.store.remove_job(job)
    }
    fn job(&self, job: &JobId) -> Future<'_, Option<Job>> {
        self.store.job(job)
    }
    fn jobs(&self) -> Future<'_, Vec<Job>> {
        self.store.jobs()
    }
    fn due_jobs(&self, now: Timestamp) -> Future<'_, Vec<Job>> {
        self.store.due_jobs(now)
    }
    fn next_due(&self) -> Future<'_, Option<Timestamp>> {
        self.store.next_due()
    }
    fn claim_run(&self, claim: RunClaim) -> Future<'_, ClaimOutcome> {
        self.commit(self.store.claim_run(claim))
    }
    fn abandoned_runs(&self, now: Timestamp, max: Timestamp) -> Future<'_, Vec<Run>> {
        self.store.abandoned_runs(now, max)
    }
    fn take_run(&self, seen: RunLease, holder: &str, until: Timestamp) -> Future<'_, Option<Run>> {
        self.commit(self.store.take_run(seen, holder, until))
    }
    fn renew_run(&self, lease: RunLease, until: Timestamp) -> Future<'_, bool> {
        self.store.renew_run(lease, until)
    }
    fn note_run(&self, lease: RunLease, step: RunStep) -> Future<'_, bool> {
        self.commit(self.store.note_run(lease, step))
    }
    fn put_off_run(&self, lease: RunLease, until: Timestamp, error: &str) -> Future<'_, bool> {
        self.commit(self.store.put_off_run(lease, until, error))
    }
    fn finish_run(&self, lease: RunLease, end: RunEnd) -> Future<'_, bool> {
        self.commit(self.store.finish_run(lease, end))
    }
    fn undelivered(&self) -> Future<'_, Vec<Run>> {
        self.store.undelivered()
    }
    fn set_delivery(&self, run: RunId, target: &str, status: DeliveryStatus) -> Future<'_, ()> {
        self.commit(self.store.set_delivery(run, target, status))
    }
    fn runs(&self, filter: RunFilter) -> Future<'_, Vec<Run>> {
        self.store.runs(filter)
    }
}

/// Runs a process until it dies at a commit. Everything of it is gone then, its conversations too.
fn dies(house: &Arc<House>, commit: u32, commits: bool) {
    let process = tokio::runtime::Runtime::new().unwrap();
    let house = Arc::clone(house);
    process.block_on(async move {
        let mut process = house.process().await;
        let dies = Arc::new(Notify::new());
        process.parts.schedules = Arc::new(Dying {
            store: process.parts.schedules.clone(),
            left: AtomicU32::new(commit),
            commits,
            dies: Arc::clone(&dies),
        });
        let scheduler = process.scheduler();
        tokio::select! {
            () = dies.notified() => {}
            () = async {
                let stop = hermes_core::CancellationToken::new();
                scheduler.tick(&stop).await.unwrap();
                scheduler.tick(&stop).await.unwrap();
            } => {}
        }
        std::mem::forget(process);
    });
    process.shutdown_timeout(Duration::from_secs(5));
}

async fn prepared(script: Option<&str>) -> Arc<House> {
    let house = Arc::new(House::with(Script::always(Answer::text("found it"))).await);
    house.script("count.sh", "echo ran >> ran.txt\necho data\n");
    let process = house.process().await;
    let folder = house.folder.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    let spec = JobSpec {
        workdir: Some(folder),
        script: script.map(Into::into),
        deliver: vec!["chat:1".into()],
        ..asking("look")
    };
    process.add("a", "every 24h", spec).await;
    house.clock.advance(HOUR * 24);
    house
}

/// Dies at a commit, and is started again when the lease is over.
async fn after_death(house: &Arc<House>, commit: u32, commits: bool) -> Process {
    let dying = Arc::clone(house);
    let death = tokio::task::spawn_blocking(move || dies(&dying, commit, commits));
    death.await.unwrap();
    house.clock.advance(Duration::from_secs(120));
    let process = house.process().await;
    process.tick().await;
    process.tick().await;
    process
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_commit_loses_nothing_and_doubles_nothing() {
    for commit in 1..=6 {
        for commits in [false, true] {
            let house = prepared(None).await;
            let process = after_death(&house, commit, commits).await;
            let runs = process.runs().await;
            let place = format!("commit {commit}, made: {commits}");
            assert_eq!(runs.len(), 1, "{place}");
            assert_eq!(runs[0].status, RunStatus::Succeeded, "{place}: {runs:?}");
            let got = house.chat.got();
            assert_eq!(got, [("chat:1".into(), "found it".into())], "{place}");
            assert!(runs[0].deliveries[0].status.is_settled(), "{place}");
            assert_eq!(house.server.requests().len(), 1, "{place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_may_have_run_is_not_run_again_and_that_is_said() {
    for commit in 1..=7 {
        for commits in [false, true] {
            let house = prepared(Some("count.sh")).await;
            let process = after_death(&house, commit, commits).await;
            let runs = process.runs().await;
            let place = format!("commit {commit}, made: {commits}");
            let ran = std::fs::read_to_string(house.folder.path().join("work/ran.txt"));
            let ran = ran.unwrap_or_default().lines().count();
            assert!(ran <= 1, "{place}: {ran}");
            assert_eq!((runs.len(), house.chat.got().len()), (1, 1), "{place}");
            let text = house.chat.got()[0].1.clone();
            match runs[0].status {
                RunStatus::Succeeded => {
                    assert_eq!((ran, text.as_str()), (1, "found it"), "{place}");
                }
                RunStatus::Unknown => assert!(text.contains("not run again"), "{place}: {text}"),
                status => panic!("{place}: {status:?}"),
            }
        }
    }
}
