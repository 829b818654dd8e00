//! Finding words again.

use std::path::PathBuf;

use hermes_core::{
    Archive, Entry, Media, MediaSource, Role, SearchHit, SearchQuery, SessionId, Store,
};

use super::Place;
use super::talk::{after, calling, ended, new_session, replied, result, started, told};

pub(super) async fn check<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    words_are_found_with_their_surroundings(open).await;
    any_script_and_any_part_of_a_word_is_found(open).await;
    results_of_tools_are_found(open).await;
    a_search_can_stay_in_one_session(open).await;
    a_deleted_session_is_not_found(open).await;
    what_was_taken_back_is_not_found(open).await;
    any_text_is_a_valid_query(open).await;
}

async fn hits(store: &impl Archive, text: &str) -> Vec<SearchHit> {
    let query = SearchQuery {
        text: text.into(),
        session: None,
        limit: 10,
        ..SearchQuery::default()
    };
    store.search(query).await.unwrap()
}

async fn words_are_found_with_their_surroundings<S: Store + Archive>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let pairs = [
        ("How do I deploy the Café?", "With a container."),
        ("Thanks", "A deploy is done"),
    ];
    let session = told(&store, "s1", &pairs).await;
    store.rename(&session, "Deploying").await.unwrap();
    drop(store);

    let store = place.open().await;
    let found = hits(&store, "cafe deploy").await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0].session, found[0].role), (&session, Role::User));
    assert_eq!(found[0].title.as_deref(), Some("Deploying"));
    assert_eq!(found[0].at, after(1));
    assert_eq!(found[0].snippet, "How do I >>>deploy<<< the >>>Café<<<?");

    let count = async |text: &str| hits(&store, text).await.len();
    assert_eq!(count("DEPLOY").await, 2);
    assert_eq!(count("container OR done").await, 2);
    assert_eq!(count("deploy NOT done").await, 1);
    assert_eq!(count("\"the café\"").await, 1);
    assert_eq!(count("\"café the\"").await, 0);
    assert_eq!(count("contain*").await, 1);
    assert_eq!(count("absent").await, 0);
}

async fn any_script_and_any_part_of_a_word_is_found<S: Store + Archive>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let pairs = [
        ("我们用容器部署服务", "好的"),
        ("컨테이너를 배포하세요", "ภาษาไทยไม่มีช่องว่าง"),
        ("PostgreSQL", "my-file.rs_v2"),
    ];
    told(&store, "s1", &pairs).await;
    for (text, snippet) in [
        ("容器部署", "我们用>>>容器部署<<<服务"),
        ("容器", "我们用>>>容器<<<部署服务"),
        ("배포하", "컨테이너를 >>>배포하<<<세요"),
        ("ไทย", "ภาษา>>>ไทย<<<ไม่มีช่องว่าง"),
        ("ostgre", "P>>>ostgre<<<SQL"),
        ("my-file.rs", ">>>my-file.rs<<<_v2"),
    ] {
        let found: Vec<String> = hits(&store, text)
            .await
            .into_iter()
            .map(|hit| hit.snippet)
            .collect();
        assert_eq!(found, [snippet], "{text}");
    }
}

async fn results_of_tools_are_found<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let entries = vec![
        started("t", "go"),
        replied("t", calling(&["a"])),
        hermes_core::Entry::CallFinished {
            turn: "t".into(),
            result: result("a", "segmentation fault").with_images(vec![Media {
                mime: "image/png".into(),
                source: MediaSource::Base64("picturedata".into()),
            }]),
        },
        ended("t"),
    ];
    let session = SessionId::from("s1");
    store.append(&session, after(1), entries).await.unwrap();
    let found = hits(&store, "segmentation").await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].role, Role::Tool);
    let pictures = hits(&store, "picturedata").await;
    assert_eq!(pictures, [], "nobody searches for the bytes of a picture");
}

async fn a_search_can_stay_in_one_session<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    told(&store, "s1", &[("apple", "pear"), ("苹果", "apple")]).await;
    let second = told(&store, "s2", &[("apple", "苹果")]).await;
    let empty = told(&store, "s3", &[]).await;
    for text in ["apple", "pple", "苹果"] {
        let search = async |session: Option<&SessionId>, limit| {
            let query = SearchQuery {
                text: text.into(),
                session: session.cloned(),
                limit,
                ..SearchQuery::default()
            };
            store.search(query).await.unwrap()
        };
        assert!(search(None, 10).await.len() > 1, "{text}");
        assert_eq!(search(None, 1).await.len(), 1, "{text}");
        let found = search(Some(&second), 10).await;
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].session, second);
        assert!(search(Some(&empty), 10).await.is_empty());
    }
}

async fn a_deleted_session_is_not_found<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("secret 秘密的事", "unrelated")]).await;
    told(&store, "s2", &[("other", "words")]).await;
    store.delete(&session).await.unwrap();
    for text in ["secret", "ecre", "秘密的", "秘密"] {
        assert!(hits(&store, text).await.is_empty(), "{text}");
    }
    // A new message may take the place of the old one in the index.
    told(&store, "s3", &[("new", "message")]).await;
    assert!(hits(&store, "secret").await.is_empty());
    assert_eq!(hits(&store, "message").await.len(), 1);
}

async fn what_was_taken_back_is_not_found<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let session = told(&store, "s1", &[("kept", "yes"), ("secret 秘密的事", "no")]).await;
    let rewound = vec![Entry::Rewound { turns: 1 }];
    store.append(&session, after(9), rewound).await.unwrap();
    for text in ["secret", "ecre", "秘密的", "秘密"] {
        assert!(hits(&store, text).await.is_empty(), "{text}");
    }
    assert_eq!(hits(&store, "kept").await.len(), 1);
    let lines = store.transcript(&session).await.unwrap();
    assert_eq!(lines.len(), 2);
}

async fn any_text_is_a_valid_query<S: Store + Archive>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    told(&store, "s1", &[("one", "two")]).await;
    for text in [
        "",
        " ",
        "\"",
        "\"\"\"",
        "*",
        "(",
        "AND",
        "NOT NOT",
        "a AND",
        "NEAR(a b)",
        "text:one",
        "^one",
        "one -two",
        "'; DROP TABLE messages; --",
        "%",
        "\\",
        "\0",
        "{a b}: c",
        "a + b",
        "😀",
        "\u{202e}",
    ] {
        hits(&store, text).await;
    }
    hits(&store, &"(\"a* OR ".repeat(2000)).await;
}
