//! Conversations that have a name already, or that were begun elsewhere.

use hermes_core::{
    Archive as _, Import, Message, SearchQuery, SessionId, Sessions as _, Store as _, TurnEnd,
};

use crate::support::{Process, options, say};

#[tokio::test]
async fn what_was_said_elsewhere_is_part_of_the_conversation() {
    let process = Process::start().await;
    let id = SessionId::from("from-elsewhere");
    let import = Import {
        id: Some(id.clone()),
        said: vec![
            Message::user("remember the zebra"),
            Message::assistant("the zebra it is"),
        ],
    };
    let opened = process
        .runtime
        .import(import, options("api"))
        .await
        .unwrap();
    assert_eq!(opened.handle.id(), &id);
    // Nothing is written before something is said.
    assert!(process.runtime.store().record(&id).await.is_err());
    assert_eq!(say(&opened, "what was it?").await, TurnEnd::Finished);
    let requests = process.requests_with("what was it?");
    let asked = requests[0].json["messages"].to_string();
    assert!(asked.contains("remember the zebra") && asked.contains("the zebra it is"));
    let loaded = process.runtime.store().load(&id).await.unwrap();
    assert_eq!(loaded.messages.len(), 4);
    let query = SearchQuery {
        text: "zebra".into(),
        limit: 5,
        ..SearchQuery::default()
    };
    let found = process.runtime.store().search(query).await.unwrap();
    assert!(found.iter().all(|hit| hit.session == id) && !found.is_empty());
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_when_something_is_said() {
    let process = Process::start().await;
    let import = || Import {
        id: Some("twice".into()),
        said: Vec::new(),
    };
    let first = process
        .runtime
        .import(import(), options("api"))
        .await
        .unwrap();
    assert_eq!(say(&first, "one").await, TurnEnd::Finished);
    process.runtime.close(first.handle.id()).await.unwrap();
    let second = process
        .runtime
        .import(import(), options("api"))
        .await
        .unwrap();
    let end = say(&second, "two").await;
    assert!(matches!(end, TurnEnd::Broken { .. }), "{end:?}");
    let loaded = process.runtime.store().load(&"twice".into()).await.unwrap();
    assert_eq!(loaded.messages.len(), 2);
}
