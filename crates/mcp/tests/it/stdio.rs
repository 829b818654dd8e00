//! Servers that are programs: they crash, hang, leave children behind, and are started again.

use std::time::{Duration, Instant};

use hermes_core::ToolError;
use hermes_mcp::ServerState;
use hermes_testkit::mcp::{Rule, START, StdioFault, StdioMcp};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::client::{Client, eventually};

/// The test binary itself, told to be the server. Its harness prints a greeting first, which a client has to bear.
pub(crate) fn section(server: &StdioMcp) -> Value {
    section_with(server, &json!({}))
}

/// The same, as a server with these settings.
pub(crate) fn section_with(server: &StdioMcp, settings: &Value) -> Value {
    let mut args: Vec<String> = server
        .args()
        .into_iter()
        .map(|arg| arg.into_string().unwrap())
        .collect();
    args.extend(["--settings".to_owned(), settings.to_string()]);
    json!({
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "stdio::be_the_server", "--ignored", "--nocapture", "--quiet"],
        "env": { "FAULTY_MCP_ARGS": json!(args).to_string() },
        "keepalive_interval": 0,
    })
}

#[test]
#[ignore = "the program that the other tests start"]
#[expect(clippy::disallowed_methods, reason = "its arguments come this way")]
fn be_the_server() {
    let args: Vec<String> =
        serde_json::from_str(&std::env::var("FAULTY_MCP_ARGS").unwrap()).unwrap();
    hermes_testkit::mcp::run_program(args.into_iter()).unwrap();
    std::process::exit(0);
}

async fn client_of(server: &StdioMcp) -> Client {
    let client = Client::new(&section(server));
    client.until_ready().await;
    client.tools().await;
    client
}

pub(crate) fn is_running(process: u64) -> bool {
    let process = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    test_kill_process(process).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_prints_noise_is_a_server_all_the_same() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    server.fail(Rule::once(StdioFault::Garbage).on("tools/call"));
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_during_which_the_program_ends_is_not_repeated() {
    for fault in [StdioFault::Exit, StdioFault::ExitMidLine] {
        let server = StdioMcp::new();
        let client = client_of(&server).await;
        server.fail(Rule::once(fault.clone()).on("tools/call").after_executing());
        let started = Instant::now();
        let error = client.append("word").await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(2), "{fault:?}");
        assert!(
            matches!(error, ToolError::OutcomeUnknown(_)),
            "{fault:?}: {error:?}"
        );
        client.append("next").await.unwrap();
        assert_eq!(server.executions("word"), 1, "{fault:?}");
        assert_eq!(server.executions("next"), 1, "{fault:?}");
        assert_eq!(server.process_ids().len(), 2, "started again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_stops_reading_is_killed_and_started_again() {
    let server = StdioMcp::new();
    let mut section = section(&server);
    section["timeout"] = json!(1);
    let client = Client::new(&section);
    client.until_ready().await;
    server.fail(Rule::once(StdioFault::StopReading).on("tools/call"));
    client.append("word").await.unwrap_err();
    client.append("next").await.unwrap();
    let processes = server.process_ids();
    assert_eq!(processes.len(), 2);
    assert!(!is_running(processes[0]) && is_running(processes[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_the_program_and_what_it_started() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    server.fail(Rule::once(StdioFault::Grandchild).on("tools/call"));
    client.append("word").await.unwrap();
    server.fail(Rule::once(StdioFault::IgnoreSigterm).on("tools/call"));
    client.append("word").await.unwrap();
    let mut processes = server.process_ids();
    processes.extend(server.grandchild_ids());
    assert_eq!(processes.len(), 2);
    assert!(processes.iter().all(|process| is_running(*process)));
    client.mcp.shutdown().await;
    eventually("all gone", || {
        !processes.iter().any(|process| is_running(*process))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ended_is_noticed_though_its_child_holds_the_pipe() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    server.fail(Rule::once(StdioFault::Grandchild).on("tools/call"));
    client.append("word").await.unwrap();
    let grandchild = server.grandchild_ids()[0];
    server.fail(Rule::once(StdioFault::Exit).on("tools/call"));
    let started = Instant::now();
    client.append("lost").await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(2));
    client.append("next").await.unwrap();
    eventually("it goes with the process that started it", || {
        !is_running(grandchild)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_hundred_megabytes_fails_its_call_only() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    server.fail(Rule::once(StdioFault::GiantLineMb(100)).on("tools/call"));
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("larger than"), "{error}");
    client.append("next").await.unwrap();
    assert_eq!(server.process_ids().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_writes_to_standard_error_is_in_its_log() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    server.fail(Rule::once(StdioFault::StderrChatter(2000)).on("tools/call"));
    client.append("word").await.unwrap();
    let log = client.logs.path().join("mcp-test.log");
    let lines = || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .count()
    };
    eventually("two thousand lines", || lines() >= 2000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_exist_is_misconfigured() {
    let client = Client::new(&json!({ "command": "hermes-no-such-program" }));
    client
        .until("misconfigured", |status| {
            matches!(status.state, ServerState::Misconfigured { .. })
        })
        .await;
    let error = client.status().last_error.unwrap();
    assert!(
        error.contains("cannot start `hermes-no-such-program`"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_words_of_a_program_that_fails_to_start_are_shown() {
    let script = "echo 'missing API key' >&2; exit 3";
    let client = Client::new(&json!({ "command": "/bin/sh", "args": ["-c", script] }));
    client
        .until("an error", |status| status.last_error.is_some())
        .await;
    let error = client.status().last_error.unwrap();
    assert!(error.contains("missing API key"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_fails_to_start_a_few_times_comes_up_later() {
    let server = StdioMcp::new();
    server.fail(Rule::once(StdioFault::Exit).on(START).times(3));
    let client = client_of(&server).await;
    client.append("word").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_call_is_cancelled_at_the_program() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    let call = client.call("slow", json!({ "ms": 60_000 }));
    let _ = tokio::time::timeout(Duration::from_millis(300), call).await;
    let dropped_at = Instant::now();
    eventually("cancelled", || !server.cancelled().is_empty()).await;
    assert!(dropped_at.elapsed() < Duration::from_millis(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_client_ends_its_programs() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    let process = server.process_ids()[0];
    assert!(is_running(process));
    drop(client);
    eventually("gone", || !is_running(process)).await;
}

#[test]
fn no_program_outlives_a_client_that_was_killed() {
    let server = StdioMcp::new();
    let mut victim = command()
        .args(["--exact", "stdio::be_the_victim", "--ignored"])
        .env("VICTIM_SECTION", section(&server).to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < Duration::from_secs(10), "never: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_until("a call", &|| server.executions("word") == 1);
    let process = server.process_ids()[0];
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the program is gone", &|| !is_running(process));
}

#[expect(clippy::disallowed_methods, reason = "the test kills this process")]
pub(crate) fn command() -> std::process::Command {
    std::process::Command::new(std::env::current_exe().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the client that another test kills"]
#[expect(clippy::disallowed_methods, reason = "its settings come this way")]
async fn be_the_victim() {
    let section = std::env::var("VICTIM_SECTION").unwrap();
    let client = Client::new(&serde_json::from_str(&section).unwrap());
    client.append("word").await.unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_idles_is_ended_and_the_next_call_starts_it_again() {
    let server = StdioMcp::new();
    let mut section = section(&server);
    section["idle_timeout_seconds"] = json!(1);
    let client = Client::new(&section);
    client.append("one").await.unwrap();
    client
        .until("resting", |status| status.state == ServerState::Resting)
        .await;
    let first = server.process_ids()[0];
    eventually("it has ended", || !is_running(first)).await;
    assert!(!client.tools().await.is_empty(), "its tools stay");
    client.append("two").await.unwrap();
    assert_eq!(server.process_ids().len(), 2);
    assert_eq!(server.executions("two"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_nobody_before_the_handshake_is_left_out() {
    for method in ["initialize", "server/discover"] {
        let server = StdioMcp::new();
        server.fail(
            Rule::once(StdioFault::StrayResponse)
                .on(method)
                .until_cleared(),
        );
        let client = client_of(&server).await;
        client.append("word").await.unwrap();
        assert_eq!(server.executions("word"), 1, "{method}");
        assert_eq!(server.process_ids().len(), 1, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_client_with_our_id_is_no_handshake() {
    let server = StdioMcp::new();
    server.fail(
        Rule::once(StdioFault::AnswerToAnother)
            .on("initialize")
            .until_cleared(),
    );
    let client = client_of(&server).await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
    assert_eq!(server.process_ids().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_says_that_the_tool_ran() {
    let server = StdioMcp::new();
    let client = client_of(&server).await;
    server.fail(Rule::once(StdioFault::GiantLineMb(40)).on("tools/call"));
    let error = client.append("word").await.unwrap_err();
    assert!(matches!(error, ToolError::Answer(_)), "{error:?}");
    assert!(
        error.to_string().contains("it ran, but its answer"),
        "{error}"
    );
    assert_eq!(server.executions("word"), 1);
    client.append("next").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_nobody_has_read_is_refused_with_those_we_speak() {
    let server = StdioMcp::new();
    let section = section_with(&server, &json!({ "version": "1999-12-31" }));
    let client = Client::new(&section);
    let error = client.error().await;
    for part in ["1999-12-31", "2025-11-25", "2026-07-28", "update"] {
        assert!(error.contains(part), "{error}");
    }
    let state = client.status().state;
    assert!(
        matches!(state, ServerState::Misconfigured { .. }),
        "{state:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_starts_in_a_session_of_its_own_ends_with_it() {
    let server = StdioMcp::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut section = section(&server);
    // One keeps its parent and clears its environment; the other is an orphan at once.
    let script = format!(
        "env -i /usr/bin/setsid sleep 300 & (setsid sh -c 'echo $$ >{} ; exec sleep 300' &) ; exec \"$0\" \"$@\"",
        file.display()
    );
    let mut args = vec![json!("-c"), json!(script), section["command"].clone()];
    args.extend(section["args"].as_array().unwrap().clone());
    section["command"] = json!("/bin/sh");
    section["args"] = json!(args);
    let client = Client::new(&section);
    client.until_ready().await;
    client.append("word").await.unwrap();
    eventually("the orphan is there", || {
        std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'))
    })
    .await;
    let orphan: u64 = std::fs::read_to_string(&file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_running(orphan));
    let children = children_of(server.process_ids()[0]);
    assert_eq!(children.len(), 1, "the one with a parent");
    client.mcp.shutdown().await;
    eventually("the orphan has ended", || !is_running(orphan)).await;
    eventually("the child has ended", || !is_running(children[0])).await;
}

fn children_of(process: u64) -> Vec<u64> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    children
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}
