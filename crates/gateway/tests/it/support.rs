//! A home with a real store, real conversations whose model is a script, and a clock that the test moves.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_config::Environment;
use hermes_core::{
    BoxFuture, CancellationToken, Clock as _, ConsentOption, Job, JobId, JobSpec, JobState, Random,
    Run, RunFilter, SessionOptions, Timestamp,
};
use hermes_gateway::deliver::{Arrival, Deliver, DeliverError, DeliveryId};
use hermes_gateway::schedules::{Scheduler, SchedulerParts, SchedulerSettings};
use hermes_os::calendar::Zone;
use hermes_os::schedule::Schedule;
use hermes_runtime::Runtime;
use hermes_runtime::base::Base;
use hermes_testkit::TestClock;
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use tempfile::TempDir;

/// A home, and the model that answers there.
pub(crate) struct House {
    pub(crate) folder: TempDir,
    pub(crate) server: ScriptedServer,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) chat: Arc<Chat>,
}

impl House {
    pub(crate) async fn with(script: Script) -> Self {
        let server = ScriptedServer::start(script).await;
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        fs::create_dir_all(home.join("scripts")).unwrap();
        fs::create_dir_all(home.join("locks")).unwrap();
        let settings = format!(
            "model: {{provider: custom, base_url: \"{}\", default: usual, api_mode: chat_completions}}\n\
             auxiliary: {{title_generation: {{enabled: false}}}}\n",
            server.url()
        );
        fs::write(home.join("config.yaml"), settings).unwrap();
        Self {
            folder,
            server,
            clock: Arc::default(),
            chat: Arc::default(),
        }
    }

    pub(crate) async fn saying(text: &str) -> Self {
        Self::with(Script::always(Answer::text(text))).await
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn script(&self, name: &str, text: &str) {
        fs::write(self.home().join("scripts").join(name), text).unwrap();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Another process in this home.
    pub(crate) async fn process(&self) -> Process {
        let options = SessionOptions {
            cwd: Some(self.folder.path().to_owned()),
            ..SessionOptions::default()
        };
        let variables = [
            ("HERMES_HOME", self.home().into_os_string()),
            ("HOME", self.folder.path().as_os_str().to_owned()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ];
        let environment = Environment::from_pairs(variables);
        let base = Base::in_environment(environment, None, &options).unwrap();
        let runtime = Runtime::start(Arc::new(base)).unwrap();
        let terminal = Arc::clone(runtime.set_up(&options).await.unwrap().terminal());
        let parts = SchedulerParts {
            schedules: runtime.store().clone(),
            sessions: runtime.clone(),
            deliver: self.chat.clone(),
            terminal,
            clock: self.clock.clone(),
            random: Arc::new(Random::seeded(5)),
            settings: SchedulerSettings {
                zone: Zone::utc(),
                parallel_max: 4,
                output_folder: self.home().join("cron/output"),
                output_kept_max: 3,
                scripts_folder: self.home().join("scripts"),
                cwd: self.folder.path().to_owned(),
                lock_file: self.home().join("locks/cron.lock"),
                wraps_response: false,
                consent: ConsentOption::Ask,
                script_time_max: Duration::from_secs(20),
                idle_max: Duration::from_secs(20),
                time_max: Duration::from_secs(60),
                cost_max_micro_usd: None,
            },
        };
        Process { runtime, parts }
    }
}

pub(crate) struct Process {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) parts: SchedulerParts,
}

impl Process {
    pub(crate) fn scheduler(&self) -> Scheduler {
        Scheduler::new(self.parts.clone())
    }

    pub(crate) async fn tick(&self) -> usize {
        let stop = CancellationToken::new();
        self.scheduler().tick(&stop).await.unwrap()
    }

    pub(crate) async fn runs(&self) -> Vec<Run> {
        let schedules = &self.parts.schedules;
        schedules.runs(RunFilter::default()).await.unwrap()
    }

    pub(crate) async fn job(&self, id: &str) -> Job {
        let schedules = &self.parts.schedules;
        schedules.job(&id.into()).await.unwrap().unwrap()
    }

    /// Adds a job whose words were said now.
    pub(crate) async fn add(&self, id: &str, schedule: &str, spec: JobSpec) {
        let now = self.parts.clock.now();
        let spec = JobSpec {
            name: match spec.name.as_str() {
                "" => id.to_owned(),
                name => name.to_owned(),
            },
            schedule: schedule.to_owned(),
            said_ms: now.as_millis(),
            ..spec
        };
        let read = Schedule::read_at(schedule, now.as_millis(), &self.parts.settings.zone).unwrap();
        let next = read.next_after(now.as_millis()).unwrap();
        let id = JobId::from(id);
        let next =
            hermes_core::schedule::jittered(&id, Timestamp::from_millis(next), spec.jitter_s);
        let job = Job {
            id,
            revision: 1,
            created: now,
            spec,
            state: JobState::Active,
            next: Some(next),
            wanted: None,
            runs: 0,
            failures: 0,
            told: None,
        };
        self.parts.schedules.add_job(job).await.unwrap();
    }
}

pub(crate) fn asking(prompt: &str) -> JobSpec {
    JobSpec {
        prompt: prompt.to_owned(),
        ..JobSpec::default()
    }
}

/// A chat that takes each key once, as an outbox does.
#[derive(Default)]
pub(crate) struct Chat {
    taken: Mutex<Vec<(String, String, String)>>,
    /// What it answers next in place of taking anything.
    pub(crate) refuses: Mutex<Option<DeliverError>>,
    /// A target that takes messages, which never arrive.
    pub(crate) gone: Mutex<Option<String>>,
    /// What it takes does not arrive yet.
    pub(crate) is_slow: Mutex<bool>,
}

impl Chat {
    /// Targets and texts, in the order they came.
    pub(crate) fn got(&self) -> Vec<(String, String)> {
        let taken = self.taken.lock().unwrap();
        let got = taken.iter();
        got.map(|(_, target, text)| (target.clone(), text.clone()))
            .collect()
    }
}

impl Deliver for Chat {
    fn deliver<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(async move {
            if let Some(error) = self.refuses.lock().unwrap().clone() {
                return Err(error);
            }
            let mut taken = self.taken.lock().unwrap();
            if !taken.iter().any(|(known, _, _)| known == key) {
                taken.push((key.to_owned(), target.to_owned(), text));
            }
            Ok(DeliveryId(key.to_owned()))
        })
    }

    fn deliver_verbatim<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        self.deliver(key, target, text)
    }

    fn status<'a>(&'a self, id: &'a DeliveryId) -> BoxFuture<'a, Result<Arrival, DeliverError>> {
        let gone = self.gone.lock().unwrap();
        let error = "the bot was blocked".to_owned();
        let is_slow = *self.is_slow.lock().unwrap();
        let arrival = match &*gone {
            _ if is_slow => Arrival::OnItsWay,
            Some(gone) if id.0.ends_with(gone) => Arrival::Failed { error },
            _ => Arrival::Arrived {
                message: format!("message of {}", id.0),
            },
        };
        Box::pin(async move { Ok(arrival) })
    }
}
