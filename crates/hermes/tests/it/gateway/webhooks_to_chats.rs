//! Events of other programs that go straight to a chat.

use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::CallFault;
use hermes_testkit::telegram::people::ALICE;
use serde_json::{Value, json};

use super::client::{Client, Response};
use super::platform::Bot;

const SECRET: &str = "a-webhook-secret";

/// A chat, and where its events are taken.
async fn bot() -> (Bot, Client) {
    let routes = format!(
        "  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    secret: {SECRET}
    routes:
      issues: {{prompt: 'New issue: {{title}}', deliver_only: true, deliver: 'telegram:{ALICE}'}}
      bare: {{prompt: '{{title}}', deliver_only: true, deliver: 'telegram:{ALICE}'}}
"
    );
    let script = Script::always(Answer::text("x"));
    let more = "approvals:\n  mode: manual\n";
    let bot = Bot::with_platform(script, &ALICE.to_string(), more, &routes).await;
    let told = bot.running.as_ref().unwrap().stdout();
    let (_, url) = told.split_once("webhooks on ").unwrap();
    let client = Client::new(url.split_whitespace().next().unwrap(), "none");
    (bot, client)
}

fn send(client: &Client, route: &str, id: &str, event: &Value) -> Response {
    let headers = [("x-gitlab-token", SECRET), ("x-request-id", id)];
    client.send("POST", &format!("/webhooks/{route}"), &headers, Some(event))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_an_event_has_no_file_sent_and_nothing_kept_back() {
    let (bot, client) = bot().await;
    let folder = tempfile::tempdir().unwrap();
    let taxes = folder.path().join("taxes.txt");
    std::fs::write(&taxes, "figures").unwrap();
    let taxes = taxes.display();
    let title = format!("x\nMEDIA:{taxes}\n![]({taxes})");
    let sent = send(&client, "issues", "1", &json!({"title": title}));
    assert_eq!(
        (sent.status, sent.json()["status"].clone()),
        (200, json!("delivered")),
        "{sent:?}"
    );
    let sent = send(&client, "bare", "2", &json!({"title": "SILENT"}));
    assert_eq!(
        (sent.status, sent.json()["status"].clone()),
        (200, json!("delivered")),
        "{sent:?}"
    );
    let texts = bot.expect(ALICE, "both", |texts| texts.len() == 2);
    assert!(
        texts[0].starts_with("New issue: x") && texts[0].contains("MEDIA:"),
        "{texts:?}"
    );
    assert_eq!(texts[1], "SILENT");
    for method in ["sendDocument", "sendPhoto", "sendMediaGroup"] {
        assert!(bot.telegram.calls_of(method).is_empty(), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_that_takes_nothing_is_told_to_the_sender() {
    let (bot, client) = bot().await;
    bot.telegram.block(ALICE);
    let refused = send(&client, "bare", "1", &json!({"title": "the disk is full"}));
    assert_eq!(refused.status, 502, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "not_delivered");
    // Once somebody is heard from there it goes out, and whoever sends it again is told.
    bot.telegram.unblock(ALICE);
    bot.say("I am back");
    let is_alarm = |text: &&String| *text == "the disk is full";
    bot.expect(ALICE, "the alarm", |texts| {
        texts.iter().any(|text| is_alarm(&text))
    });
    let sent = send(&client, "bare", "1", &json!({"title": "the disk is full"}));
    assert_eq!(sent.status, 200, "{sent:?}");
    assert_eq!(sent.json()["status"], "delivered");
    assert_eq!(bot.texts(ALICE).iter().filter(is_alarm).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_arrived_in_time_is_accepted_and_arrives_later() {
    let (bot, client) = bot().await;
    bot.telegram.fail("sendMessage", CallFault::Throttle(7));
    let accepted = send(&client, "bare", "1", &json!({"title": "the disk is full"}));
    assert_eq!(
        (accepted.status, accepted.json()["status"].clone()),
        (202, json!("accepted")),
        "{accepted:?}"
    );
    assert!(bot.texts(ALICE).is_empty());
    let deadline = Instant::now() + Duration::from_secs(20);
    while bot.texts(ALICE).is_empty() {
        assert!(Instant::now() < deadline, "it never arrived");
        std::thread::sleep(Duration::from_millis(50));
    }
}
