//! What may have run is never run again; what keeps failing is left alone.

use std::time::{Duration, Instant};

use hermes_core::ToolError;
use hermes_mcp::{BreakerStatus, ServerState};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use serde_json::json;

use crate::client::{Client, eventually};

fn on_call(fault: Fault) -> Rule<Fault> {
    Rule::once(fault).on("tools/call")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_may_have_run_is_not_repeated() {
    for fault in [
        Fault::Reset,
        Fault::status(500),
        Fault::status(502),
        Fault::Truncated,
        Fault::SseEmpty,
        Fault::Html,
    ] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        server.fail(on_call(fault.clone()).after_executing());
        let started = Instant::now();
        let error = client.append("word").await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(1), "{fault:?}");
        assert!(
            matches!(error, ToolError::OutcomeUnknown(_)),
            "{fault:?}: {error:?}"
        );
        assert_eq!(server.executions("word"), 1, "{fault:?}");
        client.append("next").await.unwrap();
        assert_eq!(server.executions("next"), 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_only_reads_is_repeated() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "trust_annotations": true })).await;
    server.fail(on_call(Fault::Reset));
    let sum = client.call("add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert!(sum.contains('3'), "{sum}");
    assert_eq!(server.count("tools/call"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_server_operation_cause_and_what_happens_next() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(on_call(Fault::status(500)));
    let error = client.append("word").await.unwrap_err().to_string();
    for part in [
        "`test`",
        "tools/call `append`",
        "HTTP 500",
        "outcome unknown",
        "Next:",
    ] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_with_a_null_a_foreign_or_no_id_reach_their_caller() {
    use hermes_testkit::mcp::WrongId;
    for (status, id) in [
        (200, WrongId::Null),
        (200, WrongId::Foreign),
        (200, WrongId::Missing),
        (400, WrongId::Null),
        (400, WrongId::Foreign),
    ] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        server.fail(on_call(Fault::ErrorWithId { status, id }));
        let started = Instant::now();
        let error = client.append("word").await.unwrap_err();
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{status} {id:?}"
        );
        assert!(matches!(error, ToolError::Answer(_)), "{error:?}");
        client.append("next").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_rate_limit_is_waited_for() {
    for status in [429, 503] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        server.fail(on_call(Fault::retry_after(status, "1")));
        let started = Instant::now();
        client.append("word").await.unwrap();
        assert!(started.elapsed() >= Duration::from_secs(1));
        assert_eq!(server.executions("word"), 1);
        assert_eq!(server.count("initialize"), 1, "the connection was fine");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_rate_limit_is_told_at_once() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(on_call(Fault::retry_after(429, "50")));
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("50 s"), "{error}");
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_infrastructure_failures_open_the_breaker_and_one_probe_closes_it() {
    let server = FaultyMcp::start().await;
    let settings = json!({ "breaker": { "cooldown": 1 } });
    let client = Client::of(&server, settings).await;
    server.fail(on_call(Fault::status(500)).times(3));
    for _ in 0..3 {
        client.append("word").await.unwrap_err();
    }
    client
        .until("open", |status| {
            matches!(status.breaker, BreakerStatus::Open { .. })
        })
        .await;
    assert_ne!(client.status().state, ServerState::Ready);
    // The last failure was doubted and probed like the others; what counts is what comes after.
    eventually("probed", || server.count("ping") == 3).await;
    let calls = server.count("tools/call");
    let pings = server.count("ping");
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(
        error.contains("did not run") && error.contains("probed in"),
        "{error}"
    );
    assert_eq!(server.count("tools/call"), calls, "refused without asking");

    client
        .until("closed", |status| status.breaker == BreakerStatus::Closed)
        .await;
    assert_eq!(server.count("ping"), pings + 1, "exactly one probe");
    client.append("word").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn application_errors_never_open_the_breaker() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    for _ in 0..10 {
        let failed = client.call("fail", json!({})).await.unwrap_err();
        assert!(!failed.to_string().is_empty());
        let arguments = json!({ "code": -32000, "message": "" });
        let failed = client.call("app_error", arguments).await.unwrap_err();
        assert!(failed.to_string().len() > 20, "{failed}");
    }
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    assert_eq!(client.status().state, ServerState::Ready);
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_times_out_is_cancelled_and_leaves_the_server_usable() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "timeout": 1 })).await;
    server.fail(on_call(Fault::Hang));
    let error = client.append("word").await.unwrap_err();
    assert!(matches!(error, ToolError::OutcomeUnknown(_)), "{error:?}");
    client.append("next").await.unwrap();
    assert_eq!(server.count("initialize"), 1, "slow is not dead");
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    assert_eq!(server.cancelled().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_needs_credentials_and_says_which_header_to_set() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(on_call(Fault::Unauthorized));
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("mcp_servers.test.headers"), "{error}");
    client
        .until("needs credentials", |status| {
            matches!(status.state, ServerState::NeedsAuth { .. })
        })
        .await;
    client.mcp.reconnect("test").await.unwrap();
    client.until_ready().await;
    client.append("word").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_not_allowed_leaves_the_others_alone() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(on_call(Fault::InsufficientScope));
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(
        error.contains("write") && error.contains("do not allow"),
        "{error}"
    );
    client.append("next").await.unwrap();
    assert_eq!(server.count("initialize"), 1);
}
