//! Subagents: sessions of their own, linked to the call that sent them, found again after a crash.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::prompt::Wording;
use hermes_agent::{AgentSettings, ConsentPolicy, DelegationSettings};
use hermes_core::delegation::{DELEGATE_TASK, SUBAGENT_SOURCE};
use hermes_core::{
    AnswerSource, Approvals as _, Clock as _, Consent, Delegated, Effect, Elicitation, Event,
    Exposure, Manner, Message, Notice, Parallel, Plan, PlanContext, Response, ResultStatus, Role,
    Scripts, SessionId, Settled, Settlement, Store as _, SubagentReport, SubagentRole,
    SubagentStatus, SubagentTask, Subagents, Surfaces, Tool, ToolError, ToolGroup, ToolOutput,
    ToolSpec, TurnEnd, Verdict,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::{Value, json};

use crate::run::{Running, resume, settings, start_with, stored};

/// A tool that hands its goals on as tasks, and gives back what comes of them.
struct Delegate(ToolSpec);

impl Delegate {
    fn new() -> Self {
        Self(ToolSpec {
            name: DELEGATE_TASK.to_owned(),
            description: "Delegates.".to_owned(),
            parameters: json!({ "type": "object", "properties": {
                "goals": { "type": "array", "items": { "type": "string" } },
                "role": { "type": "string" },
                "background": { "type": "boolean" },
            }}),
        })
    }
}

impl Tool for Delegate {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn exposure(&self) -> &Exposure {
        static EXPOSURE: Exposure = Exposure {
            group: ToolGroup::Toolset("delegation"),
            surfaces: Surfaces::Every,
            subagents: Subagents::Orchestrators,
            scripts: Scripts::No,
            for_small_models: None,
        };
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _: PlanContext<'_>) -> Plan {
        let role = match arguments["role"].as_str() {
            Some("orchestrator") => SubagentRole::Orchestrator,
            _ => SubagentRole::Leaf,
        };
        let goals = arguments["goals"].as_array().cloned().unwrap_or_default();
        let task = |goal: Value| SubagentTask {
            goal: goal.as_str().unwrap_or_default().to_owned(),
            context: String::new(),
            role,
        };
        let tasks = goals.into_iter().map(task).collect();
        let manner = if arguments["background"] == true {
            Manner::Background
        } else {
            Manner::Foreground
        };
        Plan::doing(Effect::Idempotent, Parallel::Always, move |cx| {
            Box::pin(async move {
                let delegated = cx.delegates.delegate(tasks, manner).await;
                Ok(match delegated.map_err(ToolError::Answer)? {
                    Delegated::Done(reports) => ToolOutput::text(json!(reports).to_string()),
                    Delegated::Dispatched(dispatched) => {
                        let dispatched = json!(dispatched);
                        ToolOutput::text(dispatched.to_string()).keeping(dispatched)
                    }
                })
            })
        })
    }
}

/// A world whose model delegates these goals and then says "done".
fn delegating(arguments: &Value) -> World {
    World::new([
        Step::call("c1", DELEGATE_TASK, arguments),
        Step::text("done"),
    ])
    .tool(Delegate::new())
}

async fn go(world: &World) -> Running {
    go_with(world, settings(world)).await
}

async fn go_with(world: &World, settings: AgentSettings) -> Running {
    let running = start_with(world, settings).await;
    running.session.say("go").await;
    running
}

/// What the delegating call got.
async fn reports(world: &World, running: &Running) -> Vec<SubagentReport> {
    let messages = stored(world, running).await;
    let result = messages.iter().rev().find_map(Message::tool_result);
    let text = &result.expect("a result").text;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn until_progress(running: &mut Running, words: &str) {
    running
        .until(
            |event| matches!(event, Event::SubagentProgress { text, .. } if text.contains(words)),
        )
        .await;
}

fn summaries(reports: &[SubagentReport]) -> Vec<&str> {
    let mut summaries: Vec<_> = reports
        .iter()
        .map(|report| report.summary.as_str())
        .collect();
    summaries.sort_unstable();
    summaries
}

async fn last_end(world: &World, session: &SessionId) -> Option<TurnEnd> {
    let loaded = world.store.load(session).await.expect("it is stored");
    loaded.last_end
}

#[tokio::test]
async fn subagents_work_in_linked_sessions_and_their_last_words_come_back() {
    let world = delegating(&json!({ "goals": ["left", "right"] }))
        .tool(TestTool::new("private").exposure(Exposure {
            subagents: Subagents::None,
            ..Exposure::of_finder()
        }))
        .tool(TestTool::new("look"))
        .subagents([Step::text("found"), Step::text("found")]);
    let mut running = go(&world).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let reports = reports(&world, &running).await;
    assert_eq!(summaries(&reports), ["found", "found"]);
    for (index, report) in reports.iter().enumerate() {
        assert_eq!(
            (report.task_index, report.status, report.api_calls),
            (index, SubagentStatus::Completed, 1)
        );
        let child = world.store.load(&report.session).await.unwrap();
        assert_eq!(child.record.source, SUBAGENT_SOURCE);
        assert_eq!(child.record.parent.as_ref(), Some(running.session.id()));
        let tools: Vec<_> = child.prefix.tools.iter().map(|tool| &tool.name).collect();
        assert_eq!(
            tools,
            ["look"],
            "neither what is for none nor what is for orchestrators"
        );
    }
    let spent = |event: &&Event| matches!(event, Event::CallSpent { .. });
    assert_eq!(running.events.iter().filter(spent).count(), 2);
    for number in [1, 2] {
        let is_line = |event: &Event| matches!(event, Event::SubagentProgress { subagent, text, .. } if *subagent == number && text == "finished");
        assert!(running.events.iter().any(is_line), "of subagent {number}");
    }
}

#[tokio::test]
async fn after_a_crash_what_was_finished_is_found_and_the_rest_goes_on() {
    let world = delegating(&json!({ "goals": ["left", "right"] }))
        .subagents([Step::text("found"), Step::silence()]);
    let mut running = go(&world).await;
    let id = running.session.id().clone();
    until_progress(&mut running, "finished").await;
    running.crash().await;
    let world = world
        .restarted([Step::text("done")])
        .subagents([Step::text("found later")]);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let reports = reports(&world, &running).await;
    assert_eq!(summaries(&reports), ["found", "found later"]);
    let asked = world.subagent_model.as_ref().unwrap().requests().len();
    assert_eq!(asked, 1, "nobody is asked twice");
    assert_eq!(world.store.unfinished().await.unwrap(), []);
}

#[tokio::test]
async fn the_same_call_id_in_a_later_reply_is_another_delegation() {
    let again = || Step::call("c1", DELEGATE_TASK, &json!({ "goals": ["look"] }));
    let world = World::new([again(), again(), Step::text("done")])
        .tool(Delegate::new())
        .subagents([Step::text("first"), Step::text("second")]);
    let mut running = go(&world).await;
    running.turn_end().await;
    assert_eq!(summaries(&reports(&world, &running).await), ["second"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_reaches_subagents_within_100_ms_and_they_close_their_sessions() {
    let hanging = || Step::call("x", "hang", &json!({}));
    let world = delegating(&json!({ "goals": ["left", "right"] }))
        .tool(TestTool::new("hang").does(Behaviour::Hang))
        .subagents([hanging(), hanging()]);
    let mut running = go(&world).await;
    for _ in 0..2 {
        until_progress(&mut running, "hang").await;
    }
    let interrupted = tokio::time::Instant::now();
    running.session.interrupt().await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    let took = interrupted.elapsed();
    assert!(took <= Duration::from_millis(100), "{took:?}");
    for report in reports(&world, &running).await {
        assert_eq!(report.status, SubagentStatus::Interrupted);
        let end = last_end(&world, &report.session).await;
        assert_eq!(end, Some(TurnEnd::Interrupted));
    }
}

#[tokio::test(start_paused = true)]
async fn a_subagent_out_of_time_is_stopped_and_says_so() {
    let world = delegating(&json!({ "goals": ["look"] })).subagents([Step::silence()]);
    let mut settings = settings(&world);
    settings.delegation.time_max = Some(Duration::from_secs(10));
    let mut running = go_with(&world, settings).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let report = reports(&world, &running).await.remove(0);
    assert_eq!(report.status, SubagentStatus::Timeout);
}

#[tokio::test]
async fn only_an_orchestrator_delegates_and_only_as_deep_as_allowed() {
    let arguments = json!({ "goals": ["look"], "role": "orchestrator" });
    for (depth_max, offered) in [(1, false), (2, true)] {
        let world = delegating(&arguments).subagents([Step::text("found")]);
        let delegation = DelegationSettings {
            depth_max,
            ..DelegationSettings::default()
        };
        let settings = AgentSettings {
            delegation,
            ..settings(&world)
        };
        let mut running = go_with(&world, settings).await;
        running.turn_end().await;
        let request = world.subagent_model.as_ref().unwrap().requests().remove(0);
        assert_eq!(!request.prefix.tools.is_empty(), offered, "{depth_max}");
    }
}

#[tokio::test]
async fn subagents_of_small_models_are_told_in_few_words() {
    let mut prompts = Vec::new();
    for wording in [Wording::Full, Wording::Brief] {
        let world = delegating(&json!({ "goals": ["look"] })).subagents([Step::text("found")]);
        let mut settings = settings(&world);
        settings.delegation.wording = wording;
        let mut running = go_with(&world, settings).await;
        running.turn_end().await;
        let request = world.subagent_model.as_ref().unwrap().requests().remove(0);
        prompts.push(request.prefix.system);
    }
    assert!(prompts[1].len() < prompts[0].len(), "{prompts:?}");
    assert!(prompts[1].contains("You have one task"), "{prompts:?}");
}

#[tokio::test]
async fn subagents_of_subagents_report_through_them() {
    let arguments = json!({ "goals": ["look"], "role": "orchestrator" });
    let world = delegating(&arguments).subagents([
        Step::call("c1", DELEGATE_TASK, &json!({ "goals": ["deeper"] })),
        Step::text("found below"),
        Step::text("found"),
    ]);
    let mut settings = settings(&world);
    settings.delegation.depth_max = 2;
    let mut running = go_with(&world, settings).await;
    running.turn_end().await;
    let report = reports(&world, &running).await.remove(0);
    assert_eq!((report.summary.as_str(), report.api_calls), ("found", 2));
    let spent = |event: &&Event| matches!(event, Event::CallSpent { .. });
    assert_eq!(running.events.iter().filter(spent).count(), 3);
}

#[tokio::test]
async fn more_tasks_than_may_run_are_refused_with_the_limit() {
    let world = delegating(&json!({ "goals": ["a", "b", "c", "d"] }));
    let mut running = go(&world).await;
    running.turn_end().await;
    let messages = stored(&world, &running).await;
    let result = messages[2].tool_result().unwrap();
    assert!(result.text.contains("more than the 3"), "{}", result.text);
}

/// A session whose subagent needs consent, and the elicitation of it.
async fn asking_for_consent(world: &World) -> (Running, Elicitation) {
    let consent = ConsentPolicy::Ask {
        timeout: Duration::from_secs(16),
    };
    let settings = AgentSettings {
        consent,
        ..settings(world)
    };
    let mut running = go_with(world, settings).await;
    let is_elicitation = |event: &Event| matches!(event, Event::ElicitationRequested(_));
    match running.until(is_elicitation).await {
        Event::ElicitationRequested(elicitation) => (running, elicitation),
        _ => unreachable!("waited for an elicitation"),
    }
}

fn subagent_that_needs_consent() -> World {
    let reason = "it deletes".to_owned();
    delegating(&json!({ "goals": ["clean"] }))
        .tool(TestTool::new("act").consent(Consent::needed(reason)))
        .subagents([Step::call("x", "act", &json!({})), Step::text("found")])
}

#[tokio::test]
async fn what_a_subagent_needs_consent_for_is_asked_where_its_parent_is() {
    for (answer, status) in [("once", ResultStatus::Ok), ("no", ResultStatus::NotRun)] {
        let world = subagent_that_needs_consent();
        let (mut running, elicitation) = asking_for_consent(&world).await;
        assert_eq!(elicitation.asker, "subagent 1");
        assert!(
            elicitation.message.contains("it deletes"),
            "{elicitation:?}"
        );
        let values = json!({ "decision": answer }).as_object().unwrap().clone();
        let response = Response::Accepted { values };
        running.session.respond(elicitation.id, response).await;
        running.turn_end().await;
        let report = reports(&world, &running).await.remove(0);
        assert_eq!(report.tool_trace[0].status, status, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn consent_given_from_elsewhere_takes_the_question_off_the_parents_screen() {
    let world = subagent_that_needs_consent();
    let (mut running, asked) = asking_for_consent(&world).await;
    let at = world.clock.now();
    let open = world.store.open_approvals(at).await.unwrap();
    let (verdict, by) = (Verdict::Once, AnswerSource::Command);
    let how = Settled::Answered { verdict, by };
    let settling = world.store.settle(&open[0].id, Settlement::new(at, how));
    assert!(settling.await.unwrap().is_ours);
    let started = tokio::time::Instant::now();
    let is_closed = |event: &Event| matches!(event, Event::ElicitationClosed { elicitation } if *elicitation == asked.id);
    running.until(is_closed).await;
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "not by its deadline"
    );
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let report = reports(&world, &running).await.remove(0);
    assert_eq!(report.tool_trace[0].status, ResultStatus::Ok);
}

#[tokio::test(start_paused = true)]
async fn silence_on_a_subagents_question_is_not_told_as_a_no() {
    let world = subagent_that_needs_consent();
    let (mut running, _) = asking_for_consent(&world).await;
    running.turn_end().await;
    let report = reports(&world, &running).await.remove(0);
    let subagent = world.store.load(&report.session).await.unwrap();
    let result = subagent.messages.iter().find_map(Message::tool_result);
    let text = &result.unwrap().text;
    assert!(text.contains("nobody answered in time"), "{text}");
}

#[tokio::test]
async fn background_subagents_report_in_a_turn_of_their_own() {
    let world = World::new([
        Step::call(
            "c1",
            DELEGATE_TASK,
            &json!({ "goals": ["look"], "background": true }),
        ),
        Step::text("they work"),
        Step::text("they are done"),
    ])
    .tool(Delegate::new())
    .subagents([Step::text("found")]);
    let mut running = go(&world).await;
    running.turn_end().await;
    running
        .until(|event| {
            matches!(
                event,
                Event::Notice {
                    notice: Notice::SubagentsDone { subagents: 1 }
                }
            )
        })
        .await;
    running.turn_end().await;
    let messages = stored(&world, &running).await;
    let said: Vec<_> = messages
        .iter()
        .filter(|message| message.role == Role::User)
        .map(Message::text)
        .collect();
    assert_eq!(said.len(), 2);
    assert!(
        said[1].contains("come to rest") && said[1].contains("found"),
        "{}",
        said[1]
    );
}

#[tokio::test]
async fn background_subagents_are_taken_up_after_a_crash_and_reported_once() {
    let dispatch = json!({ "goals": ["look"], "background": true });
    let world = delegating(&dispatch).subagents([Step::silence()]);
    let mut running = go(&world).await;
    let id = running.session.id().clone();
    running.turn_end().await;
    running.crash().await;
    let world = world
        .restarted([Step::text("thank you")])
        .subagents([Step::text("found")]);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let reported = stored(&world, &running).await;
    assert!(reported[reported.len() - 2].text().contains("found"));
    running.crash().await;
    let world = world.restarted([]).subagents([]);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.next().await, Event::Idle);
    assert_eq!(stored(&world, &running).await, reported);
}

#[tokio::test]
async fn where_nobody_follows_a_background_delegation_waits_for_its_subagents() {
    let dispatch = json!({ "goals": ["look"], "background": true });
    let world = delegating(&dispatch).subagents([Step::text("found")]);
    let settings = AgentSettings {
        is_attended: false,
        ..settings(&world)
    };
    let mut running = go_with(&world, settings).await;
    running.turn_end().await;
    assert_eq!(summaries(&reports(&world, &running).await), ["found"]);
}
