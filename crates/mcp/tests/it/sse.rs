//! The older HTTP+SSE transport: answers come over a stream, and the stream comes and goes.

use std::time::{Duration, Instant};

use hermes_core::{Random, ToolError};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use serde_json::{Value, json};

use crate::client::{Client, context, eventually};

fn section(server: &FaultyMcp) -> Value {
    json!({ "url": server.sse_url(), "transport": "sse", "keepalive_interval": 0 })
}

async fn connected(server: &FaultyMcp) -> Client {
    let client = Client::new(&section(server));
    client.until_ready().await;
    client.tools().await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_posted_and_answered_on_the_stream() {
    let server = FaultyMcp::start().await;
    let client = connected(&server).await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
    assert_eq!(
        (server.count("GET"), server.count("server/discover")),
        (1, 0)
    );
    let slow = (0..4).map(|_| client.call("slow", json!({ "ms": 300 })));
    let started = Instant::now();
    for answer in futures_util::future::join_all(slow).await {
        answer.unwrap();
    }
    assert!(
        started.elapsed() < Duration::from_millis(900),
        "side by side"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_stream_is_opened_again_before_anybody_calls() {
    let server = FaultyMcp::start().await;
    let client = connected(&server).await;
    server.drop_sessions();
    let is_back = |status: &hermes_mcp::ServerStatus| status.reconnects == 1;
    client.until("reconnected", is_back).await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_under_a_call_leaves_its_outcome_unknown() {
    let server = FaultyMcp::start().await;
    let client = connected(&server).await;
    let call = client.call("slow", json!({ "ms": 2000 }));
    let cut = async {
        eventually("the call arrived", || server.count("tools/call") == 1).await;
        server.drop_sessions();
    };
    let (result, ()) = tokio::join!(call, cut);
    assert!(
        matches!(result, Err(ToolError::OutcomeUnknown(_))),
        "{result:?}"
    );
    client.append("next").await.unwrap();
    assert_eq!(server.count("tools/call"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_session_heals_and_the_call_runs_once() {
    let server = FaultyMcp::start().await;
    let client = connected(&server).await;
    server.fail(Rule::once(Fault::status(404)).on("tools/call"));
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_fails_after_the_call_ran_is_not_repeated() {
    for fault in [Fault::status(500), Fault::Reset] {
        let server = FaultyMcp::start().await;
        let client = connected(&server).await;
        let rule = Rule::once(fault.clone()).on("tools/call");
        server.fail(rule.after_executing());
        let error = client.append("word").await.unwrap_err();
        assert!(
            matches!(error, ToolError::OutcomeUnknown(_)),
            "{fault:?}: {error:?}"
        );
        assert_eq!(server.executions("word"), 1);
        client.append("next").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_messages_and_says_nothing_is_given_up() {
    let server = FaultyMcp::start().await;
    let mut section = section(&server);
    section["timeout"] = json!(1);
    let client = Client::new(&section);
    client.until_ready().await;
    client.tools().await;
    let silent = Rule::once(Fault::status(202));
    server.fail(silent.clone().on("tools/call"));
    server.fail(silent.on("ping"));
    let started = Instant::now();
    let error = client.append("word").await.unwrap_err();
    assert!(matches!(error, ToolError::OutcomeUnknown(_)), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(3));
    let is_back = |status: &hermes_mcp::ServerStatus| status.reconnects == 1;
    client
        .until("a new connection after the silent probe", is_back)
        .await;
    client.append("next").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_call_is_cancelled_at_the_server() {
    let server = FaultyMcp::start().await;
    let client = connected(&server).await;
    let (tool, cx) = (client.tool("slow").await, context());
    let call = tool.run(json!({ "ms": 60_000 }), &cx);
    let stop = async {
        eventually("the call arrived", || server.count("tools/call") == 1).await;
        cx.stop.cancel();
    };
    let (result, ()) = tokio::join!(call, stop);
    assert!(matches!(result, Err(ToolError::Stopped(_))), "{result:?}");
    eventually("cancelled", || !server.cancelled().is_empty()).await;
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_at_another_origin_is_not_trusted() {
    let server = FaultyMcp::start().await;
    let foreign = Rule::once(Fault::ForeignEndpoint).on("GET");
    server.fail(foreign.until_cleared());
    let error = Client::new(&section(&server)).error().await;
    assert!(error.contains("another origin"), "{error}");
    assert_eq!(server.count("initialize"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_an_endpoint_says_what_is_missing() {
    let server = FaultyMcp::start().await;
    server.fail(Rule::once(Fault::SseEmpty).on("GET").until_cleared());
    let error = Client::new(&section(&server)).error().await;
    assert!(error.contains("no `endpoint` event"), "{error}");
    let server = FaultyMcp::start().await;
    server.fail(Rule::once(Fault::SseSilent).on("GET").until_cleared());
    let mut silent = section(&server);
    silent["connect_timeout"] = json!(1);
    let error = Client::new(&silent).error().await;
    assert!(error.contains("no answer within 1 s"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamable_server_behind_transport_sse_is_recognised() {
    let server = FaultyMcp::start().await;
    server.change(|settings| settings.has_get_stream = false);
    let mut section = section(&server);
    section["url"] = json!(server.url());
    let error = Client::new(&section).error().await;
    assert!(error.contains("remove `transport: sse`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_is_found_out_and_remembered() {
    let server = FaultyMcp::start().await;
    let client = Client::new(&json!({ "url": server.sse_url(), "keepalive_interval": 0 }));
    client.until_ready().await;
    client.append("word").await.unwrap();
    // The question for the era and the handshake at the wrong place, then the handshake at the right one.
    assert_eq!(
        (server.count("server/discover"), server.count("initialize")),
        (1, 2)
    );
    server.drop_sessions();
    let is_back = |status: &hermes_mcp::ServerStatus| status.reconnects == 1;
    client.until("reconnected", is_back).await;
    assert_eq!(
        (server.count("server/discover"), server.count("initialize")),
        (1, 3)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_is_announced_on_the_stream() {
    let server = FaultyMcp::start().await;
    let client = connected(&server).await;
    server.change(|settings| settings.extra_tools = 1);
    assert_eq!(server.notify_list_changed(1), 1);
    client
        .until("the new tool", |status| status.tools == 7)
        .await;
}

/// Makes the next call fail in some way, or its stream.
fn fail_somehow(server: &FaultyMcp, random: &Random) {
    let rule = |fault| Rule::once(fault).on("tools/call");
    match random.below(7) {
        0 => server.fail(rule(Fault::status(404))),
        1 => server.fail(rule(Fault::retry_after(429, "0"))),
        2 => server.fail(rule(Fault::status(500))),
        3 => server.fail(rule(Fault::status(502)).after_executing()),
        4 => server.fail(rule(Fault::Reset)),
        5 => server.fail(rule(Fault::Reset).after_executing()),
        _ => server.drop_sessions(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_random_faults_no_call_runs_twice_and_every_call_ends() {
    const CALLS: usize = 300;
    let random = Random::seeded(20_261_116);
    let server = FaultyMcp::start().await;
    let mut section = section(&server);
    // Without the pauses that protect a server from us, so that every call meets its fault.
    section["breaker"] = json!({ "threshold": 0 });
    section["backoff"] = json!({ "base": 0.01, "cap": 0.05 });
    let client = Client::new(&section);
    let mut done = 0;
    for call in 0..CALLS {
        let word = format!("word{call}");
        if random.below(3) == 0 {
            fail_somehow(&server, &random);
        }
        let append = tokio::time::timeout(Duration::from_secs(20), client.append(&word));
        let answer = append.await.expect("every call ends");
        let executions = server.executions(&word);
        match answer {
            Ok(_) => {
                done += 1;
                assert_eq!(executions, 1, "{word} succeeded");
            }
            Err(ToolError::OutcomeUnknown(text)) => assert!(executions <= 1, "{word}: {text}"),
            Err(error) => assert_eq!(executions, 0, "{word} did not run: {error}"),
        }
    }
    println!("{done} of {CALLS} done");
    assert!(done > CALLS * 7 / 10);
}
