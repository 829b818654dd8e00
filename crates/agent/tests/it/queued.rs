//! Words that wait for the turn that runs: durable before they are acknowledged, said in order after a crash, never twice.

use std::time::Duration;

use hermes_core::{
    Effect, Entry, Event, Notice, Op, Origin, Store as _, StoreError, UserMessage, WaitsFor,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, resume, start};

async fn running_turn(world: &World) -> Running {
    let mut running = start(world).await;
    running.session.say("one").await;
    running
        .until(|event| matches!(event, Event::Text { .. } | Event::CallStarted { .. }))
        .await;
    running
}

fn is_queued(event: &Event) -> bool {
    matches!(event, Event::Queued { .. })
}

/// What a user said in each request, the last one only.
fn last_words(world: &World) -> Vec<String> {
    let requests = world.model.requests();
    let last = requests.iter().map(|request| {
        let mut said = request.messages.iter().rev();
        said.find(|message| message.begins_turn())
            .map(|message| message.text())
            .unwrap_or_default()
    });
    last.collect()
}

#[tokio::test]
async fn acknowledged_words_survive_a_crash_and_are_said_in_order() {
    let world = World::new([Step::text("a").then_silence()]);
    let mut running = running_turn(&world).await;
    let id = running.session.id().clone();
    running.session.say("two").await;
    running.session.say("three").await;
    running.until(is_queued).await;
    running.until(is_queued).await;
    running.crash().await;
    let loaded = world.store.load(&id).await.unwrap();
    assert_eq!(loaded.queued.len(), 2);

    let world = world.restarted(["1", "2", "3"].map(Step::text));
    let mut running = resume(&world, &id).await;
    running.until(|event| *event == Event::Idle).await;
    assert_eq!(last_words(&world), ["one", "two", "three"]);
    let started: Vec<&Event> = running
        .events
        .iter()
        .filter(|event| matches!(event, Event::TurnStarted { .. }))
        .collect();
    for (event, words) in started.iter().zip(["two", "three"]) {
        assert!(
            matches!(event, Event::TurnStarted { text, queued: Some(_), .. } if text == words),
            "{event:?}"
        );
    }
    assert_eq!(
        running
            .events
            .iter()
            .filter(|event| is_queued(event))
            .count(),
        2,
        "who follows is told what waits"
    );
    let loaded = world.store.load(&id).await.unwrap();
    assert!(loaded.queued.is_empty());
}

#[tokio::test]
async fn a_crash_at_every_entry_says_waiting_words_once() {
    let script = || {
        [
            Step::text("a").every(Duration::from_millis(10)),
            Step::text("b"),
        ]
    };
    let world = World::new(script());
    let mut running = running_turn(&world).await;
    let id = running.session.id().clone();
    running.session.say("two").await;
    running.until(|event| *event == Event::Idle).await;
    running.crash().await;
    let entries = world.store.entries(&id);
    let acknowledged = entries
        .iter()
        .position(|entry| matches!(entry, Entry::Queued { .. }))
        .expect("it waited");
    for cut in acknowledged + 1..=entries.len() {
        // What a commit holds together no crash takes apart.
        if matches!(entries.get(cut), Some(Entry::Dequeued { .. })) {
            continue;
        }
        let world = World::new([Step::text("a"), Step::text("b")]);
        let row = hermes_core::NewSession {
            id: id.clone(),
            created: hermes_core::Timestamp::from_millis(0),
            source: "test".into(),
            title: None,
            cwd: None,
            model: hermes_core::Model::name(world.model.as_ref()),
            parent: None,
            prefix: hermes_core::Prefix::default(),
        };
        world
            .store
            .create(row, entries[..cut].to_vec())
            .await
            .unwrap();
        let mut running = resume(&world, &id).await;
        running.until(|event| *event == Event::Idle).await;
        let loaded = world.store.load(&id).await.unwrap();
        let said: Vec<String> = loaded
            .messages
            .iter()
            .filter(|message| message.begins_turn())
            .map(|message| message.text())
            .collect();
        assert_eq!(said, ["one", "two"], "cut after {cut}");
        assert!(loaded.queued.is_empty() && loaded.open_turn.is_none());
    }
}

#[tokio::test]
async fn steering_survives_a_crash_and_reaches_the_result() {
    let call = || Step::call("c1", "slow", &json!({}));
    let slow = || {
        TestTool::new("slow")
            .effect(Effect::Read)
            .does(Behaviour::After(Duration::from_secs(60)))
    };
    let world = World::new([call()]).tool(slow());
    let mut running = running_turn(&world).await;
    let id = running.session.id().clone();
    running.send(Op::Steer(UserMessage::text("use tabs"))).await;
    running.until(is_queued).await;
    running.crash().await;

    let mut world = world.restarted([Step::text("done")]);
    world.tools.clear();
    let world = world.tool(TestTool::new("slow").effect(Effect::Read));
    let mut running = resume(&world, &id).await;
    running.until(|event| *event == Event::Idle).await;
    let seen = world.model.requests().pop().unwrap().messages;
    let text = &seen.last().unwrap().tool_result().unwrap().text;
    assert_eq!(text.matches("use tabs").count(), 1, "{text}");
    assert!(
        running
            .events
            .iter()
            .any(|event| matches!(event, Event::Steered { .. }))
    );
    let loaded = world.store.load(&id).await.unwrap();
    assert!(loaded.queued.is_empty());
    assert_eq!(world.model.requests().len(), 1, "it is no turn of its own");
}

#[tokio::test]
async fn steering_for_a_turn_that_ended_before_the_crash_begins_the_next() {
    let world = World::new([Step::text("yes"), Step::text("and this")]);
    let (running, _) = crate::run::say(&world, "one").await;
    let id = running.session.id().clone();
    running.crash().await;
    for (id_of, waits_for, text) in [
        ("q1", WaitsFor::NextTurn, "second"),
        ("q2", WaitsFor::ToolResult, "first"),
    ] {
        let queued = hermes_core::QueuedMessage {
            id: id_of.into(),
            waits_for,
            message: UserMessage::text(text),
        };
        let entries = vec![Entry::Queued { queued }];
        let now = hermes_core::Timestamp::from_millis(1);
        world.store.append(&id, now, entries).await.unwrap();
    }
    let world = world.restarted([Step::text("1"), Step::text("2")]);
    let mut running = resume(&world, &id).await;
    running.until(|event| *event == Event::Idle).await;
    assert_eq!(last_words(&world), ["first", "second"]);
    assert!(running.events.iter().any(|event| matches!(
        event,
        Event::TurnStarted {
            origin: Origin::Steering,
            ..
        }
    )));
}

#[tokio::test]
async fn what_an_interrupt_forgets_leaves_the_store() {
    let world = World::new([Step::text("a").then_silence()]);
    let mut running = running_turn(&world).await;
    let id = running.session.id().clone();
    running.session.say("two").await;
    running.until(is_queued).await;
    running.send(Op::Steer(UserMessage::text("three"))).await;
    // It is on its way to the store when the interrupt comes.
    running.send(Op::Interrupt).await;
    let forgotten = |event: &Event| {
        matches!(
            event,
            Event::Notice {
                notice: Notice::Forgotten { messages: 2 }
            }
        )
    };
    running.until(forgotten).await;
    running.until(|event| *event == Event::Idle).await;
    assert!(world.store.load(&id).await.unwrap().queued.is_empty());
    running.crash().await;
    let world = world.restarted([]);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.next().await, Event::Idle, "nothing is said again");
}

#[tokio::test]
async fn words_that_cannot_be_stored_are_given_back() {
    let world = World::new([Step::text("a").then_silence()]);
    let mut running = running_turn(&world).await;
    world.store.refuse(Some(StoreError::DiskFull {
        path: "/home".into(),
    }));
    running.session.say("two").await;
    let notice = running
        .until(|event| matches!(event, Event::Notice { .. }))
        .await;
    assert!(
        matches!(&notice, Event::Notice { notice: Notice::NotQueued { text, .. } } if text == "two"),
        "{notice:?}"
    );
    assert!(!running.events.iter().any(is_queued));
}

#[tokio::test]
async fn waiting_words_outlive_a_disk_that_is_full_for_a_while() {
    let world = World::new([
        Step::text("a b c").every(Duration::from_millis(30)),
        Step::text("1"),
        Step::text("2"),
        Step::text("3"),
    ]);
    let mut running = running_turn(&world).await;
    let id = running.session.id().clone();
    running.session.say("two").await;
    running.until(is_queued).await;
    world.store.refuse(Some(StoreError::DiskFull {
        path: "/home".into(),
    }));
    running.until(|event| *event == Event::Idle).await;
    world.store.refuse(None);
    running.session.say("three").await;
    running.until(|event| *event == Event::Idle).await;
    let loaded = world.store.load(&id).await.unwrap();
    let said: Vec<String> = loaded
        .messages
        .iter()
        .filter(|message| message.begins_turn())
        .map(|message| message.text())
        .collect();
    assert_eq!(said, ["one", "two", "three"]);
    assert!(loaded.queued.is_empty());
}
