//! How often a turn waits for the disk: each append is one wait.

use hermes_core::{Effect, Event, Parallel, TurnEnd};
use hermes_testkit::{Step, TestTool, World};
use serde_json::json;

use crate::run::{say, start};

#[tokio::test]
async fn a_tool_round_trip_waits_for_the_disk_at_most_twice() {
    const ROUND_TRIPS: usize = 5;
    let calls = (0..ROUND_TRIPS).map(|call| {
        let arguments = json!({"text": call.to_string()});
        Step::call(&format!("c{call}"), "act", &arguments)
    });
    let world = World::new(calls.chain([Step::text("done")]))
        .tool(TestTool::new("act").effect(Effect::Effect));
    let (running, end) = say(&world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    // The beginning with the first request, and the end with the last reply.
    let waits = world.store.commits(running.session.id());
    assert_eq!(waits, 2 + 2 * ROUND_TRIPS);
}

#[tokio::test]
async fn a_turn_without_tools_waits_for_the_disk_twice() {
    let world = World::new([Step::text("one"), Step::text("two")]);
    let mut running = start(&world).await;
    running.session.say("a").await;
    running.until(|event| *event == Event::Idle).await;
    running.session.say("b").await;
    running.turn_end().await;
    assert_eq!(world.store.commits(running.session.id()), 4);
}

#[tokio::test]
async fn calls_that_end_together_are_recorded_together() {
    let calls: Vec<(String, String)> = (0..10)
        .map(|call| (format!("c{call}"), format!(r#"{{"text":"{call}"}}"#)))
        .collect();
    let calls: Vec<(&str, &str, &str)> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "act", arguments.as_str()))
        .collect();
    let act = TestTool::new("act")
        .effect(Effect::Read)
        .parallel(Parallel::Always);
    let world = World::new([Step::calls(&calls), Step::text("done")]).tool(act);
    let (running, end) = say(&world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    // One wait for each would be 13. How many come together is a matter of scheduling.
    let waits = world.store.commits(running.session.id());
    assert!((4..=7).contains(&waits), "{waits}");
}
