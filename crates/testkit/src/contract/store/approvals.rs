//! Questions that wait for consent: they survive, anybody can answer, and one answer wins.

use std::path::PathBuf;

use hermes_core::approval_code::TRIES_MAX;
use hermes_core::{
    AnswerSource, Approval, ApprovalAnswer, ApprovalCode, Preview, SessionId, Settled, Settlement,
    Store, StoreError, Timestamp, Verdict,
};

use super::Place;
use super::talk::{START, after, calling, finished, new_session, replied, started};

pub(super) async fn check<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    a_question_survives_and_is_answered_by_another_store(open).await;
    the_first_of_many_answers_is_final(open).await;
    an_answer_after_the_time_is_up_counts_as_none(open).await;
    an_answer_for_a_call_with_a_result_comes_too_late(open).await;
    only_what_was_offered_can_be_answered(open).await;
    a_question_belongs_to_a_call_that_waits(open).await;
    what_a_crash_left_is_found_by_its_call(open).await;
    open_questions_are_listed_oldest_first(open).await;
    an_answer_from_elsewhere_takes_the_code(open).await;
    after_some_wrong_codes_none_is_taken_any_more(open).await;
    what_is_said_with_an_answer_is_kept(open).await;
}

const EXPIRES_MS: i64 = 60_000;

/// A session whose last reply makes these calls.
async fn waiting(store: &impl Store, id: &str, calls: &[&str]) -> SessionId {
    let entries = vec![started("t1", "go"), replied("t1", calling(calls))];
    store.create(new_session(id), entries).await.unwrap();
    id.into()
}

fn question(id: &str, session: &SessionId, call: &str) -> Approval {
    Approval {
        id: id.into(),
        code: ApprovalCode::stored(format!("{id:2>6}")),
        session: session.clone(),
        call: call.into(),
        // Not the tool of the call: another call asks, which that one makes.
        tool: "terminal".into(),
        what: "rm -r '\u{1f980}'".into(),
        folder: Some("/srv/p".into()),
        reason: "deletes\nfiles".into(),
        patterns: vec!["rm *".into()],
        preview: Some(Preview {
            diff: "-old\n+new\u{1b}[2K\n".into(),
            is_whole: true,
            basis: "0123".into(),
        }),
        choices: Verdict::ALL.to_vec(),
        created: START,
        expires: after(EXPIRES_MS),
        settled: None,
    }
}

fn answer(verdict: Verdict, at: Timestamp) -> Settlement {
    Settlement::answered(at, verdict.into(), AnswerSource::Command)
}

async fn a_question_survives_and_is_answered_by_another_store<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let here = place.open().await;
    let session = waiting(&here, "s1", &["c1"]).await;
    let asked = question("a1", &session, "c1");
    here.open_approval(asked.clone()).await.unwrap();

    let there = place.open().await;
    assert_eq!(there.approval(&asked.id).await, Ok(asked.clone()));
    let said = answer(Verdict::Session, after(1));
    let settling = there.settle(&asked.id, said.clone()).await.unwrap();
    assert_eq!((&settling.settlement, settling.is_ours), (&said, true));
    let seen = here.approval(&asked.id).await.unwrap();
    assert_eq!(seen.settled, Some(said.clone()));
    assert_eq!(here.open_approvals(after(2)).await, Ok(Vec::new()));

    let missing = here.approval(&"a2".into()).await;
    assert!(matches!(missing, Err(StoreError::NoApproval { .. })));
    let missing = here.settle(&"a2".into(), said).await;
    assert!(matches!(missing, Err(StoreError::NoApproval { .. })));
}

async fn the_first_of_many_answers_is_final<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let (here, there) = (place.open().await, place.open().await);
    let session = waiting(&here, "s1", &["c1"]).await;
    let asked = question("a1", &session, "c1");
    here.open_approval(asked.clone()).await.unwrap();

    let (yes, no) = (
        answer(Verdict::Once, after(1)),
        answer(Verdict::Deny, after(1)),
    );
    let expired = Settlement::new(after(1), Settled::Expired);
    let (first, second, third) = tokio::join!(
        here.settle(&asked.id, yes),
        there.settle(&asked.id, no),
        here.settle(&asked.id, expired)
    );
    let attempts = [first.unwrap(), second.unwrap(), third.unwrap()];
    let winners = attempts.iter().filter(|attempt| attempt.is_ours).count();
    assert_eq!(winners, 1, "{attempts:?}");
    let stands = there.approval(&asked.id).await.unwrap().settled.unwrap();
    for attempt in attempts {
        assert_eq!(attempt.settlement, stands, "everybody learns the same");
    }
}

async fn an_answer_after_the_time_is_up_counts_as_none<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1"]).await;
    let asked = question("a1", &session, "c1");
    store.open_approval(asked.clone()).await.unwrap();
    let too_late = after(EXPIRES_MS);
    assert_eq!(store.open_approvals(too_late).await, Ok(Vec::new()));

    let late = answer(Verdict::Once, too_late);
    let settling = store.settle(&asked.id, late).await.unwrap();
    assert_eq!(settling.settlement.how, Settled::Expired);
    assert!(!settling.is_ours);
    let earlier = answer(Verdict::Once, after(1));
    let settling = store.settle(&asked.id, earlier).await.unwrap();
    assert_eq!(settling.settlement.how, Settled::Expired, "for good");
}

async fn an_answer_for_a_call_with_a_result_comes_too_late<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1", "c2"]).await;
    let asked = question("a1", &session, "c1");
    store.open_approval(asked.clone()).await.unwrap();
    let result = vec![finished("t1", "c1")];
    store.append(&session, after(1), result).await.unwrap();

    assert_eq!(store.open_approvals(after(2)).await, Ok(Vec::new()));
    let late = answer(Verdict::Once, after(2));
    let settling = store.settle(&asked.id, late).await.unwrap();
    assert_eq!(settling.settlement.how, Settled::Withdrawn);
}

async fn only_what_was_offered_can_be_answered<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1"]).await;
    let mut asked = question("a1", &session, "c1");
    asked.choices = vec![Verdict::Once, Verdict::Deny];
    store.open_approval(asked.clone()).await.unwrap();
    let more = answer(Verdict::Session, after(1));
    let refused = store.settle(&asked.id, more).await;
    assert!(
        matches!(refused, Err(StoreError::NotOffered { .. })),
        "{refused:?}"
    );
    assert_eq!(store.open_approvals(after(2)).await, Ok(vec![asked]));
}

async fn a_question_belongs_to_a_call_that_waits<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1", "c2"]).await;
    let result = vec![finished("t1", "c1")];
    store.append(&session, after(1), result).await.unwrap();
    for (session, call) in [(&session, "c1"), (&session, "c9"), (&"s9".into(), "c2")] {
        let opened = store.open_approval(question("a1", session, call)).await;
        assert!(
            matches!(opened, Err(StoreError::Refused { .. })),
            "{call}: {opened:?}"
        );
    }
}

async fn what_a_crash_left_is_found_by_its_call<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1"]).await;
    let of_call = async || {
        let store = place.open().await;
        let found = store.approval_of_call(&session, &"c1".into()).await;
        found.unwrap().map(|approval| approval.id.to_string())
    };
    assert_eq!(of_call().await, None);
    for (id, millis) in [("older", 0), ("newer", 1)] {
        let asked = Approval {
            created: after(millis),
            ..question(id, &session, "c1")
        };
        store.open_approval(asked).await.unwrap();
    }
    assert_eq!(of_call().await.as_deref(), Some("newer"));
    // The same id in the next reply is another call.
    let next = vec![finished("t1", "c1"), replied("t1", calling(&["c1"]))];
    store.append(&session, after(2), next).await.unwrap();
    assert_eq!(of_call().await, None);
}

async fn open_questions_are_listed_oldest_first<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let mut expected = Vec::new();
    for (n, id) in ["b", "a", "c"].into_iter().enumerate() {
        let session = waiting(&store, &format!("s{n}"), &["c1"]).await;
        let asked = Approval {
            created: after(n as i64),
            ..question(id, &session, "c1")
        };
        store.open_approval(asked.clone()).await.unwrap();
        expected.push(asked);
    }
    assert_eq!(store.open_approvals(after(9)).await, Ok(expected));
}

async fn an_answer_from_elsewhere_takes_the_code<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let (here, there) = (place.open().await, place.open().await);
    let session = waiting(&here, "s1", &["c1", "c2"]).await;
    let asked = question("a1", &session, "c1");
    for asked in [&asked, &question("a2", &session, "c2")] {
        here.open_approval(asked.clone()).await.unwrap();
    }
    let said = answer(Verdict::Once, after(1));
    for wrong in ["", "a1", "2222a3", "222a1"] {
        let refused = there.settle_by_code(wrong, said.clone()).await;
        assert_eq!(refused, Err(StoreError::WrongCode), "{wrong}");
    }
    let (id, settling) = there.settle_by_code("2222A1", said.clone()).await.unwrap();
    assert_eq!((id, settling.is_ours), (asked.id.clone(), true));
    let seen = here.approval(&asked.id).await.unwrap();
    assert_eq!(seen.settled, Some(said.clone()));

    let late = answer(Verdict::Deny, after(2));
    let (_, settling) = there.settle_by_code("2222a1", late).await.unwrap();
    assert_eq!((settling.settlement, settling.is_ours), (said, false));
}

async fn after_some_wrong_codes_none_is_taken_any_more<S: Store>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1", "c2"]).await;
    let asked = question("a1", &session, "c1");
    store.open_approval(asked.clone()).await.unwrap();
    let said = answer(Verdict::Once, after(1));
    for _ in 0..TRIES_MAX {
        let refused = store.settle_by_code("wrong2", said.clone()).await;
        assert_eq!(refused, Err(StoreError::WrongCode));
    }
    let locked = place
        .open()
        .await
        .settle_by_code("2222a1", said.clone())
        .await;
    assert_eq!(locked, Err(StoreError::CodesLocked));
    // Its own conversation still answers, and a new question has its own tries.
    let next = question("a2", &session, "c2");
    store.open_approval(next.clone()).await.unwrap();
    let (id, _) = store.settle_by_code("2222a2", said.clone()).await.unwrap();
    assert_eq!(id, next.id);
    assert!(store.settle(&asked.id, said).await.unwrap().is_ours);
}

async fn what_is_said_with_an_answer_is_kept<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = waiting(&store, "s1", &["c1"]).await;
    let asked = question("a1", &session, "c1");
    store.open_approval(asked.clone()).await.unwrap();
    let said = |pattern: &str| {
        let answer = ApprovalAnswer {
            verdict: Verdict::Session,
            pattern: Some(pattern.into()),
            words: Some("use the staging host".into()),
        };
        Settlement::answered(after(1), answer, AnswerSource::Mcp)
    };
    let refused = store.settle(&asked.id, said("*")).await;
    assert!(
        matches!(refused, Err(StoreError::NotOffered { .. })),
        "{refused:?}"
    );
    store.settle(&asked.id, said("rm *")).await.unwrap();
    let seen = place.open().await.approval(&asked.id).await.unwrap();
    assert_eq!(seen.settled, Some(said("rm *")));
}
