//! The promises of [`Records`].

use std::path::PathBuf;

use hermes_core::{Claimed, Record, RecordKey, Records, Timestamp};

use super::Place;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn record(fingerprint: &str, value: Option<&str>, from: i64, until: i64) -> Record {
    Record {
        fingerprint: fingerprint.into(),
        value: value.map(str::to_owned),
        created: at(from),
        expires: at(until),
    }
}

pub(super) async fn check<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    the_first_claim_holds(open).await;
    what_was_kept_survives_a_restart(open).await;
    scopes_do_not_meet(open).await;
    what_has_ended_is_absent_and_forgotten(open).await;
    of_many_claims_at_once_one_is_the_first(open).await;
    any_text_is_a_key(open).await;
    a_scope_is_listed_oldest_first(open).await;
}

async fn the_first_claim_holds<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let key = RecordKey::new("s", "k");
    let first = record("a", None, 10, 100);
    let claim = store.claim_record(key.clone(), first.clone());
    assert_eq!(claim.await.unwrap(), Claimed::New);
    let again = store.claim_record(key.clone(), record("b", Some("v"), 20, 200));
    assert_eq!(again.await.unwrap(), Claimed::Held(first));
    let done = record("a", Some("done"), 10, 100);
    store.put_record(key.clone(), done.clone()).await.unwrap();
    let third = store.claim_record(key.clone(), record("a", None, 99, 200));
    assert_eq!(third.await.unwrap(), Claimed::Held(done));
    assert!(store.remove_record(key.clone()).await.unwrap());
    assert!(!store.remove_record(key.clone()).await.unwrap());
    let fourth = store.claim_record(key, record("c", None, 99, 200));
    assert_eq!(fourth.await.unwrap(), Claimed::New);
}

async fn what_was_kept_survives_a_restart<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let key = RecordKey::new("s", "k");
    let kept = record("a", Some("v"), 10, 100);
    let store = place.open().await;
    store.put_record(key.clone(), kept.clone()).await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.record_at(key, at(50)).await.unwrap(), Some(kept));
}

async fn scopes_do_not_meet<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let here = RecordKey::new("here", "k");
    let there = RecordKey::new("there", "k");
    let kept = record("a", None, 10, 100);
    store.put_record(here, kept.clone()).await.unwrap();
    assert_eq!(store.record_at(there.clone(), at(50)).await.unwrap(), None);
    let claim = store.claim_record(there, kept);
    assert_eq!(claim.await.unwrap(), Claimed::New);
}

async fn what_has_ended_is_absent_and_forgotten<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let key = |name: &str| RecordKey::new("s", name);
    for (name, until) in [("short", 100), ("long", 1_000)] {
        let put = store.put_record(key(name), record("a", Some(name), 10, until));
        put.await.unwrap();
    }
    assert!(
        store
            .record_at(key("short"), at(99))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(store.record_at(key("short"), at(100)).await.unwrap(), None);
    let claim = store.claim_record(key("short"), record("b", None, 100, 110));
    assert_eq!(claim.await.unwrap(), Claimed::New);
    assert_eq!(store.forget_expired_records(at(110)).await.unwrap(), 1);
    assert_eq!(store.forget_expired_records(at(110)).await.unwrap(), 0);
    assert!(
        store
            .record_at(key("long"), at(110))
            .await
            .unwrap()
            .is_some()
    );
}

async fn of_many_claims_at_once_one_is_the_first<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let claims = (0..20).map(|number| {
        let key = RecordKey::new("s", "k");
        store.claim_record(key, record(&number.to_string(), None, 10, 100))
    });
    let claims = futures_util::future::join_all(claims).await;
    let new = claims.iter().filter(|claim| **claim == Ok(Claimed::New));
    assert_eq!(new.count(), 1);
}

async fn any_text_is_a_key<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    for text in ["", "ü' OR 1=1; --", "a\nb\u{0}c", &"k".repeat(10_000)] {
        let key = RecordKey::new(text, text);
        let kept = record(text, Some(text), 10, 100);
        store.put_record(key.clone(), kept.clone()).await.unwrap();
        assert_eq!(store.record_at(key, at(20)).await.unwrap(), Some(kept));
    }
}

async fn a_scope_is_listed_oldest_first<S: Records>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    for (scope, key, from, until) in [
        ("s", "second", 20, 100),
        ("s", "first", 10, 100),
        ("s", "over", 5, 30),
        ("t", "elsewhere", 1, 100),
    ] {
        let put = store.put_record(RecordKey::new(scope, key), record("a", None, from, until));
        put.await.unwrap();
    }
    let keys = async |limit: usize| -> Vec<String> {
        let found = store.records_in("s", at(50), limit).await.unwrap();
        found.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys(10).await, ["first", "second"]);
    assert_eq!(keys(1).await, ["first"]);
    assert!(keys(0).await.is_empty());
}
