//! What becomes of each kind of reply.

use hermes_core::{
    Event, FinishReason, Message, ModelErrorKind, Notice, ResultStatus, Role, TurnEnd,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{say, settings, start_with, stored};

#[tokio::test]
async fn a_plain_answer_ends_the_turn_and_is_stored() {
    let world = World::new([Step::text("hello there")]);
    let (running, end) = say(&world, "hi").await;
    assert_eq!(end, TurnEnd::Finished);
    assert_eq!(running.text(), "hello there");
    assert_eq!(
        stored(&world, &running).await,
        [Message::user("hi"), Message::assistant("hello there")]
    );
}

#[tokio::test]
async fn an_empty_reply_is_asked_again_without_a_trace_in_the_history() {
    let world = World::new([Step::empty(), Step::text("now")]);
    let (running, end) = say(&world, "hi").await;
    assert_eq!(end, TurnEnd::Finished);
    assert!(running.events.iter().any(|e| matches!(
        e,
        Event::Notice {
            notice: Notice::AskedAgain { .. }
        }
    )));
    assert_eq!(
        world.model.requests()[1].messages.len(),
        2,
        "a nudge was sent"
    );
    assert_eq!(
        stored(&world, &running).await,
        [Message::user("hi"), Message::assistant("now")]
    );
}

#[tokio::test]
async fn a_model_that_stays_silent_ends_the_turn_with_a_reason() {
    let world = World::new([
        Step::empty(),
        Step::empty(),
        Step::empty(),
        Step::text("never asked"),
    ]);
    let (running, end) = say(&world, "hi").await;
    assert!(
        matches!(&end, TurnEnd::Stuck { reason } if reason.contains("3 empty replies")),
        "{end:?}"
    );
    let last = stored(&world, &running).await.pop().unwrap();
    assert_eq!(last.role, Role::Assistant, "the history stays well-formed");
}

#[tokio::test]
async fn a_truncated_reply_is_continued_and_stored_as_one() {
    let world = World::new([
        Step::text("one two ").because(FinishReason::Length),
        Step::text("three"),
    ]);
    let (running, end) = say(&world, "count").await;
    assert_eq!(end, TurnEnd::Finished);
    assert_eq!(running.text(), "one two three");
    assert_eq!(
        stored(&world, &running).await,
        [Message::user("count"), Message::assistant("one two three")]
    );
    assert!(
        world.model.requests()[1].output_tokens_max.is_some(),
        "the limit was raised"
    );
}

#[tokio::test]
async fn a_reply_that_is_cut_for_ever_is_given_up_with_what_came() {
    let cut = || Step::text("x").because(FinishReason::Length);
    let world = World::new([cut(), cut(), cut(), cut(), cut()]);
    let (running, end) = say(&world, "count").await;
    assert_eq!((end, running.text().as_str()), (TurnEnd::Finished, "xxxx"));
    assert_eq!(world.model.requests().len(), 4);
}

#[tokio::test]
async fn a_stream_that_breaks_is_asked_again_and_then_reported() {
    let broken = || Step::error(ModelErrorKind::Broken);
    let world = World::new([broken(), Step::text("fine")]);
    assert_eq!(say(&world, "hi").await.1, TurnEnd::Finished);
    let world = World::new([broken(), broken(), broken()]);
    assert!(
        matches!(say(&world, "hi").await.1, TurnEnd::Failed { error } if error.kind == ModelErrorKind::Broken)
    );
}

#[tokio::test]
async fn an_error_ends_the_turn_and_the_next_one_works() {
    let world = World::new([Step::error(ModelErrorKind::Auth), Step::text("fine")]);
    let (mut running, end) = say(&world, "hi").await;
    assert!(matches!(end, TurnEnd::Failed { error } if error.kind == ModelErrorKind::Auth));
    running.session.say("again").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let roles: Vec<Role> = stored(&world, &running)
        .await
        .iter()
        .map(|message| message.role)
        .collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::User, Role::Assistant]
    );
}

#[tokio::test]
async fn a_content_filter_is_told_as_such() {
    let world = World::new([Step::empty().because(FinishReason::ContentFilter)]);
    let (_, end) = say(&world, "hi").await;
    assert!(
        matches!(end, TurnEnd::Failed { error } if error.kind == ModelErrorKind::ContentFilter)
    );
}

#[tokio::test]
async fn a_call_written_as_text_runs() {
    let written = "```json\n{\"name\": \"echo\", \"arguments\": {\"text\": \"ping\"}}\n```";
    let world =
        World::new([Step::text(written), Step::text("it said ping")]).tool(TestTool::new("echo"));
    let (running, end) = say(&world, "echo ping").await;
    assert_eq!(end, TurnEnd::Finished);
    assert!(running.events.contains(&Event::TextDiscarded));
    let results: Vec<_> = stored(&world, &running)
        .await
        .iter()
        .filter_map(|m| m.tool_result().cloned())
        .collect();
    assert_eq!((results.len(), results[0].text.as_str()), (1, "ping"));
}

#[tokio::test]
async fn the_step_budget_ends_with_a_summary() {
    let call = |n: u32| Step::call(&format!("c{n}"), "echo", &json!({ "text": format!("{n}") }));
    let world = World::new([call(1), call(2), call(3), Step::text("did three things")])
        .tool(TestTool::new("echo"));
    let mut settings = settings(&world);
    settings.limits.steps_max = 3;
    let mut running = start_with(&world, settings).await;
    running.session.say("work").await;
    assert_eq!(running.turn_end().await, TurnEnd::OutOfSteps { steps: 3 });
    assert_eq!(
        stored(&world, &running).await.pop().unwrap().text(),
        "did three things"
    );
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_warned_and_then_stopped() {
    let call = |n: u32| Step::call(&format!("c{n}"), "echo", &json!({ "text": "same" }));
    let world = World::new((0..10).map(call))
        .tool(TestTool::new("echo").does(Behaviour::Say("same".into())));
    let (running, end) = say(&world, "go").await;
    assert!(
        matches!(&end, TurnEnd::Stuck { reason } if reason.contains("same arguments")),
        "{end:?}"
    );
    let results: Vec<_> = stored(&world, &running)
        .await
        .iter()
        .filter_map(|m| m.tool_result().cloned())
        .collect();
    assert_eq!(results.len(), 6);
    assert!(
        results[2].text.contains("always the same")
            && results.iter().all(|r| r.status == ResultStatus::Ok)
    );
}
