//! One owner per session.

use std::path::PathBuf;

use hermes_core::{Archive, SessionId, Store, StoreError};

use super::Place;
use super::talk::told;

pub(super) async fn check<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    a_session_has_one_owner_at_a_time(open).await;
    a_claimed_session_is_not_deleted(open).await;
    an_id_never_leads_out_of_the_folder(open).await;
}

async fn a_session_has_one_owner_at_a_time<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let (here, there) = (place.open().await, place.open().await);
    let session = told(&here, "s1", &[]).await;
    let other = told(&here, "s2", &[]).await;

    let claim = here.claim(&session).await.unwrap();
    for store in [&here, &there] {
        match store.claim(&session).await {
            Err(StoreError::Busy { session: busy, .. }) => assert_eq!(busy, session),
            outcome => panic!("claimed twice: {outcome:?}"),
        }
    }
    let _other = there.claim(&other).await.expect("another session is free");
    drop(claim);
    drop(there.claim(&session).await.expect("given back"));
    drop(here.claim(&session).await.expect("given back again"));
}

async fn a_claimed_session_is_not_deleted<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let (here, there) = (place.open().await, place.open().await);
    let session = told(&here, "s1", &[("one", "two")]).await;
    let claim = here.claim(&session).await.unwrap();
    let refused = there.delete(&session).await;
    assert!(
        matches!(refused, Err(StoreError::Busy { .. })),
        "{refused:?}"
    );
    assert_eq!(here.load(&session).await.unwrap().messages.len(), 2);
    drop(claim);
    there.delete(&session).await.unwrap();
}

async fn an_id_never_leads_out_of_the_folder<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    for id in ["", "../x", "a/b", "a b", "naïve"] {
        let outcome = store.claim(&SessionId::from(id)).await;
        assert!(outcome.is_err(), "claimed `{id}`");
    }
}
