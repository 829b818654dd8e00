//! Conversations that go from a terminal to a chat.

use hermes_core::{Address, Chat, ChatChoices, Inbox as _, KnownChat, People as _, Timestamp};
use hermes_runtime::commands::handoff::tell_chat;
use hermes_store::SqliteStore;

#[tokio::test]
async fn who_has_several_accounts_is_told_with_the_one_of_the_chat() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("hermes.db"), folder.path().join("locks"));
    let (store, now) = (store.unwrap(), Timestamp::from_millis(1_000));
    let linked = store.link_account("telegram:1001", "discord:77", now);
    linked.await.unwrap();
    let chat = Chat::direct("5001");
    let chat = KnownChat {
        key: "agent:main:telegram:dm:5001".into(),
        account: "bot".into(),
        address: Address::of("telegram", &chat),
        chat,
        person: Some("discord:77".into()),
        session: None,
        choices: ChatChoices::default(),
        updated: now,
        is_owners: true,
    };
    let told = tell_chat(&store, &chat, "/resume it".into(), now).await;
    told.unwrap();
    let entries = store.open_entries(&chat.key, 10).await.unwrap();
    assert_eq!(entries[0].incoming.sender().id, "1001");
}
