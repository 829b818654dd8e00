//! A lost session or connection is made anew, and the call that found out succeeds.

use std::time::{Duration, Instant};

use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss, Settings};
use serde_json::json;

use crate::client::{Client, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_of_a_lost_session_heals_within_a_second_and_runs_the_call_once() {
    for loss in SessionLoss::ALL {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        client.append("before").await.unwrap();
        server.fail(Rule::once(Fault::SessionLost(loss)).on("tools/call"));

        let started = Instant::now();
        let answer = client.append("after").await;
        let took = started.elapsed();

        println!("{loss:?} healed in {took:?}");
        assert!(answer.is_ok(), "{loss:?}: {answer:?}");
        assert!(took < Duration::from_secs(1), "{loss:?} took {took:?}");
        assert_eq!(server.executions("after"), 1, "{loss:?}");
        assert_eq!(server.count("initialize"), 2, "{loss:?}");
        client.append("later").await.unwrap();
        assert_eq!(server.count("initialize"), 2, "{loss:?} healed for good");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_four_other_operations_heal_too() {
    for (tool, arguments, method) in [
        ("list_resources", json!({}), "resources/list"),
        (
            "read_resource",
            json!({ "uri": "test://greeting" }),
            "resources/read",
        ),
        ("list_prompts", json!({}), "prompts/list"),
        (
            "get_prompt",
            json!({ "name": "greet", "arguments": { "name": "Ada" } }),
            "prompts/get",
        ),
    ] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        let before = client.call(tool, arguments.clone()).await;
        server.fail(Rule::once(Fault::SessionLost(SessionLoss::InvalidParams)).on(method));
        let after = client.call(tool, arguments).await;
        assert_eq!(before.unwrap(), after.unwrap(), "{method}");
        assert_eq!(server.count("initialize"), 2, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_fails_too_is_the_answer() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let lost = Fault::SessionLost(SessionLoss::InvalidParams);
    server.fail(Rule::once(lost).on("tools/call").until_cleared());
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("session"), "{error}");
    assert_eq!(server.count("tools/call"), 2, "once, and once more");
    assert_eq!(server.executions("word"), 0);
    server.clear();
    client.append("word").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_is_not_about_the_session_falls_through() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let arguments = json!({ "code": -32000, "message": "database connection closed" });
    let error = client.call("app_error", arguments).await.unwrap_err();
    assert!(error.to_string().contains("database connection closed"));
    assert_eq!(server.count("tools/call"), 1);
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_restart_is_noticed_before_anybody_calls() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    eventually("the stream is open", || server.count("GET") > 0).await;
    server.stop_listening();
    server.drop_sessions();
    server.listen_again();
    client
        .until("reconnected", |status| status.reconnects == 1)
        .await;
    assert_eq!(server.count("tools/call"), 0);
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keepalive_heals_a_forgotten_session_before_a_user_meets_it() {
    let options = hermes_testkit::mcp::Options {
        settings: Settings {
            has_get_stream: false,
            ..Settings::default()
        },
        ..Default::default()
    };
    let server = FaultyMcp::start_with(&options).unwrap();
    let client = Client::of(&server, json!({ "keepalive_interval": 5 })).await;
    server.drop_sessions();
    client
        .until("reconnected", |status| status.reconnects == 1)
        .await;
    assert_eq!(server.count("tools/call"), 0);
    assert!(server.count("ping") >= 1);
    client.append("word").await.unwrap();
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_ping_is_asked_for_its_list() {
    let options = hermes_testkit::mcp::Options {
        settings: Settings {
            has_ping: false,
            has_get_stream: false,
            ..Settings::default()
        },
        ..Default::default()
    };
    let server = FaultyMcp::start_with(&options).unwrap();
    let client = Client::of(&server, json!({ "keepalive_interval": 5 })).await;
    let lists = server.count("tools/list");
    eventually("a probe by list", || server.count("tools/list") > lists).await;
    assert_eq!(server.count("ping"), 1);
    server.drop_sessions();
    client
        .until("reconnected", |status| status.reconnects == 1)
        .await;
    assert_eq!(server.count("ping"), 1, "latched for the connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_calls_that_meet_one_lost_session_share_one_recovery() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "max_concurrency": 32 })).await;
    server.drop_sessions();
    let words: Vec<String> = (0..20).map(|n| format!("word{n}")).collect();
    let calls = words.iter().map(|word| client.append(word));
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
    assert!(words.iter().all(|word| server.executions(word) == 1));
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_are_listed_again_after_a_restart() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let before = client.names().await;
    server.change(|settings| settings.extra_tools = 2);
    server.drop_sessions();
    client.append("word").await.unwrap();
    client
        .until("new tools", |status| status.tools == before.len() - 4 + 2)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_hangs_after_a_reconnect_does_not_wedge_the_server() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::Hang).on("tools/list"));
    server.drop_sessions();
    client.append("one").await.unwrap();
    client.append("two").await.unwrap();
    assert_eq!(server.executions("one") + server.executions("two"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_nobody_configured_cannot_be_reconnected() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let error = client.mcp.reconnect("other").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no MCP server `other`; there are: test"
    );
}
