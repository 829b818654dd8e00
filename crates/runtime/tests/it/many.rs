//! A thousand conversations that differ in every option, and what an idle one costs.

use std::fs;
use std::time::Duration;

use futures_util::future::join_all;
use hermes_core::{ConsentOption, Mode, RunningSession, SessionOptions, Sessions as _, TurnEnd};
use serde_json::Value;

use crate::support::{Process, options, say};

const SESSIONS: usize = 1_000;
const TURNS_AT_ONCE: usize = 64;
/// What one idle session may cost.
const IDLE_BYTES_MAX: usize = 30_000;

fn toolset(number: usize) -> &'static str {
    ["file", "terminal", "none"][number % 3]
}

fn personality(number: usize) -> &'static str {
    ["calm", "loud"][number % 2]
}

fn consent(number: usize) -> ConsentOption {
    match number % 5 {
        0 => ConsentOption::Allow,
        1 => ConsentOption::Ask,
        _ => ConsentOption::AsSet,
    }
}

fn options_of(process: &Process, number: usize) -> SessionOptions {
    SessionOptions {
        cwd: Some(process.folder(&format!("folder-{number}-"))),
        model: Some(format!("model-{number}")),
        toolsets: vec![toolset(number).to_owned()],
        personality: Some(personality(number).to_owned()),
        notes: vec![format!("note-{number}-")],
        consent: consent(number),
        mode: Some([Mode::Ask, Mode::AcceptEdits, Mode::Plan][number % 3]),
        steps_max: Some(number as u32 % 7 + 1),
        ..options(&format!("surface-{number}"))
    }
}

/// What the model of a session was told.
fn check(process: &Process, number: usize) {
    let requests = process.requests_with(&format!("words of {number}."));
    let [request] = requests.as_slice() else {
        panic!("session {number} asked {} times", requests.len());
    };
    let body = &request.json;
    assert_eq!(body["model"], format!("model-{number}"));
    let text = body.to_string();
    for own in [format!("folder-{number}-"), format!("note-{number}-")] {
        assert!(text.contains(&own), "{own} is not in {text}");
    }
    let other = number + 1;
    for foreign in [format!("folder-{other}-"), format!("note-{other}-")] {
        assert!(!text.contains(&foreign), "{foreign} leaked into {number}");
    }
    let (own, foreign) = match personality(number) {
        "calm" => ("Speak calmly.", "SPEAK LOUDLY."),
        _ => ("SPEAK LOUDLY.", "Speak calmly."),
    };
    assert!(text.contains(own) && !text.contains(foreign), "{number}");
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(names.contains(&"read_file"), toolset(number) == "file");
    assert_eq!(names.contains(&"terminal"), toolset(number) == "terminal");
    assert_eq!(body["tools"] == Value::Null, toolset(number) == "none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_conversations_share_nothing_that_either_could_change() {
    let process = Process::start().await;
    let mut sessions: Vec<RunningSession> = Vec::new();
    for number in 0..SESSIONS {
        let opened = process.runtime.open(options_of(&process, number)).await;
        sessions.push(opened.unwrap());
    }
    let open = process.runtime.list_open();
    assert_eq!(open.len(), SESSIONS);
    for (number, session) in sessions.iter().enumerate() {
        let mut listed = open.iter();
        let listed = listed.find(|one| one.id == *session.handle.id()).unwrap();
        assert_eq!(listed.options, options_of(&process, number));
        assert_eq!(listed.model.model, format!("model-{number}"));
    }
    let step = SESSIONS / TURNS_AT_ONCE;
    let talking = sessions.iter().enumerate().step_by(step);
    let turns = talking
        .take(TURNS_AT_ONCE)
        .map(|(number, session)| async move {
            let end = say(session, &format!("words of {number}.")).await;
            (number, end)
        });
    let ended = join_all(turns).await;
    assert_eq!(ended.len(), TURNS_AT_ONCE);
    for (number, end) in ended {
        assert_eq!(end, TurnEnd::Finished, "{number}");
        check(&process, number);
    }
}

#[tokio::test]
async fn closing_idle_conversations_frees_them_and_they_can_go_on() {
    let process = Process::start().await;
    let first = process.runtime.open(options("a")).await.unwrap();
    let second = process.runtime.open(options("b")).await.unwrap();
    assert_eq!(say(&first, "remember me").await, TurnEnd::Finished);
    while process
        .runtime
        .list_open()
        .iter()
        .any(|one| one.idle.is_none())
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let hour = Duration::from_secs(3_600);
    assert_eq!(process.runtime.close_idle(hour).await, 0);
    assert_eq!(process.runtime.close_idle(Duration::ZERO).await, 2);
    assert!(process.runtime.list_open().is_empty());
    let op = || hermes_core::Op::Interrupt;
    assert!(!first.handle.send(op()).await && !second.handle.send(op()).await);
    let id = first.handle.id().clone();
    assert_eq!(process.runtime.find(id.as_str()).await.unwrap(), id);
    let again = process.runtime.resume(id, options("a")).await.unwrap();
    assert_eq!(say(&again, "and now").await, TurnEnd::Finished);
    assert_eq!(process.requests_with("remember me").len(), 2);
}

#[tokio::test]
async fn an_idle_conversation_costs_little() {
    let process = Process::start().await;
    let mut sessions = Vec::new();
    let folder = process.folder("project");
    let options = SessionOptions {
        cwd: Some(folder),
        ..options("idle")
    };
    for _ in 0..50 {
        sessions.push(process.runtime.open(options.clone()).await.unwrap());
    }
    let before = resident_bytes();
    for _ in 0..SESSIONS {
        sessions.push(process.runtime.open(options.clone()).await.unwrap());
    }
    let each = resident_bytes().saturating_sub(before) / SESSIONS;
    println!("an idle session costs {each} bytes");
    assert!(each <= IDLE_BYTES_MAX, "an idle session costs {each} bytes");
}

fn resident_bytes() -> usize {
    const PAGE: usize = 4_096;
    let told = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = told.split_whitespace().nth(1).unwrap();
    pages.parse::<usize>().unwrap() * PAGE
}
