//! Jobs of schedules, as people and models make and change them: the port [`JobDesk`]. Words for lists are in `shown`, jobs
//! of the Python program in `import`.
//!
//! What runs them is the gateway's; here is only what they are, and whether somebody runs them now.

mod check;
mod import;
pub mod settings;
pub mod shown;

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::schedule::jittered;
use hermes_core::text::nearest;
use hermes_core::{
    BoxFuture, Chats, Clock, Job, JobDesk, JobDraft, JobError, JobId, JobReading, JobState,
    NextRun, Random, Removed, Run, RunFilter, Schedules, SessionOptions, Timestamp,
};
use hermes_os::calendar::Zone;
use hermes_os::lock::{Sharing, try_lock};
use hermes_os::schedule::Schedule;
use tokio::sync::Notify;

use crate::base::Base;
use crate::error::Error;
use crate::tools::toolsets::Toolsets;
use crate::zones::{zone_or_system, zone_problem};
pub use import::Imported;

/// The next times that are shown of a job.
const UPCOMING: usize = 5;

/// More jobs than a person keeps track of; a model that makes them in a circle is stopped.
const JOBS_MAX: usize = 500;

/// A schedule has no more words than this.
const SCHEDULE_WORDS_MAX: usize = 16;

/// How often a change is tried again that met another one.
const CHANGE_TRIES: u32 = 5;

/// The file that is locked while schedules run in this home.
pub fn lock_file(base: &Base) -> PathBuf {
    base.home.locks().join("cron.lock")
}

/// Whether some process runs the jobs of this home.
pub fn are_run(base: &Base) -> bool {
    let file = lock_file(base);
    file.exists() && matches!(try_lock(&file, Sharing::Alone), Ok(None))
}

/// Where jobs are made and changed.
pub struct Desk {
    schedules: Arc<dyn Schedules>,
    chats: Arc<dyn Chats>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    zone: Zone,
    base: Arc<Base>,
    /// Told when a job was made or changed.
    changed: Option<Arc<Notify>>,
    platforms: Option<TellPlatforms>,
}

/// A chat platform that results can go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformStanding {
    pub name: String,
    pub is_set_up: bool,
}

/// The chat platforms that this version knows, as they are set up now.
pub type TellPlatforms = Arc<dyn Fn() -> Vec<PlatformStanding> + Send + Sync>;

impl Desk {
    pub fn new(
        base: Arc<Base>,
        store: Arc<impl Schedules + Chats + 'static>,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
    ) -> Self {
        Self {
            schedules: Arc::clone(&store) as _,
            chats: store,
            clock,
            random,
            zone: zone_or_system(&base),
            base,
            changed: None,
            platforms: None,
        }
    }

    /// Tells somebody in this process whenever a job was made or changed.
    pub fn telling(self, changed: Arc<Notify>) -> Self {
        Self {
            changed: Some(changed),
            ..self
        }
    }

    /// Checks the names of platforms that results are to go to.
    pub fn knowing(self, platforms: TellPlatforms) -> Self {
        Self {
            platforms: Some(platforms),
            ..self
        }
    }

    fn tell(&self) {
        if let Some(changed) = &self.changed {
            changed.notify_one();
        }
    }

    /// Takes over the jobs of the Python program, each once. Its file is only read.
    pub async fn import(&self) -> Result<Imported, JobError> {
        import::import(self).await
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn scripts_folder(&self) -> PathBuf {
        self.base.home.directory().join("scripts")
    }

    fn schedule(&self, text: &str, said_ms: i64) -> Result<Schedule, JobError> {
        Schedule::read_at(text, said_ms, &self.zone).map_err(|error| {
            JobError::asked(
                format!("the schedule is not understood: {error}"),
                "`hermes cron next \"WORDS\"` shows what words mean",
            )
        })
    }

    fn next(&self, job: &Job) -> Result<Option<NextRun>, JobError> {
        let schedule = self.schedule(&job.spec.schedule, job.spec.said_ms)?;
        let at = schedule.next_after(self.now().as_millis());
        Ok(at.map(|at| jittered(&job.id, Timestamp::from_millis(at), job.spec.jitter_s)))
    }

    fn reading(&self, job: Job) -> JobReading {
        let schedule = self.schedule(&job.spec.schedule, job.spec.said_ms);
        let upcoming = match (&schedule, job.state) {
            (Ok(schedule), JobState::Active) => {
                schedule.upcoming_texts(self.now().as_millis(), UPCOMING)
            }
            _ => Vec::new(),
        };
        let mut notes = match &self.platforms {
            Some(platforms) => check::notes_on_targets(&job.spec, &platforms()),
            None => Vec::new(),
        };
        if is_bare_duration(&job.spec.schedule) && schedule.as_ref().is_ok_and(Schedule::is_once) {
            let text = job.spec.schedule.trim();
            notes.push(format!("it runs once; `every {text}` runs again and again"));
        }
        notes.extend(zone_problem(&self.base.settings));
        JobReading {
            reading: schedule
                .map(|schedule| schedule.words().to_owned())
                .map_err(|error| error.to_string()),
            upcoming,
            notes,
            job,
        }
    }

    /// The same for one job that is looked at closely.
    fn noted(&self, job: Job) -> JobReading {
        let mut reading = self.reading(job);
        let unpriced = check::note_on_cost(&reading.job.spec, &self.base);
        reading.notes.extend(unpriced);
        reading
    }

    async fn found(&self, name: &str) -> Result<Job, JobError> {
        let jobs = self.schedules.jobs().await?;
        let name = name.trim();
        if let Some(job) = jobs.iter().find(|job| job.id.as_str() == name) {
            return Ok(job.clone());
        }
        let is_meant = |job: &&Job| {
            job.spec.name.eq_ignore_ascii_case(name)
                || (name.len() >= 3 && job.id.as_str().starts_with(name))
        };
        let meant: Vec<&Job> = jobs.iter().filter(is_meant).collect();
        match meant.as_slice() {
            [job] => Ok((*job).clone()),
            [] => {
                let near = nearest(name, jobs.iter().map(|job| job.spec.name.as_str()));
                let hint = match near.first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`hermes cron list --all` shows the jobs there are".to_owned(),
                };
                Err(JobError::asked(format!("there is no job `{name}`"), hint))
            }
            several => {
                let ids: Vec<&str> = several.iter().map(|job| job.id.as_str()).collect();
                let message = format!("`{name}` fits several jobs: {}", ids.join(", "));
                Err(JobError::asked(message, "name it by its id"))
            }
        }
    }

    /// Changes a job as it is now, also when somebody else changes it meanwhile.
    async fn change(
        &self,
        name: &str,
        change: impl Fn(Job) -> Result<Job, JobError> + Send,
    ) -> Result<JobReading, JobError> {
        for _ in 0..CHANGE_TRIES {
            let job = change(self.found(name).await?)?;
            let id = job.id.clone();
            if self.schedules.change_job(job).await? {
                self.tell();
                let job = self.schedules.job(&id).await?;
                let gone = || JobError::asked("the job was removed meanwhile", "make it anew");
                return Ok(self.noted(job.ok_or_else(gone)?));
            }
        }
        Err(JobError::asked(
            format!("the job `{name}` is being changed by others"),
            "try again",
        ))
    }

    async fn ids(&self, names: &[String]) -> Result<Vec<JobId>, JobError> {
        let mut ids = Vec::new();
        for name in names {
            ids.push(self.found(name).await?.id);
        }
        Ok(ids)
    }

    /// Names of toolsets and MCP servers that this version knows.
    fn check_toolsets(&self, toolsets: &[String]) -> Result<(), JobError> {
        let options = SessionOptions {
            toolsets: toolsets.to_vec(),
            ..SessionOptions::default()
        };
        let chosen = Toolsets::chosen(&self.base, &options);
        chosen.map(drop).map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            JobError::asked(error.to_string(), hint)
        })
    }

    async fn add_draft(&self, mut draft: JobDraft) -> Result<JobReading, JobError> {
        if draft.origin.is_none()
            && let Some(session) = &draft.created_in
        {
            // A job that was made in a chat tells its results there.
            let chat = self.chats.chat_of(session).await?;
            draft.origin = chat.map(|chat| chat.address.to_string());
        }
        let schedule = draft.schedule.clone().unwrap_or_default();
        self.schedule(&schedule, self.now().as_millis())?;
        if self.schedules.jobs().await?.len() >= JOBS_MAX {
            return Err(JobError::asked(
                format!("there are {JOBS_MAX} jobs already"),
                "`hermes cron remove JOB` makes room",
            ));
        }
        let now = self.now();
        let blank = Job {
            id: JobId::generate(&self.random),
            revision: 1,
            created: now,
            spec: Default::default(),
            state: JobState::Active,
            next: None,
            wanted: None,
            runs: 0,
            failures: 0,
            told: None,
        };
        let context = self
            .ids(draft.context_from.as_deref().unwrap_or_default())
            .await?;
        let mut job = self.drafted(blank, &draft, context)?;
        job.next = self.next(&job)?;
        if job.next.is_none() {
            return Err(over());
        }
        self.schedules.add_job(job.clone()).await?;
        self.tell();
        Ok(self.noted(job))
    }

    /// A job with what a draft says.
    fn drafted(&self, job: Job, draft: &JobDraft, context: Vec<JobId>) -> Result<Job, JobError> {
        let mut job = check::applied(job, draft, context, self.now())?;
        if draft.toolsets.is_some() {
            self.check_toolsets(&job.spec.toolsets)?;
        }
        if let (Some(platforms), true) = (&self.platforms, draft.deliver.is_some()) {
            check::check_targets(&job.spec.deliver, &platforms())?;
        }
        check::check(&mut job.spec, &self.scripts_folder())?;
        Ok(job)
    }

    fn edited(&self, job: Job, draft: &JobDraft, context: &[JobId]) -> Result<Job, JobError> {
        let mut job = self.drafted(job, draft, context.to_vec())?;
        if draft.schedule.is_some() || draft.repeat.is_some() {
            job.runs = 0;
            // One that only waited for another time goes on with it.
            let waits = job.spec.paused_because.take().is_some();
            if job.state == JobState::Completed || waits {
                job.state = JobState::Active;
            }
        }
        let is_moved = draft.schedule.is_some() || draft.jitter_s.is_some() || job.next.is_none();
        if job.state == JobState::Active && is_moved {
            job.next = self.next(&job)?;
            if job.next.is_none() {
                return Err(over());
            }
        }
        if job.spec.context_from.contains(&job.id) {
            return Err(JobError::asked(
                "a job cannot be told its own results",
                "name another job",
            ));
        }
        Ok(job)
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Asked { message, hint } => Self::asked(message).with_hint(hint),
            JobError::Store(error) => error.into(),
        }
    }
}

/// Parts a line into a schedule and what is to be done then: the schedule in quotation marks, or as many words as can be read
/// as one.
pub fn parted<'a>(desk: &Desk, line: &'a str) -> Option<(&'a str, &'a str)> {
    let line = line.trim();
    for quote in ['"', '\'', '“'] {
        let close = if quote == '“' { '”' } else { quote };
        if let Some((schedule, prompt)) = line
            .strip_prefix(quote)
            .and_then(|rest| rest.split_once(close))
        {
            return Some((schedule.trim(), prompt.trim()));
        }
    }
    let ends = line.char_indices().filter(|(_, c)| c.is_whitespace());
    let ends: Vec<usize> = ends.map(|(at, _)| at).take(SCHEDULE_WORDS_MAX).collect();
    let longest = ends.into_iter().rev().map(|at| line.split_at(at));
    longest
        .map(|(schedule, prompt)| (schedule, prompt.trim()))
        .find(|(schedule, _)| desk.read(schedule).is_ok())
}

/// `30m`, `2h`: once from now, which many read as "every".
fn is_bare_duration(schedule: &str) -> bool {
    let schedule = schedule.trim();
    schedule.starts_with(|first: char| first.is_ascii_digit())
        && schedule.chars().all(char::is_alphanumeric)
        && !schedule.contains('T')
}

fn over() -> JobError {
    JobError::asked(
        "its time is over",
        "give it another: `hermes cron edit JOB --schedule \"tomorrow at 9\"`",
    )
}

impl JobDesk for Desk {
    fn add(&self, draft: JobDraft) -> BoxFuture<'_, Result<JobReading, JobError>> {
        Box::pin(self.add_draft(draft))
    }

    fn edit<'a>(
        &'a self,
        name: &'a str,
        draft: JobDraft,
    ) -> BoxFuture<'a, Result<JobReading, JobError>> {
        Box::pin(async move {
            let context = self
                .ids(draft.context_from.as_deref().unwrap_or_default())
                .await?;
            self.change(name, |job| self.edited(job, &draft, &context))
                .await
        })
    }

    fn pause<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>> {
        Box::pin(self.change(name, |job| {
            Ok(Job {
                state: JobState::Paused,
                next: None,
                wanted: None,
                ..job
            })
        }))
    }

    fn resume<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>> {
        Box::pin(self.change(name, |mut job| {
            let next = self.next(&job)?.ok_or_else(over)?;
            // It may have been paused because something was missing.
            check::check(&mut job.spec, &self.scripts_folder())?;
            job.spec.paused_because = None;
            Ok(Job {
                state: JobState::Active,
                next: Some(next),
                ..job
            })
        }))
    }

    fn run<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>> {
        Box::pin(self.change(name, |job| {
            Ok(Job {
                wanted: Some(self.now()),
                ..job
            })
        }))
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Removed, JobError>> {
        Box::pin(async move {
            let job = self.found(name).await?;
            self.schedules.remove_job(&job.id).await?;
            Ok(Removed {
                id: job.id,
                name: job.spec.name,
            })
        })
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<JobReading, JobError>> {
        Box::pin(async move { Ok(self.noted(self.found(name).await?)) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<JobReading>, JobError>> {
        Box::pin(async move {
            let jobs = self.schedules.jobs().await?;
            Ok(jobs.into_iter().map(|job| self.reading(job)).collect())
        })
    }

    fn history<'a>(
        &'a self,
        name: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Run>, JobError>> {
        Box::pin(async move {
            let job = match name {
                None => None,
                // Runs outlive their job.
                Some(name) => match self.found(name).await {
                    Ok(job) => Some(job.id),
                    Err(error) => {
                        let filter = RunFilter {
                            job: Some(name.into()),
                            limit: 1,
                        };
                        if self.schedules.runs(filter).await?.is_empty() {
                            return Err(error);
                        }
                        Some(name.into())
                    }
                },
            };
            Ok(self.schedules.runs(RunFilter { job, limit }).await?)
        })
    }

    fn read<'a>(&'a self, schedule: &'a str) -> Result<(String, Vec<String>), JobError> {
        let now_ms = self.now().as_millis();
        let schedule = self.schedule(schedule, now_ms)?;
        let upcoming = schedule.upcoming_texts(now_ms, UPCOMING);
        Ok((schedule.words().to_owned(), upcoming))
    }
}
