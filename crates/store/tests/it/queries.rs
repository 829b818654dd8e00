//! Any text is a valid query.

use std::sync::LazyLock;

use hermes_core::{Archive, SearchQuery, Store};
use hermes_store::SqliteStore;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::{NOW, exchange, new_session, open};

/// One store for all cases, with something to find for every route through the indexes.
static WORLD: LazyLock<(Runtime, SqliteStore, tempfile::TempDir)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    runtime.block_on(async {
        store.create(new_session("s1"), Vec::new()).await.unwrap();
        let entries = exchange("t", "alpha beta \"gamma\" a_b", "容器部署 ไทย AND OR");
        store.append(&"s1".into(), NOW, entries).await.unwrap();
    });
    (runtime, store, folder)
});

fn search(text: &str) -> usize {
    let (runtime, store, _) = &*WORLD;
    let query = SearchQuery {
        text: text.into(),
        session: None,
        limit: 10,
        ..SearchQuery::default()
    };
    runtime.block_on(store.search(query)).unwrap().len()
}

proptest! {
    #[test]
    fn no_text_is_an_error(text in any::<String>()) {
        search(&text);
    }

    #[test]
    fn no_mixture_of_operators_is_an_error(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "alpha", "AND", "OR", "NOT", "NEAR", "\"", "\"\"", "*", "(", ")", "{", "}", ":", "^", "+", "-",
                "text:", "a_b", ".", "容器", "容器部署", "ไทย", " ", "\0", "'", "beta*", "Ⓐ", "\u{301}", ",",
            ]),
            0..40,
        ),
        separator in prop::sample::select(vec!["", " "]),
    ) {
        search(&pieces.join(separator));
    }
}

#[test]
fn the_longest_query_is_no_error() {
    search(&"(alpha OR NOT \"".repeat(1000));
    search(&"容器".repeat(5000));
    search(&"x".repeat(1 << 20));
    assert_eq!(search(&format!("alpha{}", " ".repeat(5000))), 1);
}

/// The newest are read where enough of them have it, and the index is asked where not.
#[tokio::test]
async fn a_short_beginning_alone_is_found_common_or_rare() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let said = |turn: usize, words: &str| exchange(&format!("t{turn}"), words, "fine");
    let mut entries = said(0, "a zebra once");
    for turn in 1..40 {
        entries.extend(said(turn, "more tea, and a kettle"));
    }
    store.append(&"s1".into(), NOW, entries).await.unwrap();
    let found = async |text: &str| {
        let query = SearchQuery {
            text: text.into(),
            session: None,
            limit: 3,
            ..SearchQuery::default()
        };
        store.search(query).await.unwrap()
    };
    let common = found("te*").await;
    assert_eq!(common.len(), 3);
    assert!(common[0].snippet.contains(">>>te<<<a"), "{common:?}");
    let rare = found("zeb*").await;
    assert_eq!(rare.len(), 1);
    assert!(rare[0].snippet.contains("zeb"), "{rare:?}");
    assert_eq!(found("ett*").await.len(), 0, "not inside of words");
}
