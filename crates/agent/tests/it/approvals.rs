//! A question for consent lives in the store: answered from anywhere, once, and not lost with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_agent::ConsentPolicy;
use hermes_core::{
    AnswerSource, ApprovalRequest, Approvals as _, Clock as _, Consent, Event, Notice, Op,
    ResultStatus, SessionId, Settled, Settlement, Settling, StoreError, TurnEnd, Verdict,
};
use hermes_testkit::{Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, resume_with, settings, start_with, stored};

const TIMEOUT: Duration = Duration::from_secs(16);

fn calls() -> Step {
    Step::call("c1", "danger", &json!({"text": "a"}))
}

fn dangerous() -> (TestTool, Arc<AtomicUsize>) {
    let reason = "it deletes files";
    let tool = TestTool::new("danger").consent(Consent::needed(reason));
    let runs = tool.runs();
    (tool, runs)
}

fn world() -> (World, Arc<AtomicUsize>) {
    let (tool, runs) = dangerous();
    (World::new([calls(), Step::text("done")]).tool(tool), runs)
}

async fn start(world: &World) -> Running {
    let mut settings = settings(world);
    settings.consent = ConsentPolicy::Ask { timeout: TIMEOUT };
    start_with(world, settings).await
}

async fn resume(world: &World, session: &SessionId) -> Running {
    let mut settings = settings(world);
    settings.consent = ConsentPolicy::Ask { timeout: TIMEOUT };
    resume_with(world, settings, session).await
}

async fn asked(running: &mut Running) -> ApprovalRequest {
    match running
        .until(|event| matches!(event, Event::ApprovalRequested(_)))
        .await
    {
        Event::ApprovalRequested(question) => question,
        _ => unreachable!("waited for a question"),
    }
}

/// Says go and waits for the question.
async fn ask(running: &mut Running) -> ApprovalRequest {
    running.session.say("go").await;
    asked(running).await
}

async fn closed(running: &mut Running) -> Settled {
    match running
        .until(|event| matches!(event, Event::ApprovalClosed { .. }))
        .await
    {
        Event::ApprovalClosed { how, .. } => how,
        _ => unreachable!("waited for its end"),
    }
}

/// Answers as another process would.
async fn answer_outside(world: &World, question: &ApprovalRequest, verdict: Verdict) -> Settling {
    let by = AnswerSource::Command;
    let how = Settled::Answered { verdict, by };
    let at = world.clock.now();
    let settling = world
        .store
        .settle(&question.approval, Settlement::new(at, how));
    settling.await.expect("the store answers")
}

async fn status(world: &World, running: &Running) -> ResultStatus {
    let messages = stored(world, running).await;
    let result = messages.iter().find_map(|message| message.tool_result());
    result.expect("a result").status
}

/// A world in which the process died while a question was open.
async fn crashed() -> (World, Arc<AtomicUsize>, SessionId, ApprovalRequest) {
    crashed_in(world().0).await
}

async fn crashed_in(world: World) -> (World, Arc<AtomicUsize>, SessionId, ApprovalRequest) {
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    let session = running.session.id().clone();
    running.crash().await;
    let mut world = world.restarted([Step::text("done")]);
    let (tool, runs) = dangerous();
    world.tools.clear();
    (world.tool(tool), runs, session, question)
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_another_process_is_noticed_and_closes_the_question() {
    for (verdict, expected) in [(Verdict::Once, 1), (Verdict::Deny, 0)] {
        let (world, runs) = world();
        let mut running = start(&world).await;
        let question = ask(&mut running).await;
        let open = world.store.open_approvals(world.clock.now()).await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(
            (&open[0].id, &open[0].what),
            (&question.approval, &question.what)
        );
        assert!(answer_outside(&world, &question, verdict).await.is_ours);
        let by = AnswerSource::Command;
        assert_eq!(
            closed(&mut running).await,
            Settled::Answered { verdict, by }
        );
        assert_eq!(running.turn_end().await, TurnEnd::Finished);
        assert_eq!(runs.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_wins_wherever_the_second_comes_from() {
    let (world, runs) = world();
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    answer_outside(&world, &question, Verdict::Deny).await;
    // The person says yes before the chat has noticed.
    running
        .session
        .answer(question.approval, Verdict::Once)
        .await;
    let (verdict, by) = (Verdict::Deny, AnswerSource::Command);
    assert_eq!(
        closed(&mut running).await,
        Settled::Answered { verdict, by }
    );
    running.turn_end().await;
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_answer_in_the_chat_is_written_down_and_final() {
    let (world, runs) = world();
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    let approval = question.approval.clone();
    running.session.answer(approval, Verdict::Once).await;
    running.turn_end().await;
    let late = answer_outside(&world, &question, Verdict::Deny).await;
    let (verdict, by) = (Verdict::Once, AnswerSource::Chat);
    assert_eq!(late.settlement.how, Settled::Answered { verdict, by });
    assert!(!late.is_ours);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_no_for_everybody() {
    let (world, runs) = world();
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    let started = tokio::time::Instant::now();
    assert_eq!(closed(&mut running).await, Settled::Expired);
    assert_eq!(started.elapsed().as_secs(), TIMEOUT.as_secs());
    running.turn_end().await;
    let late = answer_outside(&world, &question, Verdict::Once).await;
    assert_eq!(
        (late.settlement.how, late.is_ours),
        (Settled::Expired, false)
    );
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_eq!(status(&world, &running).await, ResultStatus::NotRun);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_past_the_deadline_does_not_wait_on() {
    let (world, runs) = world();
    let mut running = start(&world).await;
    ask(&mut running).await;
    world.clock.advance(2 * TIMEOUT);
    let started = tokio::time::Instant::now();
    assert_eq!(closed(&mut running).await, Settled::Expired);
    assert!(started.elapsed() < TIMEOUT / 2);
    running.turn_end().await;
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_interrupt_takes_the_question_back() {
    let (world, runs) = world();
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    running.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    let late = answer_outside(&world, &question, Verdict::Once).await;
    assert_eq!(late.settlement.how, Settled::Withdrawn);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn after_a_crash_the_same_question_is_still_open_and_nothing_runs_without_an_answer() {
    let (world, runs, session, before) = crashed().await;
    world.clock.advance(TIMEOUT / 4);
    let mut running = resume(&world, &session).await;
    let question = asked(&mut running).await;
    assert_eq!(question.approval, before.approval);
    assert_eq!(question.expires_in_ms, 12_000, "the time went on");
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    running
        .session
        .answer(question.approval, Verdict::Once)
        .await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_answer_given_while_nobody_ran_counts() {
    for (verdict, expected) in [(Verdict::Once, 1), (Verdict::Deny, 0)] {
        let (world, runs, session, question) = crashed().await;
        assert!(answer_outside(&world, &question, verdict).await.is_ours);
        let mut running = resume(&world, &session).await;
        assert_eq!(running.turn_end().await, TurnEnd::Finished);
        assert_eq!(runs.load(Ordering::Relaxed), expected);
        let asks_again = |event: &Event| matches!(event, Event::ApprovalRequested(_));
        assert!(!running.events.iter().any(asks_again));
    }
}

#[tokio::test]
async fn an_answer_counts_after_a_crash_whatever_the_model_called_the_tool() {
    let calls = Step::call("c1", "Danger", &json!({"text": "a"}));
    let world = World::new([calls]).tool(dangerous().0);
    let (world, runs, session, question) = crashed_in(world).await;
    answer_outside(&world, &question, Verdict::Once).await;
    let mut running = resume(&world, &session).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_answer_from_before_a_crash_counts_where_nobody_can_be_asked() {
    for (verdict, expected) in [
        (Some(Verdict::Once), 1),
        (Some(Verdict::Deny), 0),
        (None, 0),
    ] {
        let (world, runs, session, question) = crashed().await;
        if let Some(verdict) = verdict {
            answer_outside(&world, &question, verdict).await;
        }
        let mut running = crate::run::resume(&world, &session).await;
        assert_eq!(running.turn_end().await, TurnEnd::Finished);
        assert_eq!(runs.load(Ordering::Relaxed), expected, "{verdict:?}");
    }
}

#[tokio::test]
async fn what_expired_while_nobody_ran_is_asked_anew() {
    let (world, runs, session, before) = crashed().await;
    world.clock.advance(2 * TIMEOUT);
    let mut running = resume(&world, &session).await;
    let question = asked(&mut running).await;
    assert_ne!(question.approval, before.approval);
    running
        .session
        .answer(question.approval, Verdict::Deny)
        .await;
    running.turn_end().await;
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_yes_is_for_one_call_even_when_the_next_has_the_same_id() {
    let (tool, runs) = dangerous();
    let world = World::new([calls(), calls(), Step::text("done")]).tool(tool);
    let mut running = start(&world).await;
    let first = ask(&mut running).await;
    running.session.answer(first.approval, Verdict::Once).await;
    let second = asked(&mut running).await;
    running.session.answer(second.approval, Verdict::Deny).await;
    running.turn_end().await;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_answer_nobody_waits_for_is_said_not_to_be_taken() {
    let (world, _) = world();
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    running.session.answer("other".into(), Verdict::Once).await;
    let is_not_taken = |event: &Event| {
        let notice = |notice: &Notice| matches!(notice, Notice::NotTaken { .. });
        matches!(event, Event::Notice { notice: told } if notice(told))
    };
    running.until(is_not_taken).await;
    running
        .session
        .answer(question.approval, Verdict::Deny)
        .await;
    running.turn_end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_when_the_answer_cannot_be_written_down() {
    let (world, runs) = world();
    let mut running = start(&world).await;
    let question = ask(&mut running).await;
    let path = "/full/hermes.db".into();
    world.store.refuse(Some(StoreError::DiskFull { path }));
    running
        .session
        .answer(question.approval, Verdict::Once)
        .await;
    let end = running.turn_end().await;
    assert!(matches!(end, TurnEnd::Broken { .. }), "{end:?}");
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}
