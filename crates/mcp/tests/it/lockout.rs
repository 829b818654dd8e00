//! Nothing locks a server out: whoever calls has it tried at once.

use std::time::{Duration, Instant};

use hermes_mcp::{ServerSettings, ServerState};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, StdioMcp};
use serde_json::json;

use crate::client::{Client, eventually};
use crate::stdio::section;

/// Much less than any lockout, much more than a busy machine takes.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn one_refusal_of_the_credentials_is_over_with_the_next_call() {
    for fault in [Fault::Unauthorized, Fault::status(401), Fault::status(403)] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        let always = || Rule::once(fault.clone()).until_cleared();
        server.fail(always().on("tools/call"));
        server.fail(always().on("ping"));
        server.fail(always().on("initialize"));
        server.fail(always().on("server/discover"));
        client.append("word").await.unwrap_err();
        let asked = Instant::now();
        client.append("word").await.unwrap_err();
        assert!(asked.elapsed() < SOON, "{fault:?}: told, not kept waiting");
        server.clear();
        let mended = Instant::now();
        client.append("word").await.unwrap();
        assert!(mended.elapsed() < SOON, "{fault:?}: {:?}", mended.elapsed());
        assert_eq!(server.executions("word"), 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_refusals_at_the_start_ends_by_itself() {
    let server = FaultyMcp::start().await;
    let refused = || Rule::once(Fault::status(403)).until_cleared();
    server.fail(refused().on("initialize"));
    server.fail(refused().on("server/discover"));
    let client = Client::new(&json!({ "url": server.url() }));
    client
        .until("refused", |status| {
            matches!(status.state, ServerState::NeedsAuth { .. })
        })
        .await;
    server.clear();
    client.until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_missing_for_a_while_is_found_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let server = StdioMcp::new();
    let mut section = section(&server);
    let real = std::mem::replace(&mut section["command"], json!(program));
    let client = Client::new(&section);
    client
        .until("missing", |status| {
            matches!(status.state, ServerState::Misconfigured { .. })
        })
        .await;
    std::os::unix::fs::symlink(real.as_str().unwrap(), &program).unwrap();
    client.until_ready().await;
    client.append("word").await.unwrap();

    // Now it goes away under a running client, as when a package is renewed.
    std::fs::remove_file(&program).unwrap();
    let process = *server.process_ids().last().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    client
        .until("the loss is known", |status| {
            status.state != ServerState::Ready
        })
        .await;
    let call = client.append("renewed");
    let back = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        std::os::unix::fs::symlink(real.as_str().unwrap(), &program).unwrap();
    };
    let (answer, ()) = tokio::join!(call, back);
    answer.unwrap();
    assert_eq!(server.executions("renewed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_read_again_have_what_is_away_tried_at_once() {
    let server = FaultyMcp::start().await;
    server.stop_listening();
    let slow = json!({ "url": server.url(), "backoff": { "base": 600, "cap": 600 } });
    let client = Client::new(&slow);
    client.error().await;
    server.listen_again();
    let settings = ServerSettings::parse("test", &slow).unwrap();
    let reloaded = client.mcp.reload(vec![settings]).await;
    assert_eq!(reloaded.kept, ["test"]);
    let read = Instant::now();
    client.until_ready().await;
    assert!(read.elapsed() < SOON);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_after_a_long_outage_succeeds() {
    let server = FaultyMcp::start().await;
    let settings = json!({ "breaker": { "threshold": 1, "cooldown": 600 },
        "backoff": { "base": 600, "cap": 600 } });
    let client = Client::of(&server, settings).await;
    server.stop_listening();
    client
        .until("the loss is known", |status| {
            matches!(status.state, ServerState::Reconnecting { .. })
        })
        .await;
    client.append("down").await.unwrap_err();
    server.listen_again();
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_crashes_at_its_start_is_started_at_most_five_times_a_minute() {
    use hermes_testkit::mcp::{START, StdioFault};
    let server = StdioMcp::new();
    server.fail(Rule::once(StdioFault::Exit).on(START).until_cleared());
    let client = Client::new(&section(&server));
    client.error().await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(6) {
        // Nobody has a tool of it yet: reading the settings again is what asks for it.
        let settings = ServerSettings::parse("test", &section(&server)).unwrap();
        client.mcp.reload(vec![settings]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let starts = server.process_ids().len();
    assert!((3..=5).contains(&starts), "{starts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_freezes_under_a_call_is_found_out_by_the_keepalive() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "keepalive_interval": 5 })).await;
    server.fail(Rule::once(Fault::Hang).until_cleared());
    let called = Instant::now();
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(called.elapsed() < Duration::from_secs(15), "{error}");
    assert!(error.contains("outcome unknown"), "{error}");
    assert!(!error.contains("try"), "{error}");
    server.clear();
    client.append("next").await.unwrap();

    let server = StdioMcp::new();
    let mut section = section(&server);
    section["keepalive_interval"] = json!(5);
    let client = Client::new(&section);
    client.until_ready().await;
    client.tools().await;
    let process = *server.process_ids().last().unwrap();
    let call = client.call("slow", json!({ "ms": 60_000 }));
    let freeze = async {
        eventually("it arrived", || server.count("tools/call") > 0).await;
        let pid = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    };
    let called = Instant::now();
    let (answer, ()) = tokio::join!(call, freeze);
    let error = answer.unwrap_err().to_string();
    assert!(called.elapsed() < Duration::from_secs(20), "{error}");
    assert!(error.contains("outcome unknown"), "{error}");
    client.append("next").await.unwrap();
    assert_eq!(server.executions("next"), 1);
}
