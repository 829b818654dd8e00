//! Words that wait for a turn: they survive a restart, and are taken exactly once.

use std::path::PathBuf;

use hermes_core::{
    Entry, Media, MediaSource, Message, Origin, Part, QueuedMessage, Store, StoreError,
    UserMessage, WaitsFor,
};

use super::Place;
use super::talk::{after, asked, ended, new_session, replied, started, told};

pub(super) async fn check<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    words_wait_in_their_order_after_a_restart(open).await;
    words_are_taken_once_and_with_what_says_them(open).await;
    a_session_in_which_words_wait_is_unfinished(open).await;
    words_wait_beside_a_turn_that_runs(open).await;
}

fn words(id: &str, waits_for: WaitsFor) -> QueuedMessage {
    QueuedMessage {
        id: id.into(),
        waits_for,
        message: UserMessage::text(format!("words of {id} \u{1f980}\n\"x\"")),
    }
}

fn queued(id: &str) -> Entry {
    let queued = words(id, WaitsFor::NextTurn);
    Entry::Queued { queued }
}

fn dequeued(ids: &[&str]) -> Entry {
    let queued = ids.iter().map(|id| (*id).into()).collect();
    Entry::Dequeued { queued }
}

async fn words_wait_in_their_order_after_a_restart<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    let mut all = vec![
        words("b", WaitsFor::NextTurn),
        words("a", WaitsFor::ToolResult),
    ];
    let picture = Media {
        mime: "image/png".into(),
        source: MediaSource::Base64("AAAA".into()),
    };
    all.push(QueuedMessage {
        id: "c".into(),
        waits_for: WaitsFor::NextTurn,
        message: UserMessage::of(vec![Part::text("look"), Part::Image(picture)]).with_origin(
            Origin::Schedule {
                job: "daily".into(),
            },
        ),
    });
    for queued in all.clone() {
        let entry = Entry::Queued { queued };
        store.append(&session, after(5), vec![entry]).await.unwrap();
    }
    drop(store);

    let store = place.open().await;
    let loaded = store.load(&session).await.unwrap();
    assert_eq!(loaded.queued, all);
    assert_eq!(loaded.messages.len(), 2, "they are not said yet");
    assert_eq!(loaded.record.messages, 2);
    assert!(loaded.open_turn.is_none() && !loaded.record.has_open_turn);
    // Another session has none of them.
    let other = told(&store, "s2", &[("one", "two")]).await;
    assert!(store.load(&other).await.unwrap().queued.is_empty());
    let same = store.append(&session, after(6), vec![queued("a")]).await;
    assert!(same.is_err(), "an id is used once");
}

async fn words_are_taken_once_and_with_what_says_them<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    let waiting = vec![queued("a"), queued("b")];
    store.append(&session, after(5), waiting).await.unwrap();
    let begin = |turn: &str| vec![started(turn, "a"), dequeued(&["a"]), asked(turn)];
    store.append(&session, after(6), begin("t5")).await.unwrap();
    let end = vec![replied("t5", Message::assistant("yes")), ended("t5")];
    store.append(&session, after(7), end).await.unwrap();

    let again = store.append(&session, after(8), begin("t6")).await;
    assert!(
        matches!(again, Err(StoreError::Refused { .. })),
        "{again:?}"
    );
    let some = store
        .append(&session, after(8), vec![dequeued(&["b", "a"])])
        .await;
    assert!(some.is_err(), "all or nothing");
    let loaded = place.open().await.load(&session).await.unwrap();
    assert_eq!(loaded.queued, [words("b", WaitsFor::NextTurn)]);
    assert!(loaded.open_turn.is_none());
    assert_eq!(loaded.messages.len(), 4);
}

async fn a_session_in_which_words_wait_is_unfinished<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    told(&store, "s2", &[("one", "two")]).await;
    store
        .append(&session, after(5), vec![queued("a"), queued("b")])
        .await
        .unwrap();
    drop(store);

    let store = place.open().await;
    let only = std::slice::from_ref(&session);
    assert_eq!(store.unfinished().await.unwrap(), only);
    let begun = vec![started("t9", "a"), dequeued(&["a"])];
    store.append(&session, after(6), begun).await.unwrap();
    assert_eq!(
        store.unfinished().await.unwrap(),
        only,
        "once, also with an open turn"
    );
    let ended = vec![ended("t9"), dequeued(&["b"])];
    store.append(&session, after(7), ended).await.unwrap();
    assert!(store.unfinished().await.unwrap().is_empty());
}

async fn words_wait_beside_a_turn_that_runs<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let new = new_session("s1");
    let session = new.id.clone();
    // Also with the very first commit of a session.
    let entries = vec![started("t1", "go"), queued("a")];
    store.create(new, entries).await.unwrap();
    let loaded = store.load(&session).await.unwrap();
    assert_eq!(loaded.queued.len(), 1);
    assert_eq!(loaded.open_turn.unwrap().turn, "t1".into());
    let end = vec![replied("t1", Message::assistant("yes")), ended("t1")];
    store.append(&session, after(2), end).await.unwrap();
    assert_eq!(store.load(&session).await.unwrap().queued.len(), 1);
}
