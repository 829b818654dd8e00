//! `terminal`, over a terminal that runs nothing: real commands are tested where they are run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{
    BoxFuture, CommandOutput, Consent, Effect, Parallel, SessionId, ShellCommand, Terminal,
    TerminalError,
};
use hermes_policy::CommandLists;
use hermes_tools::{ToolPorts, built_in};
use serde_json::{Value, json};

use crate::{Place, plan};

const TERMINAL: &str = "terminal";

#[tokio::test]
async fn a_command_runs_in_the_working_directory_with_the_default_timeout() {
    let place = Place::new();
    let text = place
        .call(TERMINAL, json!({"command": "make"}))
        .await
        .unwrap();
    let root = place.root().display();
    assert_eq!(
        text,
        format!("make in {root} for 180 s\n[exit code 0, 0.0 s]")
    );
}

#[tokio::test]
async fn a_call_may_choose_its_folder_and_its_timeout() {
    let place = Place::new();
    let arguments = json!({"command": "make", "workdir": "sub", "timeout": 5});
    let text = place.call(TERMINAL, arguments).await.unwrap();
    let sub = place.path("sub").display().to_string();
    assert!(
        text.starts_with(&format!("make in {sub} for 5 s")),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_run_is_answered() {
    let place = Place::new();
    for (arguments, expected) in [
        (json!({"command": "  "}), "is empty"),
        (json!({"command": "x".repeat(200_000)}), "write a script"),
        (json!({"command": "a\u{0}b"}), "NUL"),
        (
            json!({"command": "a", "timeout": 601}),
            "at most 600 seconds",
        ),
        (
            json!({"command": "a", "workdir": "missing"}),
            "does not exist",
        ),
        (json!({"command": "exit 3"}), "[exit code 3, 0.0 s]"),
    ] {
        let answer = place.answer(TERMINAL, arguments).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn only_commands_that_surely_change_nothing_are_reads() {
    let place = Place::new();
    let tool = place.tool(TERMINAL);
    let look = json!({"command": "git status | head"});
    let change = json!({"command": "git commit"});
    assert_eq!(plan(&tool, &look, place.root()).effect, Effect::Read);
    assert_eq!(
        plan(&tool, &look, place.root()).parallel,
        Parallel::Reads(vec!["/".into()])
    );
    assert_eq!(plan(&tool, &change, place.root()).effect, Effect::Effect);
    assert_eq!(plan(&tool, &change, place.root()).parallel, Parallel::Never);
}

#[test]
fn consent_follows_the_command() {
    let place = Place::new();
    let tool = place.tool(TERMINAL);
    let consent = |command: &str| plan(&tool, &json!({"command": command}), place.root()).consent;
    assert_eq!(consent("ls"), Consent::NotNeeded);
    assert!(matches!(consent("rm -r x"), Consent::Needed(_)));
    assert!(matches!(consent("rm -rf /"), Consent::Forbidden { .. }));
    assert!(matches!(consent("rm -rf *"), Consent::Needed(_)));
    for workdir in ["/", "/usr/..", "/etc"] {
        let arguments = json!({"command": "rm -rf *", "workdir": workdir});
        let consent = plan(&tool, &arguments, place.root()).consent;
        assert!(matches!(consent, Consent::Forbidden { .. }), "{workdir}");
    }
}

/// A terminal whose shells were left at the top of everything. It runs nothing.
struct AtTheTop;

impl Terminal for AtTheTop {
    fn run(&self, _: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        unreachable!("nothing runs here")
    }

    fn folder_here(&self, _: &SessionId, _: &Path) -> Option<PathBuf> {
        Some("/".into())
    }
}

#[test]
fn the_folder_a_shell_was_left_in_counts() {
    let place = Place::new();
    let ports = ToolPorts {
        terminal: Arc::new(AtTheTop),
        ..place.ports()
    };
    let tools = built_in(&ports);
    let tool = tools.iter().find(|tool| tool.spec().name == TERMINAL);
    let consent = |arguments: Value| plan(tool.unwrap(), &arguments, place.root()).consent;
    let here = consent(json!({"command": "rm -rf *"}));
    assert!(matches!(here, Consent::Forbidden { .. }), "{here:?}");
    let elsewhere = consent(json!({"command": "rm -rf *", "workdir": "build"}));
    assert!(matches!(elsewhere, Consent::Needed(_)), "{elsewhere:?}");
}

#[test]
fn what_was_allowed_for_good_is_allowed_in_its_folder_only() {
    let place = Place::new();
    let lists = CommandLists::default();
    lists.allow("rm -r out", None, Path::new("/srv/a"));
    let tools = built_in(&ToolPorts {
        commands: Arc::new(lists),
        ..place.ports()
    });
    let tool = tools.iter().find(|tool| tool.spec().name == TERMINAL);
    let is_allowed = |command: &str, workdir: &str| {
        let arguments = json!({"command": command, "workdir": workdir});
        match plan(tool.unwrap(), &arguments, place.root()).consent {
            Consent::Needed(need) => need.is_allowed,
            other => panic!("{other:?}"),
        }
    };
    assert!(is_allowed("rm -r out", "/srv/a"));
    assert!(!is_allowed("rm -r out", "/srv/b"));
    assert!(!is_allowed("rm -r src", "/srv/a"));
}
