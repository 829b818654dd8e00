use hermes_core::{
    ElicitationRequest, FieldKind, PendingElicitation, Person, Response, ToolContext, ToolError,
    ToolOutput, Wanted,
};
use hermes_testkit::contract::tool::context;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Place;

/// Calls the tool, and answers what it asks.
async fn asked(arguments: Value, response: Response) -> (ElicitationRequest, Value) {
    let place = Place::new();
    let (person, mut elicitations) = Person::reachable();
    let cx = ToolContext {
        person,
        ..context(place.root())
    };
    let tool = place.tool("clarify");
    let (result, ask) = tokio::join!(
        tool.run(arguments, &cx),
        answer(&mut elicitations, response)
    );
    (ask, told(result))
}

async fn answer(
    elicitations: &mut mpsc::Receiver<PendingElicitation>,
    response: Response,
) -> ElicitationRequest {
    let asked = elicitations.recv().await.unwrap();
    asked.response.send(response).unwrap();
    asked.request
}

fn told(result: Result<ToolOutput, ToolError>) -> Value {
    serde_json::from_str(&result.unwrap().text).unwrap()
}

fn said(words: &str) -> Response {
    let values = json!({ "answer": words });
    Response::Accepted {
        values: values.as_object().unwrap().clone(),
    }
}

fn suggested(ask: &ElicitationRequest) -> Vec<&str> {
    let Wanted::Form { fields } = &ask.wanted else {
        panic!("{ask:?}")
    };
    match &fields[0].kind {
        FieldKind::Suggestions { options } => options.iter().map(|one| one.label()).collect(),
        FieldKind::Text { .. } => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_model_learns_what_the_user_says() {
    let arguments = json!({"question": "Which colour?", "choices": ["red", "blue"]});
    let (ask, told) = asked(arguments, said("a bit of both")).await;
    assert_eq!(ask.message, "Which colour?");
    assert_eq!(ask.timeout.as_secs(), 3600);
    assert_eq!(suggested(&ask), ["red", "blue"]);
    let expected = json!({
        "question": "Which colour?",
        "choices_offered": ["red", "blue"],
        "user_response": "a bit of both",
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_open_question_takes_any_words() {
    let (ask, told) = asked(json!({"question": "Why?"}), said("because")).await;
    assert!(suggested(&ask).is_empty());
    assert_eq!(told["user_response"], "because");
    assert_eq!(told["choices_offered"], json!([]));
}

#[tokio::test]
async fn at_most_four_different_choices_are_offered() {
    let choices = json!(["a", " a ", "", "b", "c", "d", "e"]);
    let arguments = json!({"question": "Which?", "choices": choices});
    let (ask, told) = asked(arguments, said("a")).await;
    assert_eq!(suggested(&ask), ["a", "b", "c", "d"]);
    assert_eq!(told["choices_offered"], json!(["a", "b", "c", "d"]));
}

#[tokio::test]
async fn without_an_answer_the_model_chooses_itself() {
    let question = json!({"question": "Which?"});
    let place = Place::new();
    let nobody = place.call("clarify", question.clone()).await.unwrap();
    assert!(nobody.contains("nobody is here"), "{nobody}");
    let declined = Response::Declined { reason: None };
    for (response, why) in [
        (declined, "does not want to answer"),
        (Response::Cancelled, "no answer within 3600 s"),
    ] {
        let (_, told) = asked(question.clone(), response).await;
        let words = told["user_response"].as_str().unwrap();
        assert!(words.contains(why) && words.contains("Choose"), "{words}");
    }
}

#[tokio::test]
async fn an_empty_question_is_not_asked() {
    let place = Place::new();
    let answer = place.answer("clarify", json!({"question": " "})).await;
    assert!(answer.contains("empty"), "{answer}");
}
