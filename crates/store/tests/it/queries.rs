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
