//! Every call gets exactly one result, whatever happens.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hermes_agent::ConsentPolicy;
use hermes_core::{
    Consent, Effect, Event, Media, MediaSource, Op, Parallel, ResultStatus, ToolResult, TurnEnd,
    Verdict,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, say, settings, start, start_with, stored};

async fn results(world: &World, running: &Running) -> Vec<ToolResult> {
    stored(world, running)
        .await
        .iter()
        .filter_map(|message| message.tool_result().cloned())
        .collect()
}

fn statuses(results: &[ToolResult]) -> Vec<(&str, ResultStatus)> {
    results
        .iter()
        .map(|result| (result.call.as_str(), result.status))
        .collect()
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_reaches_the_model() {
    let world = World::new([
        Step::call("c1", "echo", &json!({"text": "ping"})),
        Step::text("done"),
    ])
    .tool(TestTool::new("echo"));
    let (_, end) = say(&world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    let seen = world.model.requests().pop().unwrap().messages;
    assert_eq!(seen.last().unwrap().tool_result().unwrap().text, "ping");
}

#[tokio::test]
async fn pictures_of_a_result_reach_the_model_and_only_their_number_is_told() {
    // Far more than the text of a result may have.
    let picture = Media {
        mime: "image/png".into(),
        source: MediaSource::Base64("iVBO".repeat(500_000)),
    };
    let look = TestTool::new("look").does(Behaviour::Show(vec![picture.clone()]));
    let world = World::new([
        Step::call("c1", "look", &json!({"text": "a.png"})),
        Step::text("a cat"),
    ])
    .tool(look);
    let (running, end) = say(&world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    let seen = world.model.requests().pop().unwrap().messages;
    let result = seen.last().unwrap().tool_result().unwrap();
    assert_eq!(result.text, "a.png");
    assert_eq!(result.images, std::slice::from_ref(&picture));
    assert_eq!(results(&world, &running).await[0].images, [picture]);
    let told: Vec<String> = running
        .events
        .iter()
        .filter(|event| matches!(event, Event::CallFinished { .. }))
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    assert!(told[0].contains(r#""images":1"#), "{}", told[0]);
    assert!(told[0].len() < 200, "{}", told[0]);
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_overlap_and_their_results_keep_the_order_of_the_calls() {
    let slow = TestTool::new("slow")
        .parallel(Parallel::Always)
        .does(Behaviour::After(Duration::from_secs(2)));
    let quick = TestTool::new("quick").parallel(Parallel::Always);
    let world = World::new([
        Step::calls(&[
            ("a", "slow", r#"{"text":"1"}"#),
            ("b", "quick", "{}"),
            ("c", "slow", r#"{"text":"2"}"#),
        ]),
        Step::text("done"),
    ])
    .tool(slow)
    .tool(quick);
    let started = tokio::time::Instant::now();
    let (running, _) = say(&world, "go").await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    let order: Vec<_> = results(&world, &running)
        .await
        .into_iter()
        .map(|result| result.call)
        .collect();
    assert_eq!(order, ["a".into(), "b".into(), "c".into()]);
}

#[tokio::test]
async fn a_call_that_panics_gets_a_result_and_the_session_lives() {
    let world = World::new([Step::call("c1", "boom", &json!({})), Step::text("sorry")])
        .tool(TestTool::new("boom").does(Behaviour::Panic));
    let (running, end) = say(&world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    let results = results(&world, &running).await;
    assert!(results[0].text.contains("crashed"), "{results:?}");
}

#[tokio::test]
async fn calls_that_cannot_run_are_answered_with_what_to_do() {
    let world = World::new([
        Step::calls(&[
            ("unknown", "ecko", "{}"),
            ("malformed", "echo", r#"{"text": "a"#),
            ("wrong", "echo", r#"{"text": ["list"]}"#),
            ("fixed", "Echo", r#"{"text": 5, "count": "7"}"#),
            ("twin", "Echo", r#"{"text": 5, "count": "7"}"#),
        ]),
        Step::text("done"),
    ])
    .tool(TestTool::new("echo"));
    let (running, end) = say(&world, "go").await;
    assert_eq!(end, TurnEnd::Finished);
    let results = results(&world, &running).await;
    assert_eq!(
        statuses(&results),
        [
            ("unknown", ResultStatus::Failed),
            ("malformed", ResultStatus::Failed),
            ("wrong", ResultStatus::Failed),
            ("fixed", ResultStatus::Ok),
            ("twin", ResultStatus::NotRun),
        ]
    );
    assert!(
        results[0].text.contains("Did you mean `echo`"),
        "{}",
        results[0].text
    );
    assert!(results[1].text.contains("break off"), "{}", results[1].text);
    assert!(
        results[2].text.contains("`text` must be string, not array"),
        "{}",
        results[2].text
    );
    assert_eq!(results[3].text, "5");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_model_and_tools_within_100_ms() {
    let hang = TestTool::new("hang").does(Behaviour::Hang);
    let never = TestTool::new("never");
    let never_runs = never.runs();
    let world = World::new([Step::calls(&[("a", "hang", "{}"), ("b", "never", "{}")])])
        .tool(hang)
        .tool(never);
    let mut running = start(&world).await;
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::CallStarted { .. }))
        .await;
    let interrupted = tokio::time::Instant::now();
    running.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    assert!(
        interrupted.elapsed() < Duration::from_millis(100),
        "{:?}",
        interrupted.elapsed()
    );
    assert_eq!(
        statuses(&results(&world, &running).await),
        [
            ("a", ResultStatus::OutcomeUnknown),
            ("b", ResultStatus::NotRun)
        ]
    );
    assert_eq!(never_runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_interrupted_stream_keeps_what_was_said() {
    let world = World::new([Step::text("so far ").then_silence(), Step::text("next")]);
    let mut running = start(&world).await;
    running.session.say("go").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    running.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    assert_eq!(
        stored(&world, &running).await.pop().unwrap().text(),
        "so far "
    );
    running.session.say("and now").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
}

#[tokio::test]
async fn intents_are_durable_before_their_calls_run_and_results_before_the_model_sees_them() {
    let world = World::new([Step::call("c1", "echo", &json!({})), Step::text("done")])
        .tool(TestTool::new("echo"));
    let (running, _) = say(&world, "go").await;
    let log: Vec<String> = world
        .store
        .entries(running.session.id())
        .iter()
        .map(|entry| {
            serde_json::to_value(entry).unwrap()["entry"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        log,
        [
            "turn_started",
            "model_asked",
            "replied",
            "call_intended",
            "call_finished",
            "model_asked",
            "replied",
            "turn_ended"
        ]
    );
}

#[tokio::test]
async fn a_long_result_is_spilled_to_a_file() {
    let long = "x".repeat(150_000);
    let world = World::new([Step::call("c1", "big", &json!({})), Step::text("done")])
        .tool(TestTool::new("big").does(Behaviour::Say(long.clone())));
    let (running, _) = say(&world, "go").await;
    let result = results(&world, &running).await.remove(0);
    assert!(
        result.text.len() < 2_000 && result.text.contains("read_file"),
        "{}",
        result.text
    );
    let file = world
        .folder
        .path()
        .join("results")
        .join(running.session.id().as_str())
        .join("c1.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), long);
}

fn dangerous() -> TestTool {
    TestTool::new("danger")
        .effect(Effect::Effect)
        .consent(Consent::needed("it deletes files"))
}

async fn asked(verdict: Option<Verdict>) -> (ResultStatus, usize) {
    let tool = dangerous();
    let runs = tool.runs();
    let world = World::new([
        Step::call("c1", "danger", &json!({"text": "a"})),
        Step::call("c2", "danger", &json!({"text": "a"})),
        Step::text("done"),
    ])
    .tool(tool);
    let mut settings = settings(&world);
    settings.consent = ConsentPolicy::Ask {
        timeout: Duration::from_millis(200),
    };
    let mut running = start_with(&world, settings).await;
    running.session.say("go").await;
    let question = running
        .until(|event| matches!(event, Event::ApprovalRequested(_)))
        .await;
    if let (Event::ApprovalRequested(question), Some(verdict)) = (question, verdict) {
        running.session.answer(question.approval, verdict).await;
    }
    running.turn_end().await;
    (
        results(&world, &running).await[0].status,
        runs.load(Ordering::Relaxed),
    )
}

#[tokio::test]
async fn a_dangerous_call_waits_for_consent_and_silence_means_no() {
    assert_eq!(
        asked(Some(Verdict::Session)).await,
        (ResultStatus::Ok, 2),
        "asked once, allowed for the session"
    );
    assert_eq!(asked(Some(Verdict::Deny)).await, (ResultStatus::NotRun, 0));
    assert_eq!(asked(None).await, (ResultStatus::NotRun, 0));
}

#[tokio::test]
async fn what_is_forbidden_stays_forbidden_even_when_everything_is_allowed() {
    let tool = TestTool::new("danger").consent(Consent::Forbidden {
        reason: "it wipes the disk".into(),
    });
    let runs = tool.runs();
    let world = World::new([Step::call("c1", "danger", &json!({})), Step::text("done")]).tool(tool);
    let mut settings = settings(&world);
    settings.consent = ConsentPolicy::Allow;
    let mut running = start_with(&world, settings).await;
    running.session.say("go").await;
    running.turn_end().await;
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_eq!(
        results(&world, &running).await[0].status,
        ResultStatus::NotRun
    );
}

#[tokio::test]
async fn a_call_that_is_passed_on_is_the_real_call_to_everybody() {
    let real = TestTool::new("mcp__hub__post").effect(Effect::Idempotent);
    let (passed_on, ran) = (TestTool::new("tool_call"), real.runs());
    let passed_itself = passed_on.runs();
    let world = World::new([
        Step::call("c1", "tool_call", &json!({"text": 5})),
        Step::text("done"),
    ])
    .tool(passed_on.stands_for(real));
    let (running, _) = say(&world, "go").await;
    let counts = [ran, passed_itself].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 0]);
    let told = running.events.iter().filter_map(|event| match event {
        Event::CallStarted { tool, .. } | Event::CallFinished { tool, .. } => Some(tool.as_str()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["mcp__hub__post"; 2]);
    let result = &results(&world, &running).await[0];
    assert_eq!(
        (result.tool.as_str(), result.text.as_str()),
        ("tool_call", "5")
    );
}
