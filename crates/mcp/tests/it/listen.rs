//! Announcements of the newer era: asked for, followed, and asked for again.

use std::time::Duration;

use hermes_testkit::mcp::{Era, FaultyMcp, Options, Settings};
use serde_json::json;

use crate::client::{Client, eventually};

const LISTEN: &str = "subscriptions/listen";

fn modern(settings: Settings) -> FaultyMcp {
    let options = Options {
        settings: Settings {
            era: Era::Modern,
            ..settings
        },
        ..Options::default()
    };
    FaultyMcp::start_with(&options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_is_announced_without_a_session() {
    let server = modern(Settings::default());
    let client = Client::of(&server, json!({})).await;
    eventually("a subscription", || server.count(LISTEN) == 1).await;
    server.change(|settings| settings.extra_tools = 1);
    eventually("a subscriber", || server.notify_list_changed(1) == 1).await;
    client
        .until("the new tool", |status| status.tools == 7)
        .await;
    assert_eq!((server.count(LISTEN), server.count("GET")), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_subscription_ended_another_is_made_and_the_list_fetched_again() {
    let server = modern(Settings::default());
    let settings = json!({ "backoff": { "base": 0.05 } });
    let client = Client::of(&server, settings).await;
    eventually("a subscription", || server.notify_list_changed(0) == 1).await;
    // Nobody is told of this.
    server.change(|settings| settings.extra_tools = 1);
    server.end_subscriptions();
    client
        .until("the new tool", |status| status.tools == 7)
        .await;
    eventually("a subscription", || server.notify_list_changed(0) == 1).await;
    assert_eq!(client.status().reconnects, 0, "the connection was fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_announcements_is_asked_once() {
    let server = modern(Settings {
        has_subscriptions: false,
        ..Settings::default()
    });
    let settings = json!({ "backoff": { "base": 0.01 } });
    let client = Client::of(&server, settings).await;
    eventually("the question", || server.count(LISTEN) == 1).await;
    client.append("word").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.count(LISTEN), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_older_era_is_not_asked() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    client.append("word").await.unwrap();
    eventually("its own stream", || server.count("GET") == 1).await;
    assert_eq!(server.count(LISTEN), 0);
}
