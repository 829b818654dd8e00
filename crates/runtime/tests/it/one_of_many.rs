//! What a slash command changes in one conversation and in no other.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::command::{Command, ParsedLine, Surface, read};
use hermes_core::skill::SkillNames;
use hermes_core::{
    Audience, CancellationToken, NotifyOn, Pass, ProcessState, Progress, SessionOptions,
    Sessions as _, ShellCommand, TurnEnd,
};
use hermes_runtime::commands::{Done, Here, Shown};
use hermes_runtime::{Conversation, Start};

use crate::support::{Process, options, say};

fn command(line: &str) -> (&'static Command, String) {
    match read(line, Surface::Terminal, &SkillNames::NONE) {
        ParsedLine::Command { command, arguments } => (command, arguments.to_owned()),
        _ => panic!("`{line}` is no command"),
    }
}

async fn run(conversation: &mut Conversation, line: &str) -> Done {
    let opened = conversation.open(Start::New { title: None }).await.unwrap();
    let here = Here {
        session: opened.handle.id().clone(),
        is_busy: false,
        can_choose: false,
        surface: hermes_core::command::Surface::Terminal,
    };
    let (command, arguments) = command(line);
    let done = conversation.run(command, &arguments, &here).await.unwrap();
    conversation.close(opened.handle.id()).await.unwrap();
    done
}

/// What can be told of a conversation from outside.
fn facts(conversation: &Conversation) -> (String, bool, String, Option<String>) {
    let setup = conversation.setup();
    (
        setup.ports.model.name().to_string(),
        setup.is_unasked(),
        setup.prefix().system,
        conversation.options().reasoning_effort.clone(),
    )
}

#[tokio::test]
async fn what_a_command_changes_in_one_conversation_touches_no_other() {
    let process = Process::start().await;
    let attended = SessionOptions {
        audience: Audience::Person,
        ..options("cli")
    };
    let new = || Conversation::new(Arc::clone(&process.runtime), attended.clone());
    let (mut one, other) = (new().await.unwrap(), new().await.unwrap());
    let before = facts(&other);
    assert_eq!(facts(&one), before);
    let changes = [
        "/model another",
        "/yolo on",
        "/personality loud",
        "/reasoning high",
    ];
    for line in changes {
        let was = facts(&one);
        run(&mut one, line).await;
        assert_ne!(facts(&one), was, "{line} did nothing");
        assert_eq!(facts(&other), before, "{line} leaked");
    }
    let mode = one.next_mode();
    assert_eq!(one.setup().settings.mode.now(), mode);
    assert_ne!(other.setup().settings.mode.now(), mode);
    assert_eq!(
        facts(&new().await.unwrap()),
        before,
        "a later one is as the settings say"
    );
}

#[tokio::test]
async fn who_moves_to_the_folder_of_another_session_leaves_nothing_running() {
    let process = Process::start().await;
    let (here, there) = (process.folder("here"), process.folder("there"));
    let in_folder = |cwd: &Path| SessionOptions {
        cwd: Some(cwd.to_owned()),
        audience: Audience::Person,
        ..options("cli")
    };
    let other = process.runtime.open(in_folder(&there)).await.unwrap();
    assert_eq!(say(&other, "hello").await, TurnEnd::Finished);
    let other = other.handle.id().clone();
    process.runtime.close(&other).await.unwrap();
    let conversation = Conversation::new(Arc::clone(&process.runtime), in_folder(&here));
    let mut conversation = conversation.await.unwrap();
    let opened = conversation.open(Start::New { title: None }).await.unwrap();
    let session = opened.handle.id().clone();
    let processes = Arc::clone(conversation.setup().processes());
    let line = ShellCommand {
        session: session.clone(),
        line: "sleep 600".to_owned(),
        cwd: here,
        workdir: None,
        stdin: Vec::new(),
        pty: false,
        timeout: Duration::from_secs(600),
        output_bytes_max: 1_000,
        pass: Pass::default(),
        mark: None,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    };
    processes.start(line, NotifyOn::default()).await.unwrap();
    let (resume, _) = command("/resume x");
    let at = Here {
        session: session.clone(),
        is_busy: false,
        can_choose: false,
        surface: hermes_core::command::Surface::Terminal,
    };
    let done = conversation.run(resume, other.as_str(), &at).await.unwrap();
    let [Shown::Text(told)] = done.shown.as_slice() else {
        panic!("{done:?}");
    };
    assert!(told.contains("ended 1 background process of"), "{told}");
    assert_eq!(conversation.setup().settings.cwd, there);
    let left = processes.list(&session).await.unwrap();
    assert_ne!(left[0].state, ProcessState::Running);
    process.runtime.stop().await;
}

#[tokio::test]
async fn a_server_stops_when_the_last_conversation_that_wanted_it_does_without() {
    let process = Process::start().await;
    let config = process.folder.path().join("home/config.yaml");
    let mut settings = std::fs::read_to_string(&config).unwrap();
    settings.push_str("mcp_servers: {quiet: {command: sleep, args: ['600']}}\n");
    std::fs::write(&config, settings).unwrap();
    let new = || Conversation::new(Arc::clone(&process.runtime), options("cli"));
    let _both = (new().await.unwrap(), new().await.unwrap());
    let servers = process.runtime.servers();
    let quiet = ["quiet".to_owned()];
    servers.release(&quiet).await;
    assert_eq!(servers.status().len(), 1, "the other one still wants it");
    servers.release(&quiet).await;
    assert_eq!(servers.status().len(), 0);
    process.runtime.stop().await;
}
