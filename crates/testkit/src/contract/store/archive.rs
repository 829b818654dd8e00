//! Listing, finding, naming and removing sessions.

use std::path::PathBuf;

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{
    Archive, Cost, Entry, Insights, Message, SessionFilter, SessionId, SpokenFrom, SpokenQuery,
    Store, StoreError, TurnEnd, Used,
};

use super::Place;
use super::talk::{
    START, after, asked, calling, ended, finished, new_session, replied, replied_at_cost, started,
    told,
};

pub(super) async fn check<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    sessions_are_listed_newest_first(open).await;
    a_session_is_found_by_id_beginning_and_title(open).await;
    titles_are_clean_and_used_once(open).await;
    a_deleted_session_is_gone(open).await;
    subagents_belong_to_their_parent(open).await;
    a_transcript_has_every_message_with_its_time(open).await;
    what_was_said_is_read_from_either_end(open).await;
    the_end_of_a_session_is_read_without_the_rest(open).await;
    statistics_count_everything(open).await;
    insights_count_what_was_used_since(open).await;
}

async fn sessions_are_listed_newest_first<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    told(&store, "old", &[("one", "two")]).await;
    told(&store, "new", &[("three", "four"), ("five", "six")]).await;
    let mut elsewhere = new_session("elsewhere");
    elsewhere.source = "oneshot".into();
    elsewhere.cwd = None;
    store.create(elsewhere, Vec::new()).await.unwrap();

    let listed = async |filter: SessionFilter| -> Vec<String> {
        let records = store.list(filter).await.unwrap();
        records.iter().map(|record| record.id.to_string()).collect()
    };
    let all = SessionFilter::default();
    assert_eq!(listed(all.clone()).await, ["new", "old", "elsewhere"]);
    let two = SessionFilter {
        limit: 2,
        ..all.clone()
    };
    assert_eq!(listed(two).await, ["new", "old"]);
    let oneshot = SessionFilter {
        source: Some("oneshot".into()),
        ..all.clone()
    };
    assert_eq!(listed(oneshot).await, ["elsewhere"]);
    let here = SessionFilter {
        cwd: Some("/work".into()),
        ..all
    };
    assert_eq!(listed(here).await, ["new", "old"]);
    let record = store.record(&"new".into()).await.unwrap();
    assert_eq!((record.id.as_str(), record.messages), ("new", 4));
}

async fn a_session_is_found_by_id_beginning_and_title<S: Store + Archive>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    for (id, created, title) in [
        ("20260101_a", 1, Some("plan")),
        ("20260101_ab", 2, Some("plan #2")),
        ("20260102_c", 3, Some("plan #10")),
        ("20260103_d", 4, Some("plan #x")),
        ("20260104_e", 5, Some("100% _done_")),
        ("20260105_f", 6, None),
    ] {
        let mut new = new_session(id);
        new.created = after(created);
        new.title = title.map(Into::into);
        store.create(new, Vec::new()).await.unwrap();
    }
    let check = async |name: &str, expected: &str| {
        assert_eq!(store.find(name).await, Ok(expected.into()), "{name}");
    };
    check("20260101_a", "20260101_a").await; // also the beginning of another
    check("20260101_ab", "20260101_ab").await;
    check("20260105", "20260105_f").await;
    check("plan", "20260102_c").await; // the newest `plan #N`
    check("plan #2", "20260101_ab").await;
    check("plan #x", "20260103_d").await;
    check("100% _done_", "20260104_e").await;

    match store.find("20260101").await {
        Err(StoreError::Ambiguous { candidates, .. }) => {
            assert_eq!(candidates, ["20260101_a".into(), "20260101_ab".into()]);
        }
        outcome => panic!("{outcome:?}"),
    }
    for nobody in ["", "2025", "pla", "%", "20260101_abc", "'; --"] {
        let outcome = store.find(nobody).await;
        assert!(
            matches!(outcome, Err(StoreError::NotFound { .. })),
            "{nobody}: {outcome:?}"
        );
    }
}

async fn titles_are_clean_and_used_once<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = told(&store, "s1", &[]).await;
    let two = told(&store, "s2", &[]).await;
    let title_of = async |session| store.load(session).await.unwrap().record.title;

    store
        .rename(&one, "  my \u{202e}plan\u{7}\n")
        .await
        .unwrap();
    assert_eq!(title_of(&one).await.as_deref(), Some("my plan"));
    let taken = StoreError::TitleTaken {
        title: "my plan".into(),
        session: one.clone(),
    };
    assert_eq!(store.rename(&two, "my plan").await, Err(taken.clone()));
    let mut third = new_session("s3");
    third.title = Some("my plan".into());
    assert_eq!(store.create(third, Vec::new()).await, Err(taken));
    store.rename(&one, "my plan").await.expect("its own title");
    store.rename(&two, &"é".repeat(300)).await.unwrap();
    assert_eq!(title_of(&two).await, Some("é".repeat(100)));
    assert!(store.rename(&two, " \n").await.is_err(), "an empty title");
    let nobody = store.rename(&"nobody".into(), "x").await;
    assert!(matches!(nobody, Err(StoreError::NotFound { .. })));
}

async fn a_deleted_session_is_gone<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two")]).await;
    let kept = told(&store, "s2", &[("three", "four")]).await;
    store.rename(&session, "title").await.unwrap();
    store.delete(&session).await.unwrap();

    let not_found = StoreError::NotFound { name: "s1".into() };
    assert_eq!(store.load(&session).await, Err(not_found.clone()));
    assert_eq!(store.transcript(&session).await, Err(not_found.clone()));
    assert_eq!(store.record(&session).await, Err(not_found.clone()));
    assert_eq!(store.delete(&session).await, Err(not_found));
    store.rename(&kept, "title").await.expect("free again");
    assert_eq!(store.load(&kept).await.unwrap().messages.len(), 2);
    drop(store);
    let records = place.open().await.list(SessionFilter::default()).await;
    assert_eq!(records.unwrap().len(), 1);
}

async fn subagents_belong_to_their_parent<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    told(&store, "parent", &[("one", "two")]).await;
    for (id, parent, source) in [
        ("child", "parent", SUBAGENT_SOURCE),
        ("grandchild", "child", SUBAGENT_SOURCE),
        ("branch", "parent", "cli"),
        ("stranger", "elsewhere", SUBAGENT_SOURCE),
    ] {
        let mut session = new_session(id);
        session.parent = Some(parent.into());
        session.source = source.into();
        let entries = vec![started("t", "hello"), ended("t")];
        store.create(session, entries).await.unwrap();
    }
    let subagents = store.subagents(&"parent".into()).await.unwrap();
    let ids: Vec<_> = subagents.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["child", "grandchild"]);
    let listed = async |source: Option<&str>| {
        let filter = SessionFilter {
            source: source.map(str::to_owned),
            ..SessionFilter::default()
        };
        store.list(filter).await.unwrap().len()
    };
    assert_eq!(listed(None).await, 2, "subagents are listed when asked for");
    assert_eq!(listed(Some(SUBAGENT_SOURCE)).await, 3);
    store.delete(&"parent".into()).await.unwrap();
    assert_eq!(listed(Some(SUBAGENT_SOURCE)).await, 1, "they go with it");
    assert_eq!(listed(None).await, 1, "a branch stays");
}

async fn a_transcript_has_every_message_with_its_time<S: Store + Archive>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "two"), ("three", "four")]).await;
    let lines = store.transcript(&session).await.unwrap();
    let shown: Vec<_> = lines
        .iter()
        .map(|line| {
            let turn = line.turn.as_ref().map(ToString::to_string);
            let millis = line.at.as_millis() - START.as_millis();
            (millis, turn.unwrap_or_default(), line.message.text())
        })
        .collect();
    let line = |at, turn: &str, text: &str| (at, turn.to_owned(), text.to_owned());
    let expected = [
        line(1, "t0", "one"),
        line(1, "t0", "two"),
        line(2, "t1", "three"),
        line(2, "t1", "four"),
    ];
    assert_eq!(shown, expected);
}

async fn insights_count_what_was_used_since<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    assert_eq!(store.insights(after(0)).await.unwrap(), Insights::default());
    told(&store, "s1", &[("one", "two"), ("three", "four")]).await;
    store.create(new_session("s2"), Vec::new()).await.unwrap();
    let entries = vec![
        started("t", "go"),
        replied_at_cost("t", calling(&["a"]), Cost::Unknown),
        finished("t", "a"),
        Entry::TurnEnded {
            turn: "t".into(),
            end: TurnEnd::Interrupted,
            closing: None,
        },
    ];
    let second = SessionId::from("s2");
    store.append(&second, after(5), entries).await.unwrap();

    let all = store.insights(after(0)).await.unwrap();
    let mut used = Used::default();
    all.hours.iter().for_each(|hour| used += hour.used);
    let expected = Used {
        requests: 3,
        input: 3 * 107,
        output: 60,
        cost_micro_usd: 14,
        requests_without_price: 1,
    };
    assert_eq!(used, expected);
    assert_eq!((all.models.len(), all.models[0].used), (1, expected));
    assert_eq!((all.tools.len(), all.tools[0].count), (1, 1));
    assert_eq!(all.failures[0].name, "interrupted");
    assert_eq!(all.longest[0].id, SessionId::from("s1"));
    let later = store.insights(after(5)).await.unwrap();
    assert_eq!(later.models[0].used.requests, 1);
    assert_eq!(store.insights(after(6)).await.unwrap(), Insights::default());
}

async fn what_was_said_is_read_from_either_end<S: Store + Archive>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let first = told(&store, "s1", &[("one", "two"), ("three", "four")]).await;
    let second = told(&store, "s2", &[("five", "six")]).await;
    let calls = vec![
        started("t", "seven"),
        replied("t", calling(&["a"])),
        finished("t", "a"),
    ];
    store.append(&first, after(9), calls).await.unwrap();
    let read = async |session: Option<&SessionId>, from, limit| {
        let session = session.cloned();
        let query = SpokenQuery {
            session,
            from,
            with_results: false,
            limit,
        };
        store.spoken(query).await.unwrap()
    };
    let texts = async |session: Option<&SessionId>, from, limit| -> Vec<String> {
        let spoken = read(session, from, limit).await;
        spoken.iter().map(|said| said.message.text()).collect()
    };
    let start = SpokenFrom::After(0);
    let everything = ["one", "two", "three", "four", "five", "six", "seven", ""];
    assert_eq!(texts(None, start, 100).await, everything, "and no result");
    let with_results = store.spoken(SpokenQuery {
        session: Some(first.clone()),
        from: start,
        with_results: true,
        limit: 100,
    });
    let last = with_results.await.unwrap().pop().unwrap();
    assert!(last.message.tool_result().is_some(), "{last:?}");
    assert_eq!(texts(None, SpokenFrom::End, 3).await, ["six", "seven", ""]);
    assert_eq!(texts(Some(&first), start, 2).await, ["one", "two"]);
    assert_eq!(
        texts(Some(&second), SpokenFrom::End, 9).await,
        ["five", "six"]
    );

    let two = read(None, start, 2).await;
    assert!(0 < two[0].place && two[0].place < two[1].place);
    assert_eq!((&two[1].session, two[1].at), (&first, after(1)));
    let rest = SpokenFrom::After(two[1].place);
    assert_eq!(texts(None, rest, 2).await, ["three", "four"]);
    assert!(texts(None, SpokenFrom::After(u64::MAX), 9).await.is_empty());
    let taken_back = vec![Entry::Rewound { turns: 1 }];
    store.append(&second, after(10), taken_back).await.unwrap();
    assert!(texts(Some(&second), start, 9).await.is_empty());
    let nobody = store.spoken(SpokenQuery {
        session: Some("nobody".into()),
        from: start,
        with_results: false,
        limit: 1,
    });
    assert!(matches!(nobody.await, Err(StoreError::NotFound { .. })));
}

async fn the_end_of_a_session_is_read_without_the_rest<S: Store + Archive>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("a", "1"), ("b", "2"), ("c", "3")]).await;
    told(&store, "s2", &[("x", "9")]).await;
    let end = async |exchanges| {
        let ending = store.ending(&session, exchanges).await.unwrap();
        let texts: Vec<String> = ending.messages.iter().map(Message::text).collect();
        (texts.join(" "), ending.earlier)
    };
    assert_eq!(end(2).await, ("b 2 c 3".to_owned(), 2));
    assert_eq!(end(9).await, ("a 1 b 2 c 3".to_owned(), 0));
    assert_eq!(end(0).await, (String::new(), 6));
    let taken_back = vec![Entry::Rewound { turns: 1 }];
    store.append(&session, after(20), taken_back).await.unwrap();
    assert_eq!(end(1).await, ("b 2".to_owned(), 2));
    let nobody = store.ending(&"nobody".into(), 1).await;
    assert!(matches!(nobody, Err(StoreError::NotFound { .. })));
}

async fn statistics_count_everything<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    assert_eq!(store.stats().await.unwrap().sessions, 0);
    told(&store, "s1", &[("one", "two")]).await;
    store.create(new_session("s2"), Vec::new()).await.unwrap();
    let entries = vec![
        started("t", "go"),
        asked("t"),
        replied("t", calling(&["a"])),
        finished("t", "a"),
        ended("t"),
        started("u", "on"),
        replied("u", Message::assistant("and on")),
    ];
    let second = SessionId::from("s2");
    store.append(&second, after(1), entries).await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.sessions, stats.messages, stats.calls), (2, 7, 1));
    assert_eq!((stats.usage.input, stats.unfinished_turns), (300, 1));
}
