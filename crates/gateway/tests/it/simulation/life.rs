//! One world: its processes live and die one after the other, on the same store and the same platforms.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use hermes_core::{
    Address, BoxFuture, Clock, CommandOutput, ConsentOption, Inbox as _, InboxId, Job, JobId,
    JobSpec, JobState, Misfire, NextRun, Random, Run, RunFilter, Schedules as _, SessionOptions,
    Sessions as _, ShellCommand, Terminal, TerminalError, Timestamp,
};
use hermes_gateway::Gateway;
use hermes_gateway::chat::access::{GatewayAccess, PlatformAccess, Strangers};
use hermes_gateway::chat::files::FilePolicy;
use hermes_gateway::chat::key::KeyRules;
use hermes_gateway::chat::manner::Manner;
use hermes_gateway::chat::owner::NamedPeople;
use hermes_gateway::chat::pairing::Pairing;
use hermes_gateway::chat::work::ShowsCalls;
use hermes_gateway::chat::{
    ChatChannel, ChatCommands, ChatGateway, ChatPorts, ChatSettings, CommandAnswer, CommandLine,
    Limits, ResetPolicy, ResetRule, Then, WhenBusy,
};
use hermes_gateway::schedules::{Scheduler, SchedulerParts, SchedulerSettings};
use hermes_os::calendar::Zone;
use hermes_os::schedule::Schedule;
use hermes_store::SqliteStore;
use hermes_testkit::simulation::{
    Fate, GatewayStore, Ledger, People, PlatformKind, SimChannel, SimClock, SimModel, SimPlatform,
    SimStore, Trace, Verdict, Weather,
};
use tempfile::TempDir;
use tokio::time::sleep;

use super::sessions::SimSessions;

const HOUR: Duration = Duration::from_secs(3600);
/// How often the disk fails of one process.
const FAILURES: u32 = 20;
/// After the storm, everything has this long to come to rest.
const REST: Duration = Duration::from_secs(2 * 3600);
/// Tasks of a process that has nothing to do: two for each platform, schedules, the platforms' own, and this one.
const TASKS_AT_REST_MAX: usize = 12;
/// What people wrote so long ago is not acted on.
const STALE_AFTER: Duration = Duration::from_secs(6 * 3600);

pub(super) struct World {
    random: Arc<Random>,
    clock: Arc<SimClock>,
    trace: Arc<Trace>,
    platforms: Vec<Arc<SimPlatform>>,
    people: Arc<People>,
    ledger: Arc<Ledger>,
    store: Arc<SqliteStore>,
    is_full: Arc<AtomicBool>,
    settings: ChatSettings,
    began: Timestamp,
    pub(super) lives: u64,
    /// When processes beside conversations end, if not by chance.
    process_ends_in: Option<Duration>,
    wrong: Vec<String>,
    folder: TempDir,
}

/// How a process ends.
enum End {
    /// At some step of what it does.
    AtStep(u64),
    /// Whatever it does then.
    AtTime(Duration),
    /// It is asked to.
    Drained(Duration),
}

impl World {
    pub(super) fn new(seed: u64, is_traced: bool) -> Self {
        let stream = |number: u64| Arc::new(Random::seeded(seed.wrapping_mul(1_000_003) ^ number));
        let clock = Arc::new(SimClock::default());
        let trace = Arc::new(Trace::new(clock.clone(), is_traced));
        let kinds = [
            ("alpha", PlatformKind::Polling),
            ("beta", PlatformKind::Socket),
            ("gamma", PlatformKind::Webhook),
        ];
        let platforms: Vec<_> = kinds
            .into_iter()
            .zip(1..)
            .map(|((name, kind), number)| {
                let random = stream(number << 32);
                let platform = SimPlatform::new(name, kind, clock.clone(), random, trace.clone());
                Arc::new(platform)
            })
            .collect();
        let people = People::new(platforms.clone(), clock.clone(), stream(7 << 32));
        // Nothing here is about the disk: a file system in memory is as good, and faster.
        let in_memory = Path::new("/dev/shm");
        let folder = match in_memory.is_dir() {
            true => tempfile::tempdir_in(in_memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let store = SqliteStore::open(folder.path().join("hermes.db"), folder.path().join("locks"));
        let random = stream(9 << 32);
        Self {
            settings: settings(&random, folder.path()),
            random,
            began: clock.now(),
            clock,
            trace,
            platforms,
            people: Arc::new(people),
            ledger: Arc::default(),
            store: Arc::new(store.unwrap()),
            is_full: Arc::default(),
            lives: 0,
            process_ends_in: None,
            wrong: Vec::new(),
            folder,
        }
    }

    pub(super) fn written(&self) -> u64 {
        self.people.written()
    }

    /// Lets so many days pass, then everything come to rest, and judges.
    pub(super) fn run(&mut self, days: u64) -> Verdict {
        self.alone(|world| Box::pin(world.add_jobs()));
        let over = self.began.plus(HOUR * 24 * u32::try_from(days).unwrap());
        while self.clock.now() < over {
            self.live();
            self.be_dead();
        }
        self.come_to_rest();
        let (open, runs) = self.alone(|world| Box::pin(world.left()));
        let mut verdict = self
            .ledger
            .judge(&self.platforms, &open, &runs, &self.due());
        verdict.wrong.append(&mut self.wrong);
        verdict
    }

    /// One process in calm weather, in which one thing is said to it, and a process beside that conversation ends after a while.
    /// Returns how often that was told.
    pub(super) fn wait_for_a_process(&mut self, ends_in: Duration) -> u64 {
        for platform in &self.platforms {
            platform.set_weather(Weather::Calm);
        }
        self.process_ends_in = Some(ends_in);
        let fate = Arc::new(Fate::new(None, self.stream()));
        runtime().block_on(async {
            self.clock.begin_life();
            let (gateway, sessions) = self.gateway(&fate);
            let pending = async || std::future::pending().await;
            tokio::select! {
                _ = gateway.run(pending, HOUR) => {}
                () = async {
                    self.people.say_something();
                    sleep(ends_in + REST).await;
                } => {}
            }
            self.clock.end_life();
            sessions.told.load(Ordering::Relaxed)
        })
    }

    /// One process in calm weather whose disk fails again and again while something is said to it, and then no more. Returns
    /// what is still open when everything has come to rest.
    pub(super) fn live_on_a_failing_disk(&mut self) -> Vec<InboxId> {
        for platform in &self.platforms {
            platform.set_weather(Weather::Calm);
        }
        let fate = Arc::new(Fate::new(None, self.stream()));
        runtime().block_on(async {
            self.clock.begin_life();
            let (gateway, _) = self.gateway(&fate);
            let pending = async || std::future::pending().await;
            tokio::select! {
                _ = gateway.run(pending, HOUR) => {}
                () = async {
                    for _ in 0..FAILURES {
                        self.people.say_something();
                        self.fail_for_a_while().await;
                    }
                    sleep(REST).await;
                } => {}
            }
            self.clock.end_life();
        });
        self.alone(|world| Box::pin(world.left())).0
    }

    async fn fail_for_a_while(&self) {
        for is_full in [false, true, false] {
            self.is_full.store(is_full, Ordering::Relaxed);
            sleep(Duration::from_millis(self.below(3_000))).await;
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Does something with the store while no process lives.
    fn alone<T>(&self, work: impl for<'a> FnOnce(&'a Self) -> BoxFuture<'a, T>) -> T {
        runtime().block_on(work(self))
    }

    /// One process, from its start to its end.
    fn live(&mut self) {
        self.lives += 1;
        let end = match self.below(10) {
            0..=4 => End::AtStep(1 + self.below(3_000)),
            5..=6 => End::AtStep(1 + self.below(120)),
            7..=8 => End::AtTime(Duration::from_millis(self.below(4 * 3_600_000))),
            _ => End::Drained(Duration::from_secs(self.below(4 * 3600))),
        };
        let steps = match end {
            End::AtStep(steps) => Some(steps),
            _ => None,
        };
        let fate = Arc::new(Fate::new(steps, self.stream()));
        let runtime = runtime();
        runtime.block_on(async {
            self.clock.begin_life();
            self.trace
                .note(|| format!("=== process {} begins", self.lives));
            let (gateway, _) = self.gateway(&fate);
            let (end_at, drain) = match end {
                End::AtStep(_) => (Duration::from_secs(8 * 3600), false),
                End::AtTime(age) => (age, false),
                End::Drained(age) => (age, true),
            };
            let mut wanted = 0;
            let end_wanted = async || {
                wanted += 1;
                match drain && wanted == 1 {
                    true => sleep(end_at).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = fate.struck() => {}
                _ = gateway.run(end_wanted, Duration::from_secs(30)) => {}
                () = sleep(end_at), if !drain => {}
                () = self.people.live() => {}
                () = self.happen() => {}
            }
            fate.strike();
            self.trace
                .note(|| format!("=== process {} is dead", self.lives));
            self.clock.end_life();
        });
    }

    fn stream(&self) -> Arc<Random> {
        Arc::new(Random::seeded(self.random.next_u64()))
    }

    /// Nobody is there to hear what people say.
    fn be_dead(&self) {
        let gap = match self.below(10) {
            0..=6 => Duration::from_millis(self.below(10_000)),
            7 => Duration::from_secs(self.below(1_200)),
            _ => Duration::from_secs(self.below(14 * 3600)),
        };
        runtime().block_on(async {
            self.clock.begin_life();
            tokio::select! {
                () = self.people.live() => {}
                () = sleep(gap) => {}
            }
            self.clock.end_life();
        });
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// What happens to the machine: it sleeps, its clock is set, its disk is full.
    async fn happen(&self) {
        loop {
            sleep(Duration::from_secs(300 + self.below(5_400))).await;
            match self.below(8) {
                0..=4 => {
                    let slept = 3_600_000 + self.below(14 * 3_600_000);
                    self.clock.jump(i64::try_from(slept).unwrap());
                    self.trace
                        .note(|| format!("the machine slept for {slept} ms"));
                    self.people.oversleep();
                }
                5 => {
                    let set_back = self.below(20_000);
                    self.clock.jump(-i64::try_from(set_back).unwrap());
                    self.trace
                        .note(|| format!("the clock was set back by {set_back} ms"));
                }
                6 => {
                    self.trace.note(|| "the disk is full".into());
                    self.is_full.store(true, Ordering::Relaxed);
                    sleep(Duration::from_secs(self.below(300))).await;
                    self.is_full.store(false, Ordering::Relaxed);
                    self.trace.note(|| "the disk has room again".into());
                }
                _ => {}
            }
        }
    }

    /// The storm is over, and nobody says anything more.
    fn come_to_rest(&mut self) {
        for platform in &self.platforms {
            platform.set_weather(Weather::Calm);
        }
        let fate = Arc::new(Fate::new(None, self.stream()));
        let tasks = runtime().block_on(async {
            self.clock.begin_life();
            self.trace.note(|| "=== the storm is over".into());
            let (gateway, sessions) = self.gateway(&fate);
            let pending = async || std::future::pending().await;
            let tasks = tokio::select! {
                _ = gateway.run(pending, HOUR) => 0,
                () = self.rest() => tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            };
            self.clock.end_life();
            (tasks, sessions.list_open().len())
        });
        if tasks.0 > TASKS_AT_REST_MAX || tasks.1 > 0 {
            let wrong = format!(
                "at rest there are {} tasks and {} sessions",
                tasks.0, tasks.1
            );
            self.wrong.push(wrong);
        }
    }

    /// Waits long enough, and until no job was due for a while.
    async fn rest(&self) {
        sleep(REST).await;
        while self.clock.now().civil().1.minute != 45 {
            sleep(Duration::from_secs(60)).await;
        }
    }

    async fn left(&self) -> (Vec<InboxId>, Vec<Run>) {
        let mut open = Vec::new();
        for lane in self.store.open_lanes().await.unwrap() {
            let entries = self.store.open_entries(&lane, 1_000).await.unwrap();
            open.extend(entries.iter().map(|entry| entry.id));
        }
        let runs = self.store.runs(RunFilter::default()).await.unwrap();
        (open, runs)
    }

    fn gateway(&self, fate: &Arc<Fate>) -> (Gateway, Arc<SimSessions>) {
        let store: Arc<dyn GatewayStore> = self.store.clone();
        let store = Arc::new(SimStore::new(
            store,
            fate.clone(),
            self.ledger.clone(),
            self.trace.clone(),
            self.is_full.clone(),
        ));
        let clock: Arc<dyn Clock> = self.clock.clone();
        let random = self.stream();
        let model = Arc::new(SimModel::new(fate.clone(), self.stream()));
        let folder = self.folder.path().to_owned();
        let mut sessions =
            SimSessions::new(store.clone(), model, clock.clone(), random.clone(), folder);
        sessions.process_ends_in = self.process_ends_in;
        let sessions = Arc::new(sessions);
        let ports = ChatPorts {
            sessions: sessions.clone(),
            archive: store.clone(),
            store: store.clone(),
            inbox: store.clone(),
            outbox: store.clone(),
            leases: store.clone(),
            chats: store.clone(),
            pairings: store.clone(),
            people: store.clone(),
            records: store.clone(),
            pairing: Pairing::new(store.clone(), clock.clone()),
            commands: Arc::new(Commands::default()),
            files: Arc::new(NoFiles),
            clock: clock.clone(),
            random: random.clone(),
            settings: self.settings.clone().into(),
        };
        let channels = self.platforms.iter().map(|platform| ChatChannel {
            channel: Arc::new(SimChannel::new(platform.clone(), fate.clone())),
            access: access(),
            manner: manner(platform.name()),
            home: None::<Address>,
        });
        let mut gateway = Gateway::default();
        let chats = ChatGateway::new(ports, channels.collect(), gateway.shutdown().clone());
        let scheduler = Scheduler::new(SchedulerParts {
            schedules: store,
            sessions: sessions.clone(),
            deliver: Arc::new(chats.outbound()),
            terminal: Arc::new(NoTerminal),
            clock,
            random,
            settings: schedules(self.folder.path()),
        });
        gateway.add("chats", chats.run());
        let shutdown = gateway.shutdown().clone();
        gateway.add("schedules", async move { scheduler.serve(shutdown).await });
        (gateway, sessions)
    }

    async fn add_jobs(&self) {
        for (number, (schedule, misfire)) in (0..).zip(JOBS) {
            let now = self.clock.now();
            let next = read(schedule, now).next_after(now.as_millis()).unwrap();
            let next = Timestamp::from_millis(next);
            let job = Job {
                id: JobId::from(format!("job-{number}").as_str()),
                revision: 1,
                created: now,
                spec: JobSpec {
                    name: format!("job-{number}"),
                    prompt: format!("do job-{number}"),
                    schedule: (*schedule).to_owned(),
                    said_ms: now.as_millis(),
                    deliver: vec!["alpha:dm-ann".into()],
                    misfire: *misfire,
                    ..JobSpec::default()
                },
                state: JobState::Active,
                next: Some(NextRun {
                    scheduled: next,
                    due: next,
                }),
                wanted: None,
                runs: 0,
                failures: 0,
                told: None,
            };
            self.store.add_job(job).await.unwrap();
        }
    }

    /// How often each job was due until now.
    fn due(&self) -> HashMap<String, u64> {
        let count = |schedule: &str| {
            let schedule = read(schedule, self.began);
            let mut at = self.began.as_millis();
            let mut count = 0;
            while let Some(next) = schedule.next_after(at)
                && next <= self.clock.now().as_millis()
            {
                (at, count) = (next, count + 1);
            }
            count
        };
        (0..)
            .zip(JOBS)
            .map(|(number, (schedule, _))| (format!("job-{number}"), count(schedule)))
            .collect()
    }
}

/// When jobs run, and what becomes of times that were missed.
const JOBS: &[(&str, Misfire)] = &[
    ("every 5h", Misfire::Once),
    ("17 */4 * * *", Misfire::All),
    ("0 9 * * *", Misfire::Skip),
];

fn read(schedule: &str, said: Timestamp) -> Schedule {
    Schedule::read_at(schedule, said.as_millis(), &Zone::utc()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

fn access() -> PlatformAccess {
    PlatformAccess {
        allowed_users: People::allowed(),
        strangers: Strangers::Pair,
        ..PlatformAccess::default()
    }
}

/// Platforms differ in what people see of the calls of a turn.
fn manner(platform: &str) -> Manner {
    let mut manner = Manner::default();
    manner.shows_calls = match platform {
        "alpha" => ShowsCalls::All,
        "beta" => ShowsCalls::New,
        _ => ShowsCalls::Nothing,
    };
    manner
}

fn settings(random: &Random, folder: &Path) -> ChatSettings {
    ChatSettings {
        keys: KeyRules::default(),
        access: GatewayAccess::default(),
        named: NamedPeople::of(
            [("alpha", &access())].into_iter(),
            &GatewayAccess::default(),
        ),
        when_busy: match random.below(3) {
            0 => WhenBusy::Interrupt,
            1 => WhenBusy::Queue,
            _ => WhenBusy::Steer,
        },
        shows_previews: random.below(3) > 0,
        preview_interval: Duration::from_millis(800),
        stale_after: STALE_AFTER,
        sign_of_life: Some(Duration::from_secs(180)),
        silence_max: Some(HOUR),
        turns_max: [1, 2, 64][usize::try_from(random.below(3)).unwrap()],
        media: folder.to_owned(),
        media_bytes_max: 1 << 20,
        shows_drafts: true,
        redacts_ids: false,
        aliases: Default::default(),
        mirrors_jobs: true,
        reset: ResetPolicy {
            rule: ResetRule {
                idle: (random.below(3) == 0).then_some(HOUR * 12),
                daily_hour: None,
            },
            ..ResetPolicy::default()
        },
        limits: Limits::default(),
        options: SessionOptions::default(),
        holder: "gateway".to_owned(),
    }
}

fn schedules(folder: &Path) -> SchedulerSettings {
    SchedulerSettings {
        zone: Zone::utc(),
        parallel_max: 4,
        output_folder: folder.join("output"),
        output_kept_max: 3,
        scripts_folder: folder.join("scripts"),
        cwd: folder.to_owned(),
        lock_file: folder.join("cron.lock"),
        wraps_response: false,
        consent: ConsentOption::Ask,
        script_time_max: Duration::from_secs(20),
        idle_max: Duration::from_secs(600),
        time_max: HOUR,
        cost_max_micro_usd: None,
    }
}

/// No job here has a script.
struct NoTerminal;

impl Terminal for NoTerminal {
    fn run(&self, _: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        let detail = "there is no terminal in this world".to_owned();
        Box::pin(async { Err(TerminalError::Lost { detail }) })
    }
}

/// Nobody hands files over.
struct NoFiles;

impl FilePolicy for NoFiles {
    fn take(&self, _: &Path, _: Option<&str>, _: u64) -> Result<PathBuf, String> {
        Err("there are no files in this world".to_owned())
    }

    fn forget_taken(&self, _: SystemTime, _: &[PathBuf]) {}

    fn folder(&self, _: &str) -> PathBuf {
        PathBuf::new()
    }
}

/// What a lane says that is broken on purpose.
pub(super) const BROKEN_ON_PURPOSE: &str = "broken on purpose";
/// Every so often a command breaks the lane it was given in.
const BREAKS_EVERY: u64 = 4;

/// The commands that people use here.
#[derive(Default)]
struct Commands(AtomicU64);

impl ChatCommands for Commands {
    fn run<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, CommandAnswer> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(
            count % BREAKS_EVERY != BREAKS_EVERY - 1,
            "{BROKEN_ON_PURPOSE}"
        );
        let (text, then) = match line.line {
            "/new" => (Some("A new conversation."), Then::New { title: None }),
            _ => (Some("All is well."), Then::Nothing),
        };
        let answer = CommandAnswer {
            text: text.map(Into::into),
            then,
            options: None,
        };
        Box::pin(async { answer })
    }

    fn keep_home<'a>(&'a self, _: &'a Address) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}
