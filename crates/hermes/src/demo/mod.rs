//! `hermes demo`: the real loop, real tools and a real store at work, in a home of its own, with a scripted model.

mod chat;
mod learning;
mod memory;
pub(crate) mod phone;
mod records;
mod script;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_agent::prompt::{self, EnvironmentFacts, PromptInputs};
use hermes_agent::{
    AgentSettings, CompactionSettings, ConsentPolicy, DelegationSettings, Follower, Limits, Opened,
    Ports, Safety, Session, SessionStart,
};
use hermes_config::Environment;
use hermes_core::{
    Archive as _, Clock as _, Event, FollowFrom, ModeSwitch, Prefix, Random, ResultStatus,
    SessionId, Store as _, StoreError, Terminal, Tool,
};
use hermes_exec::{
    Background, CheckpointLimits, CheckpointSettings, CheckpointStore, Local, ProcessFolder,
    child_environment,
};
use hermes_store::SqliteStore;
use hermes_tools::{
    CodePlace, CodeSettings, EditReview, FileLedger, FilePlace, ToolFence, ToolLimits, ToolPorts,
    WebSettings,
};
use tokio::task::JoinSet;

pub(crate) use chat::serve;

use crate::args::DemoArgs;
use crate::checkpoints::told;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};
use crate::render::{Live, Renderer};
use crate::style::Style;
use hermes_runtime::SystemClock;
use records::Records;
use script::{
    CRASHED, DELEGATED, DemoModel, FIRST, INTERRUPTED, LEFT_RUNNING, PATCHED, RECORDS, SCRIPTED,
};

const NOTES: &str = "Monday\n- book the train to Delphi (open)\n- return the sandals (done)\n\
     Tuesday\n- water the laurel (open)\n- answer Penelope (open)\n";
const PLAN: &str = "laurel: on Tuesdays\n";
/// How long the child may take to get into the middle of its call.
const CHILD_START_MAX: Duration = Duration::from_secs(20);

pub async fn run(args: &DemoArgs) -> Outcome<()> {
    let stage = Stage::set(args)?;
    if args.child.is_some() {
        return stage.crash_act().await;
    }
    let outcome = stage.play(args).await;
    if args.keep {
        println(&format!(
            "\nkept: {}\n  look around: HERMES_HOME={0} hermes sessions list",
            stage.home.display()
        ))?;
    } else {
        let _ = std::fs::remove_dir_all(&stage.home);
    }
    outcome
}

/// The demo's home, which is also its working directory.
struct Stage {
    home: PathBuf,
    environment: Environment,
    style: Style,
    pause: Duration,
}

impl Stage {
    fn set(args: &DemoArgs) -> Outcome<Self> {
        let environment = Environment::of_process();
        let style = Style::of(&std::io::stdout(), &environment);
        let home = match &args.child {
            Some(home) => home.clone(),
            None => make_home()?,
        };
        let pause = if args.fast || !style.is_coloured() {
            Duration::ZERO
        } else {
            Duration::from_millis(45)
        };
        Ok(Self {
            home,
            environment,
            style,
            pause,
        })
    }

    async fn play(&self, args: &DemoArgs) -> Outcome<()> {
        self.say("Hermes, on stage. The model is scripted; the loop, the tools and the store are the real ones.")?;
        self.title("1", "It works: it reads, plans, writes and checks")?;
        self.tools_act().await?;
        self.title("2", "It writes scripts that call tools")?;
        self.script_act().await?;
        self.title("3", "It leaves things running")?;
        self.background_act().await?;
        self.title("4", "It stops when you say so")?;
        self.interrupt_act().await?;
        self.title("5", "It survives kill -9")?;
        self.kill_act().await?;
        self.title("6", "What it changes can be taken back")?;
        self.rollback_act().await?;
        self.title("7", "It keeps its MCP tools")?;
        self.records_act().await?;
        self.title("8", "It delegates")?;
        self.subagents_act().await?;
        self.title("9", "It learns")?;
        self.learning_act().await?;
        self.title("10", "Its conversations have no end")?;
        self.compaction_act().await?;
        self.title("11", "It lives in chats, and keeps appointments")?;
        self.chat_act().await?;
        self.title("12", "It remembers")?;
        self.search_act("laurel").await?;
        let fate = if args.keep {
            "kept"
        } else {
            "removed now; --keep keeps it"
        };
        self.say(&format!(
            "\nEverything above was stored in {} ({fate}).\n\
             Your own ~/.hermes was not touched. To start for real, set a key such as OPENROUTER_API_KEY or start a\n\
             local server such as Ollama, and run `hermes`.",
            self.home.join("hermes.db").display()
        ))
    }

    async fn tools_act(&self) -> Outcome<()> {
        self.user(FIRST)?;
        let opened = self.open(&self.store()?, None).await?;
        opened.session.say(FIRST).await;
        self.follow(opened, |_| Act::GoOn).await?;
        Ok(())
    }

    /// Four calls of two tools, and one result for the model.
    async fn script_act(&self) -> Outcome<()> {
        let path = self.environment.get("PATH").unwrap_or_default();
        if !std::env::split_paths(path).any(|folder| folder.join("python3").is_file()) {
            return self.say("Skipped: scripts are Python, and there is no python3 on your PATH.");
        }
        self.user(SCRIPTED)?;
        let opened = self.open(&self.store()?, None).await?;
        opened.session.say(SCRIPTED).await;
        self.follow(opened, |_| Act::GoOn).await?;
        self.say("The script made four calls. The model saw what it printed, and nothing else.")
    }

    async fn background_act(&self) -> Outcome<()> {
        self.user(LEFT_RUNNING)?;
        let opened = self.open(&self.store()?, None).await?;
        opened.session.say(LEFT_RUNNING).await;
        self.follow(opened, |_| Act::GoOn).await?;
        self.say("A process left running outlives its turn, and a crash of Hermes too.")
    }

    async fn interrupt_act(&self) -> Outcome<()> {
        self.user(INTERRUPTED)?;
        let opened = self.open(&self.store()?, None).await?;
        opened.session.say(INTERRUPTED).await;
        let mut interrupted = None;
        self.follow(opened, |event| match event {
            Event::CallProgress { .. } if interrupted.is_none() => {
                interrupted = Some(Instant::now());
                Act::Interrupt
            }
            _ => Act::GoOn,
        })
        .await?;
        let took = interrupted.map_or(0, |at| at.elapsed().as_millis());
        self.say(&format!(
            "The command was killed and the turn closed {took} ms after the interrupt."
        ))
    }

    /// Runs a turn in a child process, kills it in the middle of a call, and finishes the turn here.
    async fn kill_act(&self) -> Outcome<()> {
        self.user(CRASHED)?;
        self.child_until_mid_call().await?;
        self.say("A second hermes was sending the announcement. It was just killed with SIGKILL, in mid-call.")?;
        let store = self.store()?;
        let unfinished = store.unfinished().await?;
        let Some(session) = unfinished.first() else {
            return Err(Failure::new("the killed process left no unfinished turn"));
        };
        self.say(&format!(
            "The store has its turn, unfinished: session {session}. Opening it again:"
        ))?;
        self.until_released(&store, session).await?;
        let opened = self.open(&store, Some(session.clone())).await?;
        self.follow(opened, |_| Act::GoOn).await
    }

    /// Waits for the system to give the dead process's lock back.
    async fn until_released(&self, store: &SqliteStore, session: &SessionId) -> Outcome<()> {
        let waiting = async {
            while let Err(StoreError::Busy { .. }) = store.claim(session).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let released = tokio::time::timeout(Duration::from_secs(5), waiting).await;
        released.map_err(|_| Failure::new("the killed process still holds its session"))
    }

    /// The child's part of the fourth act.
    async fn crash_act(&self) -> Outcome<()> {
        let opened = self.open(&self.store()?, None).await?;
        opened.session.say(CRASHED).await;
        self.follow(opened, |_| Act::GoOn).await
    }

    async fn child_until_mid_call(&self) -> Outcome<()> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find myself: {error}")))?;
        let program = program.to_string_lossy();
        let home = self.home.to_string_lossy();
        let environment = self.child_environment();
        let args = ["demo", "--fast", "--child", &home];
        let child = hermes_exec::output(&program, args, &environment, &self.home, CHILD_START_MAX);
        let effect = self.home.join("outbox.txt");
        let mid_call = async {
            while !effect.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Whichever is first; dropping the child's future kills it with SIGKILL.
        tokio::select! {
            () = mid_call => Ok(()),
            ended = child => Err(Failure::new(format!("the child process ended too early: {ended:?}"))),
        }
    }

    /// Has a file patched, and brings back what it was before.
    async fn rollback_act(&self) -> Outcome<()> {
        let checkpoints = self.checkpoints();
        let garden = self.home.join("garden");
        self.user(PATCHED)?;
        let opened = self.open(&self.store()?, None).await?;
        opened.session.say(PATCHED).await;
        self.follow(opened, |_| Act::GoOn).await?;
        let Some(checkpoint) = checkpoints.list(&garden).await?.into_iter().next() else {
            return self.say(
                "Here is no git, so no checkpoint was kept. With one, this could be taken back.",
            );
        };
        self.say("The folder was kept before the patch. On second thoughts:")?;
        self.say("$ hermes checkpoints restore 1")?;
        let session = SessionId::from("demo");
        let restored = checkpoints.restore(&garden, &checkpoint, None, &session);
        let restored = restored.await?;
        self.say(&told(&checkpoint, &restored, "hermes checkpoints restore"))?;
        let plan = std::fs::read_to_string(garden.join("plan.md")).unwrap_or_default();
        self.say(&format!("plan.md: {}", plan.trim_end()))
    }

    /// Kills an MCP server between two calls of one turn.
    async fn records_act(&self) -> Outcome<()> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment = self.child_environment().into_iter().filter_map(text);
        let records = Records::start(&self.home, environment.collect())?;
        let tools = records.tools().await;
        if tools.is_empty() {
            return Err(Failure::new("the MCP server of the demo did not start")
                .hint("`hermes mcp serve` shows why"));
        }
        self.say(&format!(
            "A server `records` is connected, with {} tools. It is this program, as `hermes mcp serve`.",
            tools.len()
        ))?;
        self.user(RECORDS)?;
        let opened = self.open_with(&self.store()?, None, tools).await?;
        opened.session.say(RECORDS).await;
        let mut statuses = Vec::new();
        self.follow(opened, |event| {
            if let Event::CallFinished { status, .. } = event {
                if statuses.is_empty() {
                    records.kill();
                }
                statuses.push(*status);
            }
            Act::GoOn
        })
        .await?;
        let reconnects = records.reconnects();
        records.stop().await;
        let failed = statuses
            .iter()
            .filter(|status| **status != ResultStatus::Ok);
        let noticed = match failed.count() {
            0 => "Nobody noticed: no failed call,".to_owned(),
            failed => format!("Failed calls: {failed},"),
        };
        self.say(&format!(
            "Its process was killed after the first call. {noticed} {reconnects} reconnect."
        ))
    }

    /// Has two subagents answer halves of a question.
    async fn subagents_act(&self) -> Outcome<()> {
        self.user(DELEGATED)?;
        let store = self.store()?;
        let opened = self.open(&store, None).await?;
        let session = opened.session.id().clone();
        opened.session.say(DELEGATED).await;
        self.follow(opened, |_| Act::GoOn).await?;
        self.say("Each had a session of its own, which a restart would have found again:")?;
        for subagent in store.subagents(&session).await? {
            self.say(&format!("  {}  {}", subagent.id, subagent.preview))?;
        }
        Ok(())
    }

    async fn open(&self, store: &Arc<SqliteStore>, resume: Option<SessionId>) -> Outcome<Opened> {
        self.open_with(store, resume, Vec::new()).await
    }

    async fn open_with(
        &self,
        store: &Arc<SqliteStore>,
        resume: Option<SessionId>,
        more_tools: Vec<Arc<dyn Tool>>,
    ) -> Outcome<Opened> {
        let terminal: Arc<dyn Terminal> = Arc::new(Local::new(
            self.child_environment(),
            self.home.join("shells"),
        ));
        let processes = Background::new(
            Arc::clone(&terminal),
            ProcessFolder::Here(self.home.join("processes")),
            self.home.join("processes/records"),
            Arc::new(SystemClock),
        );
        let ports = ToolPorts {
            terminal,
            processes: Arc::new(processes),
            limits: ToolLimits::default(),
            code: CodeSettings::at(CodePlace::Here {
                sockets: std::env::temp_dir(),
            }),
            home: None,
            secret: Vec::new(),
            private: None,
            protected: Vec::new(),
            settings: Vec::new(),
            edit_review: EditReview::default(),
            commands: Arc::new(hermes_policy::CommandLists::default()),
            file_place: FilePlace::here(),
            fence: ToolFence::Off,
            files: FileLedger::default(),
            web: WebSettings::new(self.home.join("cache/web")),
        };
        let ports = Ports {
            model: Arc::new(DemoModel { pause: self.pause }),
            store: store.clone(),
            clock: Arc::new(SystemClock),
            random: Arc::new(Random::from_system()),
            tools: [
                hermes_tools::built_in(&ports),
                self.learning_tools(store),
                more_tools,
            ]
            .concat(),
            checkpoints: Some(Arc::new(self.checkpoints())),
            unlisted: Vec::new(),
            tool_source: None,
            subagent_model: None,
            compression_model: None,
            safety: Safety::default(),
            references: None,
        };
        let start = match resume {
            Some(session) => SessionStart::Resume(session),
            None => SessionStart::New {
                source: "demo".into(),
                title: None,
                prefix: self.prefix(&ports, store),
            },
        };
        let settings = AgentSettings {
            cwd: self.home.clone(),
            results_folder: self.home.join("results"),
            consent: ConsentPolicy::Refuse,
            mode: ModeSwitch::default(),
            is_attended: false,
            limits: Limits::default(),
            nested_context: true,
            delegation: DelegationSettings::default(),
            compaction: CompactionSettings::default(),
        };
        Ok(Session::open(ports, settings, start).await?)
    }

    fn prefix(&self, ports: &Ports, store: &Arc<SqliteStore>) -> Prefix {
        let environment = EnvironmentFacts {
            os: std::env::consts::OS.into(),
            shell: "bash".into(),
            cwd: self.home.clone(),
            git_branch: None,
            ..EnvironmentFacts::default()
        };
        let inputs = PromptInputs {
            environment,
            skills: Arc::new(self.skill_index(store)),
            ..PromptInputs::default()
        };
        prompt::prefix(
            &inputs,
            &ports.tools,
            &ports.model.name(),
            ports.clock.now(),
        )
    }

    /// Shows one turn; `act` may interrupt it.
    async fn follow(&self, opened: Opened, act: impl FnMut(&Event) -> Act) -> Outcome<()> {
        let Opened { session, task, .. } = opened;
        let mut events = session.follow(FollowFrom::Turn);
        let mut tasks = JoinSet::new();
        tasks.spawn(task);
        self.show_turn(&session, &mut events, act).await?;
        drop(session);
        tasks.join_all().await;
        Ok(())
    }

    /// Shows what a session tells until its turn ends.
    async fn show_turn(
        &self,
        session: &Session,
        events: &mut Follower,
        mut act: impl FnMut(&Event) -> Act,
    ) -> Outcome<()> {
        let mut renderer = Renderer::Live(Live::on_one_stream(self.style));
        while let Some(followed) = events.next().await {
            renderer.show(&followed)?;
            let Some(event) = followed.into_event() else {
                continue;
            };
            if let Act::Interrupt = act(&event) {
                session.interrupt().await;
            }
            // A compaction that was asked for is between two turns.
            if matches!(
                event,
                Event::TurnEnded { .. } | Event::CompactionEnded { .. }
            ) {
                break;
            }
        }
        Ok(())
    }

    fn store(&self) -> Outcome<Arc<SqliteStore>> {
        Ok(Arc::new(SqliteStore::open(
            self.home.join("hermes.db"),
            self.home.join("locks"),
        )?))
    }

    fn checkpoints(&self) -> CheckpointStore {
        let settings = CheckpointSettings {
            home: self.home.clone(),
            user_home: self.environment.user_home(),
            environment: self.child_environment(),
            limits: CheckpointLimits::default(),
        };
        CheckpointStore::new(settings, Arc::new(SystemClock))
    }

    fn child_environment(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        child_environment(
            self.environment
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
            &[],
        )
    }

    fn title(&self, number: &str, text: &str) -> Outcome<()> {
        println(&format!(
            "\n{}",
            self.style.bold(format!("── {number}. {text} ──"))
        ))
    }

    fn user(&self, text: &str) -> Outcome<()> {
        println(&format!("{} {text}", self.style.cyan("›")))
    }

    fn say(&self, text: &str) -> Outcome<()> {
        println(&self.style.dim(text))
    }
}

enum Act {
    GoOn,
    Interrupt,
}

/// Makes a home nobody else uses.
fn make_home() -> Outcome<PathBuf> {
    let folder = std::env::temp_dir().join(format!(
        "hermes-demo-{}-{:06x}",
        SystemClock.now().as_millis(),
        Random::from_system().next_u64() & 0xff_ffff
    ));
    let fill = |folder: &Path| {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().mode(0o700).create(folder)?;
        std::fs::create_dir(folder.join("locks"))?;
        std::fs::create_dir(folder.join("garden"))?;
        std::fs::write(folder.join("garden/plan.md"), PLAN)?;
        std::fs::write(folder.join("notes.txt"), NOTES)?;
        learning::set_stage(folder)?;
        memory::set_stage(folder)
    };
    fill(&folder).map_err(|error| {
        note("the demo needs a little space in the temporary folder");
        Failure::new(format!("cannot make `{}`: {error}", folder.display()))
            .hint("set TMPDIR to a folder you can write to")
    })?;
    Ok(folder)
}
