//! What a store keeps of learning: changes with what was before, reviews that are due, and a budget that holds.

use std::path::PathBuf;

use hermes_core::{
    Archive, Author, COMPACTION_USE, ChangeFilter, ChangeId, Cost, Counted, DueReview, Entry,
    LearningCost, LearningInsights, LearningLedger, LearningLog, LearningUse, Message, NOTES_MARK,
    NewLearnedChange, NewLearningUse, NewSession, Origin, Prefix, Reviews, SessionId, Store,
    StoreError, Subject, SummaryUse, Usage,
};

use super::Place;
use super::talk::{START, after, ended, new_session, replied, started, told};

pub(super) async fn check<S: Store + Archive + LearningLog + Reviews + LearningLedger>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    a_change_is_kept_from_its_beginning(open).await;
    a_change_that_was_not_made_is_forgotten(open).await;
    changes_are_found_by_what_is_asked(open).await;
    what_was_taken_back_is_known_until_that_is_taken_back(open).await;
    changes_outlive_their_session(open).await;
    a_review_is_due_until_it_is_finished(open).await;
    one_takes_a_review_and_whoever_dies_loses_it(open).await;
    a_review_of_what_goes_on_does_not_hold_up_others(open).await;
    what_was_not_reviewed_is_read_also_behind_a_summary(open).await;
    a_budget_holds_over_crashes_and_for_many_at_once(open).await;
    what_learning_took_is_counted_and_summaries_are_no_part_of_its_budget(open).await;
}

fn notes(file: &str) -> Subject {
    Subject::Notes {
        file: file.into(),
        person: Some("anna \u{1f980}".into()),
    }
}

fn learned(subject: Subject, author: Author, at: i64) -> NewLearnedChange {
    NewLearnedChange {
        at: after(at),
        subject,
        author,
        session: Some("s1".into()),
        turn: Some("t1".into()),
        summary: "added: likes \u{a7} signs".into(),
        before: None,
        after: Some("likes \u{a7} signs\n\u{a7}\nand lines".into()),
        undoes: None,
    }
}

async fn made(log: &impl LearningLog, change: NewLearnedChange) -> ChangeId {
    let id = log.begin(change).await.unwrap();
    log.finish(id).await.unwrap();
    id
}

async fn a_change_is_kept_from_its_beginning<S: LearningLog>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let log = place.open().await;
    let change = learned(notes("memory"), Author::Agent, 0);
    let id = log.begin(change.clone()).await.unwrap();
    drop(log);
    let log = place.open().await;
    let found = log.change(id).await.unwrap().unwrap();
    assert_eq!((&found.change, found.is_finished), (&change, false));
    log.finish(id).await.unwrap();
    assert!(log.change(id).await.unwrap().unwrap().is_finished);
    assert_eq!(log.change(ChangeId(id.0 + 1)).await, Ok(None));
    let missing = log.finish(ChangeId(id.0 + 1)).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}

async fn a_change_that_was_not_made_is_forgotten<S: LearningLog>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let log = place.open().await;
    let id = log
        .begin(learned(notes("user"), Author::Agent, 0))
        .await
        .unwrap();
    log.abandon(id).await.unwrap();
    assert_eq!(log.change(id).await, Ok(None));
    let kept = made(&log, learned(notes("user"), Author::Agent, 1)).await;
    assert!(kept > id, "numbers are not used twice");
    log.abandon(kept).await.unwrap();
    assert!(log.change(kept).await.unwrap().is_some());
}

async fn changes_are_found_by_what_is_asked<S: LearningLog>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let log = place.open().await;
    let skill = Subject::Skill {
        name: "travel".into(),
        path: "SKILL.md".into(),
    };
    let first = made(&log, learned(notes("memory"), Author::Agent, 1)).await;
    let second = made(&log, learned(skill.clone(), Author::Review, 2)).await;
    let elsewhere = NewLearnedChange {
        session: None,
        ..learned(notes("user"), Author::Person, 3)
    };
    let third = made(&log, elsewhere).await;
    let find = async |filter: ChangeFilter| -> Vec<ChangeId> {
        let changes = log.changes(filter).await.unwrap();
        changes.into_iter().map(|change| change.id).collect()
    };
    let all = ChangeFilter::default();
    assert_eq!(find(all.clone()).await, [third, second, first]);
    let newest = ChangeFilter {
        limit: 1,
        ..all.clone()
    };
    assert_eq!(find(newest).await, [third]);
    let kind = ChangeFilter {
        kind: Some("notes".into()),
        ..all.clone()
    };
    assert_eq!(find(kind).await, [third, first]);
    let subject = ChangeFilter {
        subject: Some(skill),
        ..all.clone()
    };
    assert_eq!(find(subject).await, [second]);
    let in_session = ChangeFilter {
        session: Some("s1".into()),
        since: Some(after(2)),
        ..all.clone()
    };
    assert_eq!(find(in_session).await, [second]);
    let author = ChangeFilter {
        author: Some(Author::Person),
        ..all
    };
    assert_eq!(find(author).await, [third]);
}

async fn what_was_taken_back_is_known_until_that_is_taken_back<S: LearningLog>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let log = place.open().await;
    let undoing = |id: ChangeId| NewLearnedChange {
        undoes: Some(id),
        ..learned(notes("memory"), Author::Person, 1)
    };
    let id = made(&log, learned(notes("memory"), Author::Agent, 0)).await;
    let begun = log.begin(undoing(id)).await.unwrap();
    assert_eq!(log.change(id).await.unwrap().unwrap().undone_by, None);
    log.finish(begun).await.unwrap();
    let found = log.change(id).await.unwrap().unwrap();
    assert_eq!(found.undone_by, Some(begun));
    made(&log, undoing(begun)).await;
    assert_eq!(log.change(id).await.unwrap().unwrap().undone_by, None);
}

async fn changes_outlive_their_session<S: Store + Archive + LearningLog>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("hello", "hi")]).await;
    let id = made(&store, learned(notes("memory"), Author::Agent, 0)).await;
    store.delete(&session).await.unwrap();
    assert!(store.change(id).await.unwrap().is_some());
}

fn due(session: &SessionId, at: i64, notes: bool) -> DueReview {
    DueReview {
        session: session.clone(),
        person: Some("anna".into()),
        at: after(at),
        notes,
        skills: !notes,
    }
}

async fn a_review_is_due_until_it_is_finished<S: Store + Archive + Reviews>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let first = told(&store, "s1", &[("hello", "hi")]).await;
    let second = told(&store, "s2", &[("hello", "hi")]).await;
    store.set_review_due(due(&first, 5, true)).await.unwrap();
    store.set_review_due(due(&second, 4, false)).await.unwrap();
    store.set_review_due(due(&first, 6, false)).await.unwrap();
    drop(store);
    let store = place.open().await;
    let both = DueReview {
        skills: true,
        ..due(&first, 5, true)
    };
    let waiting = store.due_reviews(START).await.unwrap();
    assert_eq!(waiting, [due(&second, 4, false), both]);
    assert_eq!(store.reviewed_messages(&first).await, Ok(0));
    store.finish_review(&first, 2).await.unwrap();
    assert_eq!(store.reviewed_messages(&first).await, Ok(2));
    assert_eq!(store.unreviewed(&first, 9).await, Ok(Vec::new()));
    store.delete(&second).await.unwrap();
    assert_eq!(store.due_reviews(START).await, Ok(Vec::new()));
    let gone = store.take_review(&second, START, after(9)).await;
    assert_eq!(gone, Ok(None));
    store.finish_review(&second, 2).await.unwrap();
}

async fn one_takes_a_review_and_whoever_dies_loses_it<S: Store + Reviews>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("hello", "hi")]).await;
    let take = async |store: &S, now: i64| {
        let taken = store
            .take_review(&session, after(now), after(now + 10))
            .await;
        taken.unwrap().map(|taken| taken.tries)
    };
    assert_eq!(take(&store, 0).await, None, "nothing is due");
    store.set_review_due(due(&session, 0, true)).await.unwrap();
    assert_eq!(take(&store, 0).await, Some(1));
    let other = place.open().await;
    assert_eq!(take(&other, 1).await, None);
    assert_eq!(other.due_reviews(after(1)).await, Ok(Vec::new()));
    assert_eq!(take(&other, 10).await, Some(2), "its time was up");
    other.put_off_review(&session, after(15)).await.unwrap();
    assert_eq!(take(&store, 14).await, None, "not before its time");
    assert_eq!(other.due_reviews(after(14)).await, Ok(Vec::new()));
    assert_eq!(take(&store, 15).await, Some(2), "the try did not count");
    store.finish_review(&session, 2).await.unwrap();
    assert_eq!(take(&store, 99).await, None);
}

/// A process that died in a turn, which nobody has gone on with.
async fn a_review_of_what_goes_on_does_not_hold_up_others<S: Store + Reviews>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let first = told(&store, "s1", &[("hello", "hi")]).await;
    let second = told(&store, "s2", &[("hello", "hi")]).await;
    store.set_review_due(due(&first, 4, true)).await.unwrap();
    store.set_review_due(due(&second, 5, true)).await.unwrap();
    let begun = vec![started("t", "go on")];
    store.append(&first, after(6), begun).await.unwrap();
    let waiting = store.due_reviews(after(9)).await.unwrap();
    assert_eq!(waiting, [due(&second, 5, true)]);
    let over = vec![replied("t", Message::assistant("done")), ended("t")];
    store.append(&first, after(7), over).await.unwrap();
    let waiting = store.due_reviews(after(9)).await.unwrap();
    assert_eq!(waiting.len(), 2, "it stayed due");
}

async fn what_was_not_reviewed_is_read_also_behind_a_summary<S: Store + Archive + Reviews>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("a", "1"), ("b", "2"), ("c", "3")]).await;
    let texts = async |limit| -> String {
        let messages = store.unreviewed(&session, limit).await.unwrap();
        let texts: Vec<String> = messages.iter().map(Message::text).collect();
        texts.join(" ")
    };
    assert_eq!(texts(9).await, "a 1 b 2 c 3");
    store.finish_review(&session, 2).await.unwrap();
    assert_eq!(texts(9).await, "b 2 c 3");
    assert_eq!(texts(3).await, "2 c 3");
    let summary = Entry::Compacted {
        summary: Some(Message {
            origin: Some(Origin::Summary),
            ..Message::user("in short")
        }),
        kept: 2,
        shortened: Vec::new(),
        prefix: None,
        used: None,
    };
    store
        .append(&session, after(9), vec![summary])
        .await
        .unwrap();
    assert_eq!(store.load(&session).await.unwrap().messages.len(), 3);
    assert_eq!(texts(9).await, "b 2 c 3", "people see all of it");
    let taken_back = vec![Entry::Rewound { turns: 1 }];
    store.append(&session, after(10), taken_back).await.unwrap();
    assert_eq!(texts(9).await, "b 2");
    let nobody = store.unreviewed(&"nobody".into(), 9).await;
    assert!(matches!(nobody, Err(StoreError::NotFound { .. })));
}

async fn a_budget_holds_over_crashes_and_for_many_at_once<S: LearningLedger>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    const DAY: &str = "2026-11-18";
    let budget = LearningUse {
        tokens: 100,
        micro_usd: 50,
    };
    let wanted = |day: &str, tokens, micro_usd| NewLearningUse {
        day: day.into(),
        purpose: "review".into(),
        session: Some("s1".into()),
        at_most: LearningUse { tokens, micro_usd },
    };
    let place = Place::new(open);
    let store = place.open().await;
    let first = store.reserve_use(wanted(DAY, 60, 1), budget).await.unwrap();
    assert!(first.is_some());
    drop(store);
    // What a crash left unsettled counts in full.
    let (here, there) = (place.open().await, place.open().await);
    assert_eq!(here.reserve_use(wanted(DAY, 41, 0), budget).await, Ok(None));
    let used = LearningUse {
        tokens: 30,
        micro_usd: 1,
    };
    here.settle_use(first.unwrap(), used).await.unwrap();
    assert_eq!(there.used_on(DAY).await, Ok(used));
    let (one, two) = tokio::join!(
        here.reserve_use(wanted(DAY, 40, 1), budget),
        there.reserve_use(wanted(DAY, 40, 1), budget),
    );
    let granted = [one.unwrap(), two.unwrap()].into_iter().flatten().count();
    assert_eq!(granted, 1, "two at once do not exceed it together");
    assert_eq!(here.reserve_use(wanted(DAY, 1, 50), budget).await, Ok(None));
    let tomorrow = wanted("2026-11-19", 100, 50);
    assert!(here.reserve_use(tomorrow, budget).await.unwrap().is_some());
}

async fn what_learning_took_is_counted_and_summaries_are_no_part_of_its_budget<
    S: Store + Archive + LearningLog + LearningLedger,
>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("one", "1"), ("two", "2")]).await;
    let compacted = Entry::Compacted {
        summary: Some(Message::user("so far")),
        kept: 2,
        shortened: Vec::new(),
        prefix: None,
        used: Some(SummaryUse {
            usage: Usage {
                input: 900,
                output: 100,
                ..Usage::default()
            },
            cost: Cost::Estimated(7),
        }),
    };
    store
        .append(&session, after(5), vec![compacted])
        .await
        .unwrap();
    let with_notes = NewSession {
        prefix: Prefix {
            system: format!("You are.\n\n# Notes\n{NOTES_MARK}\n\nlikes tea"),
            tools: [].into(),
        },
        ..new_session("s2")
    };
    store.create(with_notes, Vec::new()).await.unwrap();
    let day = after(5).date_text();
    let wanted = NewLearningUse {
        day: day.clone(),
        purpose: "review".into(),
        session: Some(session),
        at_most: LearningUse {
            tokens: 500,
            micro_usd: 50,
        },
    };
    let budget = wanted.at_most;
    assert!(
        store.reserve_use(wanted, budget).await.unwrap().is_some(),
        "the summary left all of the budget"
    );
    assert_eq!(store.used_on(&day).await, Ok(budget));
    let change = made(&store, learned(notes("memory"), Author::Review, 6)).await;
    let undone = NewLearnedChange {
        undoes: Some(change),
        ..learned(notes("memory"), Author::Person, 7)
    };
    made(&store, undone).await;
    let cost = |purpose: &str, tokens, micro_usd| LearningCost {
        purpose: purpose.into(),
        requests: 1,
        tokens,
        micro_usd,
    };
    let expected = LearningInsights {
        costs: vec![cost(COMPACTION_USE, 1_000, 7), cost("review", 500, 50)],
        changes: vec![Counted {
            name: "notes".into(),
            count: 1,
        }],
        undone: 1,
        conversations_with_notes: 1,
    };
    assert_eq!(store.insights(START).await.unwrap().learning, expected);
}
