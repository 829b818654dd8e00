//! HTTP as it is found: pages, redirects, huge bodies, both eras.

use std::time::{Duration, Instant};

use hermes_core::ToolError;
use hermes_mcp::ServerState;
use hermes_testkit::mcp::{Answers, Era, Fault, FaultyMcp, Options, Rule, Settings};
use serde_json::json;

use crate::client::{Client, PATIENCE};

#[tokio::test(flavor = "multi_thread")]
async fn both_eras_and_both_kinds_of_answer_work() {
    for era in [Era::Legacy, Era::Modern, Era::Both] {
        for answers in [Answers::Json, Answers::Sse] {
            let settings = Settings {
                era,
                answers,
                ..Settings::default()
            };
            let options = Options {
                settings,
                ..Options::default()
            };
            let server = FaultyMcp::start_with(&options).unwrap();
            let client = Client::of(&server, json!({})).await;
            client.append("word").await.unwrap();
            assert_eq!(server.executions("word"), 1, "{era:?} {answers:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_era_is_asked_for_once() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.drop_sessions();
    client.append("word").await.unwrap();
    assert_eq!(server.count("server/discover"), 1);
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_instead_of_a_server_is_named_as_such() {
    let server = FaultyMcp::start().await;
    server.fail(Rule::once(Fault::Html).on_everything().until_cleared());
    let client = Client::new(&json!({ "url": server.url() }));
    client
        .until("an error", |status| status.last_error.is_some())
        .await;
    let error = client.status().last_error.unwrap();
    assert!(error.contains("text/html"), "{error}");
    server.clear();
    client.mcp.reconnect("test").await.unwrap();
    client.until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_address_is_misconfigured() {
    for url in ["ftp://example.com/mcp", "not an address"] {
        let client = Client::new(&json!({ "url": url }));
        client
            .until("misconfigured", |status| {
                matches!(status.state, ServerState::Misconfigured { .. })
            })
            .await;
        assert!(
            client.mcp.tools(PATIENCE).await.is_empty(),
            "without waiting"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_followed_within_the_origin_only() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "headers": { "X-Key": "secret" } })).await;
    server.fail(Rule::once(Fault::RedirectSameOrigin).on("tools/call"));
    client.append("same").await.unwrap();
    assert_eq!(server.executions("same"), 1);
    server.fail(
        Rule::once(Fault::RedirectCrossOrigin)
            .on("tools/call")
            .times(2),
    );
    let error = client.append("cross").await.unwrap_err().to_string();
    assert!(error.contains("it points to"), "{error}");
    assert_eq!(server.executions("cross"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_answer_is_refused_and_not_kept() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::HugeBodyMb(40)).on("tools/call"));
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("outcome unknown"), "{error}");
    assert_eq!(server.executions("word"), 1);
    client.append("next").await.unwrap();
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_result_is_not_taken_for_work_in_the_background() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let unreadable = "what it answered is not a result as the protocol has it";
    let task = json!({
        "resultType": "task", "taskId": "t", "status": "working", "ttlMs": null,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    });
    for (result, words) in [
        (json!({"content": "done", "odd": 1}), unreadable),
        (json!(["done"]), unreadable),
        (
            task,
            "it works on in the background; tasks are not followed here",
        ),
    ] {
        server.fail(Rule::once(Fault::Result(result.clone())).on("tools/call"));
        let error = client.append("word").await.unwrap_err();
        assert!(matches!(error, ToolError::OutcomeUnknown(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{result}: {error}");
    }
    assert_eq!(server.executions("word"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_after_an_event_id_is_resumed() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::SseResumable).on("tools/call"));
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_to_a_request_is_ignored() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::DuplicateResponse).on("tools/call"));
    client.append("one").await.unwrap();
    client.append("two").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_the_handshake_is_given_up_at_the_deadline() {
    let server = FaultyMcp::start().await;
    server.fail(Rule::once(Fault::Hang).on_everything().until_cleared());
    let started = Instant::now();
    let client = Client::new(&json!({ "url": server.url(), "connect_timeout": 1 }));
    client
        .until("an error", |status| status.last_error.is_some())
        .await;
    assert!(started.elapsed() < Duration::from_secs(3));
    let error = client.status().last_error.unwrap();
    assert!(error.contains("no answer within 1 s"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_headers_are_sent_with_every_request() {
    let server = FaultyMcp::start().await;
    let client = Client::of(
        &server,
        json!({ "headers": { "Authorization": "Bearer t0k3n" } }),
    )
    .await;
    client.append("word").await.unwrap();
    for seen in server.requests() {
        assert_eq!(
            seen.header("authorization"),
            Some("Bearer t0k3n"),
            "{}",
            seen.method
        );
    }
}
