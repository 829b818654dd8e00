//! Rows 29, 31, 39 to 42: users, crowds, starts and ends.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hermes_core::{ToolContext, ToolError};
use hermes_mcp::{BreakerStatus, ServerSettings, ServerState};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use serde_json::{Value, json};

use super::{Record, SECOND, no_settings, succeeds};
use crate::client::{Client, context, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn row_29_the_user_interrupts() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    let (tool, cx) = (client.tool("slow").await, context());
    let call = tool.run(json!({ "ms": 60_000 }), &cx);
    let interrupt = async {
        eventually("the call arrived", || server.count("tools/call") == 1).await;
        cx.stop.cancel();
        Instant::now()
    };
    let (result, at) = tokio::join!(call, interrupt);
    assert!(matches!(result, Err(ToolError::Stopped(_))), "{result:?}");
    eventually("the server knows", || !server.cancelled().is_empty()).await;
    let told = at.elapsed();
    assert!(told < SECOND / 5, "{told:?}");
    succeeds(&client, "word").await;
    assert_eq!(server.count("initialize"), 1);
    assert_eq!(server.count("tools/call"), 2, "never retried");
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    Record {
        row: 29,
        fault: "user interrupts a call",
        detected: "the call's token",
        outcome: "server told in this time; no retry, no strike, no reconnect",
        healed: Some(told),
        executions: None,
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_31_a_crowd_comes_back() {
    const SERVERS: u32 = 12;
    const HANDSHAKE: Duration = Duration::from_millis(200);
    let server = FaultyMcp::start().await;
    let slow = Fault::DelayMs(HANDSHAKE.as_millis() as u64);
    let section = json!({ "url": server.url(), "keepalive_interval": 0, "protocol": "legacy" });
    let names: Vec<String> = (0..SERVERS).map(|number| format!("s{number}")).collect();
    let sections: Vec<(&str, &Value)> = names.iter().map(|name| (&**name, &section)).collect();
    let client = Client::with(&sections);
    let are_ready = || {
        let status = client.mcp.status();
        status.iter().all(|one| one.state == ServerState::Ready)
    };
    eventually("all are ready", are_ready).await;
    let before = server.count("initialize");
    server.fail(Rule::once(slow).on("initialize").until_cleared());
    server.drop_sessions();
    let reconnects = names.iter().map(|name| client.mcp.reconnect(name));
    let started = Instant::now();
    join_all(reconnects).await;
    let are_back = || client.mcp.status().iter().all(|one| one.reconnects == 1);
    eventually("all are back", || are_back() && are_ready()).await;
    let healed = started.elapsed();
    assert_eq!(server.count("initialize") - before, SERVERS as usize);
    assert!(
        healed >= HANDSHAKE * SERVERS / 4,
        "{healed:?}: more than four at once"
    );
    Record {
        row: 31,
        fault: "12 servers lost at once, handshakes of 200 ms",
        detected: "each by itself",
        outcome: "four connect at a time, waits are jittered",
        healed: Some(healed),
        executions: None,
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_39_the_server_is_down_at_the_start() {
    let server = FaultyMcp::start().await;
    server.stop_listening();
    let started = Instant::now();
    let client = Client::new(&json!({ "url": server.url(), "keepalive_interval": 0 }));
    let tools = client.mcp.tools(SECOND / 10).await;
    assert!(tools.is_empty() && started.elapsed() < SECOND);
    tokio::time::sleep(2 * SECOND).await;
    server.listen_again();
    let back = Instant::now();
    let took = succeeds(&client, "word").await;
    assert!(took < 5 * SECOND, "{took:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 39,
        fault: "server down at the start",
        detected: "connection refused",
        outcome: "nobody waits for it; its tools appear when it comes",
        healed: Some(back.elapsed()),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_40_the_settings_change() {
    let (same, before, after) = (
        FaultyMcp::start().await,
        FaultyMcp::start().await,
        FaultyMcp::start().await,
    );
    let [same_section, old, new] = [&same, &before, &after]
        .map(|server| json!({ "url": server.url(), "keepalive_interval": 0 }));
    let client = Client::with(&[("test", &old), ("same", &same_section)]);
    let append = client.tool("append").await;
    let parse = |name, section| ServerSettings::parse(name, section).unwrap();
    let started = Instant::now();
    let changed = vec![parse("test", &new), parse("same", &same_section)];
    let reloaded = client.mcp.reload(changed).await;
    let answer = append.run(json!({ "word": "word" }), &context()).await;
    assert!(answer.is_ok(), "{answer:?}");
    let healed = started.elapsed();
    assert_eq!(reloaded.kept, ["same"]);
    assert_eq!(same.count("initialize"), 1);
    assert_eq!(
        (before.executions("word"), after.executions("word")),
        (0, 1)
    );
    Record {
        row: 40,
        fault: "the settings of one server change while all run",
        detected: "they differ",
        outcome: "only that one is connected anew; sessions go on with it",
        healed: Some(healed),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_41_the_gateway_ends() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    let started = Instant::now();
    client.mcp.shutdown().await;
    let took = started.elapsed();
    assert!(took < 6 * SECOND, "{took:?}");
    assert_eq!(server.count("DELETE"), 1);
    assert_eq!(server.session_count(), 0);
    Record {
        row: 41,
        fault: "gateway restart",
        detected: "told to stop",
        outcome: "sessions deleted, process groups ended, then it returns",
        healed: Some(took),
        executions: None,
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_42_many_users_share_a_session() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    let (tool, interrupted) = (client.tool("slow").await, context());
    let quitter = tool.run(json!({ "ms": 60_000 }), &interrupted);
    let words: Vec<String> = (0..8).map(|number| format!("user{number}")).collect();
    let others = async {
        eventually("the call arrived", || server.count("tools/call") == 1).await;
        interrupted.stop.cancel();
        let started = Instant::now();
        for answer in join_all(words.iter().map(|word| client.append(word))).await {
            answer.unwrap();
        }
        started.elapsed()
    };
    let (quit, took) = tokio::join!(quitter, others);
    assert!(matches!(quit, Err(ToolError::Stopped(_))), "{quit:?}");
    assert!(words.iter().all(|word| server.executions(word) == 1));
    two_users_have_sessions_of_their_own().await;
    Record {
        row: 42,
        fault: "eight users share a session, a ninth interrupts his call; two with `sessions: per_conversation`",
        detected: "every call has its own id; every conversation its own session",
        outcome: "the eight get their answers; the two never share a session",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

async fn two_users_have_sessions_of_their_own() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({ "sessions": "per_conversation" })).await;
    let append = client.tool("append").await;
    for (conversation, word) in [("a", "one"), ("b", "two"), ("a", "three")] {
        let cx = ToolContext {
            session: conversation.into(),
            ..context()
        };
        append.run(json!({ "word": word }), &cx).await.unwrap();
    }
    let sessions: Vec<String> = server
        .requests()
        .iter()
        .filter(|seen| seen.method == "tools/call")
        .filter_map(|seen| seen.session.clone())
        .collect();
    assert_eq!(sessions[0], sessions[2], "a conversation keeps its session");
    assert_ne!(sessions[0], sessions[1]);
    assert_eq!(server.session_count(), 3, "and one that lists the tools");
    client.mcp.shutdown().await;
    assert_eq!(server.session_count(), 0);
}
