//! After a crash at any instant a restart finishes or visibly closes the turn; nothing runs twice that must not.

use std::sync::atomic::Ordering;

use hermes_core::{
    Effect, Entry, Event, Media, MediaSource, Message, Prefix, ResultStatus, Role, Store as _,
    StoreError, TurnEnd,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{resume, say, start, stored};

/// Runs `go` with one call of an effect tool, cuts the log after `entries`, and resumes.
async fn crash_after(entries: usize, effect: Effect) -> (Vec<Message>, usize, TurnEnd) {
    let call = || Step::call("c1", "act", &json!({"text": "x"}));
    let world = World::new([call(), Step::text("done")]).tool(TestTool::new("act").effect(effect));
    let (running, _) = say(&world, "go").await;
    let id = running.session.id().clone();
    running.crash().await;
    world.store.cut(&id, entries);

    let tool = TestTool::new("act").effect(effect);
    let runs = tool.runs();
    // The restarted model is asked only for what is missing.
    let replied = world
        .store
        .entries(&id)
        .iter()
        .any(|entry| matches!(entry, Entry::Replied { .. }));
    let steps = if replied {
        vec![Step::text("done")]
    } else {
        vec![call(), Step::text("done")]
    };
    let mut world = world.restarted(steps);
    world.tools.clear();
    let world = world.tool(tool);
    let mut running = resume(&world, &id).await;
    let end = running.turn_end().await;
    assert!(matches!(
        running.events[0],
        Event::TurnResumed { attempt: 1, .. }
    ));
    (
        stored(&world, &running).await,
        runs.load(Ordering::Relaxed),
        end,
    )
}

#[tokio::test]
async fn a_crash_at_every_entry_leads_to_the_same_conversation() {
    // turn_started, model_asked, replied, call_intended, call_finished, model_asked, replied, (turn_ended)
    for entries in 1..=7 {
        let (messages, runs, end) = crash_after(entries, Effect::Read).await;
        assert_eq!(end, TurnEnd::Finished, "after {entries}");
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::Tool, Role::Assistant],
            "after {entries}"
        );
        assert_eq!(runs, usize::from(entries < 5), "after {entries}");
    }
}

#[tokio::test]
async fn after_a_crash_the_model_sees_the_same_picture() {
    let picture = Media {
        mime: "image/png".into(),
        source: MediaSource::Base64("iVBORw0KGgo=".into()),
    };
    let look = TestTool::new("look").does(Behaviour::Show(vec![picture]));
    let world = World::new([
        Step::call("c1", "look", &json!({"text": "a.png"})),
        Step::text("a cat"),
    ])
    .tool(look);
    let (running, _) = say(&world, "go").await;
    let id = running.session.id().clone();
    let before = world.model.requests().pop().unwrap().messages;
    assert_eq!(before.last().unwrap().images().count(), 1);
    running.crash().await;
    // The result is there, what came after it is lost.
    world.store.cut(&id, 5);
    let world = world.restarted([Step::text("a cat")]);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let after = world.model.requests().pop().unwrap().messages;
    assert_eq!(json!(after).to_string(), json!(before).to_string());
}

#[tokio::test]
async fn an_effect_that_was_about_to_run_is_not_repeated_but_reported() {
    let (messages, runs, _) = crash_after(4, Effect::Effect).await;
    assert_eq!(runs, 0);
    let result = messages[2].tool_result().unwrap();
    assert_eq!(result.status, ResultStatus::OutcomeUnknown);
    assert!(
        result.text.starts_with("outcome_unknown"),
        "{}",
        result.text
    );
}

#[tokio::test]
async fn an_id_that_comes_again_after_a_crash_is_another_call() {
    let world = World::new([Step::call("c1", "act", &json!({"text": "x"}))])
        .tool(TestTool::new("act").does(Behaviour::Hang));
    let mut running = start(&world).await;
    let id = running.session.id().clone();
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::CallStarted { .. }))
        .await;
    running.crash().await;
    let tool = TestTool::new("act");
    let runs = tool.runs();
    let again = Step::call("c1", "act", &json!({"text": "y"}));
    let mut world = world.restarted([again, Step::text("done")]);
    world.tools.clear();
    let world = world.tool(tool);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(
        runs.load(Ordering::Relaxed),
        1,
        "the lost call is not repeated, the new one runs"
    );
}

#[tokio::test]
async fn an_effect_without_an_intent_never_started_and_runs() {
    let (messages, runs, _) = crash_after(3, Effect::Effect).await;
    assert_eq!(
        (runs, messages[2].tool_result().unwrap().status),
        (1, ResultStatus::Ok)
    );
}

#[tokio::test]
async fn a_turn_that_crashes_three_times_is_closed_with_an_explanation() {
    let world = World::new([Step::text("a").then_silence()]);
    let mut running = start(&world).await;
    let id = running.session.id().clone();
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    running.crash().await;
    let mut world = world;
    for attempt in 1..3 {
        world = world.restarted([Step::text("a").then_silence()]);
        let mut running = resume(&world, &id).await;
        assert!(
            matches!(running.next().await, Event::TurnResumed { attempt: a, .. } if a == attempt)
        );
        running
            .until(|event| matches!(event, Event::Text { .. }))
            .await;
        running.crash().await;
    }
    let world = world.restarted([]);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Abandoned { crashes: 3 });
    let last = stored(&world, &running).await.pop().unwrap();
    assert!(
        last.role == Role::Assistant && last.text().contains("crashed 3 times"),
        "{last:?}"
    );
}

#[tokio::test]
async fn the_prefix_is_the_same_across_turns_and_a_restart() {
    let world = World::new([Step::text("one"), Step::text("two")]).tool(TestTool::new("echo"));
    let (mut running, _) = say(&world, "first").await;
    running.session.say("second").await;
    running.turn_end().await;
    let id = running.session.id().clone();
    let before: Vec<Prefix> = world
        .model
        .requests()
        .into_iter()
        .map(|request| request.prefix)
        .collect();
    running.crash().await;
    // Even with other tools in the new process.
    let world = world
        .restarted([Step::text("three")])
        .tool(TestTool::new("newcomer"));
    let mut running = resume(&world, &id).await;
    running.session.say("third").await;
    running.turn_end().await;
    let after = world.model.requests().remove(0);
    assert!(before.iter().all(|prefix| *prefix == after.prefix));
    assert_eq!(after.messages.len(), 5);
}

#[tokio::test]
async fn a_session_is_open_only_once() {
    let world = World::new([Step::text("one")]);
    let (running, _) = say(&world, "hi").await;
    let error = world.store.claim(running.session.id()).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }));
}

#[tokio::test]
async fn a_full_disk_ends_the_turn_clearly_and_the_session_goes_on_when_there_is_room() {
    let world = World::new([Step::text("one"), Step::text("two")])
        .tool(TestTool::new("t").does(Behaviour::Echo));
    let (mut running, _) = say(&world, "hi").await;
    world.store.refuse(Some(StoreError::DiskFull {
        path: "/full/hermes.db".into(),
    }));
    running.session.say("lost?").await;
    let end = running.turn_end().await;
    assert!(
        matches!(&end, TurnEnd::Broken { error, hint } if error.contains("no space") && hint.contains("free some space")),
        "{end:?}"
    );
    world.store.refuse(None);
    running.session.say("again").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let texts: Vec<String> = stored(&world, &running)
        .await
        .iter()
        .map(Message::text)
        .collect();
    assert_eq!(texts, ["hi", "one", "again", "two"]);
}
