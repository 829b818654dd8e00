//! Jobs that run by themselves at set times: what they are, how their runs go, and the ports to both.
//!
//! [`Schedules`] is what survives of them. A run is claimed by one commit, and whoever claimed it holds it by a *lease*: a
//! number that grows with every taking (a fencing token) and a time until which it counts. Whoever dies loses the run when
//! that time is over, and whoever lost a run can no longer write to it. [`JobDesk`] is how people and models make and change
//! jobs, whatever the surface.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{JobId, SessionId};
use crate::store::StoreError;
use crate::tool::BoxFuture;

/// The source of conversations that schedules begin, and the name that `platform_toolsets` has for them.
pub const CRON_SOURCE: &str = "cron";

/// Into a file: where results go of jobs that were made in no chat.
pub const LOCAL_TARGET: &str = "local";

/// The chat that a job was made in, and where its results go when nobody says. The first home chat when that is gone.
pub const ORIGIN_TARGET: &str = "origin";

/// What survives of jobs.
///
/// Every method is one transaction, durable when it returns. Several processes may share one store: what they contend for is
/// decided here, by comparing what they saw (a job's revision, a run's token) with what there is.
pub trait Schedules: Send + Sync {
    /// Adds a job; one whose id is taken is refused.
    fn add_job(&self, job: Job) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Adds jobs that another program had, each once: those that were added before stay as they are, also when they are
    /// gone. Returns which were added.
    fn import_jobs(&self, jobs: Vec<Job>) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>>;

    /// Replaces a job, unless it has changed since it was read. Returns whether it did.
    fn change_job(&self, job: Job) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Forgets a job; what is known of its runs stays for a while. A run that is under way goes on.
    fn remove_job(&self, job: &JobId) -> BoxFuture<'_, Result<bool, StoreError>>;

    fn job(&self, job: &JobId) -> BoxFuture<'_, Result<Option<Job>, StoreError>>;

    /// All jobs, the oldest first.
    fn jobs(&self) -> BoxFuture<'_, Result<Vec<Job>, StoreError>>;

    /// Jobs that should run by now and of which no run is under way, the longest due first.
    fn due_jobs(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Job>, StoreError>>;

    /// The first moment at which a job is due, a run is tried again, or a lease is over.
    fn next_due(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// Begins a run, unless it was begun before: there is one for each time of a job, whoever claims it.
    fn claim_run(&self, claim: RunClaim) -> BoxFuture<'_, Result<ClaimOutcome, StoreError>>;

    /// Runs whose holder is gone, and runs that are to be tried again by now. A lease that is longer than any is meant to be
    /// was written by a clock that was ahead: it is over too, and so is a wait of more than an hour.
    fn abandoned_runs(
        &self,
        now: Timestamp,
        lease_until_max: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Run>, StoreError>>;

    /// Takes such a run over from the token that was seen. `None` when somebody else was faster.
    fn take_run(
        &self,
        seen: RunLease,
        holder: &str,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Run>, StoreError>>;

    /// Holds a run for longer. Returns false to whoever has lost it.
    fn renew_run(
        &self,
        lease: RunLease,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// How far a run has come, before anything more happens in it. Returns false to whoever has lost it.
    fn note_run(&self, lease: RunLease, step: RunStep) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// A run failed and is to be tried again. Returns false to whoever has lost it.
    fn put_off_run(
        &self,
        lease: RunLease,
        until: Timestamp,
        error: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// A run is over, and this is to be delivered. Returns false to whoever has lost it.
    fn finish_run(&self, lease: RunLease, end: RunEnd) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Runs with a delivery that is not settled, the oldest first.
    fn undelivered(&self) -> BoxFuture<'_, Result<Vec<Run>, StoreError>>;

    fn set_delivery(
        &self,
        run: RunId,
        target: &str,
        status: DeliveryStatus,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Runs, the newest first.
    fn runs(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<Run>, StoreError>>;
}

/// Something that is done at set times.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    /// Counts its changes; the store's own.
    pub revision: u64,
    pub created: Timestamp,
    pub spec: JobSpec,
    pub state: JobState,
    /// `None` when it is over, or paused.
    pub next: Option<NextRun>,
    /// Somebody wants it to run now, beside its schedule.
    pub wanted: Option<Timestamp>,
    /// Runs by schedule that were begun.
    pub runs: u32,
    /// Runs that failed one after another, up to now.
    pub failures: u32,
    /// The last failure that somebody was told of.
    pub told: Option<ToldFailure>,
}

/// What a job is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    pub name: String,
    /// What the agent is asked.
    pub prompt: String,
    /// When, in the words of whoever made it.
    pub schedule: String,
    /// When those words were said: `30m` and `tomorrow` count from there, in milliseconds since 1970.
    pub said_ms: i64,
    pub skills: Vec<String>,
    /// The one of the settings when there is none, whatever that is by then.
    pub model: Option<String>,
    pub provider: Option<String>,
    pub toolsets: Vec<String>,
    pub workdir: Option<PathBuf>,
    /// A file below `scripts/` of the home, which runs first; what it prints is told to the agent.
    pub script: Option<String>,
    /// Only the script runs, and what it prints is delivered.
    pub no_agent: bool,
    /// Jobs whose last results the agent is told.
    pub context_from: Vec<JobId>,
    /// Where results go; see [`JobSpec::targets`].
    pub deliver: Vec<String>,
    /// The chat it was made in, as a target.
    pub origin: Option<String>,
    pub created_in: Option<SessionId>,
    /// How often it runs; for ever when nothing is said.
    pub repeat: Option<u32>,
    pub misfire: Misfire,
    /// It may begin so much later, so that not everything begins at the full hour.
    pub jitter_s: u32,
    /// How often a run that failed is tried again.
    pub retries: u32,
    /// How long a run may take in all.
    pub time_max_s: Option<u32>,
    /// What a run may cost.
    pub cost_max_micro_usd: Option<u64>,
    /// Only what somebody must know is delivered.
    pub silent: bool,
    /// Why it was paused, where no person did it: what is to be mended before it goes on.
    pub paused_because: Option<String>,
}

impl JobSpec {
    /// Where results go: where nothing is said, to the chat it was made in, else into a file.
    pub fn targets(&self) -> Vec<&str> {
        match (self.deliver.is_empty(), &self.origin) {
            (false, _) => self.deliver.iter().map(String::as_str).collect(),
            (true, Some(_)) => vec![ORIGIN_TARGET],
            (true, None) => vec![LOCAL_TARGET],
        }
    }
}

/// What becomes of times that passed while nobody was there to run it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misfire {
    /// It runs once for all of them.
    #[default]
    Once,
    Skip,
    /// It runs for each, one after another.
    All,
}

impl Misfire {
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Once, Self::Skip, Self::All];
        all.into_iter().find(|one| one.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Skip => "skip",
            Self::All => "all",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    Active,
    Paused,
    /// Its last time has come.
    Completed,
}

impl JobState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextRun {
    /// The time that its schedule says.
    pub scheduled: Timestamp,
    /// When it really begins.
    pub due: Timestamp,
}

/// When a time of a job really begins: so much later as its name and the time say, so that everybody finds the same.
pub fn jittered(job: &JobId, scheduled: Timestamp, jitter_s: u32) -> NextRun {
    // FNV-1a: any even spread will do.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let time = scheduled.as_millis().to_le_bytes();
    for byte in job.as_str().bytes().chain(time) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    let late_ms = hash % (u64::from(jitter_s) * 1000 + 1);
    NextRun {
        scheduled,
        due: scheduled.plus(std::time::Duration::from_millis(late_ms)),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldFailure {
    pub at: Timestamp,
    pub error: String,
}

/// The number of a run; later ones have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to write to a run, until somebody else takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLease {
    pub run: RunId,
    pub token: u64,
}

/// One time that a job ran, or did not.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub id: RunId,
    pub job: JobId,
    /// The job's, for when that is gone.
    pub name: String,
    pub scheduled: Timestamp,
    pub trigger: RunTrigger,
    pub status: RunStatus,
    /// From 1; a try that was taken over counts.
    pub attempt: u32,
    pub token: u64,
    pub holder: String,
    pub lease_until: Timestamp,
    pub claimed: Timestamp,
    pub ended: Option<Timestamp>,
    pub phase: RunPhase,
    /// What the agent is asked, once that is known.
    pub prompt: Option<String>,
    pub session: Option<SessionId>,
    pub output: Option<String>,
    pub error: Option<String>,
    /// What to do about the error.
    pub hint: Option<String>,
    pub cost_micro_usd: Option<u64>,
    /// Earlier times that passed without a run, and that this one stands for.
    pub missed: u32,
    pub deliveries: Vec<Delivery>,
}

impl Run {
    pub fn lease(&self) -> RunLease {
        RunLease {
            run: self.id,
            token: self.token,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunTrigger {
    Schedule,
    Person,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    /// It failed, and is tried again when its lease is over.
    Waiting,
    Succeeded,
    Failed,
    /// There was nothing to do, or nobody was there in time.
    Skipped,
    /// Hermes stopped in the middle of what must not be done twice.
    Unknown,
}

impl RunStatus {
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
        }
    }

    pub fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }
}

/// How far a run has come: what a crash then means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// Nothing has happened: it can begin again.
    Claimed,
    /// The script runs, and may have done anything.
    Scripting,
    /// The agent is asked, in a session that recovers by itself.
    Asking,
}

impl RunPhase {
    pub const ALL: [Self; 3] = [Self::Claimed, Self::Scripting, Self::Asking];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Scripting => "scripting",
            Self::Asking => "asking",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum RunStep {
    Scripting,
    /// The script is over: this is what the agent will be asked.
    Asking {
        prompt: String,
    },
    /// It is about to be asked in this session.
    In {
        session: SessionId,
    },
}

/// What is to be claimed, and what becomes of the job then.
#[derive(Debug, Clone, PartialEq)]
pub struct RunClaim {
    pub job: JobId,
    /// As it was read: a job that has changed is not run by what it was.
    pub revision: u64,
    pub trigger: RunTrigger,
    pub scheduled: Timestamp,
    /// The time after that, by the schedule; the job is over when there is none. A person's wish does not touch it.
    pub next: Option<NextRun>,
    pub missed: u32,
    /// It does not run: the run is written down with this reason, and over.
    pub skips: Option<String>,
    pub holder: String,
    pub now: Timestamp,
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClaimOutcome {
    Claimed(Box<Run>),
    /// It was run before; the job goes on to its next time.
    RunBefore,
    /// The job is not as it was read, or a run of it is under way.
    Changed,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    pub status: RunStatus,
    pub at: Timestamp,
    pub output: Option<String>,
    pub error: Option<String>,
    pub hint: Option<String>,
    pub cost_micro_usd: Option<u64>,
    pub deliveries: Vec<Delivery>,
    /// Somebody is told of the failure by those deliveries.
    pub tells_failure: bool,
}

/// Where a result goes, and how far it has come. Apart from how the run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub target: String,
    pub text: String,
    pub status: DeliveryStatus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryStatus {
    Pending,
    /// Somebody has it who sends it: not known to have arrived.
    Handed {
        id: String,
    },
    /// It has arrived, by this proof: a message id, the path of a file.
    Delivered {
        id: String,
    },
    /// Nobody knows whether it has arrived.
    Unknown {
        why: String,
    },
    Failed {
        error: String,
    },
}

impl DeliveryStatus {
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Pending | Self::Handed { .. })
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Handed { .. } => "handed",
            Self::Delivered { .. } => "delivered",
            Self::Unknown { .. } => "unknown",
            Self::Failed { .. } => "failed",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub job: Option<JobId>,
    /// 0 means all.
    pub limit: usize,
}

/// Jobs, as people and models make and change them. What is wrong with a wish is said so that it can be mended.
pub trait JobDesk: Send + Sync {
    fn add(&self, draft: JobDraft) -> BoxFuture<'_, Result<JobReading, JobError>>;

    /// Changes what the draft says, and nothing else.
    fn edit<'a>(
        &'a self,
        name: &'a str,
        draft: JobDraft,
    ) -> BoxFuture<'a, Result<JobReading, JobError>>;

    fn pause<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>>;

    /// It goes on with the next time from now.
    fn resume<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>>;

    /// Runs it as soon as may be, whatever its schedule says.
    fn run<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>>;

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Removed, JobError>>;

    /// Finds a job by its id, a beginning of it, or its name.
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>>;

    fn list(&self) -> BoxFuture<'_, Result<Vec<JobReading>, JobError>>;

    /// Runs, the newest first; of one job when one is named.
    fn history<'a>(
        &'a self,
        name: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Run>, JobError>>;

    /// What a schedule means, without making a job of it: the reading and the next times.
    fn read<'a>(&'a self, schedule: &'a str) -> Result<(String, Vec<String>), JobError>;
}

/// A job as it was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReading {
    pub job: Job,
    /// Its schedule in plain words; why it cannot be read any more, otherwise.
    pub reading: Result<String, String>,
    /// The next times, as clocks show them there.
    pub upcoming: Vec<String>,
    /// What whoever made it should know.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub id: JobId,
    pub name: String,
}

/// What somebody wants of a job. What is not said stays as it is, or as it usually is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobDraft {
    pub name: Option<String>,
    pub prompt: Option<String>,
    pub schedule: Option<String>,
    pub skills: Option<Vec<String>>,
    /// An empty one: the model of the settings.
    pub model: Option<String>,
    pub provider: Option<String>,
    pub toolsets: Option<Vec<String>>,
    /// An empty one: none.
    pub workdir: Option<PathBuf>,
    /// An empty one: none.
    pub script: Option<String>,
    pub no_agent: Option<bool>,
    pub context_from: Option<Vec<String>>,
    /// Targets, parted by commas.
    pub deliver: Option<String>,
    pub origin: Option<String>,
    pub created_in: Option<SessionId>,
    /// 0 or less: for ever.
    pub repeat: Option<i64>,
    pub misfire: Option<Misfire>,
    pub jitter_s: Option<u32>,
    pub retries: Option<u32>,
    /// 0: no limit of its own.
    pub time_max_s: Option<u32>,
    /// 0: no limit of its own.
    pub cost_max_micro_usd: Option<u64>,
    pub silent: Option<bool>,
}

/// Why nothing was done to a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// Whoever asked can mend it.
    #[error("{message}")]
    Asked { message: String, hint: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl JobError {
    pub fn asked(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Asked {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub fn hint(&self) -> String {
        match self {
            Self::Asked { hint, .. } => hint.clone(),
            Self::Store(error) => error.hint(),
        }
    }
}
