//! What a gateway relies on: updates are kept once, answers are closed with what they answer, leases have one holder.

use std::path::PathBuf;

use hermes_core::{
    Accepted, Address, Answers, AskRules, Asked, Body, Chat, ChatChoices, Chats, Claimed, Closed,
    Entry, Had, Inbox, InboxId, Incoming, IncomingMessage, KnownChat, Lease, Leases, Mentions,
    Message, Mirrored, NewOutboxEntry, NewUpdate, NewUpdates, Origin, Outbox, OutboxChange,
    OutboxStep, PairedPerson, PairingRequest, Pairings, People, QueuedMessage, Record, RecordKey,
    Records, Sender, SessionId, Stage, Store, StoreError, Taken, TurnId, UserMessage, WaitsFor,
    WantedLease,
};
use serde_json::json;

use super::Place;
use super::talk::{START, after, new_session};

/// Everything a gateway needs of a store.
pub trait GatewayStore:
    Store + Inbox + Outbox + Leases + Chats + Pairings + People + Records
{
}

impl<S: Store + Inbox + Outbox + Leases + Chats + Pairings + People + Records> GatewayStore for S {}

pub(super) async fn check<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    an_update_is_kept_once_whoever_brings_it_again(open).await;
    updates_and_the_cursor_are_kept_together(open).await;
    the_same_update_of_another_account_is_another_update(open).await;
    a_turn_takes_the_entries_it_begins_with(open).await;
    no_entry_begins_two_turns(open).await;
    what_a_turn_tells_of_is_told_in_its_commit(open).await;
    steering_joins_its_entry_to_the_turn_that_runs(open).await;
    an_answer_closes_what_it_answers_in_the_same_commit(open).await;
    the_same_reply_is_put_once(open).await;
    a_reply_survives_step_by_step(open).await;
    a_step_that_does_not_fit_changes_nothing(open).await;
    open_replies_come_in_their_order_and_by_platform(open).await;
    many_replies_to_one_chat_hide_no_other(open).await;
    a_dead_address_lives_again_when_something_arrives(open).await;
    what_died_with_an_address_goes_on_when_that_lives(open).await;
    a_lease_has_one_holder_until_its_time_is_over(open).await;
    a_lease_that_was_overtaken_is_lost(open).await;
    under_a_lease_that_was_overtaken_nothing_is_written(open).await;
    a_holder_that_comes_back_has_its_lease_at_once(open).await;
    tokens_grow_across_names_and_restarts(open).await;
    one_of_many_gets_a_lease(open).await;
    a_chat_is_found_by_key_and_by_conversation(open).await;
    strangers_wait_and_are_let_in_once(open).await;
    wrong_codes_are_counted_for_a_while(open).await;
    accounts_of_one_person_are_known_by_one_of_them(open).await;
    what_people_had_counts_from_a_time_on(open).await;
    lanes_and_depth_name_what_waits(open).await;
    raw_updates_are_forgotten_and_still_known(open).await;
}

fn message(text: &str) -> Incoming {
    Incoming::Message(IncomingMessage {
        chat: Chat::direct("7"),
        sender: Sender {
            id: "7".into(),
            name: Some("Ann\u{202e}\u{1f980}".into()),
            ..Sender::default()
        },
        id: "m1".into(),
        text: text.into(),
        attachments: Vec::new(),
        replies_to: None,
        mentions: Mentions::default(),
        album: None,
        forwarded: None,
    })
}

fn update(id: &str, lane: &str) -> NewUpdate {
    NewUpdate {
        update: id.into(),
        lane: lane.into(),
        sent: Some(START),
        raw: json!({"update_id": id}),
        incoming: message(&format!("words of {id}")),
    }
}

fn batch(updates: &[NewUpdate], cursor: Option<&str>) -> NewUpdates {
    NewUpdates {
        platform: "fake".into(),
        account: "bot".into(),
        received: START,
        updates: updates.to_vec(),
        cursor: cursor.map(ToOwned::to_owned),
    }
}

async fn accepted(store: &impl Inbox, update: NewUpdate) -> InboxId {
    let accepted = store.accept_updates(batch(&[update], None)).await.unwrap();
    match accepted[..] {
        [Accepted::New(id)] => id,
        ref other => panic!("not new: {other:?}"),
    }
}

fn brought(turn: &str, inbox: &[InboxId]) -> Entry {
    let origin = Origin::Person {
        surface: Some("fake".into()),
        id: Some("7".into()),
        request: None,
        inbox: inbox.to_vec(),
        mirrored: None,
    };
    let message = UserMessage::text("hello").with_origin(origin);
    Entry::TurnStarted {
        turn: TurnId::from(turn),
        message: Message::from(message),
    }
}

fn address(chat: &str) -> Address {
    Address {
        platform: "fake".into(),
        chat: chat.into(),
        thread: None,
    }
}

fn text(markdown: &str) -> Body {
    Body::Text {
        markdown: markdown.into(),
        is_preview: false,
    }
}

fn reply(key: &str, to: Address, bodies: &[&str]) -> NewOutboxEntry {
    NewOutboxEntry {
        key: key.into(),
        to,
        account: Some("bot".into()),
        replies_to: Some("m1".into()),
        buttons: Vec::new(),
        is_silent: false,
        bodies: bodies.iter().map(|body| text(body)).collect(),
        at: START,
    }
}

fn step(millis: i64, what: OutboxChange) -> OutboxStep {
    OutboxStep {
        at: after(millis),
        what,
    }
}

fn arrived(part: usize, id: &str) -> OutboxChange {
    OutboxChange::Arrived {
        part,
        id: id.into(),
        is_current: true,
    }
}

async fn an_update_is_kept_once_whoever_brings_it_again<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let id = accepted(&store, update("u1", "lane")).await;
    let again = batch(&[update("u1", "lane"), update("u2", "lane")], None);
    let told = store.accept_updates(again.clone()).await.unwrap();
    assert!(matches!(told[..], [Accepted::Known, Accepted::New(_)]));

    drop(store);
    let store = place.open().await;
    let told = store.accept_updates(again).await.unwrap();
    assert_eq!(told, [Accepted::Known, Accepted::Known]);
    let entries = store.open_entries("lane", 10).await.unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].id, id);
    assert_eq!(entries[0].incoming, message("words of u1"));
    // Also when it was answered long ago.
    let both = [entries[0].id, entries[1].id];
    store
        .close_entries(both.to_vec().into(), Closed::Ignored, after(1))
        .await
        .unwrap();
    let told = store
        .accept_updates(batch(&[update("u1", "lane")], None))
        .await;
    assert_eq!(told, Ok(vec![Accepted::Known]));
    assert_eq!(store.open_entries("lane", 10).await, Ok(Vec::new()));
}

async fn updates_and_the_cursor_are_kept_together<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    assert_eq!(store.read_cursor("fake", "bot").await, Ok(None));
    let first = batch(&[update("u1", "lane")], Some("41"));
    store.accept_updates(first).await.unwrap();
    store.accept_updates(batch(&[], Some("42"))).await.unwrap();
    store.accept_updates(batch(&[], None)).await.unwrap();
    drop(store);
    let store = place.open().await;
    let cursor = store.read_cursor("fake", "bot").await;
    assert_eq!(cursor, Ok(Some("42".into())));
    assert_eq!(store.read_cursor("fake", "other").await, Ok(None));
}

async fn the_same_update_of_another_account_is_another_update<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    accepted(&store, update("1", "a")).await;
    for (platform, account) in [("fake", "other"), ("elsewhere", "bot")] {
        let batch = NewUpdates {
            platform: platform.into(),
            account: account.into(),
            ..batch(&[update("1", "a")], None)
        };
        let told = store.accept_updates(batch).await.unwrap();
        assert!(
            matches!(told[..], [Accepted::New(_)]),
            "{platform} {account}"
        );
    }
}

async fn a_turn_takes_the_entries_it_begins_with<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    let two = accepted(&store, update("u2", "lane")).await;
    let entries = vec![brought("t1", &[one, two])];
    store.create(new_session("s1"), entries).await.unwrap();
    drop(store);

    let store = place.open().await;
    let entries = store.open_entries("lane", 10).await.unwrap();
    let taken = Taken {
        session: "s1".into(),
        turn: "t1".into(),
    };
    assert_eq!(entries.len(), 2, "taken is not answered");
    for entry in entries {
        assert_eq!(entry.taken.as_ref(), Some(&taken));
    }
}

async fn no_entry_begins_two_turns<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    let two = accepted(&store, update("u2", "lane")).await;
    store
        .create(new_session("s1"), vec![brought("t1", &[one])])
        .await
        .unwrap();
    // All or nothing: the second entry is not taken by a turn that cannot have the first.
    let refused = store
        .create(new_session("s2"), vec![brought("t1", &[two, one])])
        .await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
    let entries = store.open_entries("lane", 10).await.unwrap();
    assert_eq!(entries[1].taken, None);
    // Nor one that is closed.
    store
        .close_entries(vec![two].into(), Closed::Expired, after(1))
        .await
        .unwrap();
    let refused = store
        .create(new_session("s3"), vec![brought("t1", &[two])])
        .await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
}

async fn what_a_turn_tells_of_is_told_in_its_commit<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let kept = |at: i64| Record {
        fingerprint: String::new(),
        value: Some("words".into()),
        created: after(at),
        expires: after(1_000),
    };
    let key = |key: &str| RecordKey::new("mirror fake:7", key);
    for (name, at) in [("told", 1), ("later", 3)] {
        store.put_record(key(name), kept(at)).await.unwrap();
    }
    let told = Origin::Person {
        surface: None,
        id: None,
        request: None,
        inbox: Vec::new(),
        mirrored: Some(Mirrored {
            scope: "mirror fake:7".into(),
            until: after(2),
        }),
    };
    let message = Message::from(UserMessage::text("why?").with_origin(told));
    let turn = TurnId::from("t1");
    let started = vec![Entry::TurnStarted { turn, message }];
    store.create(new_session("s1"), started).await.unwrap();
    let value = async |name| {
        let record = store.record_at(key(name), after(5)).await.unwrap();
        record.unwrap().value
    };
    assert_eq!(value("told").await, None);
    assert_eq!(value("later").await.as_deref(), Some("words"));
    // Whoever hands the same over again is not the first.
    let again = store.claim_record(key("told"), kept(4)).await.unwrap();
    assert!(matches!(again, Claimed::Held(_)));
}

async fn steering_joins_its_entry_to_the_turn_that_runs<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    let two = accepted(&store, update("u2", "lane")).await;
    let three = accepted(&store, update("u3", "lane")).await;
    let session = SessionId::from("s1");
    store
        .create(new_session("s1"), vec![brought("t1", &[one])])
        .await
        .unwrap();
    for (entry, waits_for) in [(two, WaitsFor::ToolResult), (three, WaitsFor::NextTurn)] {
        let queued = QueuedMessage {
            id: format!("q{}", entry.0).as_str().into(),
            waits_for,
            message: UserMessage::text("also this").with_origin(Origin::Person {
                surface: None,
                id: None,
                request: None,
                inbox: vec![entry],
                mirrored: None,
            }),
        };
        let entries = vec![Entry::Queued { queued }];
        store.append(&session, after(1), entries).await.unwrap();
    }
    let entries = store.open_entries("lane", 10).await.unwrap();
    let open: Vec<_> = entries.iter().map(|entry| entry.id).collect();
    // What waits for a turn of its own is answered by that turn.
    assert_eq!(open, [one, three]);
}

async fn an_answer_closes_what_it_answers_in_the_same_commit<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    let two = accepted(&store, update("u2", "lane")).await;
    store
        .put_outgoing(reply("k1", address("7"), &["hi"]), vec![one].into())
        .await
        .unwrap();
    let id = store
        .put_outgoing(reply("k2", address("7"), &[]), Answers::none())
        .await
        .unwrap();
    assert_eq!(store.open_entries("lane", 10).await.unwrap().len(), 1);
    let bodies = vec![text("done")];
    store
        .step_outgoing(
            id,
            step(1, OutboxChange::Write { bodies }),
            vec![two].into(),
        )
        .await
        .unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.open_entries("lane", 10).await, Ok(Vec::new()));
    assert_eq!(store.open_outgoing("fake", 10).await.unwrap().len(), 2);
}

async fn the_same_reply_is_put_once<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    let first = reply("key", address("7"), &["first"]);
    let id = store.put_outgoing(first, Answers::none()).await.unwrap();
    let second = reply("key", address("7"), &["second"]);
    let again = store.put_outgoing(second, vec![one].into()).await;
    assert_eq!(again, Ok(id));
    let kept = store.outgoing(id).await.unwrap().unwrap();
    assert_eq!(kept.parts[0].body, Some(text("first")));
    assert_eq!(store.open_entries("lane", 10).await, Ok(Vec::new()));
    assert_eq!(store.outgoing_by_key("key").await, Ok(Some(kept)));
    assert_eq!(store.outgoing_by_key("other").await, Ok(None));
}

async fn a_reply_survives_step_by_step<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let new = reply("key", address("7"), &["one", "two"]);
    let id = store.put_outgoing(new, Answers::none()).await.unwrap();
    let steps = [
        OutboxChange::Send { part: 0 },
        arrived(0, "p1"),
        OutboxChange::Send { part: 1 },
        OutboxChange::Doubt {
            due: after(3),
            error: "the process ended".into(),
        },
        OutboxChange::Send { part: 1 },
        arrived(1, "p2"),
    ];
    let mut store = store;
    for (i, what) in steps.into_iter().enumerate() {
        let told = store
            .step_outgoing(id, step(i as i64, what), Answers::none())
            .await
            .unwrap();
        drop(store);
        store = place.open().await;
        assert_eq!(store.outgoing(id).await, Ok(Some(told)), "step {i}");
    }
    let sent = store.outgoing(id).await.unwrap().unwrap();
    assert_eq!(sent.stage, Stage::Sent);
    assert_eq!(sent.parts[1].id, Some("p2".into()));
    assert_eq!(store.open_outgoing("fake", 10).await, Ok(Vec::new()));
    assert_eq!(store.forget_outgoing(after(100)).await, Ok(1));
    assert_eq!(store.outgoing(id).await, Ok(None));
}

async fn a_step_that_does_not_fit_changes_nothing<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    let new = reply("key", address("7"), &["one"]);
    let id = store.put_outgoing(new, Answers::none()).await.unwrap();
    let before = store.outgoing(id).await.unwrap();
    let wrong = step(1, OutboxChange::Edited { part: 5 });
    let refused = store.step_outgoing(id, wrong, vec![one].into()).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
    assert_eq!(store.outgoing(id).await.unwrap(), before);
    assert_eq!(store.open_entries("lane", 10).await.unwrap().len(), 1);
}

async fn open_replies_come_in_their_order_and_by_platform<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    for (key, chat) in [("b", "1"), ("a", "2"), ("c", "1")] {
        let new = reply(key, address(chat), &["hi"]);
        store.put_outgoing(new, Answers::none()).await.unwrap();
    }
    let elsewhere = Address {
        platform: "elsewhere".into(),
        ..address("1")
    };
    store
        .put_outgoing(reply("d", elsewhere, &["hi"]), Answers::none())
        .await
        .unwrap();
    let open = store.open_outgoing("fake", 2).await.unwrap();
    let keys: Vec<_> = open.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["b", "a"]);
    let depth = store.outbox_depth().await.unwrap();
    assert_eq!((depth.open, depth.failed), (4, 0));
    assert_eq!(depth.oldest, Some(START));
}

async fn many_replies_to_one_chat_hide_no_other<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned()).await;
    let put = async |key: &str, chat: &str, bodies: &[&str]| {
        let entry = reply(key, address(chat), bodies);
        store.put_outgoing(entry, Answers::none()).await.unwrap()
    };
    put("being written", "1", &[]).await;
    let first = put("first", "1", &["a"]).await;
    for number in 0..600 {
        put(&format!("behind it {number}"), "1", &["b"]).await;
    }
    put("of another", "2", &["c"]).await;
    let keys = async || {
        let next = store.next_outgoing("fake").await.unwrap();
        next.into_iter().map(|entry| entry.key).collect::<Vec<_>>()
    };
    assert_eq!(keys().await, ["first", "of another"]);
    assert_eq!(store.next_outgoing("other").await, Ok(Vec::new()));
    let send = step(1, OutboxChange::Send { part: 0 });
    store
        .step_outgoing(first, send, Answers::none())
        .await
        .unwrap();
    assert_eq!(keys().await, ["first", "of another"]);
    let there = step(2, arrived(0, "m1"));
    store
        .step_outgoing(first, there, Answers::none())
        .await
        .unwrap();
    assert_eq!(keys().await, ["behind it 0", "of another"]);
}

async fn a_dead_address_lives_again_when_something_arrives<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let new = reply("k1", address("7"), &["hi"]);
    let id = store.put_outgoing(new, Answers::none()).await.unwrap();
    let give_up = OutboxChange::GiveUp {
        error: "blocked".into(),
        is_dead: true,
    };
    store
        .step_outgoing(id, step(5, give_up), Answers::none())
        .await
        .unwrap();
    let dead = store.dead_addresses().await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!((&dead[0].to, dead[0].since), (&address("7"), after(5)));
    assert_eq!(store.outbox_depth().await.unwrap().failed, 1);

    let new = reply("k2", address("7"), &["hi"]);
    let id = store.put_outgoing(new, Answers::none()).await.unwrap();
    store
        .step_outgoing(id, step(6, arrived(0, "p1")), Answers::none())
        .await
        .unwrap();
    assert_eq!(store.dead_addresses().await, Ok(Vec::new()));
}

async fn what_died_with_an_address_goes_on_when_that_lives<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    for (key, chat, at, is_dead) in [
        ("too old", "7", 1, true),
        ("refused", "7", 5, false),
        ("died", "7", 5, true),
        ("elsewhere", "8", 5, true),
    ] {
        let new = reply(key, address(chat), &["hi"]);
        let id = store.put_outgoing(new, Answers::none()).await.unwrap();
        let error = "blocked".to_owned();
        let give_up = OutboxChange::GiveUp { error, is_dead };
        let give_up = step(at, give_up);
        store
            .step_outgoing(id, give_up, Answers::none())
            .await
            .unwrap();
    }
    let revived = store.revive_address(&address("7"), after(5), after(9));
    let revived = revived.await.unwrap();
    let keys: Vec<_> = revived.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["died"]);
    let open = store.open_outgoing("fake", 10).await.unwrap();
    assert_eq!(open, revived);
    assert_eq!((open[0].stage, open[0].due), (Stage::Pending, after(9)));
    let dead = store.dead_addresses().await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].to, address("8"));
    let again = store.revive_address(&address("7"), after(5), after(9));
    assert_eq!(again.await, Ok(Vec::new()));
}

fn wanted(name: &str, holder: &str, now: i64, until: i64) -> WantedLease {
    WantedLease {
        name: name.into(),
        holder: holder.into(),
        now: after(now),
        until: after(until),
    }
}

async fn a_lease_has_one_holder_until_its_time_is_over<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let here = place.open().await;
    let there = place.open().await;
    let lease = here.acquire_lease(wanted("lane:a", "here", 0, 100)).await;
    let lease = lease.unwrap().unwrap();
    let late = there
        .acquire_lease(wanted("lane:a", "there", 99, 200))
        .await;
    assert_eq!(late, Ok(None));
    let other = there.acquire_lease(wanted("lane:b", "there", 0, 200)).await;
    assert!(other.unwrap().is_some());
    assert_eq!(here.renew_lease(&lease, after(300)).await, Ok(true));
    let later = there
        .acquire_lease(wanted("lane:a", "there", 200, 400))
        .await;
    assert_eq!(later, Ok(None));
    here.release_lease(&lease).await.unwrap();
    here.release_lease(&lease).await.unwrap();
    let free = there
        .acquire_lease(wanted("lane:a", "there", 201, 400))
        .await;
    assert!(free.unwrap().is_some());
}

async fn a_lease_that_was_overtaken_is_lost<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let here = place.open().await;
    let there = place.open().await;
    let old = here.acquire_lease(wanted("lane:a", "here", 0, 100)).await;
    let old = old.unwrap().unwrap();
    let new = there
        .acquire_lease(wanted("lane:a", "there", 100, 200))
        .await;
    let new = new.unwrap().unwrap();
    assert!(new.token > old.token);
    assert_eq!(here.renew_lease(&old, after(500)).await, Ok(false));
    here.release_lease(&old).await.unwrap();
    let third = here.acquire_lease(wanted("lane:a", "here", 150, 300)).await;
    assert_eq!(third, Ok(None), "a lost lease gives back nothing");
}

async fn under_a_lease_that_was_overtaken_nothing_is_written<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().to_owned()).await;
    let one = accepted(&store, update("1", "lane")).await;
    let two = accepted(&store, update("2", "lane")).await;
    let old = store.acquire_lease(wanted("lane:a", "here", 0, 100)).await;
    let old = old.unwrap().unwrap();
    let under = |lease: &Lease, entries: Vec<InboxId>| Answers {
        entries,
        lease: Some(lease.clone()),
    };
    let writing = reply("k1", address("7"), &[]);
    let id = store.put_outgoing(writing, under(&old, vec![])).await;
    let id = id.unwrap();
    let new = store
        .acquire_lease(wanted("lane:a", "there", 100, 200))
        .await;
    let new = new.unwrap().unwrap();
    let overtaken = || StoreError::Overtaken {
        lease: "lane:a".into(),
    };
    let late = reply("k2", address("7"), &["late"]);
    let put = store.put_outgoing(late, under(&old, vec![one])).await;
    assert_eq!(put, Err(overtaken()));
    let bodies = vec![text("late")];
    let write = step(1, OutboxChange::Write { bodies });
    let stepped = store.step_outgoing(id, write, under(&old, vec![one])).await;
    assert_eq!(stepped, Err(overtaken()));
    let closed = store
        .close_entries(under(&old, vec![one]), Closed::Handled, after(1))
        .await;
    assert_eq!(closed, Err(overtaken()));
    assert_eq!(store.outgoing_by_key("k2").await, Ok(None));
    let entry = store.outgoing(id).await.unwrap().unwrap();
    assert_eq!(entry.stage, Stage::Writing);
    // Whoever has it now finds everything as it was, and goes on.
    let open = store.open_entries("lane", 10).await.unwrap();
    assert_eq!(open.len(), 2);
    let closed = store
        .close_entries(under(&new, vec![one, two]), Closed::Handled, after(1))
        .await;
    assert_eq!(closed, Ok(()));
    // One that was given back is nobody's.
    store.release_lease(&new).await.unwrap();
    let reply = reply("k3", address("7"), &["hi"]);
    let put = store.put_outgoing(reply, under(&new, vec![])).await;
    assert_eq!(put, Err(overtaken()));
}

async fn a_holder_that_comes_back_has_its_lease_at_once<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let old = store.acquire_lease(wanted("lane:a", "here", 0, 100)).await;
    let old = old.unwrap().unwrap();
    drop(store);
    let store = place.open().await;
    let new = store.acquire_lease(wanted("lane:a", "here", 1, 101)).await;
    assert!(new.unwrap().unwrap().token > old.token);
    assert_eq!(store.renew_lease(&old, after(500)).await, Ok(false));
}

async fn tokens_grow_across_names_and_restarts<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let mut last = 0;
    for round in 0..4 {
        let store = place.open().await;
        for name in ["a", "b"] {
            let lease = store
                .acquire_lease(wanted(name, "x", round * 10, round * 10 + 5))
                .await
                .unwrap()
                .unwrap();
            assert!(lease.token > last);
            last = lease.token;
            if round % 2 == 0 {
                store.release_lease(&lease).await.unwrap();
            }
        }
    }
}

async fn one_of_many_gets_a_lease<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let stores = [place.open().await, place.open().await];
    let tries = (0..16).map(|i| {
        let holder = format!("h{i}");
        stores[i % 2].acquire_lease(wanted("lane", &holder, 0, 100))
    });
    let won = futures_util::future::join_all(tries).await;
    let won = won.into_iter().filter(|one| matches!(one, Ok(Some(_))));
    assert_eq!(won.count(), 1);
}

fn chat(key: &str, session: Option<&str>, updated: i64) -> KnownChat {
    KnownChat {
        key: key.into(),
        account: "bot".into(),
        address: address(key),
        chat: Chat::direct(key),
        person: None,
        session: session.map(Into::into),
        choices: ChatChoices::default(),
        is_owners: false,
        updated: after(updated),
    }
}

async fn a_chat_is_found_by_key_and_by_conversation<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.keep_chat(chat("a", Some("s1"), 1)).await.unwrap();
    store.keep_chat(chat("b", Some("s1"), 3)).await.unwrap();
    store.keep_chat(chat("c", None, 2)).await.unwrap();
    store.keep_chat(chat("a", Some("s2"), 4)).await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.chat("a").await, Ok(Some(chat("a", Some("s2"), 4))));
    assert_eq!(store.chat("x").await, Ok(None));
    let of = |session: &str| store.chat_of(&session.into());
    assert_eq!(of("s1").await.unwrap().unwrap().key, "b");
    assert_eq!(of("s3").await, Ok(None));
    let all = store.chats(Some("fake"), 2).await.unwrap();
    let keys: Vec<_> = all.iter().map(|chat| chat.key.as_str()).collect();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!(store.chats(None, 10).await.unwrap().len(), 3);
    assert_eq!(store.chats(Some("elsewhere"), 10).await, Ok(Vec::new()));
}

fn request(id: &str, user: &str, at: i64) -> PairingRequest {
    PairingRequest {
        id: id.into(),
        platform: "fake".into(),
        user: user.into(),
        name: Some("Ann".into()),
        salt: "00".into(),
        digest: "ff".into(),
        at: after(at),
    }
}

async fn strangers_wait_and_are_let_in_once<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let rules = |now: i64| AskRules {
        pending_max: 2,
        valid_since: after(now - 100),
        asked_since: after(now - 10),
    };
    let ask = |id: &'static str, user: &'static str, at: i64| {
        store.ask_pairing(request(id, user, at), rules(at))
    };
    assert_eq!(ask("r1", "ann", 0).await, Ok(Asked::Kept));
    assert_eq!(ask("r2", "ann", 5).await, Ok(Asked::TooSoon));
    assert_eq!(ask("r3", "bob", 6).await, Ok(Asked::Kept));
    assert_eq!(ask("r4", "eve", 7).await, Ok(Asked::TooMany));
    assert_eq!(ask("r5", "eve", 8).await, Ok(Asked::TooSoon), "told once");
    // Asking again puts a new code in place of the old one.
    assert_eq!(ask("r6", "ann", 20).await, Ok(Asked::Kept));
    let waiting = store.pairing_requests(Some("fake"), after(0)).await;
    let ids: Vec<_> = waiting.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(ids, ["r3", "r6"]);

    assert_eq!(store.is_paired("fake", "ann").await, Ok(false));
    let person = PairedPerson {
        platform: "fake".into(),
        user: "ann".into(),
        name: Some("Ann".into()),
        at: after(30),
    };
    let approved = store.approve_pairing("r6", after(30)).await;
    assert_eq!(approved, Ok(Some(person.clone())));
    assert_eq!(store.approve_pairing("r6", after(31)).await, Ok(None));
    drop(store);
    let store = place.open().await;
    assert_eq!(store.is_paired("fake", "ann").await, Ok(true));
    assert_eq!(store.is_paired("other", "ann").await, Ok(false));
    assert_eq!(store.paired_people(None).await, Ok(vec![person]));
    assert_eq!(store.revoke_pairing("fake", "ann").await, Ok(true));
    assert_eq!(store.revoke_pairing("fake", "ann").await, Ok(false));
    assert_eq!(store.clear_pairing_requests(Some("fake")).await, Ok(1));
}

async fn wrong_codes_are_counted_for_a_while<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    for at in 0..3 {
        let failures = store.note_pairing_failure("fake", after(at), after(-10));
        assert_eq!(failures.await, Ok(at as u64 + 1));
    }
    let failures = store.pairing_failures("other", after(-10)).await;
    assert_eq!(failures, Ok(0));
    drop(store);
    let store = place.open().await;
    assert_eq!(store.pairing_failures("fake", after(1)).await, Ok(2));
}

async fn accounts_of_one_person_are_known_by_one_of_them<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    assert_eq!(store.linked_person("a:1").await.unwrap(), None);
    store.link_account("b:2", "a:1", after(1)).await.unwrap();
    store.link_account("c:3", "a:1", after(2)).await.unwrap();
    drop(store);
    let store = place.open().await;
    for account in ["a:1", "b:2", "c:3"] {
        let person = store.linked_person(account).await.unwrap();
        assert_eq!(person.as_deref(), Some("a:1"), "{account}");
    }
    // A person who joins another brings all their accounts.
    store.link_account("a:1", "z:9", after(3)).await.unwrap();
    let accounts = store.accounts_of("z:9").await.unwrap();
    assert_eq!(accounts, ["z:9", "b:2", "c:3", "a:1"]);
    assert!(store.unlink_account("b:2").await.unwrap());
    assert!(!store.unlink_account("b:2").await.unwrap());
    assert_eq!(store.linked_person("b:2").await.unwrap(), None);
    assert_eq!(store.accounts_of("b:2").await.unwrap(), ["b:2"]);
}

async fn what_people_had_counts_from_a_time_on<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let had = |turns, micro_usd| Had { turns, micro_usd };
    store
        .note_use("a:1", after(1_000), had(1, 0))
        .await
        .unwrap();
    store
        .note_use("a:1", after(2_000), had(1, 700))
        .await
        .unwrap();
    store
        .note_use("b:2", after(2_000), had(1, 5))
        .await
        .unwrap();
    assert_eq!(store.had_since("a:1", after(0)).await.unwrap(), had(2, 700));
    assert_eq!(
        store.had_since("a:1", after(1_500)).await.unwrap(),
        had(1, 700)
    );
    assert_eq!(store.had_since("c:3", after(0)).await.unwrap(), had(0, 0));
}

async fn lanes_and_depth_name_what_waits<S: GatewayStore>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    assert_eq!(store.inbox_depth().await.unwrap().open, 0);
    let one = accepted(&store, update("u1", "b")).await;
    accepted(&store, update("u2", "a")).await;
    accepted(&store, update("u3", "b")).await;
    assert_eq!(store.open_lanes().await.unwrap(), ["b", "a"]);
    store
        .close_entries(vec![one].into(), Closed::Handled, after(1))
        .await
        .unwrap();
    assert_eq!(store.open_lanes().await.unwrap(), ["a", "b"]);
    let depth = store.inbox_depth().await.unwrap();
    assert_eq!((depth.open, depth.oldest), (2, Some(START)));
}

async fn raw_updates_are_forgotten_and_still_known<S: GatewayStore>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let one = accepted(&store, update("u1", "lane")).await;
    accepted(&store, update("u2", "lane")).await;
    store
        .close_entries(vec![one].into(), Closed::Answered, after(1))
        .await
        .unwrap();
    assert_eq!(store.forget_raw_updates(after(1)).await, Ok(0));
    assert_eq!(store.forget_raw_updates(after(2)).await, Ok(1));
    assert_eq!(store.forget_raw_updates(after(2)).await, Ok(0));
    let told = store.accept_updates(batch(&[update("u1", "lane")], None));
    assert_eq!(told.await, Ok(vec![Accepted::Known]));
    assert_eq!(store.open_entries("lane", 10).await.unwrap().len(), 1);
}
