//! Delivery on a store that does not always write.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{
    Address, Answers, Body, BoxFuture, Channel, ChannelError, ChannelFacts, DeadAddress, Inlet,
    MessageId, NewOutboxEntry, Outbox, OutboxChange, OutboxDepth, OutboxEntry, OutboxId,
    OutboxStep, Outgoing, Random, Stage, StoreError, Timestamp,
};
use hermes_gateway::Shutdown;
use hermes_gateway::chat::delivery::Delivery;
use hermes_store::SqliteStore;
use hermes_testkit::TestClock;

type Future<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A store whose disk is full when the platform's word about a message is to be written, so many times.
struct Full {
    store: Arc<SqliteStore>,
    left: AtomicU32,
}

impl Outbox for Full {
    fn put_outgoing(&self, entry: NewOutboxEntry, answers: Answers) -> Future<'_, OutboxId> {
        self.store.put_outgoing(entry, answers)
    }
    fn step_outgoing(
        &self,
        id: OutboxId,
        step: OutboxStep,
        answers: Answers,
    ) -> Future<'_, OutboxEntry> {
        let is_word = matches!(step.what, OutboxChange::Arrived { .. });
        let count = |left: u32| left.checked_sub(1);
        let fails = is_word
            && self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, count)
                .is_ok();
        match fails {
            true => Box::pin(async {
                Err(StoreError::DiskFull {
                    path: "/full".into(),
                })
            }),
            false => self.store.step_outgoing(id, step, answers),
        }
    }
    fn outgoing(&self, id: OutboxId) -> Future<'_, Option<OutboxEntry>> {
        self.store.outgoing(id)
    }
    fn outgoing_by_key(&self, key: &str) -> Future<'_, Option<OutboxEntry>> {
        self.store.outgoing_by_key(key)
    }
    fn open_outgoing(&self, platform: &str, max: usize) -> Future<'_, Vec<OutboxEntry>> {
        self.store.open_outgoing(platform, max)
    }
    fn next_outgoing(&self, platform: &str) -> Future<'_, Vec<OutboxEntry>> {
        self.store.next_outgoing(platform)
    }
    fn revive_address(
        &self,
        to: &Address,
        since: Timestamp,
        at: Timestamp,
    ) -> Future<'_, Vec<OutboxEntry>> {
        self.store.revive_address(to, since, at)
    }
    fn dead_addresses(&self) -> Future<'_, Vec<DeadAddress>> {
        self.store.dead_addresses()
    }
    fn outbox_depth(&self) -> Future<'_, OutboxDepth> {
        self.store.outbox_depth()
    }
    fn forget_outgoing(&self, before: Timestamp) -> Future<'_, u64> {
        self.store.forget_outgoing(before)
    }
}

/// A platform that takes everything, and knows no keys.
struct Wall {
    facts: ChannelFacts,
    posted: Mutex<Vec<String>>,
}

impl Channel for Wall {
    fn facts(&self) -> &ChannelFacts {
        &self.facts
    }

    fn receive<'a>(&'a self, _: &'a dyn Inlet) -> BoxFuture<'a, ChannelError> {
        Box::pin(std::future::pending())
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(async { Ok(()) })
    }

    fn send<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<MessageId, ChannelError>> {
        let Body::Text { markdown, .. } = &message.body else {
            unreachable!("nobody sends files here");
        };
        let mut posted = self.posted.lock().unwrap();
        posted.push(markdown.clone());
        let id = MessageId::from(posted.len().to_string());
        Box::pin(async { Ok(id) })
    }
}

fn wall() -> Wall {
    Wall {
        facts: ChannelFacts {
            platform: "wall",
            account: "us".into(),
            length_max: 400,
            caption_length_max: 100,
            file_bytes_max: 0,
            edit_interval: None,
            has_buttons: false,
            typing: None,
            has_reactions: false,
            knows_keys: false,
            silence_max: Duration::from_secs(90),
            joining: Duration::ZERO,
            split_length: 400,
            has_private_ids: false,
            hint: "",
        },
        posted: Mutex::default(),
    }
}

#[tokio::test]
async fn a_message_whose_arrival_could_not_be_written_down_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("hermes.db"), folder.path().join("locks"));
    let outbox = Arc::new(Full {
        store: Arc::new(store.unwrap()),
        left: AtomicU32::new(2),
    });
    let (wall, clock) = (Arc::new(wall()), Arc::new(TestClock::default()));
    let random = Arc::new(Random::seeded(1));
    let delivery = Delivery::new(wall.clone(), outbox.clone(), clock.clone(), random);
    let entry = NewOutboxEntry {
        key: "one".into(),
        to: Address::parse("wall:1").unwrap(),
        account: None,
        replies_to: None,
        buttons: Vec::new(),
        is_silent: false,
        bodies: vec![Body::Text {
            markdown: "only once".into(),
            is_preview: false,
        }],
        at: hermes_core::Clock::now(clock.as_ref()),
    };
    let id = outbox.put_outgoing(entry, Answers::none()).await.unwrap();
    let is_sent = async {
        loop {
            let entry = outbox.outgoing(id).await.unwrap().unwrap();
            if entry.stage == Stage::Sent {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let shutdown = Shutdown::default();
    tokio::select! {
        () = delivery.run(&shutdown) => unreachable!("nobody ends it"),
        sent = tokio::time::timeout(Duration::from_secs(20), is_sent) => sent.expect("it is sent"),
    }
    assert_eq!(*wall.posted.lock().unwrap(), ["only once"]);
}
