//! Rows 4 to 9: the server has forgotten our session.

use std::time::{Duration, Instant};

use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss};
use serde_json::json;

use super::{Record, SECOND, is_refused, no_settings, succeeds};
use crate::client::Client;

/// Loses the session in each of these shapes, under a call that has to run once. Returns the longest healing.
async fn longest_healing(losses: &[SessionLoss]) -> Duration {
    let mut longest = Duration::ZERO;
    for loss in losses {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, no_settings()).await;
        server.fail(Rule::once(Fault::SessionLost(*loss)).on("tools/call"));
        let took = succeeds(&client, "word").await;
        assert!(took < SECOND, "{loss:?}: {took:?}");
        assert_eq!(server.executions("word"), 1, "{loss:?}");
        assert_eq!(server.count("initialize"), 2, "{loss:?}");
        longest = longest.max(took);
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn row_04_a_restart_loses_the_session() {
    use SessionLoss::{NotFound, NotFoundEmpty, NotFoundInvalidRequest, NotFoundServerError};
    let losses = [
        NotFound,
        NotFoundEmpty,
        NotFoundInvalidRequest,
        NotFoundServerError,
    ];
    Record {
        row: 4,
        fault: "server restart, session lost (404, four bodies)",
        detected: "status 404 to a request with a session id",
        outcome: "new session, tools listed again, call made once more",
        healed: Some(longest_healing(&losses).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_05_a_session_is_refused_with_another_status() {
    use SessionLoss::{
        BadRequest, BadRequestNoId, BadRequestText, Conflict, Gone, Unauthorized, Unavailable,
    };
    let losses = [
        BadRequest,
        BadRequestNoId,
        BadRequestText,
        Unauthorized,
        Conflict,
        Gone,
        Unavailable,
    ];
    Record {
        row: 5,
        fault: "session dropped: 400 (three bodies), 401, 409, 410, 503",
        detected: "404 and 410 as they are, 401 when the credentials are good without a session; else \"session\" in the body, and a ping that is not answered",
        outcome: "new session, call made once more",
        healed: Some(longest_healing(&losses).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_06_a_session_is_refused_as_a_json_rpc_error() {
    let losses = [SessionLoss::InvalidParams, SessionLoss::InternalError];
    Record {
        row: 6,
        fault: "session dropped: 200 with a JSON-RPC error",
        detected: "the message says this and nothing else, and the session does not answer a ping",
        outcome: "new session, call made once more",
        healed: Some(longest_healing(&losses).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_07_a_session_is_refused_as_a_failed_tool() {
    Record {
        row: 7,
        fault: "session dropped: 200 with an `isError` result",
        detected: "the text says this and nothing else, and the session does not answer a ping",
        outcome: "new session, call made once more",
        healed: Some(longest_healing(&[SessionLoss::ToolError]).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_08_pods_without_affinity_are_not_hammered() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    let lost = Fault::SessionLost(SessionLoss::NotFound);
    server.fail(Rule::once(lost).on("tools/call").until_cleared());
    let started = Instant::now();
    let mut calls = 0;
    while started.elapsed() < 4 * SECOND {
        is_refused(&client, "word", "did not run").await;
        calls += 1;
    }
    is_refused(&client, "word", "sticky sessions").await;
    let told = client.status().last_error.unwrap_or_default();
    assert!(told.contains("sticky sessions"), "{told}");
    let sessions = server.count("initialize");
    assert!(sessions <= 12, "{sessions} sessions for {calls} calls");
    assert_eq!(server.executions("word"), 0);
    server.clear();
    let cleared = Instant::now();
    while client.append("word").await.is_err() {
        assert!(cleared.elapsed() < 15 * SECOND);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Record {
        row: 8,
        fault: "pod rotation without affinity: every call is a 404",
        detected: "a new session that is lost at once; a fourth loss within a minute",
        outcome: "calls refused as not run, with the hint that it needs sticky sessions; reconnects slow down",
        healed: Some(cleared.elapsed()),
        executions: Some(server.executions("word")),
    }
    .keep();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_09_a_deployment_refuses_the_new_session_for_a_while() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "backoff": { "cap": 1 } })).await;
    server.drop_sessions();
    for status in [404, 502, 503] {
        server.fail(Rule::once(Fault::status(status)).on("initialize"));
    }
    let took = succeeds(&client, "word").await;
    assert!(took < 15 * SECOND, "{took:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 9,
        fault: "re-initialisation fails three times (404, 502, 503)",
        detected: "its answers",
        outcome: "tried again with growing waits while the caller waits",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}
