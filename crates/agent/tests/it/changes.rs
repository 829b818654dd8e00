//! Changes that somebody looks at before they are made.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hermes_agent::{ConsentPolicy, Reviewer, Safety};
use hermes_core::{
    ApprovalRequest, Approvals as _, Consent, Event, Preview, ResultStatus, Review, Verdict,
};
use hermes_testkit::{Behaviour, ScriptedModel, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, resume_with, settings, start_watched, stored};

const ASK: ConsentPolicy = ConsentPolicy::Ask {
    timeout: Duration::from_secs(20),
};

fn review(covers: &[&str]) -> Review {
    Review {
        reason: "changes what runs later".to_owned(),
        what: "/home/me/.bashrc".to_owned(),
        covers: covers.iter().map(|&name| name.to_owned()).collect(),
        is_for_person: false,
        may_wait: false,
    }
}

fn preview(basis: &str) -> Preview {
    Preview {
        diff: "-old\n+new\n".to_owned(),
        is_whole: true,
        basis: basis.to_owned(),
    }
}

fn edit(name: &str, covers: &[&str]) -> TestTool {
    TestTool::new(name)
        .consent(Consent::Review(review(covers)))
        .preview(preview("b1"))
        .does(Behaviour::TellAgreement)
}

fn calls(tools: &[&str]) -> Vec<Step> {
    let call = |(n, tool): (usize, &&str)| Step::call(&format!("c{n}"), tool, &json!({"count": n}));
    let calls = tools.iter().enumerate().map(call);
    calls.chain([Step::text("done")]).collect()
}

async fn go(world: &World, consent: ConsentPolicy, safety: Safety) -> Running {
    let mut settings = settings(world);
    settings.consent = consent;
    let running = start_watched(world, settings, safety).await;
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

fn was_asked(running: &Running) -> bool {
    let is_question = |event: &Event| matches!(event, Event::ApprovalRequested(_));
    running.events.iter().any(is_question)
}

/// Status and text of each result.
async fn results(world: &World, running: &Running) -> Vec<(ResultStatus, String)> {
    let messages = stored(world, running).await;
    let results = messages.iter().filter_map(|message| message.tool_result());
    results
        .map(|result| (result.status, result.text.clone()))
        .collect()
}

#[tokio::test]
async fn a_person_sees_the_change_and_the_call_is_told_which_one() {
    let world = World::new(calls(&["edit"])).tool(edit("edit", &["edit /a"]));
    let mut running = go(&world, ASK, Safety::default()).await;
    let question = asked(&mut running).await;
    assert_eq!(question.diff.as_deref(), Some("-old\n+new\n"));
    assert_eq!(question.what, "/home/me/.bashrc");
    let offered = [Verdict::Once, Verdict::Session, Verdict::Deny];
    assert_eq!(question.choices, offered, "there is no list for always");
    let kept = world.store.approval(&question.approval).await.unwrap();
    assert_eq!(kept.preview, Some(preview("b1")));
    running
        .session
        .answer(question.approval, Verdict::Once)
        .await;
    running.turn_end().await;
    let told = "edit /a, seen: b1".to_owned();
    assert_eq!(results(&world, &running).await, [(ResultStatus::Ok, told)]);
}

#[tokio::test]
async fn a_yes_for_the_session_covers_its_names_and_no_others() {
    let world = World::new(calls(&["one", "one", "both"]))
        .tool(edit("one", &["edit /a"]))
        .tool(edit("both", &["edit /a", "edit /b"]));
    let mut running = go(&world, ASK, Safety::default()).await;
    let first = asked(&mut running).await;
    running
        .session
        .answer(first.approval, Verdict::Session)
        .await;
    // The second call of the same is not asked about.
    let third = asked(&mut running).await;
    assert_eq!(third.tool, "both");
    running.session.answer(third.approval, Verdict::Deny).await;
    running.turn_end().await;
    let results = results(&world, &running).await;
    assert_eq!(results[0].1, "edit /a, seen: b1");
    assert_eq!(results[1].1, "edit /a, seen: nothing");
    assert_eq!(results[2].0, ResultStatus::NotRun);
}

#[tokio::test]
async fn who_allows_everything_is_not_asked_and_where_nobody_is_it_is_refused() {
    for (consent, expected) in [
        (ConsentPolicy::Allow, "edit /a, seen: nothing"),
        (
            ConsentPolicy::Refuse,
            "Refused: changes what runs later, and nobody is here to allow it.",
        ),
    ] {
        let world = World::new(calls(&["edit"])).tool(edit("edit", &["edit /a"]));
        let mut running = go(&world, consent, Safety::default()).await;
        running.turn_end().await;
        assert!(!was_asked(&running));
        let results = results(&world, &running).await;
        assert!(results[0].1.starts_with(expected), "{results:?}");
    }
}

#[tokio::test]
async fn a_change_that_would_not_work_is_not_asked_about() {
    let tool = TestTool::new("edit").consent(Consent::Review(review(&["edit /a"])));
    let runs = tool.runs();
    let world = World::new(calls(&["edit"])).tool(tool);
    let mut running = go(&world, ASK, Safety::default()).await;
    running.turn_end().await;
    assert!(!was_asked(&running));
    let told = "it would not work".to_owned();
    assert_eq!(
        results(&world, &running).await,
        [(ResultStatus::NotRun, told)]
    );
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn keys_in_a_change_are_neither_shown_nor_kept() {
    let key = "sk-proj-abcdefghij0123456789abcdefghij";
    let preview = Preview {
        diff: format!("+export OPENAI_API_KEY={key}\n"),
        ..preview("b1")
    };
    let tool = edit("edit", &["edit /a"]).preview(preview);
    let world = World::new(calls(&["edit"])).tool(tool);
    let mut running = go(&world, ASK, Safety::default()).await;
    let question = asked(&mut running).await;
    let shown = question.diff.unwrap();
    assert!(shown.starts_with("+export OPENAI_API_KEY="), "{shown}");
    assert!(!shown.contains(key), "{shown}");
    let kept = world.store.approval(&question.approval).await.unwrap();
    assert!(!format!("{kept:?}").contains(key), "{kept:?}");
}

#[tokio::test]
async fn after_a_crash_an_answer_counts_only_for_the_change_that_was_shown() {
    for (basis, is_asked_again) in [("b1", false), ("b2", true)] {
        let world = World::new(calls(&["edit"])).tool(edit("edit", &["edit /a"]));
        let mut running = go(&world, ASK, Safety::default()).await;
        let question = asked(&mut running).await;
        let session = running.session.id().clone();
        running.crash().await;
        let mut world = world.restarted([Step::text("done")]);
        world.tools.clear();
        let world = world.tool(edit("edit", &["edit /a"]).preview(preview(basis)));
        answer_outside(&world, &question).await;
        let mut settings = settings(&world);
        settings.consent = ASK;
        let mut running = resume_with(&world, settings, &session).await;
        if is_asked_again {
            let again = asked(&mut running).await;
            assert_ne!(again.approval, question.approval);
            running.session.answer(again.approval, Verdict::Once).await;
        }
        running.turn_end().await;
        assert_eq!(was_asked(&running), is_asked_again);
        let told = results(&world, &running).await;
        assert_eq!(told[0].1, format!("edit /a, seen: {basis}"));
    }
}

async fn answer_outside(world: &World, question: &ApprovalRequest) {
    use hermes_core::{AnswerSource, Clock as _, Settled, Settlement};
    let how = Settled::Answered {
        verdict: Verdict::Once,
        by: AnswerSource::Command,
    };
    let at = world.clock.now();
    let settling = world
        .store
        .settle(&question.approval, Settlement::new(at, how));
    assert!(settling.await.expect("the store answers").is_ours);
}

#[tokio::test]
async fn a_model_judges_only_what_it_is_shown_whole_and_what_is_not_kept_for_a_person() {
    let for_person = Review {
        is_for_person: true,
        ..review(&["edit /a"])
    };
    let cut = Preview {
        is_whole: false,
        ..preview("b1")
    };
    let plain = || edit("edit", &["edit /a"]);
    for (tool, is_judged) in [
        (plain(), true),
        (plain().consent(Consent::Review(for_person)), false),
        (plain().preview(cut), false),
    ] {
        let model = Arc::new(ScriptedModel::new([Step::text("APPROVE")]));
        let safety = Safety {
            reviewer: Some(Reviewer {
                model: model.clone(),
                timeout: Duration::from_millis(300),
            }),
            ..Safety::default()
        };
        let world = World::new(calls(&["edit"])).tool(tool);
        let mut running = go(&world, ASK, safety).await;
        if !is_judged {
            let question = asked(&mut running).await;
            running
                .session
                .answer(question.approval, Verdict::Deny)
                .await;
        }
        running.turn_end().await;
        assert_eq!(was_asked(&running), !is_judged);
        let requests = model.requests();
        assert_eq!(requests.len(), usize::from(is_judged));
        if let Some(request) = requests.first() {
            let asked = request.messages[0].text();
            assert!(
                asked.contains(r#"The change: "/home/me/.bashrc\n-old\n+new\n""#),
                "{asked}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_a_call_makes_is_shown_and_told_too() {
    let uses = Behaviour::Use(vec![("edit", json!({}))]);
    let world = World::new(calls(&["outer"]))
        .tool(TestTool::new("outer").does(uses))
        .tool(edit("edit", &["edit /a"]));
    let mut running = go(&world, ASK, Safety::default()).await;
    let question = asked(&mut running).await;
    assert!(question.diff.is_some());
    running
        .session
        .answer(question.approval, Verdict::Once)
        .await;
    running.turn_end().await;
    let results = results(&world, &running).await;
    assert_eq!(results[0].1, "ok: edit /a, seen: b1");
}
