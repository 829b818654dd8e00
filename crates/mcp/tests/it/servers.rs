//! Several servers side by side, and what is told about them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hermes_mcp::{ServerEvent, ServerState};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use serde_json::json;

use crate::client::{Client, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn servers_whose_names_look_alike_keep_their_tools_apart() {
    let (one, two) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let sections = [json!({ "url": one.url() }), json!({ "url": two.url() })];
    let client = Client::with(&[("my.files", &sections[0]), ("my-files", &sections[1])]);
    let names = client.names().await;
    let distinct: HashSet<&String> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (20, 20), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_keeps_nobody_waiting_for_the_others() {
    let (good, bad) = (FaultyMcp::start().await, FaultyMcp::start().await);
    bad.fail(Rule::once(Fault::Hang).on_everything().until_cleared());
    let sections = [json!({ "url": bad.url() }), json!({ "url": good.url() })];
    let client = Client::with(&[("bad", &sections[0]), ("good", &sections[1])]);
    let started = Instant::now();
    let tools = client.mcp.tools(Duration::from_millis(1500)).await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(tools.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_server_is_listed_and_not_started() {
    let server = FaultyMcp::start().await;
    let client = Client::new(&json!({ "url": server.url(), "enabled": false }));
    assert!(client.tools().await.is_empty());
    assert_eq!(client.status().state, ServerState::Disabled);
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_state_are_told_as_they_happen() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let mut events = client.mcp.events();
    server.drop_sessions();
    client.append("word").await.unwrap();
    let event = |state| ServerEvent {
        server: "test".to_owned(),
        state,
    };
    let reconnecting = ServerState::Reconnecting { attempt: 1 };
    assert_eq!(events.recv().await.unwrap(), event(reconnecting));
    assert_eq!(events.recv().await.unwrap(), event(ServerState::Ready));
    client.mcp.shutdown().await;
    assert_eq!(events.recv().await.unwrap(), event(ServerState::Stopped));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_machine_slept_every_server_is_probed_before_anybody_calls() {
    let (one, two) = (FaultyMcp::start().await, FaultyMcp::start().await);
    for server in [&one, &two] {
        server.change(|settings| settings.has_get_stream = false);
    }
    let section = |server: &FaultyMcp| json!({ "url": server.url(), "keepalive_interval": 0 });
    let sections = [section(&one), section(&two)];
    let client = Client::with(&[("test", &sections[0]), ("other", &sections[1])]);
    client.tools().await;
    one.drop_sessions();
    two.drop_sessions();
    client.clock.advance(Duration::from_secs(8 * 3600));
    client
        .until("healed", |status| status.reconnects == 1)
        .await;
    eventually("the other too", || client.mcp.status()[1].reconnects == 1).await;
    assert_eq!(one.count("ping") + two.count("ping"), 2);
    assert_eq!(one.count("tools/call") + two.count("tools/call"), 0);
}
