//! What a slash command changes in one conversation and in no other.

use std::sync::Arc;

use hermes_core::command::{Command, ParsedLine, Surface, read};
use hermes_core::skill::SkillNames;
use hermes_core::{Audience, SessionOptions};
use hermes_runtime::commands::{Done, Here};
use hermes_runtime::{Conversation, Start};

use crate::support::{Process, options};

fn command(line: &str) -> (&'static Command, String) {
    match read(line, Surface::Terminal, &SkillNames::NONE) {
        ParsedLine::Command { command, arguments } => (command, arguments.to_owned()),
        _ => panic!("`{line}` is no command"),
    }
}

async fn run(conversation: &mut Conversation, line: &str) -> Done {
    let opened = conversation.open(Start::New { title: None }).await.unwrap();
    let here = Here {
        session: opened.session.id().clone(),
        is_busy: false,
    };
    let (command, arguments) = command(line);
    let done = conversation.run(command, &arguments, &here).await.unwrap();
    conversation.close(opened.session).await.unwrap();
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
