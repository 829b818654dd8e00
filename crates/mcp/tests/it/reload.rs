//! New settings while everything runs: only what has changed is touched.

use std::sync::Arc;

use hermes_core::{Tool, ToolError};
use hermes_mcp::{Reloaded, ServerSettings, ServerState};
use hermes_testkit::mcp::{FaultyMcp, StdioMcp};
use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, context, eventually};
use crate::stdio;

fn parsed(sections: &[(&str, &Value)]) -> Vec<ServerSettings> {
    let parse = |(name, section): &(&str, &Value)| ServerSettings::parse(name, section).unwrap();
    sections.iter().map(parse).collect()
}

fn section(server: &FaultyMcp) -> Value {
    json!({ "url": server.url(), "keepalive_interval": 0 })
}

async fn append(tool: &Arc<dyn Tool>, word: &str) -> Result<String, ToolError> {
    let output = tool.run(json!({ "word": word }), &context()).await;
    output.map(|output| output.text)
}

/// Finds the tool `append` of a server.
async fn append_of(client: &Client, server: &str) -> Arc<dyn Tool> {
    let name = format!("mcp__{server}__append");
    let tools = client.mcp.tools(PATIENCE).await;
    let found = tools.into_iter().find(|tool| tool.spec().name == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_server_whose_settings_changed_is_connected_anew() {
    let (same, changed) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let (one, mut two) = (section(&same), section(&changed));
    let client = Client::with(&[("same", &one), ("changed", &two)]);
    client.tools().await;
    two["headers"] = json!({ "X-Key": "new" });
    let reloaded = client
        .mcp
        .reload(parsed(&[("same", &one), ("changed", &two)]))
        .await;
    let expected = Reloaded {
        restarted: vec!["changed".to_owned()],
        kept: vec!["same".to_owned()],
        ..Reloaded::default()
    };
    assert_eq!(reloaded, expected);
    eventually("a new connection", || changed.count("initialize") == 2).await;
    append(&append_of(&client, "same").await, "word")
        .await
        .unwrap();
    assert_eq!(same.count("initialize"), 1);
    assert_eq!(same.session_count(), 1);
    eventually("the old session was ended", || changed.session_count() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_changes_when_nothing_has_changed() {
    let server = FaultyMcp::start().await;
    let section = section(&server);
    let client = Client::with(&[("one", &section)]);
    client.tools().await;
    let reloaded = client.mcp.reload(parsed(&[("one", &section)])).await;
    assert_eq!(reloaded.kept, ["one"]);
    append(&append_of(&client, "one").await, "word")
        .await
        .unwrap();
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_session_reaches_a_server_under_its_new_settings() {
    let (before, after) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let client = Client::with(&[("moved", &section(&before))]);
    let tool = append_of(&client, "moved").await;
    client
        .mcp
        .reload(parsed(&[("moved", &section(&after))]))
        .await;
    append(&tool, "word").await.unwrap();
    assert_eq!(
        (before.executions("word"), after.executions("word")),
        (0, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_a_removed_server_say_so_and_work_again_when_it_is_back() {
    let (kept, removed) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let (one, two) = (section(&kept), section(&removed));
    let client = Client::with(&[("kept", &one), ("removed", &two)]);
    let tool = append_of(&client, "removed").await;
    let reloaded = client.mcp.reload(parsed(&[("kept", &one)])).await;
    assert_eq!(reloaded.stopped, ["removed"]);
    let error = append(&tool, "word").await.unwrap_err().to_string();
    assert!(
        error.contains("`removed`") && error.contains("removed from the settings"),
        "{error}"
    );
    eventually("its session was ended", || removed.session_count() == 0).await;
    let names = client.names().await;
    assert!(
        names.iter().all(|name| name.starts_with("mcp__kept__")),
        "{names:?}"
    );
    client
        .mcp
        .reload(parsed(&[("kept", &one), ("removed", &two)]))
        .await;
    append(&tool, "word").await.unwrap();
    assert_eq!(removed.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_has_its_tools_in_the_next_session() {
    let (old, new) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let (one, two) = (section(&old), section(&new));
    let client = Client::with(&[("old", &one)]);
    let tools_before = client.tools().await.len();
    let reloaded = client
        .mcp
        .reload(parsed(&[("new", &two), ("old", &one)]))
        .await;
    assert_eq!(reloaded.started, ["new"]);
    assert_eq!(client.tools().await.len(), 2 * tools_before);
    assert_eq!(
        client.mcp.status()[0].name,
        "new",
        "in the order of the settings"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_be_switched_off_and_on() {
    let server = FaultyMcp::start().await;
    let on = section(&server);
    let mut off = on.clone();
    off["enabled"] = json!(false);
    let client = Client::with(&[("one", &on)]);
    let tool = append_of(&client, "one").await;
    client.mcp.reload(parsed(&[("one", &off)])).await;
    assert_eq!(client.status().state, ServerState::Disabled);
    let error = append(&tool, "word").await.unwrap_err().to_string();
    assert!(error.contains("switched off"), "{error}");
    client.mcp.reload(parsed(&[("one", &on)])).await;
    append(&tool, "word").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_is_finished_before_its_server_is_replaced() {
    let (before, after) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let client = Client::with(&[("test", &section(&before))]);
    let call = client.call("slow", json!({ "ms": 500 }));
    let reload = async {
        eventually("the call arrived", || before.count("tools/call") == 1).await;
        client
            .mcp
            .reload(parsed(&[("test", &section(&after))]))
            .await
    };
    let (answer, _) = tokio::join!(call, reload);
    answer.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_program_is_ended_before_it_is_started_again() {
    let server = StdioMcp::new();
    let mut section = stdio::section(&server);
    let client = Client::with(&[("test", &section)]);
    client.append("one").await.unwrap();
    section["timeout"] = json!(20);
    client.mcp.reload(parsed(&[("test", &section)])).await;
    client.append("two").await.unwrap();
    let processes = server.process_ids();
    assert_eq!(processes.len(), 2);
    assert!(!stdio::is_running(processes[0]) && stdio::is_running(processes[1]));
    client.mcp.shutdown().await;
    assert!(!stdio::is_running(processes[1]));
}
