//! Rows 26 to 28: the list of tools changes.

use std::time::Instant;

use hermes_mcp::ServerState;
use hermes_testkit::mcp::FaultyMcp;

use super::{Record, SECOND, no_settings, succeeds};
use crate::client::{Client, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn row_26_a_storm_of_changes() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    eventually("a stream", || server.notify_list_changed(0) > 0).await;
    let pages = server.count("tools/list");
    server.change(|settings| settings.extra_tools = 1);
    let started = Instant::now();
    server.notify_list_changed(200);
    client
        .until("the new tool", |status| status.tools == 7)
        .await;
    let healed = started.elapsed();
    succeeds(&client, "word").await;
    tokio::time::sleep(6 * SECOND).await;
    let lists = (server.count("tools/list") - pages) / 2;
    assert!(lists <= 2, "{lists} lists of two pages");
    Record {
        row: 26,
        fault: "200 `list_changed` at once",
        detected: "notification",
        outcome: "at most two lists, calls go on",
        healed: Some(healed),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_27_a_tool_is_removed() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    let old = client.tool("append").await;
    eventually("a stream", || server.notify_list_changed(0) > 0).await;
    server.change(|settings| settings.removed_tools = vec!["append".to_owned()]);
    let started = Instant::now();
    server.notify_list_changed(1);
    client
        .until("the new list", |status| status.tools == 5)
        .await;
    let healed = started.elapsed();
    let arguments = serde_json::json!({ "word": "word" });
    let error = old.run(arguments, &crate::client::context()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("Unknown tool: append"), "{error}");
    server.change(|settings| settings.removed_tools.clear());
    assert_eq!(server.executions("word"), 0);
    Record {
        row: 27,
        fault: "a tool is removed while a session still has it",
        detected: "notification; the lists differ",
        outcome: "the next session has the new list; a call of the old one gets a clear error",
        healed: Some(healed),
        executions: Some(0),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_28_a_change_is_missed_while_the_server_is_away() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, no_settings()).await;
    eventually("a stream", || server.notify_list_changed(0) > 0).await;
    server.stop_listening();
    server.drop_sessions();
    server.change(|settings| settings.extra_tools = 2);
    client
        .until("noticed", |status| status.state != ServerState::Ready)
        .await;
    server.listen_again();
    let back = Instant::now();
    client
        .until("the new tools", |status| status.tools == 8)
        .await;
    let healed = back.elapsed();
    succeeds(&client, "word").await;
    Record {
        row: 28,
        fault: "`list_changed` lost in an outage",
        detected: "every new connection lists again",
        outcome: "new tools known",
        healed: Some(healed),
        executions: Some(1),
    }
    .keep();
}
