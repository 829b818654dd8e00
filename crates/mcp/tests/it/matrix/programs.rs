//! Rows 21 to 25: servers that are programs.

use std::time::Instant;

use hermes_core::ToolError;
use hermes_testkit::mcp::{Rule, StdioFault, StdioMcp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Record, SECOND, ends_unknown, succeeds};
use crate::client::{Client, eventually};
use crate::stdio::{is_running, section};

async fn client_of(server: &StdioMcp, more: Value) -> Client {
    let mut section = section(server);
    let more = more.as_object().unwrap().clone();
    section.as_object_mut().unwrap().extend(more);
    let client = Client::new(&section);
    client.until_ready().await;
    client.tools().await;
    client
}

fn on_call(fault: StdioFault) -> Rule<StdioFault> {
    Rule::once(fault).on("tools/call")
}

#[tokio::test(flavor = "multi_thread")]
async fn row_21_a_program_exits() {
    let server = StdioMcp::new();
    let client = client_of(&server, json!({})).await;
    server.fail(on_call(StdioFault::Exit).after_executing());
    ends_unknown(&client, "lost").await;
    let took = succeeds(&client, "word").await;
    assert!(took < 3 * SECOND, "{took:?}");
    assert_eq!(server.executions("lost"), 1);
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 21,
        fault: "program exits in the middle of a call",
        detected: "end of its output, or of the process",
        outcome: "`outcome_unknown`, never repeated; started again",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_21_a_program_that_always_crashes_is_left_in_peace() {
    let server = StdioMcp::new();
    let client = client_of(&server, json!({ "breaker": { "threshold": 0 } })).await;
    server.fail(on_call(StdioFault::Exit).until_cleared());
    for _ in 0..5 {
        let error = client.append("word").await.unwrap_err();
        assert!(matches!(error, ToolError::OutcomeUnknown(_)), "{error:?}");
    }
    client
        .until("a long wait", |status| {
            status.next_attempt.is_some_and(|wait| wait > 20 * SECOND)
        })
        .await;
    assert_eq!(server.process_ids().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_22_a_program_is_stopped() {
    let server = StdioMcp::new();
    let client = client_of(&server, json!({ "timeout": 1 })).await;
    let process = server.process_ids()[0];
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let stopped = Instant::now();
    ends_unknown(&client, "lost").await;
    succeeds(&client, "word").await;
    let healed = stopped.elapsed();
    assert!(healed < 10 * SECOND, "{healed:?}");
    assert!(!is_running(process));
    assert_eq!(server.executions("lost"), 0);
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 22,
        fault: "program hangs (SIGSTOP)",
        detected: "the call's deadline (1 s here), then a probe without an answer within 5 s",
        outcome: "`outcome_unknown`; its group killed, started again",
        healed: Some(healed),
        executions: Some(0),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_23_a_program_stops_reading() {
    let server = StdioMcp::new();
    let client = client_of(&server, json!({ "timeout": 1 })).await;
    server.fail(on_call(StdioFault::StopReading));
    let started = Instant::now();
    // More than a pipe holds.
    let long = "x".repeat(1 << 20);
    client.append("lost").await.unwrap_err();
    client.append(&long).await.ok();
    while client.append("word").await.is_err() {
        assert!(started.elapsed() < 20 * SECOND);
    }
    assert_eq!(server.executions("word"), 1);
    assert_eq!(server.executions("lost"), 0);
    assert!(!is_running(server.process_ids()[0]));
    Record {
        row: 23,
        fault: "program stops reading its input, the pipe fills up",
        detected: "the call's deadline (1 s here) and a probe; at the latest a write that takes 10 s",
        outcome: "`outcome_unknown`; its group killed, started again",
        healed: Some(started.elapsed()),
        executions: Some(0),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_24_a_program_prints_noise_or_a_giant_line() {
    let server = StdioMcp::new();
    let client = client_of(&server, json!({})).await;
    server.fail(on_call(StdioFault::Garbage));
    succeeds(&client, "noisy").await;
    server.fail(on_call(StdioFault::GiantLineMb(100)));
    let error = client.append("giant").await.unwrap_err().to_string();
    assert!(error.contains("larger than"), "{error}");
    let took = succeeds(&client, "word").await;
    assert_eq!(server.executions("giant"), 1);
    assert_eq!(server.process_ids().len(), 1);
    Record {
        row: 24,
        fault: "noise on standard output; an answer of 100 MB in one line",
        detected: "not JSON; longer than 32 MiB",
        outcome: "skipped; fails its call only, same process",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_25_nothing_is_left_behind() {
    let server = StdioMcp::new();
    let client = client_of(&server, json!({})).await;
    server.fail(on_call(StdioFault::Grandchild));
    client.append("word").await.unwrap();
    server.fail(on_call(StdioFault::IgnoreSigterm));
    client.append("word").await.unwrap();
    let mut processes = server.process_ids();
    processes.extend(server.grandchild_ids());
    let started = Instant::now();
    client.mcp.shutdown().await;
    eventually("all gone", || {
        !processes.iter().any(|process| is_running(*process))
    })
    .await;
    Record {
        row: 25,
        fault: "program with children, deaf to SIGTERM",
        detected: "its group still lives 2 s after SIGTERM",
        outcome: "the whole group killed; also when hermes itself is killed",
        healed: Some(started.elapsed()),
        executions: None,
    }
    .keep();
}
