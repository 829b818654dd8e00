//! Known questions to a long history find the message that was meant. `benches/recall.rs` asks them of a longer one.

use hermes_core::{Archive as _, Role, SearchQuery};
use hermes_testkit::corpus::Corpus;
use tempfile::tempdir;

use crate::open;

const MESSAGES: usize = 12_000;

/// Of a hundred.
const WRONG_MAX: usize = 5;

#[tokio::test]
async fn the_first_hit_is_the_one_that_was_meant() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let corpus = Corpus::new(MESSAGES);
    corpus.fill(&store).await;
    let mut wrong = Vec::new();
    for known in corpus.questions() {
        let query = SearchQuery {
            text: known.query.clone(),
            roles: vec![Role::User, Role::Assistant],
            limit: 1,
            ..SearchQuery::default()
        };
        let hits = store.search(query).await.unwrap();
        let first = match hits.first() {
            Some(hit) => store.message_at(hit.place).await.unwrap(),
            None => None,
        };
        if first.is_none_or(|first| first.message.text() != known.answer) {
            wrong.push(known);
        }
    }
    let questions = corpus.questions().len();
    assert!(questions >= 200, "{questions}");
    assert!(wrong.len() * 100 <= questions * WRONG_MAX, "{wrong:#?}");
}
