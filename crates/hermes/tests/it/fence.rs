//! Every way of a tool to a file outside the fence, on the real kernel: none leads there without consent.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Agreement, Consent, Fencing, Pass, Terminal, Tool, ToolContext, ToolError};
use hermes_exec::{
    Background, FenceKind, FencePlaces, FenceSupport, Fences, Local, Network, ProcessFolder,
    Unfenced,
};
use hermes_testkit::TestClock;
use hermes_testkit::contract::tool::{context, plan};
use hermes_tools::{
    CodePlace, CodeSettings, EditReview, FileLedger, FilePlace, ToolFence, ToolLimits, ToolPorts,
    WebSettings, built_in,
};
use serde_json::{Value, json};

/// A home with secrets and a project, with the tools of a session that works in it.
struct Home {
    folder: tempfile::TempDir,
}

const SECRETS: &[&str] = &[".ssh/id", ".hermes/.env", ".aws/credentials"];

impl Home {
    /// `None` where the kernel cannot hold a fence.
    #[expect(clippy::print_stderr, reason = "a skipped test must be heard")]
    fn new() -> Option<Self> {
        if let Err(why) = FenceSupport::of_this_machine(&environment()).landlock {
            eprintln!("SKIPPED: {why}");
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = Self { folder };
        for name in [
            "project",
            "other",
            ".hermes/shells",
            ".hermes/processes",
            ".hermes/apart",
        ] {
            std::fs::create_dir_all(home.path(name)).unwrap();
        }
        for name in SECRETS
            .iter()
            .chain(&["notes", "project/a.txt", "project/AGENTS.md"])
        {
            let path = home.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("words of {name}\n")).unwrap();
        }
        Some(home)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn places(&self) -> FencePlaces {
        FencePlaces {
            kind: FenceKind::Project,
            user_home: Some(self.path("")),
            hermes_home: self.path(".hermes"),
            own: vec![self.path(".hermes/shells"), self.path(".hermes/processes")],
            apart: self.path(".hermes/apart"),
            shown: Vec::new(),
            variables: environment(),
            guest: None,
        }
    }

    fn fences(&self) -> Arc<Fences> {
        Arc::new(Fences::new(self.places(), Network::Open, &environment()).unwrap())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let fences = self.fences();
        self.tools_with(
            ToolFence::Held(Arc::clone(&fences) as Arc<dyn Fencing>),
            Some(fences),
        )
    }

    fn tools_with(&self, fence: ToolFence, fences: Option<Arc<Fences>>) -> Vec<Arc<dyn Tool>> {
        let local = Local::new(environment(), self.path(".hermes/shells"));
        let local = match fences {
            Some(fences) => local.fenced(fences),
            None => local,
        };
        let terminal: Arc<dyn Terminal> = Arc::new(local);
        let processes = Background::new(
            Arc::clone(&terminal),
            ProcessFolder::Here(self.path(".hermes/processes")),
            self.path(".hermes/records"),
            Arc::new(TestClock::default()),
        );
        built_in(&ToolPorts {
            terminal,
            processes: Arc::new(processes),
            limits: ToolLimits::default(),
            code: CodeSettings::at(CodePlace::Here {
                sockets: std::env::temp_dir(),
            }),
            home: Some(self.path("")),
            secret: vec![self.path(".hermes/.env")],
            private: None,
            protected: Vec::new(),
            settings: vec![self.path(".hermes/config.yaml")],
            edit_review: EditReview::default(),
            commands: Arc::new(hermes_policy::CommandLists::default()),
            fence,
            file_place: FilePlace::here(),
            files: FileLedger::default(),
            web: WebSettings::new(self.path(".hermes/web")),
        })
    }

    fn consent(&self, tools: &[Arc<dyn Tool>], name: &str, arguments: &Value) -> Consent {
        plan(tool(tools, name), arguments, &self.path("project")).consent
    }

    async fn run(
        &self,
        tools: &[Arc<dyn Tool>],
        name: &str,
        arguments: Value,
        agreement: Agreement,
    ) -> String {
        let cx = ToolContext {
            agreement,
            ..context(&self.path("project"))
        };
        match tool(tools, name).run(arguments, &cx).await {
            Ok(output) => output.text,
            Err(
                ToolError::Answer(text)
                | ToolError::OutcomeUnknown(text)
                | ToolError::Stopped(text),
            ) => text,
        }
    }

    /// Runs a call as the loop does without a person: what needs consent does not run.
    async fn alone(&self, tools: &[Arc<dyn Tool>], name: &str, arguments: Value) -> String {
        match self.consent(tools, name, &arguments) {
            Consent::NotNeeded => self.run(tools, name, arguments, Agreement::default()).await,
            asked => format!("{asked:?}"),
        }
    }

    #[track_caller]
    fn is_untouched(&self, what: &str) {
        for name in SECRETS.iter().chain(&["notes", "project/AGENTS.md"]) {
            let text = std::fs::read_to_string(self.path(name)).unwrap();
            assert_eq!(text, format!("words of {name}\n"), "{what}");
        }
        for name in [
            "made",
            "other/made",
            ".hermes/SOUL.md",
            ".hermes/config.yaml",
        ] {
            assert!(!self.path(name).exists(), "{what}: {name}");
        }
    }
}

fn environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

fn tool<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> &'a Arc<dyn Tool> {
    tools.iter().find(|tool| tool.spec().name == name).unwrap()
}

/// Calls that write outside the project, or to what is guarded in it.
fn writing_calls() -> Vec<(&'static str, Value)> {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x\n"}));
    let command = |line: &str| ("terminal", json!({"command": line}));
    let patch = |text: &str| {
        let text = format!("*** Begin Patch\n{text}*** End Patch\n");
        ("patch", json!({"mode": "patch", "patch": text}))
    };
    vec![
        write("~/made"),
        write("../made"),
        write("../notes"),
        write("link-to-home/made"),
        write("dangling"),
        write("AGENTS.md"),
        write(".git/hooks/pre-commit"),
        write("~/.hermes/SOUL.md"),
        write("~/.hermes/config.yaml"),
        (
            "patch",
            json!({"path": "../notes", "old_string": "words", "new_string": "x"}),
        ),
        patch("*** Add File: ../made\n+x\n"),
        patch("*** Update File: a.txt\n*** Move to: ../made\n@@\n-words of project/a.txt\n+x\n"),
        patch("*** Delete File: ../notes\n"),
        command("echo x > ../made"),
        command("cd ..; : > made"),
        command("python3 -c \"open('../made', 'w')\""),
        command("f=../ma; echo x > ${f}de"),
        command("ln ../notes hard; echo x > hard"),
        command("mv a.txt ../made"),
        command("echo x > AGENTS.md"),
        command("python3 -c \"open('AGENTS.md', 'w').write('x')\""),
        (
            "terminal",
            json!({"command": "echo x > ../made", "pty": true}),
        ),
        (
            "terminal",
            json!({"command": "echo x > ../made", "background": true}),
        ),
        (
            "execute_code",
            json!({"code": "open('../made', 'w').write('x')"}),
        ),
        (
            "execute_code",
            json!({"code": "import os; os.system('echo x > ../made')"}),
        ),
        (
            "execute_code",
            json!({"code": "open('AGENTS.md', 'w').write('x')"}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_outside_is_written_without_consent_by_any_tool() {
    let Some(home) = Home::new() else { return };
    std::os::unix::fs::symlink(home.path(""), home.path("project/link-to-home")).unwrap();
    std::os::unix::fs::symlink(home.path("made"), home.path("project/dangling")).unwrap();
    let tools = home.tools();
    for (name, arguments) in writing_calls() {
        let what = format!("{name} {arguments}");
        let answer = home.alone(&tools, name, arguments).await;
        home.is_untouched(&format!("{what}: {answer}"));
        // What it did inside the project is undone for the next.
        std::fs::write(home.path("project/a.txt"), "words of project/a.txt\n").unwrap();
        let _ = std::fs::remove_file(home.path("project/hard"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_shows_a_secret_without_consent() {
    let Some(home) = Home::new() else { return };
    std::os::unix::fs::symlink(home.path(".ssh/id"), home.path("project/link")).unwrap();
    let tools = home.tools();
    let calls = [
        ("read_file", json!({"path": "~/.ssh/id"})),
        ("read_file", json!({"path": "link"})),
        ("read_file", json!({"path": "../.aws/credentials"})),
        (
            "read_file",
            json!({"path": "/proc/self/root/../self/cwd/../.ssh/id"}),
        ),
        (
            "search_files",
            json!({"pattern": "words", "path": "~/.ssh"}),
        ),
        (
            "search_files",
            json!({"pattern": "words of [.]", "path": ".."}),
        ),
        ("terminal", json!({"command": "cat ../.ssh/id"})),
        ("terminal", json!({"command": "cat link"})),
        ("terminal", json!({"command": "grep -r . .. 2>/dev/null"})),
        (
            "execute_code",
            json!({"code": "print(open('../.ssh/id').read())"}),
        ),
        (
            "execute_code",
            json!({"code": "print(open('../.hermes/.env').read())"}),
        ),
    ];
    for (name, arguments) in calls {
        let answer = home.alone(&tools, name, arguments.clone()).await;
        for secret in SECRETS {
            let words = format!("words of {secret}");
            assert!(!answer.contains(&words), "{name} {arguments}: {answer}");
        }
    }
    // Other files of the home are read.
    let read = json!({"path": "../notes"});
    let answer = home.alone(&tools, "read_file", read).await;
    assert!(answer.contains("words of notes"), "{answer}");
}

#[tokio::test]
async fn what_a_person_agrees_to_is_done_beyond_the_fence() {
    let Some(home) = Home::new() else { return };
    let tools = home.tools();
    let write = json!({"path": "../made", "content": "x\n"});
    let Consent::Review(review) = home.consent(&tools, "write_file", &write) else {
        panic!("a change outside is shown first");
    };
    assert!(review.reason.contains("outside the project"), "{review:?}");
    let agreement = Agreement {
        covers: review.covers,
        ..Agreement::default()
    };
    let answer = home.run(&tools, "write_file", write, agreement).await;
    assert!(answer.starts_with("created"), "{answer}");

    let agents = json!({"path": "AGENTS.md", "content": "agreed\n"});
    let Consent::Review(review) = home.consent(&tools, "write_file", &agents) else {
        panic!("what agents are told is shown first");
    };
    let agreement = Agreement {
        covers: review.covers,
        ..Agreement::default()
    };
    home.run(&tools, "write_file", agents, agreement).await;
    let run = |line: &str| json!({"command": line});
    home.alone(&tools, "terminal", run("true")).await;
    let text = std::fs::read_to_string(home.path("project/AGENTS.md")).unwrap();
    assert_eq!(text, "agreed\n");

    let line = json!({"command": "cat ../.ssh/id", "outside_fence": true});
    let Consent::Needed(need) = home.consent(&tools, "terminal", &line) else {
        panic!("leaving the fence is asked about");
    };
    assert!(need.reason.contains("runs outside the fence"), "{need:?}");
    assert_eq!(need.pass, Pass::outside());
    assert_eq!(need.folder, Some(home.path("project")));
    let agreement = Agreement {
        pass: need.pass,
        ..Agreement::default()
    };
    let answer = home.run(&tools, "terminal", line, agreement).await;
    assert!(answer.starts_with("words of .ssh/id"), "{answer}");
}

#[tokio::test]
async fn a_command_that_failed_on_the_fence_says_so() {
    let Some(home) = Home::new() else { return };
    let tools = home.tools();
    let line = json!({"command": "python3 -c \"open('../made', 'w')\""});
    let answer = home
        .run(&tools, "terminal", line, Agreement::default())
        .await;
    let project = home.path("project").display().to_string();
    for word in ["the fence may be why", "outside_fence: true", &project] {
        assert!(answer.contains(word), "{word} in {answer}");
    }
    let line = json!({"command": "false"});
    let answer = home
        .run(&tools, "terminal", line, Agreement::default())
        .await;
    assert!(!answer.contains("fence"), "{answer}");
    let line = json!({"command": "python3 -c \"open('AGENTS.md', 'w')\""});
    let answer = home
        .run(&tools, "terminal", line, Agreement::default())
        .await;
    assert!(
        answer.contains("`AGENTS.md` changed without consent and was put back"),
        "{answer}"
    );
}

#[tokio::test]
async fn what_is_known_to_need_more_is_one_question_and_ordinary_work_is_none() {
    let Some(home) = Home::new() else { return };
    let tools = home.tools();
    let consent = |line: &str| home.consent(&tools, "terminal", &json!({"command": line}));
    for (line, reason, pattern) in [
        ("gh pr list", "", "gh pr *"),
        ("docker ps", "container engine", "docker ps *"),
        ("ssh host uptime", "reads `~/.ssh`", "ssh host *"),
        ("aws s3 ls", "reads and writes `~/.aws`", "aws s3 *"),
    ] {
        match consent(line) {
            Consent::Needed(need) => {
                assert!(need.reason.contains(reason), "{line}: {need:?}");
                assert_eq!(need.patterns, [line, pattern], "{line}");
            }
            // There is nothing of gh's to be read in this home.
            free => assert!(
                reason.is_empty() && free == Consent::NotNeeded,
                "{line}: {free:?}"
            ),
        }
    }
    for line in [
        "cargo build",
        "npm ci",
        "pip install x",
        "pytest",
        "make",
        "git commit -m x",
        "go build ./...",
    ] {
        assert_eq!(consent(line), Consent::NotNeeded, "{line}");
    }
    let code = json!({"code": "import os; os.system('ls')"});
    assert_eq!(
        home.consent(&tools, "execute_code", &code),
        Consent::NotNeeded
    );
}

#[test]
fn without_any_fence_everything_but_reading_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home { folder };
    let missing = ToolFence::Missing {
        why: "no Landlock here".into(),
        rules: Arc::new(Unfenced::new(home.places())),
    };
    let tools = home.tools_with(missing, None);
    let consent = |line: &str| home.consent(&tools, "terminal", &json!({"command": line}));
    assert_eq!(consent("ls -la"), Consent::NotNeeded);
    for line in ["make", "touch x", "python3 x.py"] {
        let Consent::Needed(need) = consent(line) else {
            panic!("{line} runs unasked");
        };
        assert!(need.reason.contains("no Landlock here"), "{need:?}");
    }
    let code = json!({"code": "print(1)"});
    let script = home.consent(&tools, "execute_code", &code);
    assert!(matches!(script, Consent::Needed(_)), "{script:?}");
}
