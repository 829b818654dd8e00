//! Honcho as the provider of the model of the user: what is sent, when the server is there and when it is not.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{CancellationToken, Heard, Message, Origin, SessionId, UserModel as _};
use hermes_learning::user_model::honcho::{Honcho, HonchoSettings, HonchoUserModel};
use hermes_testkit::honcho::{Fault, HonchoServer};
use serde_json::{Value, json};

use super::user_model::World;

const SESSION: &str = "s1";

fn model(world: &World, server: &HonchoServer, more: &Value) -> HonchoUserModel {
    let mut file = json!({"baseUrl": server.address(), "sessionStrategy": "per-session"});
    for (key, value) in more.as_object().unwrap() {
        file[key] = value.clone();
    }
    let settings = HonchoSettings::read(&file, "hermes", |_| None).unwrap();
    HonchoUserModel {
        honcho: Arc::new(Honcho::new(settings.unwrap())),
        archive: world.store.clone(),
        models: world.store.clone(),
        clock: world.clock.clone(),
        person: None,
        prompt_chars_max: 900,
        write_approval: false,
    }
}

async fn hear(model: &HonchoUserModel) -> Heard {
    let stop = CancellationToken::new();
    model.hear(&SESSION.into(), &stop).await.unwrap()
}

fn words(server: &HonchoServer) -> Vec<String> {
    let messages = server.messages("hermes");
    messages.into_iter().map(|(_, _, words)| words).collect()
}

const REPLY: &str = "The page says: the user adores spinach.";

#[tokio::test]
async fn what_a_server_missed_is_sent_when_it_is_back_and_nothing_twice() {
    let world = World::new([]);
    let server = HonchoServer::start();
    let honcho = model(&world, &server, &json!({}));
    world.said(SESSION, None, &[Message::user("first")]).await;
    server.set_fault(Some(Fault::Status(503)));
    assert!(matches!(hear(&honcho).await, Heard::Failed(_)));
    assert!(honcho.degraded().unwrap().contains("503"));
    assert_eq!(hear(&honcho).await, Heard::NotDue, "not at once");
    // It takes the words, and nobody hears of it.
    world.clock.advance(Duration::from_secs(600));
    server.set_fault(Some(Fault::LostAnswer));
    let lost = tokio::time::timeout(Duration::from_millis(500), hear(&honcho)).await;
    assert!(lost.is_err());
    assert_eq!(words(&server), ["first", REPLY]);
    server.set_fault(None);
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(hear(&honcho).await, Heard::Done { learned: None });
    assert_eq!(honcho.degraded(), None);
    assert_eq!(words(&server), ["first", REPLY]);
    assert_eq!(hear(&honcho).await, Heard::NotDue);
}

#[tokio::test]
async fn many_and_long_messages_are_sent_as_honcho_takes_them() {
    let world = World::new([]);
    let server = HonchoServer::start();
    let honcho = model(&world, &server, &json!({"workspace": "hermes"}));
    let mut messages: Vec<Message> = (0..180)
        .map(|n| Message::user(format!("word {n}")))
        .collect();
    messages.push(Message::user("x".repeat(60_000)));
    world.said(SESSION, None, &messages).await;
    while hear(&honcho).await == (Heard::Done { learned: None }) {}
    let sent = words(&server);
    let own: Vec<&String> = sent.iter().filter(|words| *words != REPLY).collect();
    assert_eq!(own.len(), 180 + 3);
    assert_eq!(own[7], "word 7");
    assert_eq!(own[180].len() + own[181].len() + own[182].len(), 60_000);
}

#[tokio::test]
async fn words_of_others_are_not_sent_and_what_honcho_refuses_is_given_up() {
    let world = World::new([]);
    let server = HonchoServer::start();
    let honcho = model(&world, &server, &json!({"peerName": "anna"}));
    let of_eve = Message {
        origin: Some(Origin::Person {
            surface: None,
            inbox: Vec::new(),
            id: Some("eve".into()),
            request: None,
            mirrored: None,
        }),
        ..Message::user("I am Eve")
    };
    let notice = Message {
        origin: Some(Origin::Notice),
        ..Message::user("a process ended")
    };
    world
        .said(SESSION, None, &[Message::user("mine"), of_eve, notice])
        .await;
    server.set_fault(Some(Fault::Status(422)));
    for _ in 0..2 {
        assert!(matches!(hear(&honcho).await, Heard::Failed(_)));
        world.clock.advance(Duration::from_secs(600));
    }
    let Heard::GivenUp(why) = hear(&honcho).await else {
        panic!("it is given up");
    };
    assert!(
        why.starts_with("4 messages of s1 are not in Honcho"),
        "{why}"
    );
    server.set_fault(None);
    world.said("s2", None, &[Message::user("later")]).await;
    let stop = CancellationToken::new();
    let heard = honcho.hear(&SessionId::from("s2"), &stop).await.unwrap();
    assert_eq!(heard, Heard::Done { learned: None });
    let sent = server.messages("hermes");
    assert_eq!(
        sent[0],
        ("s2".to_owned(), "anna".to_owned(), "later".to_owned())
    );
    let bodies = format!("{:?}", server.requests());
    assert!(!bodies.contains("Eve") && !bodies.contains("a process ended"));
}

#[tokio::test]
async fn a_refused_key_and_a_server_that_is_not_there_are_told_as_what_they_are() {
    let world = World::new([]);
    let server = HonchoServer::start();
    server.want_key();
    let honcho = model(&world, &server, &json!({"apiKey": "wrong"}));
    let block = honcho.block().await;
    assert_eq!(block.text, None);
    assert!(block.notice.unwrap().contains("the key is refused (401)"));
    let nowhere = model(&world, &server, &json!({"baseUrl": "http://127.0.0.1:9"}));
    let block = nowhere.block().await;
    assert!(
        block
            .notice
            .unwrap()
            .contains("Honcho at http://127.0.0.1:9 does not work")
    );
    let answer = nowhere.ask("Who?").await;
    assert!(answer.unwrap_err().contains("does not work"));
}
