//! One run, from its claim to its end. Each step is in the store before it happens, so that a crash is met at a known place:
//! before the script, nothing has happened and it begins again; inside the script, anything may have, and the run is closed
//! with a word; in the conversation, that recovers by itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::backoff::Backoff;
use hermes_core::schedule::CRON_SOURCE;
use hermes_core::{
    Audience, CancellationToken, Job, JobId, Run, RunEnd, RunFilter, RunPhase, RunStatus, RunStep,
    SessionOptions, StoreError,
};

use super::ask::{Asking, RunLimits};
use super::outcome::{self, Outcome, Problem};
use super::prompt::{self, Found};
use super::script::{Printed, Scripts};
use super::{LEASE, Scheduler};

/// Tries after which a run that takes the process down is closed.
const CRASHES_MAX: u32 = 3;

/// How long it is waited before a run that failed is tried again.
const RETRY: Backoff = Backoff {
    base: Duration::from_secs(30),
    cap: Duration::from_secs(30 * 60),
};

/// Runs that are looked through for the last result of another job.
const LOOKED_THROUGH: usize = 20;

/// Why there is no outcome.
enum Left {
    /// Somebody else has the run.
    Lost,
    Store(StoreError),
}

impl From<StoreError> for Left {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Scheduler {
    /// Carries a run out, and writes down what it came to. Nothing is written of a run that somebody else has by then.
    pub(super) async fn work(&self, run: Run, stop: &CancellationToken) -> Result<(), StoreError> {
        let Some(job) = self.parts.schedules.job(&run.job).await? else {
            return self.close_orphan(&run).await;
        };
        // Whoever loses the run stops what it does.
        let stop = stop.child_token();
        let outcome = tokio::select! {
            outcome = self.carry_out(&job, &run, &stop) => outcome,
            () = self.hold(&run) => {
                stop.cancel();
                return Ok(());
            }
        };
        match outcome {
            Ok(outcome) => self.conclude(outcome, &job, &run).await,
            Err(Left::Lost) => Ok(()),
            Err(Left::Store(error)) => Err(error),
        }
    }

    /// Renews the lease until it is lost.
    async fn hold(&self, run: &Run) {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            let until = self.now().plus(LEASE);
            match self.parts.schedules.renew_run(run.lease(), until).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(job = %run.job, "a run is not held for longer: {error}");
                }
            }
        }
    }

    async fn carry_out(
        &self,
        job: &Job,
        run: &Run,
        stop: &CancellationToken,
    ) -> Result<Outcome, Left> {
        let crashes = run.attempt.saturating_sub(job.spec.retries + 1);
        if crashes >= CRASHES_MAX {
            return Ok(Outcome::Unknown(Problem::new(
                format!("the run ended Hermes {crashes} times"),
                "see `hermes logs`; `hermes cron pause JOB` keeps it from the next time",
            )));
        }
        match (run.phase, &run.prompt) {
            (RunPhase::Claimed, _) => self.begin(job, run, stop).await,
            (RunPhase::Asking, Some(prompt)) => self.ask(job, run, prompt, stop).await,
            (RunPhase::Scripting | RunPhase::Asking, _) => Ok(Outcome::Unknown(Problem::new(
                "Hermes stopped while the script ran, which may have done its work or not; it was not run again",
                "see whether it has; `hermes cron run JOB` runs it now",
            ))),
        }
    }

    async fn begin(&self, job: &Job, run: &Run, stop: &CancellationToken) -> Result<Outcome, Left> {
        let mut found = Vec::new();
        if let Some(script) = &job.spec.script {
            self.note(run, RunStep::Scripting).await?;
            let printed = self.scripts().run(script, run, &self.cwd(job), stop).await;
            match after_script(job, script, printed) {
                Next::Ask(text) => found.extend(text),
                Next::End(outcome) => return Ok(outcome),
            }
        }
        found.extend(self.results_of(&job.spec.context_from).await?);
        let prompt = prompt::assembled(job, run, &found);
        let step = RunStep::Asking {
            prompt: prompt.clone(),
        };
        self.note(run, step).await?;
        self.ask(job, run, &prompt, stop).await
    }

    async fn ask(
        &self,
        job: &Job,
        run: &Run,
        prompt: &str,
        stop: &CancellationToken,
    ) -> Result<Outcome, Left> {
        let asking = self.asking(job, stop);
        if let Some(session) = &run.session {
            match asking.take_up(session).await {
                Ok(Some(opened)) => return Ok(asking.go_on(opened).await),
                // It crashed before anything was said.
                Ok(None) => {}
                Err(problem) => return Ok(not_begun(problem)),
            }
        }
        let opened = match asking.open().await {
            Ok(opened) => opened,
            Err(problem) => return Ok(not_begun(problem)),
        };
        let session = opened.handle.id().clone();
        self.note(run, RunStep::In { session }).await?;
        Ok(asking.ask(opened, prompt).await)
    }

    fn asking<'a>(&'a self, job: &'a Job, stop: &'a CancellationToken) -> Asking<'a> {
        let (spec, settings) = (&job.spec, &self.parts.settings);
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Asking {
            sessions: &self.parts.sessions,
            options: SessionOptions {
                cwd: Some(self.cwd(job)),
                model: spec.model.clone(),
                provider: spec.provider.clone(),
                toolsets: spec.toolsets.clone(),
                skills: spec.skills.clone(),
                consent: settings.consent,
                audience: Audience::Nobody,
                source: CRON_SOURCE.to_owned(),
                surface: Some(CRON_SOURCE.to_owned()),
                ..SessionOptions::default()
            },
            limits: RunLimits {
                idle_max: settings.idle_max,
                time_max: spec.time_max_s.map_or(settings.time_max, seconds),
                cost_max_micro_usd: spec.cost_max_micro_usd.or(settings.cost_max_micro_usd),
            },
            job: job.id.as_str(),
            stop,
        }
    }

    /// Writes down how far a run has come, unless somebody else has it.
    async fn note(&self, run: &Run, step: RunStep) -> Result<(), Left> {
        match self.parts.schedules.note_run(run.lease(), step).await? {
            true => Ok(()),
            false => Err(Left::Lost),
        }
    }

    async fn results_of(&self, jobs: &[JobId]) -> Result<Vec<Found>, StoreError> {
        let mut found = Vec::new();
        for job in jobs {
            let filter = RunFilter {
                job: Some(job.clone()),
                limit: LOOKED_THROUGH,
            };
            let runs = self.parts.schedules.runs(filter).await?;
            let result = runs.into_iter().find_map(|run| {
                let output = run
                    .output
                    .filter(|output| !crate::silence::is_silence(output));
                let text = output.filter(|_| run.status == RunStatus::Succeeded)?;
                let by = format!("the job “{}” at {}", run.name, run.scheduled.to_text());
                Some(Found { by, text })
            });
            found.extend(result);
        }
        Ok(found)
    }

    /// Writes down how a run ended, or that it is tried again.
    async fn conclude(&self, outcome: Outcome, job: &Job, run: &Run) -> Result<(), StoreError> {
        let (schedules, now) = (&self.parts.schedules, self.now());
        if let Outcome::Failed {
            problem,
            may_retry: true,
            ..
        } = &outcome
            && run.attempt <= job.spec.retries
        {
            let wait = RETRY.wait(run.attempt - 1, &self.parts.random);
            let until = now.plus(wait);
            schedules
                .put_off_run(run.lease(), until, &problem.error)
                .await?;
            return Ok(());
        }
        // The job as it is now: it may have been told of the same failure meanwhile.
        let job = schedules.job(&job.id).await?.unwrap_or_else(|| job.clone());
        let wraps = self.parts.settings.wraps_response;
        let Some(end) = outcome::end(outcome, &job, run, now, wraps) else {
            // For the next process, at once.
            schedules.renew_run(run.lease(), now).await?;
            return Ok(());
        };
        self.keep_copy(run, &end).await;
        if schedules.finish_run(run.lease(), end).await? {
            self.wake();
        }
        Ok(())
    }

    /// Whatever becomes of a message, its text is in a file.
    async fn keep_copy(&self, run: &Run, end: &RunEnd) {
        let Some(delivery) = end.deliveries.first() else {
            return;
        };
        if let Err(error) = self.keep_output(run, &delivery.text).await {
            tracing::warn!(job = %run.job, "the result of a run was not kept in a file: {error}");
        }
    }

    /// A run whose job was removed meanwhile.
    async fn close_orphan(&self, run: &Run) -> Result<(), StoreError> {
        let end = RunEnd {
            status: RunStatus::Skipped,
            at: self.now(),
            output: None,
            error: Some("the job was removed".to_owned()),
            hint: None,
            cost_micro_usd: None,
            deliveries: Vec::new(),
            tells_failure: false,
        };
        self.parts.schedules.finish_run(run.lease(), end).await?;
        Ok(())
    }

    fn scripts(&self) -> Scripts {
        Scripts {
            terminal: Arc::clone(&self.parts.terminal),
            folder: self.parts.settings.scripts_folder.clone(),
            time_max: self.parts.settings.script_time_max,
        }
    }

    fn cwd(&self, job: &Job) -> PathBuf {
        let own = job.spec.workdir.clone();
        own.unwrap_or_else(|| self.parts.settings.cwd.clone())
    }
}

fn not_begun(problem: Problem) -> Outcome {
    Outcome::Failed {
        problem,
        cost_micro_usd: None,
        may_retry: true,
    }
}

/// What follows a script.
enum Next {
    Ask(Option<Found>),
    End(Outcome),
}

fn after_script(job: &Job, script: &str, printed: Printed) -> Next {
    let found = |text: String| {
        let by = format!("the script `{script}`");
        Next::Ask(Some(Found { by, text }))
    };
    let nothing = |why: &str| {
        Next::End(Outcome::Nothing {
            why: why.to_owned(),
        })
    };
    match printed {
        Printed::Stopped => Next::End(Outcome::Unknown(Problem::new(
            "Hermes was stopped while the script ran, which was ended with it",
            "`hermes cron run JOB` runs it now",
        ))),
        Printed::NothingToDo => nothing("the script said that there is nothing to do"),
        Printed::Text(text) if job.spec.no_agent => Next::End(Outcome::Printed(text)),
        Printed::Text(text) if text.trim().is_empty() => nothing("the script printed nothing"),
        Printed::Text(text) => found(text),
        Printed::Failed { error, text } if job.spec.no_agent => {
            let error = match text.as_str() {
                "" => error,
                text => format!("{error}:\n{text}"),
            };
            Next::End(Outcome::Failed {
                problem: Problem::new(error, "run the script by hand to see what is wrong"),
                cost_micro_usd: None,
                may_retry: true,
            })
        }
        // The agent can tell what that means, and perhaps mend it.
        Printed::Failed { error, text } => found(format!("{error}\n{text}")),
    }
}
