//! Calls that a running call makes pass the same checks as the model's own.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hermes_agent::ConsentPolicy;
use hermes_core::{
    ApprovalRequest, Approvals as _, Consent, Event, Op, Parallel, ResultStatus, Settled, TurnEnd,
    Verdict,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::run::{Running, say, settings, start, start_with, stored};

/// A world in which the model calls `outer` once, and `outer` makes these calls.
fn world(calls: Vec<(&'static str, Value)>) -> World {
    World::new([Step::call("c1", "outer", &json!({})), Step::text("done")])
        .tool(TestTool::new("outer").does(Behaviour::Use(calls)))
}

/// Plays the turn, and returns the one result that the model saw.
async fn result(world: &World) -> String {
    let (running, end) = say(world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    let messages = stored(world, &running).await;
    let results: Vec<_> = messages
        .iter()
        .filter_map(|message| message.tool_result())
        .collect();
    assert_eq!(
        results.len(),
        1,
        "inner results are not in the conversation"
    );
    assert_eq!(results[0].status, ResultStatus::Ok);
    results[0].text.clone()
}

#[tokio::test]
async fn a_call_gets_the_results_of_the_calls_it_makes() {
    let calls = vec![
        ("echo", json!({"text": "ping"})),
        ("fails", json!({})),
        ("panics", json!({})),
    ];
    let world = world(calls)
        .tool(TestTool::new("echo"))
        .tool(TestTool::new("fails").does(Behaviour::Fail("not today".into())))
        .tool(TestTool::new("panics").does(Behaviour::Panic));
    assert_eq!(
        result(&world).await,
        "ok: ping\nerror: not today\nerror: `panics` crashed; this is a bug in it."
    );
}

#[tokio::test]
async fn wrong_calls_are_answered_and_do_not_run() {
    let calls = vec![
        ("eco", json!({})),
        ("echo", json!({"text": ["not", "text"], "count": {}})),
    ];
    let echo = TestTool::new("echo");
    let runs = echo.runs();
    let world = world(calls).tool(echo);
    let said = result(&world).await;
    assert!(
        said.contains("no tool `eco`") && said.contains("do not fit"),
        "{said}"
    );
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn what_needs_consent_needs_it_inside_a_call_too() {
    let reason = || "is dangerous".to_owned();
    let asks = TestTool::new("asks").consent(Consent::needed(reason()));
    let forbidden = TestTool::new("forbidden").consent(Consent::Forbidden { reason: reason() });
    let runs = [asks.runs(), forbidden.runs()];
    let world = world(vec![("asks", json!({})), ("forbidden", json!({}))])
        .tool(asks)
        .tool(forbidden);
    let said = result(&world).await;
    assert!(said.contains("nobody is here to allow it"), "{said}");
    assert!(said.contains("Nobody can allow this"), "{said}");
    assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 0));
}

#[tokio::test]
async fn a_call_made_by_a_call_makes_none_itself() {
    let again = Behaviour::Use(vec![("echo", json!({}))]);
    let world = world(vec![("second", json!({}))])
        .tool(TestTool::new("second").does(again))
        .tool(TestTool::new("echo"));
    assert_eq!(result(&world).await, "ok: error: there are no tools here");
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_only_where_they_may() {
    for (parallel, seconds) in [(Parallel::Always, 2), (Parallel::Never, 6)] {
        let slow = TestTool::new("slow")
            .parallel(parallel)
            .does(Behaviour::After(Duration::from_secs(2)));
        let world = world(vec![("slow", json!({})); 3]).tool(slow);
        let started = Instant::now();
        result(&world).await;
        assert_eq!(started.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_them_with_the_call_that_made_them() {
    let world =
        world(vec![("hangs", json!({}))]).tool(TestTool::new("hangs").does(Behaviour::Hang));
    let mut running = start(&world).await;
    running.session.say("go").await;
    while !matches!(running.next().await, Event::CallProgress { .. }) {}
    running.session.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
}

fn dangerous() -> TestTool {
    let reason = "is dangerous".to_owned();
    TestTool::new("danger").consent(Consent::needed(reason))
}

/// Says go in a world where a person is asked.
async fn asking(world: &World) -> Running {
    let mut settings = settings(world);
    let timeout = Duration::from_secs(60);
    settings.consent = ConsentPolicy::Ask { timeout };
    let running = start_with(world, settings).await;
    running.session.say("go").await;
    running
}

async fn asked(running: &mut Running) -> ApprovalRequest {
    let is_question = |event: &Event| matches!(event, Event::ApprovalRequested(_));
    match running.until(is_question).await {
        Event::ApprovalRequested(question) => question,
        _ => unreachable!("waited for a question"),
    }
}

#[tokio::test]
async fn a_yes_is_for_one_of_them_even_when_the_next_is_the_same() {
    let danger = dangerous();
    let runs = danger.runs();
    let world = world(vec![("danger", json!({})); 2]).tool(danger);
    let mut running = asking(&world).await;
    for verdict in [Verdict::Once, Verdict::Deny] {
        let question = asked(&mut running).await;
        assert_eq!(question.call.as_str(), "c1", "the call that the model made");
        running.session.answer(question.approval, verdict).await;
    }
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_question_is_taken_back_when_the_call_that_made_it_ends_or_is_interrupted() {
    for interrupted in [false, true] {
        let danger = dangerous();
        let runs = danger.runs();
        let outer = if interrupted {
            Behaviour::Use(vec![("danger", json!({}))])
        } else {
            Behaviour::Abandon("danger", json!({}))
        };
        let steps = [Step::call("c1", "outer", &json!({})), Step::text("done")];
        let world = World::new(steps)
            .tool(TestTool::new("outer").does(outer))
            .tool(danger);
        let mut running = asking(&world).await;
        let question = asked(&mut running).await;
        if interrupted {
            running.session.send(Op::Interrupt).await;
        }
        let is_closed = |event: &Event| matches!(event, Event::ApprovalClosed { .. });
        running.until(is_closed).await;
        running.turn_end().await;
        let approval = world.store.approval(&question.approval).await.unwrap();
        let how = approval.settled.map(|settlement| settlement.how);
        assert_eq!(how, Some(Settled::Withdrawn), "{interrupted}");
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }
}
