//! Scripts that call tools: real Python, the real loop, real tools and terminals behind it.

mod hostile;
mod places;
mod whole;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_agent::{
    AgentSettings, CompactionSettings, ConsentPolicy, DelegationSettings, Limits, Opened, Ports,
    Safety, Session, SessionStart,
};
use hermes_core::{
    CommandPlace, CommandPolicy, Consent, Event, Exposure, FollowFrom, JudgedCommand, ModeSwitch,
    Prefix, ResultStatus, Scripts, Terminal, Tool, ToolGroup,
};
use hermes_exec::{Background, Local, ProcessFolder};
use hermes_policy::CommandLists;
use hermes_testkit::{Step, TestTool, World};
use hermes_tools::{
    CodePlace, CodeSettings, EditReview, FileLedger, FilePlace, ToolLimits, ToolPorts, WebSettings,
};
use serde_json::json;
use tokio::task::JoinSet;

/// Where the programs are that every machine with Python has.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Long enough that a test which waits for it has failed.
const NEVER: Duration = Duration::from_secs(60);

fn environment(path: &str) -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), path.into())]
}

/// A folder in which a model runs one script.
struct Stage {
    folder: tempfile::TempDir,
    terminal: Arc<dyn Terminal>,
    settings: CodeSettings,
    commands: Arc<dyn CommandPolicy>,
    /// Tools beside those that are built in.
    more_tools: Vec<Arc<dyn Tool>>,
}

/// What the call came to.
#[derive(Debug)]
struct Ended {
    status: ResultStatus,
    text: String,
    /// Everything the model was sent in the end.
    conversation: String,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let terminal = Local::new(environment(PATH), folder.path().join(".shells"));
        let sockets = std::env::temp_dir();
        let settings = CodeSettings {
            timeout: NEVER,
            ..CodeSettings::at(CodePlace::Here { sockets })
        };
        Self {
            folder,
            terminal: Arc::new(terminal),
            settings,
            commands: Arc::new(CommandLists::default()),
            more_tools: Vec::new(),
        }
    }

    /// Scripts run over this terminal, which is not on this machine.
    fn elsewhere(terminal: impl Terminal + 'static) -> Self {
        let mut stage = Self::new();
        stage.terminal = Arc::new(terminal);
        stage.settings.place = CodePlace::Elsewhere;
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Runs a script that must succeed, and returns what it printed, with the note at its end.
    async fn prints(&self, code: &str) -> String {
        let ended = self.run(code).await;
        assert_eq!(ended.status, ResultStatus::Ok, "{ended:?}");
        ended.text
    }

    async fn run(&self, code: &str) -> Ended {
        self.run_until(code, |_| false).await
    }

    /// Runs a script, and interrupts it when `is_enough`.
    async fn run_until(&self, code: &str, is_enough: impl Fn(&Event) -> bool) -> Ended {
        let call = Step::call("c1", "execute_code", &json!({ "code": code }));
        self.call_until(call, is_enough).await
    }

    /// Makes a call, and interrupts it when `is_enough`.
    async fn call_until(&self, call: Step, is_enough: impl Fn(&Event) -> bool) -> Ended {
        let world = World::new([call, Step::text("done")]);
        let Opened { session, task, .. } = self.open(&world).await;
        let mut events = session.follow(FollowFrom::Turn);
        let mut tasks = JoinSet::new();
        tasks.spawn(task);
        session.say("go").await;
        let mut result = None;
        loop {
            let followed = tokio::time::timeout(2 * NEVER, events.next()).await;
            let followed = followed.expect("an event in time").expect("an event");
            let event = followed.into_event().expect("nothing is missed");
            match &event {
                Event::CallFinished { status, text, .. } => result = Some((*status, text.clone())),
                Event::TurnEnded { .. } => break,
                event if is_enough(event) => drop(session.interrupt().await),
                _ => {}
            }
        }
        let (status, text) = result.expect("the call has a result");
        let requests = world.model.requests();
        let last = requests.last().expect("a request");
        Ended {
            status,
            text,
            conversation: json!(last.messages).to_string(),
        }
    }

    async fn open(&self, world: &World) -> Opened {
        let processes = Background::new(
            Arc::clone(&self.terminal),
            ProcessFolder::Here(self.path(".processes")),
            self.path(".records"),
            world.clock.clone(),
        );
        let mut tools = hermes_tools::built_in(&ToolPorts {
            terminal: Arc::clone(&self.terminal),
            processes: Arc::new(processes),
            limits: ToolLimits::default(),
            code: self.settings.clone(),
            home: None,
            secret: Vec::new(),
            private: None,
            protected: Vec::new(),
            settings: Vec::new(),
            edit_review: EditReview::default(),
            fence: hermes_tools::ToolFence::Off,
            file_place: match self.settings.place {
                CodePlace::Here { .. } => FilePlace::here(),
                CodePlace::Elsewhere => FilePlace::where_commands_run(vec![self.path(".results")]),
            },
            files: FileLedger::default(),
            commands: Arc::clone(&self.commands),
            web: WebSettings::new(self.path(".web")),
        });
        tools.extend(self.more_tools.iter().cloned());
        let prefix = Prefix {
            system: "You are under test.".into(),
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
        };
        let ports = Ports {
            model: world.model.clone(),
            store: Arc::new(world.store.clone()),
            clock: world.clock.clone(),
            random: world.random.clone(),
            tools,
            checkpoints: None,
            unlisted: Vec::new(),
            tool_source: None,
            safety: Safety::default(),
            references: None,
            subagent_model: None,
            compression_model: None,
        };
        let settings = AgentSettings {
            cwd: self.folder.path().to_owned(),
            results_folder: self.path(".results"),
            consent: ConsentPolicy::Refuse,
            mode: ModeSwitch::default(),
            is_attended: false,
            limits: Limits::default(),
            nested_context: true,
            delegation: DelegationSettings::default(),
            compaction: CompactionSettings::default(),
        };
        let start = SessionStart::New {
            source: "test".into(),
            title: None,
            prefix,
        };
        Session::open(ports, settings, start).await.unwrap()
    }
}

/// Returns whether a process exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default();
        !state.trim_start().starts_with('Z')
    })
}

#[tokio::test]
async fn a_script_uses_tools_and_the_model_sees_what_it_prints() {
    let stage = Stage::new();
    stage.write("a.txt", "one\nsecret-of-a\n");
    stage.write("b.txt", "two\nthree\n");
    let text = stage
        .prints(
            "from hermes_tools import read_file, write_file, patch, search_files, terminal\n\
             from hermes_tools import json_parse, shell_quote, retry\n\
             names = terminal('ls *.txt').split()\n\
             lines = sum(len(read_file(name).splitlines()) for name in names)\n\
             write_file('sum.json', '{\"lines\": %d}' % lines)\n\
             patch(path='a.txt', old_string='one', new_string='uno')\n\
             assert 'b.txt' in search_files('three')\n\
             assert shell_quote(\"it's\") == \"'it'\\\"'\\\"'s'\"\n\
             assert read_file('b.txt') == 'two\\nthree\\n'\n\
             print(names, json_parse(retry(lambda: read_file('sum.json'))))\n",
        )
        .await;
    assert!(
        text.starts_with("['a.txt', 'b.txt'] {'lines': 4}\n[exit code 0; 8 tool calls,"),
        "{text}"
    );
    assert_eq!(stage.read("a.txt"), "uno\nsecret-of-a\n");
}

#[tokio::test]
async fn a_tool_that_says_so_can_be_called_from_scripts() {
    let exposed = |name: &str, scripts| {
        let exposure = Exposure {
            scripts,
            ..Exposure::everywhere_but_in_scripts(ToolGroup::Toolset("test"))
        };
        Arc::new(TestTool::new(name).exposure(exposure)) as Arc<dyn Tool>
    };
    let mut stage = Stage::new();
    stage.more_tools = vec![
        exposed("echo", Scripts::Without(&["count"])),
        exposed("quiet", Scripts::No),
    ];
    let text = stage
        .prints(
            "import hermes_tools\n\
             print(hermes_tools.echo(text='said'), hasattr(hermes_tools, 'quiet'))\n\
             try:\n    hermes_tools.echo(count=1)\nexcept TypeError:\n    print('withheld')\n",
        )
        .await;
    assert!(text.starts_with("said False\nwithheld\n"), "{text}");
}

/// Judges as usual, and counts the lines that it reads.
#[derive(Default)]
struct Counting {
    lists: CommandLists,
    lines: AtomicUsize,
}

impl CommandPolicy for Counting {
    fn judge(&self, line: &str, place: CommandPlace<'_>) -> JudgedCommand {
        self.lines.fetch_add(1, Ordering::Relaxed);
        self.lists.judge(line, place)
    }

    fn consent_for_typed(&self, line: &str, raw: &str) -> Consent {
        self.lists.consent_for_typed(line, raw)
    }

    fn consent_for_script(&self, code: &str) -> Consent {
        self.lists.consent_for_script(code)
    }
}

#[tokio::test]
async fn the_line_of_a_command_is_read_once() {
    let counting = Arc::new(Counting::default());
    let mut stage = Stage::new();
    stage.commands = Arc::clone(&counting) as Arc<dyn CommandPolicy>;
    let call = Step::call(
        "c1",
        "terminal",
        &json!({"command": "mkdir a && ls | grep a"}),
    );
    let ended = stage.call_until(call, |_| false).await;
    assert_eq!(ended.status, ResultStatus::Ok, "{ended:?}");
    assert_eq!(counting.lines.load(Ordering::Relaxed), 1);
    let text = stage
        .prints("from hermes_tools import terminal\nterminal('mkdir b')\nprint(terminal('ls'))")
        .await;
    assert!(text.starts_with("a\nb\n"), "{text}");
    assert_eq!(counting.lines.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn what_the_tools_said_stays_out_of_the_conversation() {
    let stage = Stage::new();
    stage.write("a.txt", "a word nobody prints\n");
    let code = "import hermes_tools\nprint(len(hermes_tools.read_file(path='a.txt')))";
    let ended = stage.run(code).await;
    assert!(ended.text.starts_with("21\n"), "{ended:?}");
    assert!(!ended.conversation.contains("nobody prints"), "{ended:?}");
}

#[tokio::test]
async fn an_error_shows_its_line_and_fails_the_call() {
    let stage = Stage::new();
    let ended = stage
        .run("print('before')\nvalues = {}\nprint(values['missing'])\n")
        .await;
    assert_eq!(ended.status, ResultStatus::Failed);
    for words in [
        "before\n",
        "line 3",
        "print(values['missing'])",
        "KeyError",
        "[exit code 1;",
    ] {
        assert!(ended.text.contains(words), "{words:?} in {}", ended.text);
    }
    assert!(!ended.text.contains("<start>"), "{}", ended.text);
    let ended = stage.run("if x:\nprint(1)\n").await;
    assert!(ended.text.contains("IndentationError"), "{ended:?}");
    let ended = stage.run("import sys; sys.exit(3)").await;
    assert!(
        ended.text.starts_with("[exit code 3; 0 tool calls"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_tool_that_refuses_raises_and_the_script_goes_on() {
    let stage = Stage::new();
    stage.write(".env", "KEY=1\n");
    let text = stage
        .prints(
            "from hermes_tools import *\n\
             from hermes_tools import ToolError\n\
             def say(fn):\n\
             \x20   try:\n\
             \x20       print('ran', fn())\n\
             \x20   except ToolError as error:\n\
             \x20       print('refused:', error)\n\
             say(lambda: read_file('.env'))\n\
             say(lambda: terminal('rm -r /tmp/nothing-of-mine'))\n\
             say(lambda: terminal('rm -rf /'))\n\
             say(lambda: terminal('exit 3'))\n\
             say(lambda: read_file(path={'not': 'text'}))\n\
             say(lambda: read_file('missing.txt'))\n",
        )
        .await;
    let refusals: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("refused:"))
        .collect();
    assert_eq!(refusals.len(), 6, "{text}");
    for (refusal, words) in refusals.iter().zip([
        "hold secrets",
        "nobody is here to allow it",
        "Nobody can allow this",
        "exit code 3",
        "do not fit",
        "missing.txt",
    ]) {
        assert!(refusal.contains(words), "{words:?} in {refusal}");
    }
}

#[tokio::test]
async fn a_script_that_goes_around_the_tools_needs_a_person() {
    let stage = Stage::new();
    let ended = stage
        .run("import subprocess\nsubprocess.run(['touch', 'x'])")
        .await;
    assert_eq!(ended.status, ResultStatus::NotRun);
    assert!(ended.text.contains("`subprocess`"), "{ended:?}");
    assert!(!stage.path("x").exists());
}

#[tokio::test]
async fn a_strict_script_runs_in_an_empty_folder_that_is_gone_afterwards() {
    use hermes_tools::CodeMode;

    let mut stage = Stage::new();
    stage.write("mine.py", "word = 'project'\n");
    let code = "import os\nprint(os.listdir(), os.getcwd())\nimport mine\nprint(mine.word)";
    let ended = stage.run(code).await;
    assert!(
        ended.text.contains("'mine.py'") && ended.text.contains("\nproject\n"),
        "{ended:?}"
    );
    stage.settings.mode = CodeMode::Strict;
    let ended = stage.run(code).await;
    assert!(ended.text.contains("ModuleNotFoundError"), "{ended:?}");
    let folder = ended
        .text
        .strip_prefix("[] ")
        .and_then(|text| text.lines().next());
    let folder = folder.expect("an empty folder");
    assert!(!Path::new(folder).exists(), "{folder}");
}

#[tokio::test]
async fn a_script_is_told_what_python_it_needs_when_there_is_none() {
    let mut stage = Stage::new();
    let programs = stage.path("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/bin/bash", programs.join("bash")).unwrap();
    let path = programs.to_str().unwrap();
    stage.terminal = Arc::new(Local::new(environment(path), stage.path(".shells")));
    let ended = stage.run("print(1)").await;
    assert_eq!(ended.status, ResultStatus::Failed);
    assert!(
        ended.text.contains("there is no `python3` on the PATH"),
        "{ended:?}"
    );
}
