//! Calls as such: side by side, called off, with progress; and the list of tools.

use std::time::{Duration, Instant};

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Effect, Parallel, Plan, Progress, Tool, ToolError, call_channel};
use hermes_mcp::ServerState;
use hermes_testkit::contract::tool;
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use serde_json::json;

use crate::client::{Client, context, eventually};

fn plan(tool: &Arc<dyn Tool>) -> Plan {
    tool::plan(tool, &json!({}), Path::new("/"))
}

#[tokio::test(flavor = "multi_thread")]
async fn four_slow_calls_take_as_long_as_one() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let started = Instant::now();
    let calls = (0..4).map(|_| client.call("slow", json!({ "ms": 1000 })));
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
    let took = started.elapsed();
    assert!(took < Duration::from_millis(1200), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn max_concurrency_makes_calls_wait_for_each_other() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "max_concurrency": 1 })).await;
    let started = Instant::now();
    let calls = (0..3).map(|_| client.call("slow", json!({ "ms": 200 })));
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
    assert!(started.elapsed() >= Duration::from_millis(600));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_call_is_cancelled_at_the_server() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let (tool, cx) = (client.tool("slow").await, context());
    let call = tool.run(json!({ "ms": 60_000 }), &cx);
    let stop = async {
        eventually("the call arrived", || server.count("tools/call") == 1).await;
        cx.stop.cancel();
        Instant::now()
    };
    let (result, stopped_at) = tokio::join!(call, stop);
    assert!(matches!(result, Err(ToolError::Stopped(_))), "{result:?}");
    eventually("cancelled", || !server.cancelled().is_empty()).await;
    let took = stopped_at.elapsed();
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let call = client.call("slow", json!({ "ms": 60_000 }));
    let _ = tokio::time::timeout(Duration::from_millis(300), call).await;
    let dropped_at = Instant::now();
    eventually("cancelled", || !server.cancelled().is_empty()).await;
    assert!(dropped_at.elapsed() < Duration::from_millis(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_and_keeps_a_long_call_alive() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "timeout": 1 })).await;
    let (tool, mut cx) = (client.tool("slow").await, context());
    let (sender, mut messages) = call_channel();
    cx.progress = Progress::to(&sender);
    tool.run(json!({ "ms": 2500 }), &cx).await.unwrap();
    assert!(messages.try_recv().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_changes_is_listed_at_most_twice() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    eventually("the stream is open", || server.count("GET") > 0).await;
    let pages_before = server.count("tools/list");
    server.change(|settings| settings.extra_tools = 1);
    eventually("a listener", || server.notify_list_changed(200) > 0).await;
    client
        .until("the new tool", |status| status.tools == 7)
        .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let lists = (server.count("tools/list") - pages_before) / 2;
    assert!(lists <= 2, "{lists} lists of two pages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_reaches_the_next_session() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let echo = client.tool("echo").await;
    server.change(|settings| settings.is_echo_changed = true);
    eventually("a listener", || server.notify_list_changed(1) > 0).await;
    for _ in 0..100 {
        if client.tool("echo").await.spec() != echo.spec() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_ne!(client.tool("echo").await.spec(), echo.spec());
    let output = echo.run(json!({ "text": "hi" }), &context()).await.unwrap();
    assert!(
        output.text.contains("hi"),
        "a tool of an older list still works"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_say_what_they_may_do_and_are_chosen_by_the_user() {
    let server = FaultyMcp::start().await;
    let settings = json!({ "trust_annotations": true, "tools": { "exclude": "fail" } });
    let client = Client::of(&server, settings).await;
    let names = client.names().await;
    assert!(names.contains(&"mcp__test__add".to_owned()), "{names:?}");
    assert!(!names.contains(&"mcp__test__fail".to_owned()), "{names:?}");
    let add = client.tool("add").await;
    assert_eq!(plan(&add).effect, Effect::Read);
    assert_eq!(plan(&add).parallel, Parallel::Always);
    let append = client.tool("append").await;
    assert_eq!(plan(&append).effect, Effect::Effect);
    assert_eq!(plan(&append).parallel, Parallel::Always);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_its_calls_one_by_one_says_so() {
    let server = FaultyMcp::start().await;
    let settings = json!({ "trust_annotations": true, "supports_parallel_tool_calls": false });
    let client = Client::of(&server, settings).await;
    let parallel = async |tool| plan(&client.tool(tool).await).parallel;
    assert_eq!(parallel("append").await, Parallel::Never);
    assert_eq!(parallel("add").await, Parallel::Always, "it only reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_a_call_is_told_what_the_server_knows_of_it() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let stopped = async |told: &str| {
        let (tool, cx) = (client.tool("slow").await, context());
        let calls = server.count("tools/call");
        let call = tool.run(json!({ "ms": 60_000 }), &cx);
        let stop = async {
            match told {
                "before it was sent" => tokio::time::sleep(Duration::from_millis(300)).await,
                _ => eventually("it arrived", || server.count("tools/call") > calls).await,
            }
            cx.stop.cancel();
        };
        let (result, ()) = tokio::join!(call, stop);
        let error = result.unwrap_err();
        assert!(matches!(error, ToolError::Stopped(_)), "{error:?}");
        assert!(error.to_string().contains(told), "{told}: {error}");
    };
    stopped("the server was told").await;
    let deaf = Rule::once(Fault::Hang).on("notifications/cancelled");
    server.fail(deaf.until_cleared());
    stopped("could not be told").await;
    server.clear();
    server.stop_listening();
    client
        .until("the loss is known", |status| {
            status.state != ServerState::Ready
        })
        .await;
    stopped("before it was sent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_the_session_at_the_server() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    assert_eq!(server.session_count(), 1);
    client.mcp.shutdown().await;
    assert_eq!(server.count("DELETE"), 1);
    assert_eq!(server.session_count(), 0);
    let error = client.append("word").await.unwrap_err();
    assert!(error.to_string().contains("did not run"), "{error}");
}
