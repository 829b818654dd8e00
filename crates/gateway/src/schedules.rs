//! The schedules of a gateway: runs jobs when they are due, each in a conversation of its own, and delivers what they find.
//!
//! [`Scheduler::run`] sleeps until something is due. What is due is claimed in the store before anything happens, so that no
//! time runs twice, also beside other gateways; whoever dies in a run loses it to the next one, which goes on where it was
//! (`work`). How a run went and whether its result arrived are two things: results are handed to [`Deliver`] until they are
//! settled. Which times of a job run, and which were missed, is in `due`.
//!
//! Knows nothing of how jobs are made: see `hermes_core::JobDesk`.

mod ask;
mod due;
mod outcome;
mod output;
mod prompt;
pub(crate) mod script;
mod work;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::schedule::{LOCAL_TARGET, ORIGIN_TARGET};
use hermes_core::{
    CancellationToken, ClaimOutcome, Clock, ConsentOption, Delivery, DeliveryStatus, Job, JobState,
    NextRun, Random, Run, RunId, Schedules, Sessions, StoreError, Terminal, Timestamp,
};
use hermes_os::calendar::Zone;
use hermes_os::lock::{FileLock, Sharing, try_lock};
use hermes_os::schedule::{Schedule, ScheduleError};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::shutdown::Shutdown;

use crate::deliver::{Arrival, Deliver, DeliveryId};

/// How long a run is held without a sign of life. A process that died is noticed after this long.
const LEASE: Duration = Duration::from_secs(60);

/// The longest sleep: other processes change jobs, and clocks are set. One look costs a read of an index.
const SLEEP_MAX: Duration = Duration::from_secs(20);

/// The shortest: whatever goes wrong, the machine is not kept busy.
const SLEEP_MIN: Duration = Duration::from_millis(50);

/// A clock that shows less than before by more than this was set back.
const BACK_MAX: Duration = Duration::from_secs(5);

/// What nobody takes for so long does not arrive any more.
const DELIVERY_AGE_MAX_MS: i64 = 24 * 60 * 60 * 1000;

/// Before the id of a delivery that went to a home chat, because the chat it was meant for is gone.
const AT_HOME: &str = "home ";

/// What a scheduler works with.
#[derive(Clone)]
pub struct SchedulerParts {
    pub schedules: Arc<dyn Schedules>,
    pub sessions: Arc<dyn Sessions>,
    pub deliver: Arc<dyn Deliver>,
    /// Where scripts run.
    pub terminal: Arc<dyn Terminal>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub settings: SchedulerSettings,
}

#[derive(Debug, Clone)]
pub struct SchedulerSettings {
    /// Whose clocks schedules go by that name no zone.
    pub zone: Zone,
    pub parallel_max: usize,
    /// `cron/output` of the home.
    pub output_folder: PathBuf,
    /// Files that are kept of one job.
    pub output_kept_max: usize,
    /// `scripts` of the home.
    pub scripts_folder: PathBuf,
    /// Where jobs work that name no folder.
    pub cwd: PathBuf,
    /// Held while schedules run, so that others can tell.
    pub lock_file: PathBuf,
    pub wraps_response: bool,
    /// What happens to calls that need consent: nobody can be asked.
    pub consent: ConsentOption,
    pub script_time_max: Duration,
    pub idle_max: Duration,
    pub time_max: Duration,
    pub cost_max_micro_usd: Option<u64>,
}

/// Runs jobs when they are due. A clone is the same scheduler.
#[derive(Clone)]
pub struct Scheduler {
    parts: Arc<SchedulerParts>,
    /// What the store knows us by.
    holder: Arc<str>,
    wake: Arc<Notify>,
    running: Arc<Mutex<Running>>,
}

/// What this process is at.
#[derive(Default)]
struct Running {
    /// Each with the folder it works in, where another would disturb it.
    runs: HashMap<RunId, Option<PathBuf>>,
}

impl Scheduler {
    pub fn new(parts: SchedulerParts) -> Self {
        let holder = format!(
            "{}-{:08x}",
            std::process::id(),
            parts.random.next_u64() as u32
        );
        Self {
            parts: Arc::new(parts),
            holder: holder.into(),
            wake: Arc::default(),
            running: Arc::default(),
        }
    }

    /// Looks at once whether something is due: jobs were changed in this process, or a message has arrived.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Runs what is due until it is cancelled. What runs then is let go of, for the next process to take up.
    pub async fn run(&self, stop: CancellationToken) {
        self.run_until(&stop, &stop).await;
    }

    /// Runs what is due as a part of the gateway: what runs when that drains may come to its end.
    pub async fn serve(&self, shutdown: Shutdown) {
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let told = async {
            shutdown.draining().await;
            draining.cancel();
            shutdown.stopped().await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.run_until(&draining, &stop) => {}
            () = told => {}
        }
    }

    async fn run_until(&self, draining: &CancellationToken, stop: &CancellationToken) {
        let _lock = self.lock();
        let mut runs = JoinSet::new();
        let mut shown = self.now();
        self.realign().await;
        while !draining.is_cancelled() {
            let now = self.now();
            if now.plus(BACK_MAX) < shown {
                self.realign().await;
            }
            shown = now;
            let wait = match self.pass(&mut runs, stop).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::warn!("schedules: {error}");
                    SLEEP_MAX
                }
            };
            tokio::select! {
                () = draining.cancelled() => {}
                () = self.wake.notified() => {}
                _ = runs.join_next(), if !runs.is_empty() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        while runs.join_next().await.is_some() {}
        if let Err(error) = self.hand_over().await {
            tracing::warn!("results of schedules wait for the next start: {error}");
        }
    }

    /// Runs what is due now, waits for it, and returns how many runs that were.
    pub async fn tick(&self, stop: &CancellationToken) -> Result<usize, StoreError> {
        let mut runs = JoinSet::new();
        self.realign().await;
        let mut begun = 0;
        loop {
            self.pass(&mut runs, stop).await?;
            if runs.is_empty() {
                return Ok(begun);
            }
            begun += runs.len();
            while runs.join_next().await.is_some() {}
        }
    }

    /// Begins what is due, hands over what waits, and says for how long there is nothing to do.
    async fn pass(
        &self,
        runs: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<Duration, StoreError> {
        while runs.try_join_next().is_some() {}
        self.take_over(runs, stop).await?;
        self.begin_due(runs, stop).await?;
        self.hand_over().await?;
        let is_full = runs.len() >= self.parallel_max();
        let next = match is_full {
            // The end of a run is what is waited for.
            true => None,
            false => self.parts.schedules.next_due().await?,
        };
        Ok(self.until(next))
    }

    fn until(&self, next: Option<Timestamp>) -> Duration {
        let now = self.now().as_millis();
        let millis = next.map_or(i64::MAX, |next| next.as_millis().saturating_sub(now));
        let wait = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        wait.clamp(SLEEP_MIN, SLEEP_MAX)
    }

    /// Goes on with runs whose holder is gone, and tries those again that failed.
    async fn take_over(
        &self,
        runs: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let store = &self.parts.schedules;
        for run in store.abandoned_runs(now, now.plus(LEASE * 2)).await? {
            if runs.len() >= self.parallel_max() {
                break;
            }
            if self.lock_running().runs.contains_key(&run.id) {
                // Our own: it was asleep, and holds it again soon.
                continue;
            }
            let job = store.job(&run.job).await?;
            let folder = job.and_then(|job| job.spec.workdir);
            if self.is_in_use(folder.as_ref()) {
                continue;
            }
            let until = now.plus(LEASE);
            let taken = store.take_run(run.lease(), &self.holder, until).await?;
            if let Some(taken) = taken {
                self.spawn(runs, taken, folder, stop);
            }
        }
        Ok(())
    }

    async fn begin_due(
        &self,
        runs: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        loop {
            let mut has_skipped = false;
            for job in self.parts.schedules.due_jobs(self.now()).await? {
                if runs.len() >= self.parallel_max() {
                    return Ok(());
                }
                let folder = job.spec.workdir.clone();
                if self.is_in_use(folder.as_ref()) {
                    continue;
                }
                match self.claim(&job).await? {
                    Some(run) if run.status.is_over() => has_skipped = true,
                    Some(run) => self.spawn(runs, run, folder, stop),
                    None => {}
                }
            }
            // A job that skipped a time may be due for its next one.
            if !has_skipped {
                return Ok(());
            }
        }
    }

    async fn claim(&self, job: &Job) -> Result<Option<Run>, StoreError> {
        let now = self.now();
        let schedule = match self.schedule(job) {
            Ok(schedule) => schedule,
            Err(error) => {
                self.pause_unreadable(job, &error).await?;
                return Ok(None);
            }
        };
        let mut claim = due::claim(job, &schedule, now, &self.holder);
        claim.until = now.plus(LEASE);
        match self.parts.schedules.claim_run(claim).await? {
            ClaimOutcome::Claimed(run) => Ok(Some(*run)),
            ClaimOutcome::RunBefore | ClaimOutcome::Changed => Ok(None),
        }
    }

    async fn pause_unreadable(&self, job: &Job, error: &ScheduleError) -> Result<(), StoreError> {
        tracing::warn!(job = %job.id, "the schedule of a job can no longer be read, so it is paused: {error}");
        let mut paused = Job {
            state: JobState::Paused,
            next: None,
            wanted: None,
            ..job.clone()
        };
        let why = format!("its schedule can no longer be read: {error}");
        paused.spec.paused_because = Some(why);
        self.parts.schedules.change_job(paused).await.map(drop)
    }

    fn spawn(
        &self,
        runs: &mut JoinSet<()>,
        run: Run,
        folder: Option<PathBuf>,
        stop: &CancellationToken,
    ) {
        let (scheduler, stop) = (self.clone(), stop.clone());
        self.lock_running().runs.insert(run.id, folder);
        runs.spawn(async move {
            let (id, job) = (run.id, run.job.clone());
            if let Err(error) = scheduler.work(run, &stop).await {
                tracing::warn!(%job, "a run could not be written down: {error}");
            }
            // A run is no longer ours.
            scheduler.lock_running().runs.remove(&id);
        });
    }

    /// Puts jobs right whose next time is not what their schedule says by now: the clock was set back, or the zone changed.
    /// What was missed stays missed.
    async fn realign(&self) {
        if let Err(error) = self.try_realign().await {
            tracing::warn!("schedules were not compared with the clock: {error}");
        }
    }

    async fn try_realign(&self) -> Result<(), StoreError> {
        let now_ms = self.now().as_millis();
        for job in self.parts.schedules.jobs().await? {
            let is_ahead = |next: &NextRun| next.scheduled.as_millis() > now_ms;
            let (Some(next), Ok(schedule)) = (job.next.filter(is_ahead), self.schedule(&job))
            else {
                continue;
            };
            let fresh = due::next_run(&job, &schedule, now_ms);
            if fresh.is_some_and(|fresh| fresh.scheduled != next.scheduled) {
                let job = Job { next: fresh, ..job };
                self.parts.schedules.change_job(job).await?;
            }
        }
        Ok(())
    }

    /// Hands over what waits, and asks after what was handed over.
    async fn hand_over(&self) -> Result<(), StoreError> {
        for run in self.parts.schedules.undelivered().await? {
            for delivery in &run.deliveries {
                if let Some(status) = self.delivered(&run, delivery).await {
                    let (id, target) = (run.id, &delivery.target);
                    self.parts
                        .schedules
                        .set_delivery(id, target, status)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// How far a delivery has come; `None` when there is nothing new.
    async fn delivered(&self, run: &Run, delivery: &Delivery) -> Option<DeliveryStatus> {
        let deliver = &self.parts.deliver;
        let failed = |error: String| Some(DeliveryStatus::Failed { error });
        match &delivery.status {
            DeliveryStatus::Pending if delivery.target == LOCAL_TARGET => {
                match self.keep_output(run, &delivery.text).await {
                    Ok(path) => Some(DeliveryStatus::Delivered {
                        id: path.display().to_string(),
                    }),
                    Err(error) => failed(error.to_string()),
                }
            }
            DeliveryStatus::Pending => {
                let text = delivery.text.clone();
                let key = key_of(run, delivery);
                match deliver.deliver_result(&key, &delivery.target, text).await {
                    Ok(DeliveryId(id)) => Some(DeliveryStatus::Handed { id }),
                    Err(error) if error.is_passing && !self.is_too_old(run) => None,
                    Err(error) => Some(self.to_home(run, delivery, error.message).await),
                }
            }
            DeliveryStatus::Handed { id } => {
                let at_home = id.strip_prefix(AT_HOME);
                let arrival = DeliveryId(at_home.unwrap_or(id).to_owned());
                let arrival = deliver.status(&arrival).await;
                match arrival {
                    Ok(Arrival::OnItsWay) | Err(_) if !self.is_too_old(run) => None,
                    Ok(Arrival::OnItsWay) | Err(_) => Some(DeliveryStatus::Unknown {
                        why: "nothing was heard of it for a day".to_owned(),
                    }),
                    Ok(Arrival::Arrived { message }) => {
                        Some(DeliveryStatus::Delivered { id: message })
                    }
                    Ok(Arrival::Unknown { why }) => Some(DeliveryStatus::Unknown { why }),
                    Ok(Arrival::Failed { error }) if at_home.is_some() => failed(error),
                    Ok(Arrival::Failed { error }) => Some(self.to_home(run, delivery, error).await),
                }
            }
            _ => None,
        }
    }

    /// What was meant for the chat that a job was made in, and cannot go there any more, goes to the first home chat.
    async fn to_home(&self, run: &Run, delivery: &Delivery, error: String) -> DeliveryStatus {
        let job = self.parts.schedules.job(&run.job).await.ok().flatten();
        let may_move = job.is_some_and(|job| outcome::is_origin(&job, &delivery.target));
        if !may_move {
            return DeliveryStatus::Failed { error };
        }
        let key = format!("{}:home", key_of(run, delivery));
        let (text, target) = (&delivery.text, &delivery.target);
        let text = format!("{text}\n\n(This was for `{target}`, which was not reached: {error})");
        match self.parts.deliver.deliver(&key, ORIGIN_TARGET, text).await {
            Ok(DeliveryId(id)) => DeliveryStatus::Handed {
                id: format!("{AT_HOME}{id}"),
            },
            // What is wrong with the chat says more than that there is no other.
            Err(_) => DeliveryStatus::Failed { error },
        }
    }

    fn is_too_old(&self, run: &Run) -> bool {
        let since = run.ended.unwrap_or(run.claimed).as_millis();
        self.now().as_millis() - since > DELIVERY_AGE_MAX_MS
    }

    async fn keep_output(&self, run: &Run, text: &str) -> std::io::Result<PathBuf> {
        let settings = &self.parts.settings;
        let (folder, kept_max) = (settings.output_folder.clone(), settings.output_kept_max);
        let (run, text) = (run.clone(), text.to_owned());
        let task =
            tokio::task::spawn_blocking(move || output::keep(&folder, &run, &text, kept_max));
        task.await.map_err(std::io::Error::other)?
    }

    fn schedule(&self, job: &Job) -> Result<Schedule, ScheduleError> {
        let spec = &job.spec;
        Schedule::read_at(&spec.schedule, spec.said_ms, &self.parts.settings.zone)
    }

    fn is_in_use(&self, folder: Option<&PathBuf>) -> bool {
        let running = self.lock_running();
        let mut folders = running.runs.values().flatten();
        folder.is_some_and(|folder| folders.any(|used| used == folder))
    }

    fn lock_running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parallel_max(&self) -> usize {
        self.parts.settings.parallel_max.max(1)
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    fn lock(&self) -> Option<FileLock> {
        try_lock(&self.parts.settings.lock_file, Sharing::Shared)
            .ok()
            .flatten()
    }
}

/// Names what is delivered, so that nobody gets it twice.
fn key_of(run: &Run, delivery: &Delivery) -> String {
    let (at_ms, target) = (run.scheduled.as_millis(), &delivery.target);
    format!("cron:{}:{at_ms}:{target}", run.job)
}
