//! Several stores on one file, as several processes have them: nothing they share is in memory.

use std::path::Path;
use std::thread;

use hermes_core::{SessionId, Store};
use hermes_store::Health;
use tempfile::tempdir;

use crate::{NOW, exchange, new_session, open};

const WRITERS: usize = 4;
const TURNS: usize = 25;

#[test]
fn stores_that_write_at_once_lose_nothing() {
    let folder = tempdir().unwrap();
    // All of them find no file and create it.
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let folder = folder.path();
            scope.spawn(move || write_turns(folder, &format!("s{writer}")));
        }
    });
    block_on(async {
        let store = open(folder.path());
        for writer in 0..WRITERS {
            let session = SessionId::from(format!("s{writer}"));
            let messages = store.load(&session).await.unwrap().messages;
            assert_eq!(messages.len(), 2 * TURNS, "{session}");
        }
        assert_eq!(store.check().await, Ok(Health::Sound));
    });
}

fn write_turns(folder: &Path, session: &str) {
    block_on(async {
        let store = open(folder);
        store
            .create(new_session(session), Vec::new())
            .await
            .unwrap();
        let session = SessionId::from(session);
        for turn in 0..TURNS {
            let entries = exchange(&format!("t{turn}"), "a question", "an answer");
            store.append(&session, NOW, entries).await.unwrap();
        }
    });
}

#[test]
fn many_claims_for_one_session_succeed_one_at_a_time() {
    let folder = tempdir().unwrap();
    let holders = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                block_on(async {
                    let store = open(folder.path());
                    for _ in 0..200 {
                        use std::sync::atomic::Ordering::SeqCst;
                        if let Ok(claim) = store.claim(&"s1".into()).await {
                            assert_eq!(holders.fetch_add(1, SeqCst), 0, "two owners");
                            holders.fetch_sub(1, SeqCst);
                            drop(claim);
                        }
                    }
                });
            });
        }
    });
    let left = std::fs::read_dir(folder.path().join("locks")).unwrap();
    assert_eq!(left.count(), 0, "lock files are removed");
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future);
}
