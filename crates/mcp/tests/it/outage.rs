//! Servers that go away, stay away, and come back.

use std::time::{Duration, Instant};

use hermes_mcp::{BreakerStatus, ServerState};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use serde_json::json;

use crate::client::{Client, PATIENCE};

/// A caller who is not refused waits this long for a connection.
const WAIT_FOR_A_CONNECTION: Duration = Duration::from_secs(15);

/// How soon, and that a refusal takes no time at all, is for the supervisor's own tests: their clock is not the machine's.
#[tokio::test(flavor = "multi_thread")]
async fn after_an_outage_under_a_caller_who_keeps_asking_the_server_is_usable_again() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let tools = client.names().await;
    server.stop_listening();
    until_the_loss_is_known(&client).await;
    // Somebody keeps asking; none of them waits long once the outage is known.
    let down_since = Instant::now();
    while !matches!(client.status().breaker, BreakerStatus::Open { .. }) {
        assert!(down_since.elapsed() < Duration::from_secs(60), "never open");
        let asked = Instant::now();
        let call = tokio::time::timeout(Duration::from_secs(1), client.append("down"));
        if let Ok(answer) = call.await {
            let error = answer.unwrap_err().to_string();
            assert!(error.contains("did not run"), "{error}");
        }
        tokio::time::sleep(Duration::from_secs(1).saturating_sub(asked.elapsed())).await;
    }
    // While an attempt is under way there is no next one.
    client
        .until("the next attempt is known", |status| {
            matches!(status.state, ServerState::Reconnecting { .. })
                && status.next_attempt.is_some()
        })
        .await;
    let asked = Instant::now();
    client.append("down").await.unwrap_err();
    assert!(
        asked.elapsed() < WAIT_FOR_A_CONNECTION,
        "refused, not kept waiting"
    );
    assert_eq!(client.names().await, tools, "the tools stay");

    server.listen_again();
    let back = Instant::now();
    while client.append("back").await.is_err() {
        assert!(back.elapsed() < PATIENCE, "never usable again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.executions("back"), 1);
    assert_eq!(server.executions("down"), 0);
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_during_a_short_outage_waits_and_succeeds() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.stop_listening();
    until_the_loss_is_known(&client).await;
    let call = client.append("word");
    let back = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        server.listen_again();
    };
    let (answer, ()) = tokio::join!(call, back);
    answer.unwrap();
    assert_eq!(server.executions("word"), 1);
}

/// A call that crosses the end of the old connection would rightly be of unknown outcome.
async fn until_the_loss_is_known(client: &Client) {
    client
        .until("the loss is known", |status| {
            matches!(status.state, ServerState::Reconnecting { .. })
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_at_start_appears_later() {
    let server = FaultyMcp::start().await;
    server.stop_listening();
    let client = Client::new(&json!({ "url": server.url() }));
    assert!(
        client
            .mcp
            .tools(Duration::from_millis(200))
            .await
            .is_empty()
    );
    server.listen_again();
    assert!(!client.tools().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_re_initialisation_that_fails_is_tried_again() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.drop_sessions();
    server.fail(Rule::once(Fault::status(502)).on("initialize").times(2));
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_call_may_finish_on_a_connection_that_was_replaced() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let slow = client.call("slow", json!({ "ms": 800 }));
    let replace = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        client.mcp.reconnect("test").await.unwrap();
        client
            .until("replaced", |status| status.reconnects == 1)
            .await;
    };
    let (answer, ()) = tokio::join!(slow, replace);
    answer.unwrap();
}
