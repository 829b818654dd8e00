//! Words that come while a turn runs.

use std::time::Duration;

use hermes_core::{Event, Notice, Op, TurnEnd, UserMessage};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::start;

#[tokio::test]
async fn steering_arrives_with_the_next_tool_result() {
    let slow = TestTool::new("slow").does(Behaviour::After(Duration::from_millis(50)));
    let world = World::new([Step::call("c1", "slow", &json!({})), Step::text("done")]).tool(slow);
    let mut running = start(&world).await;
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::CallStarted { .. }))
        .await;
    running.send(Op::Steer(UserMessage::text("use tabs"))).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let seen = world.model.requests().pop().unwrap().messages;
    let text = &seen.last().unwrap().tool_result().unwrap().text;
    assert!(text.contains("use tabs"), "{text}");
}

#[tokio::test]
async fn steering_that_comes_too_late_becomes_the_next_turn() {
    let world = World::new([
        Step::text("a b c d").every(Duration::from_millis(20)),
        Step::text("yes"),
    ]);
    let mut running = start(&world).await;
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    running
        .send(Op::Steer(UserMessage::text("also this")))
        .await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert!(running.events.contains(&Event::Notice {
        notice: Notice::SteeringQueued
    }));
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(
        world
            .model
            .requests()
            .pop()
            .unwrap()
            .messages
            .last()
            .unwrap()
            .text(),
        "also this"
    );
}

#[tokio::test]
async fn words_that_come_too_late_stay_in_front_of_what_is_said_to_the_turn_they_begin() {
    let slow = TestTool::new("slow").does(Behaviour::After(Duration::from_millis(100)));
    let world = World::new([
        Step::text("a b c d").every(Duration::from_millis(20)),
        Step::call("c1", "slow", &json!({})),
        Step::text("done"),
    ])
    .tool(slow);
    let mut running = start(&world).await;
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    for words in ["first", "second"] {
        running.send(Op::Steer(UserMessage::text(words))).await;
    }
    running
        .until(|event| matches!(event, Event::CallStarted { .. }))
        .await;
    running.send(Op::Steer(UserMessage::text("third"))).await;
    running.until(|event| *event == Event::Idle).await;
    let seen = world.model.requests().pop().unwrap().messages;
    let said: Vec<String> = seen.iter().map(|message| message.text()).collect();
    assert_eq!(said[2], "first");
    let result = &seen.last().unwrap().tool_result().unwrap().text;
    let (second, third) = (result.find("second"), result.find("third"));
    assert!(second.is_some() && second < third, "{result}");
}

#[tokio::test]
async fn what_is_said_during_a_turn_waits_for_its_end() {
    let world = World::new([
        Step::text("a b").every(Duration::from_millis(20)),
        Step::text("second"),
    ]);
    let mut running = start(&world).await;
    running.session.say("one").await;
    running.session.say("two").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let texts: Vec<String> = world.model.requests()[1]
        .messages
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(texts, ["one", "a b", "two"]);
}

#[tokio::test]
async fn a_flood_of_messages_is_refused_visibly() {
    let world = World::new([Step::text("a").then_silence()]);
    let mut running = start(&world).await;
    running.session.say("one").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    for _ in 0..40 {
        running.session.say("more").await;
    }
    let refused = |event: &Event| {
        matches!(
            event,
            Event::Notice {
                notice: Notice::NotQueued { .. }
            }
        )
    };
    running.until(refused).await;
}

#[tokio::test]
async fn an_interrupt_forgets_what_waits_and_says_so() {
    let world = World::new([Step::text("a").then_silence(), Step::text("never asked")]);
    let mut running = start(&world).await;
    running.session.say("one").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    running.session.say("two").await;
    running.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    running.until(|event| *event == Event::Idle).await;
    let forgotten = Event::Notice {
        notice: Notice::Forgotten { messages: 1 },
    };
    assert!(running.events.contains(&forgotten));
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test]
async fn the_session_says_when_it_is_the_users_turn() {
    let world = World::new([Step::text("one"), Step::text("two")]);
    let mut running = start(&world).await;
    assert_eq!(running.next().await, Event::Idle);
    running.session.say("a").await;
    running.until(|event| *event == Event::Idle).await;
    running.session.say("b").await;
    running.until(|event| *event == Event::Idle).await;
    assert_eq!(running.text(), "onetwo");
}

#[tokio::test]
async fn the_work_goes_on_to_its_end_when_nobody_listens_any_more() {
    let world = World::new([Step::call("c1", "echo", &json!({})), Step::text("done")])
        .tool(TestTool::new("echo"));
    let running = start(&world).await;
    running.session.say("go").await;
    let id = running.session.id().clone();
    let store = world.store.clone();
    // The handle is dropped; the task finishes its turn and ends.
    let mut tasks = running.close();
    tokio::time::timeout(Duration::from_secs(5), tasks.join_next())
        .await
        .expect("the task ends");
    assert!(matches!(
        store.entries(&id).last(),
        Some(hermes_core::Entry::TurnEnded {
            end: TurnEnd::Finished,
            ..
        })
    ));
}
