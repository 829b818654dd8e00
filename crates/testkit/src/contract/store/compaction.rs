//! Compactions: a model sees the summary and what was kept, people everything.

use std::path::PathBuf;

use hermes_core::{
    Cost, Entry, Message, Origin, Prefix, SessionId, Shortened, Store, StoreError, SummaryUse,
    Usage,
};

use super::Place;
use super::talk::{after, calling, ended, finished, new_session, replied, result, started, told};

pub(super) async fn check<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    after_a_compaction_a_model_sees_the_summary_and_what_was_kept(open).await;
    taking_back_what_a_summary_covers_takes_the_summary_back(open).await;
    a_compaction_that_makes_no_sense_is_refused(open).await;
    shortened_messages_are_seen_short_and_said_whole(open).await;
    turns_are_found_from_the_end_also_under_a_summary(open).await;
}

fn compacted(summary: &str, kept: u32) -> Entry {
    Entry::Compacted {
        summary: Some(Message {
            origin: Some(Origin::Summary),
            ..Message::user(summary)
        }),
        kept,
        shortened: Vec::new(),
        prefix: None,
        used: None,
    }
}

async fn seen(store: &impl Store, session: &SessionId) -> Vec<String> {
    let loaded = store.load(session).await.unwrap();
    loaded.messages.iter().map(Message::text).collect()
}

async fn after_a_compaction_a_model_sees_the_summary_and_what_was_kept<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let pairs = [("one", "1"), ("two", "2"), ("three", "3")];
    let session = told(&place.open().await, "s1", &pairs).await;
    let store = place.open().await;
    let before = store.load(&session).await.unwrap();
    let first = vec![compacted("so far", 2)];
    store.append(&session, after(4), first).await.unwrap();
    let more = vec![
        started("t4", "four"),
        replied("t4", Message::assistant("4")),
        ended("t4"),
    ];
    store.append(&session, after(5), more).await.unwrap();
    drop(store);

    let store = place.open().await;
    assert_eq!(
        seen(&store, &session).await,
        ["so far", "three", "3", "four", "4"]
    );
    let loaded = store.load(&session).await.unwrap();
    assert_eq!(loaded.prefix, before.prefix, "the prefix stays");
    assert_eq!(loaded.messages[0].origin, Some(Origin::Summary));
    assert!(!loaded.messages[0].begins_turn());
    assert_eq!(loaded.record.messages, before.record.messages + 2);

    let prefix = Prefix {
        system: "other notes".into(),
        ..before.prefix
    };
    let second = Entry::Compacted {
        summary: Some(Message::user("all of it")),
        kept: 0,
        shortened: Vec::new(),
        prefix: Some(prefix.clone()),
        used: Some(SummaryUse {
            usage: Usage {
                input: 1_000,
                output: 50,
                ..Usage::default()
            },
            cost: Cost::Estimated(300),
        }),
    };
    store
        .append(&session, after(6), vec![second])
        .await
        .unwrap();
    assert_eq!(seen(&place.open().await, &session).await, ["all of it"]);
    let after_both = store.load(&session).await.unwrap();
    assert_eq!(after_both.prefix, prefix);
    let (before, after) = (loaded.record, after_both.record);
    assert_eq!(after.usage.input, before.usage.input + 1_000);
    assert_eq!(after.usage.output, before.usage.output + 50);
    assert_eq!(
        after.cost_micro_usd,
        before.cost_micro_usd.map(|cost| cost + 300)
    );
    assert_eq!(
        after.requests, before.requests,
        "the conversation made none"
    );
}

async fn taking_back_what_a_summary_covers_takes_the_summary_back<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let pairs = [("one", "1"), ("two", "2"), ("three", "3")];
    let session = told(&place.open().await, "s1", &pairs).await;
    let store = place.open().await;
    for entry in [compacted("first", 4), compacted("second", 2)] {
        store.append(&session, after(4), vec![entry]).await.unwrap();
    }
    assert_eq!(seen(&store, &session).await, ["second", "three", "3"]);
    let back = || vec![Entry::Rewound { turns: 1 }];
    store.append(&session, after(5), back()).await.unwrap();
    assert_eq!(seen(&store, &session).await, ["second"]);
    store.append(&session, after(6), back()).await.unwrap();
    assert_eq!(seen(&store, &session).await, ["first"]);
    store.append(&session, after(7), back()).await.unwrap();
    assert_eq!(seen(&place.open().await, &session).await, [""; 0]);
}

fn shortened(at: u32, message: Message) -> Entry {
    let message = Shortened { at, message };
    Entry::Compacted {
        summary: None,
        kept: 4,
        shortened: vec![message],
        prefix: None,
        used: None,
    }
}

async fn shortened_messages_are_seen_short_and_said_whole<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    // The results come in another order than the calls.
    let entries = vec![
        started("t1", "look"),
        replied("t1", calling(&["a", "b"])),
        finished("t1", "b"),
        finished("t1", "a"),
    ];
    store.append(&session, after(1), entries).await.unwrap();
    let short = |call: &str| Message::result(result(call, &format!("{call}, in short")));
    for (entry, why) in [
        (shortened(2, short("b")), "it is the result of another call"),
        (shortened(1, short("a")), "it has another role"),
        (shortened(9, short("a")), "there is no such message"),
    ] {
        let refused = store.append(&session, after(2), vec![entry]).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{why}");
    }
    let first = vec![shortened(2, short("a"))];
    store.append(&session, after(2), first).await.unwrap();
    let second = vec![shortened(3, short("b"))];
    store.append(&session, after(3), second).await.unwrap();
    let rest = vec![replied("t1", Message::assistant("seen")), ended("t1")];
    store.append(&session, after(4), rest).await.unwrap();
    drop(store);
    let store = place.open().await;
    let results = async || -> Vec<String> {
        let loaded = store.load(&session).await.unwrap();
        let results = loaded.messages.iter().filter_map(Message::tool_result);
        results.map(|result| result.text.clone()).collect()
    };
    assert_eq!(results().await, ["a, in short", "b, in short"]);
    // A summary of what came before leaves them so; a message that it covers is gone with its short form.
    let summary = vec![compacted("so far", 4)];
    store.append(&session, after(5), summary).await.unwrap();
    assert_eq!(results().await, ["a, in short", "b, in short"]);
    let summary = vec![compacted("all of it", 1)];
    store.append(&session, after(6), summary).await.unwrap();
    assert_eq!(seen(&store, &session).await, ["all of it", "seen"]);
}

async fn turns_are_found_from_the_end_also_under_a_summary<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let pairs = [("one", "1"), ("two", "2"), ("three", "3")];
    let session = told(&place.open().await, "s1", &pairs).await;
    let store = place.open().await;
    let entry = vec![compacted("so far", 2)];
    store.append(&session, after(4), entry).await.unwrap();
    for (turns, expected) in [
        (1, Some((1, "three"))),
        (3, Some((3, "one"))),
        (9, Some((3, "one"))),
        (0, None),
    ] {
        let found = store.turn_from_end(&session, turns).await.unwrap();
        let found = found.map(|(turns, message)| (turns, message.text()));
        assert_eq!(
            found,
            expected.map(|(turns, text)| (turns, text.to_owned()))
        );
    }
    let back = vec![Entry::Rewound { turns: 1 }];
    store.append(&session, after(5), back).await.unwrap();
    let found = store.turn_from_end(&session, 1).await.unwrap();
    assert_eq!(found.map(|(_, message)| message.text()), Some("two".into()));
}

async fn a_compaction_that_makes_no_sense_is_refused<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let entries = vec![
        started("t1", "look"),
        replied("t1", calling(&["a"])),
        finished("t1", "a"),
        replied("t1", Message::assistant("seen")),
        ended("t1"),
    ];
    store.append(&session, after(1), entries).await.unwrap();
    for (keep, why) in [
        (4, "nothing would be summarised"),
        (9, "there are not so many"),
        (2, "a result would lose its call"),
    ] {
        let refused = store.append(&session, after(2), vec![compacted("s", keep)]);
        let refused = refused.await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{why}");
    }
    store
        .append(&session, after(2), vec![compacted("s", 1)])
        .await
        .unwrap();
    let again = store.append(&session, after(3), vec![compacted("s", 1)]);
    assert!(again.await.is_err(), "nothing new to compact");
}
