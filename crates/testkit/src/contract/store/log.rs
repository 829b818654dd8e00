//! The step log: what was appended is there, whole and in order, after a restart too.

use std::path::PathBuf;

use hermes_core::{
    Cost, Effect, Entry, Intent, Media, MediaSource, Message, NewSession, OpenTurn, Origin, Part,
    Reasoning, Role, SessionId, Store, StoreError, TurnEnd, Usage,
};
use serde_json::json;

use super::Place;
use super::talk::{
    after, asked, calling, ended, finished, intended, new_session, replied, replied_at_cost,
    result, started, told,
};

pub(super) async fn check<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    a_session_comes_back_as_it_was_created(open).await;
    messages_come_back_in_order_after_a_restart(open).await;
    odd_messages_come_back_byte_for_byte(open).await;
    a_session_is_created_with_its_first_entries_or_not_at_all(open).await;
    results_stand_in_the_order_of_their_calls(open).await;
    the_pictures_of_a_result_come_back_byte_for_byte(open).await;
    how_the_last_turn_ended_is_known(open).await;
    an_append_is_all_or_nothing(open).await;
    a_call_has_exactly_one_result(open).await;
    a_turn_moves_on_only_when_its_calls_are_answered(open).await;
    entries_belong_to_the_open_turn(open).await;
    an_unfinished_turn_is_found_after_a_restart(open).await;
    counters_add_up(open).await;
    turns_taken_back_leave_the_conversation(open).await;
    a_branch_begins_with_what_it_inherited(open).await;
    where_words_came_from_comes_back(open).await;
    what_a_tool_keeps_follows_the_turns_that_stand(open).await;
    an_unknown_price_makes_the_sum_unknown(open).await;
    neighbours_do_not_suffer_from_a_refused_append(open).await;
    unknown_sessions_are_not_found(open).await;
}

async fn a_session_comes_back_as_it_was_created<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let mut new = new_session("s1");
    new.title = Some("A plan".into());
    new.parent = Some("s0".into());
    place
        .open()
        .await
        .create(new.clone(), Vec::new())
        .await
        .unwrap();

    let store = place.open().await;
    let loaded = store.load(&new.id).await.unwrap();
    assert_eq!(loaded.prefix, new.prefix);
    assert_eq!(
        serde_json::to_string(&loaded.prefix.tools).unwrap(),
        serde_json::to_string(&new.prefix.tools).unwrap(),
        "the prefix is the same bytes, keys in the same order"
    );
    let record = loaded.record;
    assert_eq!(
        (record.id, record.title, record.source, record.cwd),
        (
            new.id.clone(),
            new.title.clone(),
            new.source.clone(),
            new.cwd.clone()
        )
    );
    assert_eq!(
        (record.model, record.parent),
        (new.model.clone(), new.parent.clone())
    );
    assert_eq!((record.created, record.updated), (new.created, new.created));
    assert_eq!((record.messages, record.has_open_turn), (0, false));
    assert!(loaded.messages.is_empty() && loaded.open_turn.is_none());
    assert!(
        store.create(new, Vec::new()).await.is_err(),
        "an id is used once"
    );
}

async fn messages_come_back_in_order_after_a_restart<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let pairs = [("one", "two"), ("three", "four")];
    let session = told(&place.open().await, "s1", &pairs).await;

    let loaded = place.open().await.load(&session).await.unwrap();
    let texts: Vec<String> = loaded.messages.iter().map(Message::text).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
    assert_eq!(loaded.record.preview, "one");
    assert_eq!(loaded.record.updated, after(2));
}

async fn odd_messages_come_back_byte_for_byte<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let messages = odd_messages();
    for (i, message) in messages.iter().enumerate() {
        let turn = format!("t{i}");
        let entries = vec![
            started(&turn, ""),
            replied(&turn, message.clone()),
            ended(&turn),
        ];
        store.append(&session, after(1), entries).await.unwrap();
    }
    drop(store);

    let loaded = place.open().await.load(&session).await.unwrap();
    let replies: Vec<Message> = loaded
        .messages
        .into_iter()
        .filter(|message| message.role == Role::Assistant)
        .collect();
    assert!(replies == messages, "a message changed in the store");
}

fn odd_messages() -> Vec<Message> {
    let assistant = |parts| Message {
        role: Role::Assistant,
        origin: None,
        parts,
    };
    vec![
        assistant(vec![]),
        assistant(vec![Part::text("")]),
        Message::assistant("nul \0, quote ', emoji 👩‍👩‍👧, rtl שלום, combining e\u{301}, \u{feff}"),
        Message::assistant("x".repeat(1 << 20)),
        Message::assistant("汉字".repeat(1 << 18)),
        assistant(vec![
            Part::Reasoning(Reasoning {
                text: "because".into(),
                signature: Some("c2lnbmF0dXJl+/==".into()),
            }),
            Part::text("first"),
            Part::Reasoning(Reasoning::default()),
            Part::text("second\n"),
            Part::Image(Media {
                mime: "image/png".into(),
                source: MediaSource::Base64("iVBORw0KGgo=".into()),
            }),
        ]),
    ]
}

async fn the_pictures_of_a_result_come_back_byte_for_byte<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let picture = |source| Media {
        mime: "image/png".into(),
        source,
    };
    let shown = result("a", "two pictures").with_images(vec![
        picture(MediaSource::Base64("iVBORw0KGgo=".repeat(100_000))),
        picture(MediaSource::Url("https://example.org/a.png".into())),
    ]);
    let entries = vec![
        started("t", "go"),
        replied("t", calling(&["a"])),
        Entry::CallFinished {
            turn: "t".into(),
            result: shown.clone(),
        },
    ];
    let store = place.open().await;
    store.create(new_session("s1"), entries).await.unwrap();
    drop(store);

    let loaded = place.open().await.load(&"s1".into()).await.unwrap();
    assert!(loaded.messages[2] == Message::result(shown), "it changed");
}

async fn a_session_is_created_with_its_first_entries_or_not_at_all<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let entries = vec![started("t1", "hello"), asked("t1")];
    store.create(new_session("s1"), entries).await.unwrap();
    let loaded = store.load(&"s1".into()).await.unwrap();
    assert_eq!(loaded.messages, [Message::user("hello")]);
    assert_eq!(loaded.open_turn.map(|open| open.steps), Some(1));

    let impossible = vec![started("t1", "hello"), finished("t1", "no such call")];
    assert!(store.create(new_session("s2"), impossible).await.is_err());
    let error = store.load(&"s2".into()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
}

async fn results_stand_in_the_order_of_their_calls<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let entries = vec![
        started("t", "go"),
        replied("t", calling(&["a", "b", "c"])),
        finished("t", "c"),
        finished("t", "a"),
        finished("t", "b"),
        // Ids are unique within a reply only.
        replied("t", calling(&["a"])),
        finished("t", "a"),
        replied("t", Message::assistant("done")),
        ended("t"),
    ];
    store.append(&session, after(1), entries).await.unwrap();
    let loaded = store.load(&session).await.unwrap();
    let calls: Vec<&str> = loaded
        .messages
        .iter()
        .filter_map(Message::tool_result)
        .map(|result| result.call.as_str())
        .collect();
    assert_eq!(calls, ["a", "b", "c", "a"]);
    assert_eq!(loaded.record.messages, 8);
}

async fn how_the_last_turn_ended_is_known<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    let interrupted = Entry::TurnEnded {
        turn: "t9".into(),
        end: TurnEnd::Interrupted,
        closing: None,
    };
    let entries = vec![started("t9", "three"), interrupted, started("t10", "four")];
    store.append(&session, after(9), entries).await.unwrap();
    let last_end = store.load(&session).await.unwrap().last_end;
    assert_eq!(last_end, Some(TurnEnd::Interrupted));
}

async fn an_append_is_all_or_nothing<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    let before = store.load(&session).await.unwrap();
    let entries = vec![
        started("t9", "three"),
        replied("t9", Message::assistant("four")),
        finished("t9", "nobody asked"),
    ];
    assert!(store.append(&session, after(9), entries).await.is_err());
    assert_eq!(store.load(&session).await.unwrap(), before);
    drop(store);
    assert_eq!(place.open().await.load(&session).await.unwrap(), before);
}

async fn a_call_has_exactly_one_result<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let entries = vec![
        started("t", "go"),
        replied("t", calling(&["a", "b"])),
        finished("t", "a"),
    ];
    store.append(&session, after(1), entries).await.unwrap();

    let again = store.append(&session, after(2), vec![finished("t", "a")]);
    let error = again.await.expect_err("a second result").to_string();
    assert!(error.contains("`a`"), "the error names the call: {error}");
    let twice = vec![finished("t", "b"), finished("t", "b")];
    assert!(store.append(&session, after(3), twice).await.is_err());
    let stranger = vec![finished("t", "z")];
    assert!(store.append(&session, after(4), stranger).await.is_err());

    let last = vec![finished("t", "b")];
    store.append(&session, after(5), last).await.unwrap();
    let messages = store.load(&session).await.unwrap().messages;
    let results: Vec<_> = messages.iter().filter_map(Message::tool_result).collect();
    let expected = [result("a", "result of a"), result("b", "result of b")];
    assert_eq!(results, expected.iter().collect::<Vec<_>>());
}

async fn a_turn_moves_on_only_when_its_calls_are_answered<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let entries = vec![started("t", "go"), replied("t", calling(&["a"]))];
    store.append(&session, after(1), entries).await.unwrap();

    let early_reply = vec![replied("t", Message::assistant("done"))];
    assert!(store.append(&session, after(2), early_reply).await.is_err());
    let early_end = vec![ended("t")];
    assert!(store.append(&session, after(2), early_end).await.is_err());
    let in_order = vec![finished("t", "a"), ended("t")];
    store.append(&session, after(2), in_order).await.unwrap();
}

async fn entries_belong_to_the_open_turn<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    let refused = [
        vec![asked("t0")],
        vec![ended("t0")],
        vec![replied("t7", Message::assistant("x"))],
        vec![started("a", "x"), started("b", "y")],
        vec![started("a", "x"), asked("b")],
    ];
    for entries in refused {
        let shown = format!("{entries:?}");
        let outcome = store.append(&session, after(9), entries).await;
        assert!(outcome.is_err(), "accepted {shown}");
    }
}

async fn an_unfinished_turn_is_found_after_a_restart<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    told(&store, "finished", &[("one", "two")]).await;
    for id in ["later", "earlier"].iter().rev() {
        store.create(new_session(id), Vec::new()).await.unwrap();
    }
    let session = SessionId::from("earlier");
    let entries = vec![
        started("t", "go"),
        asked("t"),
        replied("t", calling(&["a", "b", "c"])),
        intended("t", "b", Effect::Effect),
        intended("t", "a", Effect::Read),
        finished("t", "a"),
        Entry::TurnResumed { turn: "t".into() },
        asked("t"),
        // Read again after the restart.
        intended("t", "b", Effect::Effect),
    ];
    store.append(&session, after(1), entries).await.unwrap();
    let other = SessionId::from("later");
    let entries = vec![started("t", "hm")];
    store.append(&other, after(2), entries).await.unwrap();
    drop(store);

    let store = place.open().await;
    assert_eq!(store.unfinished().await.unwrap(), [session.clone(), other]);
    let loaded = store.load(&session).await.unwrap();
    let expected = OpenTurn {
        turn: "t".into(),
        resumed: 1,
        steps: 2,
        replies: 1,
        intents: vec![Intent {
            call: "b".into(),
            tool: "zeta".into(),
            effect: Effect::Effect,
        }],
    };
    assert_eq!(loaded.open_turn, Some(expected));
    assert!(loaded.record.has_open_turn);

    close_turn(&store, &session).await;
    assert_eq!(store.unfinished().await.unwrap(), ["later".into()]);
    let loaded = store.load(&session).await.unwrap();
    assert_eq!(loaded.open_turn, None);
    assert_eq!(
        loaded.messages.last(),
        Some(&Message::assistant("Stopped."))
    );
}

async fn close_turn(store: &impl Store, session: &SessionId) {
    let entries = vec![
        finished("t", "b"),
        finished("t", "c"),
        Entry::TurnEnded {
            turn: "t".into(),
            end: TurnEnd::Abandoned { crashes: 3 },
            closing: Some(Message::assistant("Stopped.")),
        },
    ];
    store.append(session, after(3), entries).await.unwrap();
}

async fn counters_add_up<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let entries = vec![
        started("t", "go"),
        replied("t", calling(&["a", "b"])),
        finished("t", "a"),
        finished("t", "b"),
    ];
    store.append(&session, after(1), entries).await.unwrap();
    let entries = vec![
        replied_at_cost("t", Message::assistant("done"), Cost::Included),
        ended("t"),
    ];
    store.append(&session, after(2), entries).await.unwrap();

    let record = store.load(&session).await.unwrap().record;
    assert_eq!((record.messages, record.calls, record.requests), (5, 2, 2));
    let usage = Usage {
        input: 200,
        output: 40,
        cache_read: 6,
        cache_write: 8,
        reasoning: 10,
    };
    assert_eq!((record.usage, record.cost_micro_usd), (usage, Some(7)));
}

async fn an_unknown_price_makes_the_sum_unknown<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    for (turn, cost) in [("a", Cost::Unknown), ("b", Cost::Estimated(1))] {
        let entries = vec![
            started(turn, "go"),
            replied_at_cost(turn, Message::assistant("done"), cost),
            ended(turn),
        ];
        store.append(&session, after(5), entries).await.unwrap();
    }
    let record = store.load(&session).await.unwrap().record;
    assert_eq!(record.cost_micro_usd, None);
}

async fn turns_taken_back_leave_the_conversation<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("a", "1"), ("b", "2"), ("c", "3")]).await;
    let rewound = |turns| vec![Entry::Rewound { turns }];
    store.append(&session, after(9), rewound(1)).await.unwrap();
    let again = vec![
        started("t9", "d"),
        replied("t9", Message::assistant("4")),
        ended("t9"),
    ];
    store.append(&session, after(10), again).await.unwrap();
    store.append(&session, after(11), rewound(2)).await.unwrap();
    for store in [store, place.open().await] {
        let loaded = store.load(&session).await.unwrap();
        let texts: Vec<_> = loaded.messages.iter().map(Message::text).collect();
        assert_eq!(texts, ["a", "1"]);
        assert_eq!(loaded.record.messages, 2);
        assert_eq!(loaded.record.requests, 4, "what was used stays used");
        let too_many = store.append(&session, after(12), rewound(2)).await;
        assert!(matches!(too_many, Err(StoreError::Refused { .. })));
        assert_eq!(store.load(&session).await.unwrap().messages.len(), 2);
    }
    let store = place.open().await;
    let open_turn = vec![started("t10", "e"), Entry::Rewound { turns: 1 }];
    let refused = store.append(&session, after(13), open_turn).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
}

async fn a_branch_begins_with_what_it_inherited<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let parent = told(&store, "s1", &[("a", "1")]).await;
    let messages = store.load(&parent).await.unwrap().messages;
    let branch = NewSession {
        parent: Some(parent.clone()),
        ..new_session("s2")
    };
    let inherited = Entry::Inherited {
        turn: "t0".into(),
        messages: messages.clone(),
    };
    let entries = vec![inherited, started("t1", "b")];
    store.create(branch, entries).await.unwrap();
    let loaded = place.open().await.load(&"s2".into()).await.unwrap();
    assert_eq!(loaded.messages[..2], messages);
    assert_eq!(loaded.record.parent, Some(parent));
    assert_eq!(loaded.record.preview, "a");
    assert_eq!((loaded.record.messages, loaded.record.requests), (3, 0));
    assert_eq!(loaded.open_turn.unwrap().turn, "t1".into());
}

async fn neighbours_do_not_suffer_from_a_refused_append<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    const SESSIONS: usize = 20;
    let place = Place::new(open);
    let store = place.open().await;
    let ids: Vec<SessionId> = (0..SESSIONS)
        .map(|i| SessionId::from(format!("s{i}")))
        .collect();
    for id in &ids {
        store
            .create(new_session(id.as_str()), Vec::new())
            .await
            .unwrap();
    }
    let appends = ids.iter().enumerate().map(|(i, id)| {
        let entries = match i % 5 {
            4 => vec![ended("never started")],
            _ => vec![started("t", "hello"), ended("t")],
        };
        store.append(id, after(1), entries)
    });
    let outcomes = futures_util::future::join_all(appends).await;
    for (i, (id, outcome)) in ids.iter().zip(outcomes).enumerate() {
        let is_good = i % 5 != 4;
        assert_eq!(outcome.is_ok(), is_good, "{id}: {outcome:?}");
        let messages = store.load(id).await.unwrap().messages.len();
        assert_eq!(messages, usize::from(is_good), "{id}");
    }
}

async fn unknown_sessions_are_not_found<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let nobody = SessionId::from("nobody");
    let expected = StoreError::NotFound {
        name: "nobody".into(),
    };
    assert_eq!(store.load(&nobody).await, Err(expected.clone()));
    let append = store.append(&nobody, after(1), vec![started("t", "x")]);
    assert_eq!(append.await, Err(expected));
}

async fn where_words_came_from_comes_back<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let session = SessionId::from("s1");
    let origins = [
        Origin::person(),
        Origin::Person {
            surface: Some("telegram".into()),
            id: Some("42".into()),
            request: None,
            inbox: Vec::new(),
            mirrored: None,
        },
        Origin::Notice,
        Origin::SubagentReport {
            delegation: "d1".into(),
        },
        Origin::Schedule {
            job: "daily".into(),
        },
    ];
    for (at, origin) in origins.iter().enumerate() {
        let turn = format!("t{at}");
        let message = Message {
            origin: Some(origin.clone()),
            ..Message::user("words")
        };
        let begun = Entry::TurnStarted {
            turn: turn.as_str().into(),
            message,
        };
        let entries = vec![
            begun,
            replied(&turn, Message::assistant("yes")),
            ended(&turn),
        ];
        store.append(&session, after(1), entries).await.unwrap();
    }
    drop(store);

    let loaded = place.open().await.load(&session).await.unwrap();
    let back: Vec<Origin> = loaded
        .messages
        .into_iter()
        .filter_map(|message| message.origin)
        .collect();
    assert_eq!(back, origins);
}

fn kept(turn: &str, tool: &str, state: &str) -> Entry {
    Entry::ToolKept {
        turn: turn.into(),
        tool: tool.into(),
        state: json!({ "list": state }),
    }
}

async fn what_a_tool_keeps_follows_the_turns_that_stand<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let pairs = [("one", "1"), ("two", "2"), ("three", "3")];
    let session = told(&place.open().await, "s1", &pairs).await;
    let store = place.open().await;
    let turns = ["t0", "t1", "t2"];
    for (turn, state) in turns.iter().zip(["a", "b", "c"]) {
        let entries = vec![kept(turn, "todo", "old"), kept(turn, "todo", state)];
        store.append(&session, after(3), entries).await.unwrap();
    }
    let other = vec![kept("t0", "other", "x")];
    store.append(&session, after(3), other).await.unwrap();
    assert!(
        store
            .append(&session, after(3), vec![kept("t9", "todo", "z")])
            .await
            .is_err(),
        "what is kept belongs to a turn of the session"
    );
    for (back, expected) in [(0, "c"), (1, "b"), (1, "a")] {
        if back > 0 {
            let rewound = vec![Entry::Rewound { turns: back }];
            store.append(&session, after(4), rewound).await.unwrap();
        }
        let loaded = place.open().await.load(&session).await.unwrap();
        assert_eq!(loaded.tool_states["todo"], json!({ "list": expected }));
        assert_eq!(loaded.tool_states["other"], json!({ "list": "x" }));
    }
}
