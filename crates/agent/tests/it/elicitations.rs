//! What a running call wants to know, and how it learns it.

use std::time::Duration;

use hermes_core::{
    Elicitation, ElicitationRequest, Event, Field, FieldKind, Notice, Op, Response, TurnEnd, Wanted,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::{Value, json};

use crate::run::{Running, settings, start, start_with, stored};

const TIMEOUT: Duration = Duration::from_secs(10);

fn ask() -> ElicitationRequest {
    let kind = FieldKind::Integer {
        min: Some(1),
        max: None,
        default: None,
    };
    let field = Field {
        is_required: true,
        ..Field::new("count", kind)
    };
    ElicitationRequest {
        asker: "the test".into(),
        message: "How many?".into(),
        wanted: Wanted::Form {
            fields: vec![field],
        },
        timeout: TIMEOUT,
    }
}

fn world() -> World {
    World::new([Step::call("c1", "asks", &json!({})), Step::text("done")])
        .tool(TestTool::new("asks").does(Behaviour::Elicit(ask())))
}

fn accepted(values: Value) -> Response {
    Response::Accepted {
        values: values.as_object().expect("an object").clone(),
    }
}

async fn elicited(running: &mut Running) -> Elicitation {
    running.session.say("go").await;
    loop {
        if let Event::ElicitationRequested(elicitation) = running.next().await {
            return elicitation;
        }
    }
}

/// What the call got for an answer.
async fn result(world: &World, running: &Running) -> String {
    let messages = stored(world, running).await;
    let mut results = messages.iter().filter_map(|message| message.tool_result());
    let result = results.next_back().expect("a result");
    result.text.clone()
}

#[tokio::test]
async fn a_call_learns_what_the_person_says() {
    let world = world();
    let mut running = start(&world).await;
    let elicitation = elicited(&mut running).await;
    assert_eq!(elicitation.tool, "asks");
    assert_eq!(elicitation.message, "How many?");
    assert_eq!(elicitation.expires_in_ms, 10_000);
    let response = accepted(json!({ "count": 3 }));
    running.session.respond(elicitation.id, response).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let result = result(&world, &running).await;
    assert!(result.contains(r#""count":3"#), "{result}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_taken_and_the_first_that_does_is_final() {
    let world = world();
    let mut running = start(&world).await;
    let elicitation = elicited(&mut running).await;
    for values in [json!({ "count": 0 }), json!({}), json!({ "other": 1 })] {
        let response = accepted(values);
        running
            .session
            .respond(elicitation.id.clone(), response)
            .await;
        running.until(is_not_taken).await;
    }
    for count in [1, 2] {
        let response = accepted(json!({ "count": count }));
        running
            .session
            .respond(elicitation.id.clone(), response)
            .await;
    }
    running.until(is_not_taken).await;
    running.turn_end().await;
    let result = result(&world, &running).await;
    assert!(result.contains(r#""count":1"#), "{result}");
}

fn is_not_taken(event: &Event) -> bool {
    matches!(
        event,
        Event::Notice {
            notice: Notice::NotTaken { .. }
        }
    )
}

#[tokio::test(start_paused = true)]
async fn silence_cancels_an_elicitation_and_the_surface_is_told() {
    let world = world();
    let mut running = start(&world).await;
    let asked = elicited(&mut running).await;
    let started = tokio::time::Instant::now();
    let closed = running
        .until(|event| matches!(event, Event::ElicitationClosed { .. }))
        .await;
    assert_eq!(
        closed,
        Event::ElicitationClosed {
            elicitation: asked.id
        }
    );
    assert_eq!(started.elapsed().as_secs(), TIMEOUT.as_secs());
    running.turn_end().await;
    assert!(result(&world, &running).await.contains("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn the_time_a_person_takes_is_not_counted_against_the_call() {
    let hour = Duration::from_secs(60 * 60);
    let patient = ElicitationRequest {
        timeout: hour,
        ..ask()
    };
    let world = World::new([Step::call("c1", "asks", &json!({})), Step::text("done")])
        .tool(TestTool::new("asks").does(Behaviour::Elicit(patient)));
    let mut running = start(&world).await;
    let elicitation = elicited(&mut running).await;
    tokio::time::sleep(hour / 2).await;
    let response = accepted(json!({ "count": 3 }));
    running.session.respond(elicitation.id, response).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let result = result(&world, &running).await;
    assert!(result.contains(r#""count":3"#), "{result}");
}

#[tokio::test]
async fn an_interrupt_cancels_an_elicitation() {
    let world = world();
    let mut running = start(&world).await;
    let elicitation = elicited(&mut running).await;
    running.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    assert!(result(&world, &running).await.contains("cancelled"));
    let late = accepted(json!({ "count": 1 }));
    running.session.respond(elicitation.id, late).await;
    running.session.say("and now").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
}

#[tokio::test]
async fn where_nobody_is_an_elicitation_is_declined_at_once() {
    let world = world();
    let mut unattended = settings(&world);
    unattended.is_attended = false;
    let mut running = start_with(&world, unattended).await;
    running.session.say("go").await;
    running.turn_end().await;
    let result = result(&world, &running).await;
    assert!(
        result.contains("declined") && result.contains("nobody is here"),
        "{result}"
    );
    let was_told = running.events.iter().any(|event| {
        let notice = |notice: &Notice| matches!(notice, Notice::ElicitationDeclined { .. });
        matches!(event, Event::Notice { notice: told } if notice(told))
    });
    assert!(was_told, "{:?}", running.events);
}
