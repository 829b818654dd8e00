//! What a store keeps of people: one model each, changed by one at a time, and the conversations that are to be heard.

use std::path::PathBuf;

use hermes_core::{
    Archive, Author, ChangeId, DueHearing, LearningLog, Message, MoreToHear, NewLearnedChange,
    NewSession, SessionId, SpokenFrom, SpokenQuery, Store, StoredUserModel, Subject, UserModels,
};

use super::Place;
use super::talk::{START, after, ended, new_session, replied, started, told};

pub(super) async fn check<S: Store + Archive + LearningLog + UserModels>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    each_person_has_a_model_of_their_own(open).await;
    of_two_who_change_a_model_one_is_told_to_look_again(open).await;
    a_hearing_is_due_until_it_is_finished(open).await;
    one_takes_a_hearing_and_whoever_dies_loses_it(open).await;
    words_said_meanwhile_stay_due(open).await;
    what_a_branch_inherited_is_not_heard_again(open).await;
}

fn change(person: Option<&str>, after: Option<&str>) -> NewLearnedChange {
    NewLearnedChange {
        at: START,
        subject: Subject::UserModel {
            person: person.map(str::to_owned),
        },
        author: Author::Review,
        session: Some("s1".into()),
        turn: None,
        summary: "learned: likes tea".into(),
        before: None,
        after: after.map(str::to_owned),
        undoes: None,
    }
}

async fn replaced(
    store: &impl UserModels,
    version: u64,
    change: NewLearnedChange,
) -> Option<ChangeId> {
    store.replace_user_model(version, change).await.unwrap()
}

async fn each_person_has_a_model_of_their_own<S: LearningLog + UserModels>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    assert_eq!(store.user_model(None).await, Ok(None));
    let anna = replaced(&store, 0, change(Some("anna \u{1f980}"), Some("{}"))).await;
    let own = replaced(&store, 0, change(None, Some("{\"next\":1}"))).await;
    assert!(anna.is_some() && own.is_some());
    drop(store);
    let store = place.open().await;
    let known = |version: u64, text: &str| {
        Ok(Some(StoredUserModel {
            version,
            text: text.to_owned(),
        }))
    };
    assert_eq!(
        store.user_model(Some("anna \u{1f980}")).await,
        known(1, "{}")
    );
    assert_eq!(store.user_model(None).await, known(1, "{\"next\":1}"));
    assert_eq!(store.user_model(Some("ben")).await, Ok(None));
    let logged = store.change(own.unwrap()).await.unwrap().unwrap();
    assert!(logged.is_finished);
    assert_eq!(logged.change, change(None, Some("{\"next\":1}")));
    assert!(replaced(&store, 1, change(None, None)).await.is_some());
    assert_eq!(store.user_model(None).await, known(2, ""));
}

async fn of_two_who_change_a_model_one_is_told_to_look_again<S: LearningLog + UserModels>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let (one, other) = (place.open().await, place.open().await);
    assert!(replaced(&one, 0, change(None, Some("a"))).await.is_some());
    assert_eq!(replaced(&other, 0, change(None, Some("b"))).await, None);
    let now = other.user_model(None).await.unwrap().unwrap();
    assert_eq!((now.version, now.text.as_str()), (1, "a"));
    let changes = other.changes(Default::default()).await.unwrap();
    assert_eq!(changes.len(), 1, "what was not made is not in the log");
    let of_notes = NewLearnedChange {
        subject: Subject::Notes {
            file: "user".into(),
            person: None,
        },
        ..change(None, Some("c"))
    };
    assert!(other.replace_user_model(1, of_notes).await.is_err());
}

fn due(session: &SessionId, person: Option<&str>, at: i64) -> DueHearing {
    DueHearing {
        session: session.clone(),
        person: person.map(str::to_owned),
        at: after(at),
    }
}

async fn a_hearing_is_due_until_it_is_finished<S: Store + Archive + UserModels>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let first = told(&store, "s1", &[("hello", "hi")]).await;
    let second = told(&store, "s2", &[("hello", "hi")]).await;
    let annas = told(&store, "s3", &[("hello", "hi")]).await;
    for hearing in [
        due(&first, None, 3),
        due(&second, None, 4),
        due(&annas, Some("anna"), 1),
        due(&first, None, 5),
    ] {
        store.set_hearing_due(hearing).await.unwrap();
    }
    drop(store);
    let store = place.open().await;
    let waiting = store.due_hearings(None, after(9)).await;
    assert_eq!(
        waiting,
        Ok(vec![due(&second, None, 4), due(&first, None, 5)])
    );
    let waiting = store.due_hearings(Some("anna"), after(9)).await;
    assert_eq!(waiting, Ok(vec![due(&annas, Some("anna"), 1)]));
    let taken = store.take_hearing(&first, after(9), after(19)).await;
    let taken = taken.unwrap().unwrap();
    assert_eq!((taken.tries, taken.heard), (1, 0));
    store
        .finish_hearing(&taken, 7, MoreToHear::No)
        .await
        .unwrap();
    store.delete(&second).await.unwrap();
    assert_eq!(store.due_hearings(None, after(9)).await, Ok(Vec::new()));
    store.set_hearing_due(due(&first, None, 10)).await.unwrap();
    let again = store.take_hearing(&first, after(10), after(20)).await;
    assert_eq!(again.unwrap().unwrap().heard, 7);
}

async fn one_takes_a_hearing_and_whoever_dies_loses_it<S: Store + UserModels>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("hello", "hi")]).await;
    let take = async |store: &S, now: i64| {
        let taken = store
            .take_hearing(&session, after(now), after(now + 10))
            .await;
        taken.unwrap()
    };
    assert_eq!(take(&store, 0).await, None, "nothing is due");
    store.set_hearing_due(due(&session, None, 0)).await.unwrap();
    assert_eq!(take(&store, 0).await.unwrap().tries, 1);
    let other = place.open().await;
    assert_eq!(take(&other, 1).await, None);
    assert_eq!(other.due_hearings(None, after(1)).await, Ok(Vec::new()));
    assert_eq!(take(&other, 10).await.unwrap().tries, 2, "its time was up");
    other.put_off_hearing(&session).await.unwrap();
    let taken = take(&store, 11).await.unwrap();
    assert_eq!(taken.tries, 2, "the try did not count");
    store
        .finish_hearing(&taken, 5, MoreToHear::Yes)
        .await
        .unwrap();
    let taken = take(&store, 12).await.unwrap();
    assert_eq!((taken.tries, taken.heard), (1, 5), "there was more");
}

async fn words_said_meanwhile_stay_due<S: Store + UserModels>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("hello", "hi")]).await;
    store.set_hearing_due(due(&session, None, 0)).await.unwrap();
    let taken = store.take_hearing(&session, after(1), after(11)).await;
    let taken = taken.unwrap().unwrap();
    store.set_hearing_due(due(&session, None, 2)).await.unwrap();
    store
        .finish_hearing(&taken, 5, MoreToHear::No)
        .await
        .unwrap();
    let waiting = store.due_hearings(None, after(3)).await;
    assert_eq!(waiting, Ok(vec![due(&session, None, 2)]));
}

async fn what_a_branch_inherited_is_not_heard_again<S: Store + Archive + UserModels>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let parent = told(&store, "s1", &[("hello", "hi"), ("I like tea", "ok")]).await;
    let mut entries = store.entries_of_copy(&parent).await.unwrap();
    entries.extend([
        started("t9", "and milk"),
        replied("t9", Message::assistant("fine")),
        ended("t9"),
    ]);
    let branch = NewSession {
        parent: Some(parent),
        ..new_session("s2")
    };
    store.create(branch, entries).await.unwrap();
    let session = SessionId::from("s2");
    store.set_hearing_due(due(&session, None, 0)).await.unwrap();
    let taken = store.take_hearing(&session, after(1), after(11)).await;
    let query = SpokenQuery {
        with_results: false,
        session: Some(session),
        from: SpokenFrom::After(taken.unwrap().unwrap().heard),
        limit: 9,
    };
    let unheard = store.spoken(query).await.unwrap();
    let unheard: Vec<_> = unheard.iter().map(|one| one.message.text()).collect();
    assert_eq!(unheard, ["and milk", "fine"]);
}
