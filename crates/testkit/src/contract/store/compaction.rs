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
    a_copy_is_seen_as_the_original_and_has_all_of_it(open).await;
    an_open_turn_is_not_copied(open).await;
    requests_may_begin_with_something_else_and_all_be_seen(open).await;
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

async fn a_copy_is_seen_as_the_original_and_has_all_of_it<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "1"), ("two", "2")]).await;
    // The results come in another order than the calls.
    let entries = vec![
        started("t9", "look"),
        replied("t9", calling(&["a", "b"])),
        finished("t9", "b"),
        finished("t9", "a"),
        kept("t9", 2),
        replied("t9", Message::assistant("seen")),
        ended("t9"),
        kept("t0", 1),
    ];
    store.append(&session, after(5), entries).await.unwrap();
    let short = Shortened {
        at: 2,
        message: Message::result(result("a", "a, in short")),
    };
    let Entry::Compacted { summary, .. } = compacted("so far", 0) else {
        unreachable!("made so");
    };
    let compaction = Entry::Compacted {
        summary,
        kept: 5,
        shortened: vec![short],
        prefix: None,
        used: None,
    };
    store
        .append(&session, after(6), vec![compaction])
        .await
        .unwrap();
    let original = store.load(&session).await.unwrap();
    drop(store);

    let store = place.open().await;
    let entries = store.entries_of_copy(&session).await.unwrap();
    store.create(new_session("s2"), entries).await.unwrap();
    let copy = SessionId::from("s2");
    let loaded = place.open().await.load(&copy).await.unwrap();
    assert_eq!(loaded.messages, original.messages);
    assert_eq!(loaded.messages[0].text(), "so far");
    assert_eq!(loaded.record.messages, original.record.messages);
    assert_eq!(loaded.record.preview, "one");
    assert_eq!(loaded.tool_states, original.tool_states);

    // Nothing of it is the original's: it is shortened and taken back by itself.
    let short = Shortened {
        at: 3,
        message: Message::result(result("b", "b, in short")),
    };
    let shorter = Entry::Compacted {
        summary: None,
        kept: 5,
        shortened: vec![short],
        prefix: None,
        used: None,
    };
    store.append(&copy, after(7), vec![shorter]).await.unwrap();
    let back = vec![Entry::Rewound { turns: 2 }];
    store.append(&copy, after(8), back).await.unwrap();
    assert_eq!(seen(&place.open().await, &copy).await, ["one", "1"]);
    let states = store.load(&copy).await.unwrap().tool_states;
    assert_eq!(states["todo"], 1, "what was kept in the turn that stands");
    assert_eq!(store.load(&session).await.unwrap(), original);
}

fn kept(turn: &str, state: u32) -> Entry {
    Entry::ToolKept {
        turn: turn.into(),
        tool: "todo".into(),
        state: state.into(),
    }
}

async fn an_open_turn_is_not_copied<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "1")]).await;
    let asked = vec![started("t9", "two"), replied("t9", calling(&["a"]))];
    store.append(&session, after(5), asked).await.unwrap();
    let refused = store.entries_of_copy(&session).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
    let unknown = store.entries_of_copy(&"nobody".into()).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

async fn requests_may_begin_with_something_else_and_all_be_seen<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "1")]).await;
    let prefix = Prefix {
        system: "in few words".into(),
        tools: [].into(),
    };
    let anew = |prefix| Entry::Compacted {
        summary: None,
        kept: 2,
        shortened: Vec::new(),
        prefix,
        used: None,
    };
    let nothing = store.append(&session, after(4), vec![anew(None)]).await;
    assert!(matches!(nothing, Err(StoreError::Refused { .. })));
    let entry = vec![anew(Some(prefix.clone()))];
    store.append(&session, after(5), entry).await.unwrap();
    let loaded = place.open().await.load(&session).await.unwrap();
    assert_eq!(loaded.prefix, prefix);
    assert_eq!(seen(&store, &session).await, ["one", "1"]);
    let copy = store.entries_of_copy(&session).await.unwrap();
    store.create(new_session("s2"), copy).await.unwrap();
    assert_eq!(seen(&store, &"s2".into()).await, ["one", "1"]);
}
