//! Pictures in the results of tools: how each wire carries them, and what a model gets that cannot see.

use hermes_core::{
    Arguments, Media, MediaSource, Message, ModelNotice, Part, ResultStatus, Role, ToolCall,
    ToolResult,
};
use hermes_llm::Protocol;
use hermes_testkit::contract::model::{Told, tell};
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::world::{choice, client, settings};

const WIRES: [(Protocol, &str); 5] = [
    (Protocol::OpenAiChat, "gpt-4.1"),
    (Protocol::OpenAiResponses, "gpt-4.1"),
    (Protocol::Anthropic, "claude-sonnet-4-6"),
    (Protocol::Gemini, "gemini-3-pro-preview"),
    (Protocol::Gemini, "gemini-2.5-flash"),
];

fn picture(data: &str) -> Media {
    Media {
        mime: "image/png".into(),
        source: MediaSource::Base64(data.into()),
    }
}

/// A reply with two calls, whose results show `first` and `second`.
fn looked(first: Vec<Media>, second: Vec<Media>) -> Vec<Message> {
    let call = |id: &str| ToolCall {
        id: id.into(),
        name: "read_file".into(),
        arguments: Arguments::Json(json!({"path": id})),
        signatures: vec![],
    };
    let (one, two) = (call("c1"), call("c2"));
    let result = |call: &ToolCall, images| {
        let result = ToolResult::new(call, ResultStatus::Ok, format!("of {}", call.id));
        Message::result(result.with_images(images))
    };
    let results = [result(&one, first), result(&two, second)];
    let mut messages = vec![
        Message::user("look"),
        Message {
            role: Role::Assistant,
            origin: None,
            parts: vec![Part::ToolCall(one), Part::ToolCall(two)],
        },
    ];
    messages.extend(results);
    messages
}

/// The bodies that a server got.
fn bodies(server: &ScriptedServer) -> Vec<Value> {
    let requests = server.requests().into_iter();
    requests.map(|request| request.json).collect()
}

async fn sent((protocol, model): (Protocol, &str), messages: &[Message]) -> Value {
    let server = ScriptedServer::start(Script::always(Answer::text("ok"))).await;
    let client = client(&settings(choice(&server, protocol, model)));
    tell(&client, messages).await.end.unwrap();
    bodies(&server).remove(0)
}

#[tokio::test]
async fn anthropic_gets_pictures_inside_the_result() {
    let messages = looked(vec![picture("AAAA"), picture("BBBB")], vec![]);
    let body = sent(WIRES[2], &messages).await;
    let image = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    assert_eq!(
        body["messages"][2]["content"],
        json!([{
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "of c1"}, image("AAAA"), image("BBBB")],
            "cache_control": {"type": "ephemeral"},
        }])
    );
    let plain = &body["messages"][3]["content"][0];
    assert_eq!(plain["content"], "of c2");
}

#[tokio::test]
async fn responses_get_pictures_inside_the_output() {
    let body = sent(WIRES[1], &looked(vec![picture("AAAA")], vec![])).await;
    let image = "data:image/png;base64,AAAA";
    assert_eq!(
        body["input"][3],
        json!({
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "of c1"},
                {"type": "input_image", "detail": "auto", "image_url": image},
            ],
        })
    );
    assert_eq!(body["input"][4]["output"], "of c2");
}

#[tokio::test]
async fn gemini_gets_pictures_inside_the_response_and_older_ones_behind_all_of_them() {
    let messages = looked(vec![picture("AAAA")], vec![]);
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let response = |id: &str| json!({"id": id, "name": "read_file", "response": {"content": format!("of {id}")}});
    let mut with_picture = response("c1");
    with_picture["parts"] = json!([image]);

    let body = sent(WIRES[3], &messages).await;
    assert_eq!(
        body["contents"][2],
        json!({"role": "user", "parts": [
            {"functionResponse": with_picture},
            {"functionResponse": response("c2")},
        ]})
    );
    let body = sent(WIRES[4], &messages).await;
    assert_eq!(
        body["contents"][2],
        json!({"role": "user", "parts": [
            {"functionResponse": response("c1")},
            {"functionResponse": response("c2")},
            {"text": "With the result of the call `c1` of `read_file`:"},
            image,
        ]})
    );
}

#[tokio::test]
async fn chat_completions_get_pictures_behind_all_results_of_a_step() {
    let mut messages = looked(vec![picture("AAAA")], vec![picture("BBBB")]);
    messages.push(Message::assistant("a cat and a dog"));
    messages.push(Message::user("which is which?"));
    let body = sent(WIRES[0], &messages).await;
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
            "assistant",
            "user"
        ]
    );
    assert_eq!(body["messages"][3]["content"], "of c1");
    let image = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        body["messages"][5]["content"],
        json!([
            text(
                "These pictures belong to the tool results above; the user did not write this message."
            ),
            text("With the result of the call `c1` of `read_file`:"),
            image("AAAA"),
            text("With the result of the call `c2` of `read_file`:"),
            image("BBBB"),
        ])
    );
}

/// Talks to a server that refuses in these words whatever holds a picture, and gives it `messages` twice.
async fn told_without_pictures(
    (protocol, model): (Protocol, &str),
    (status, words): (u16, &str),
    messages: &[Message],
) -> (Vec<Told>, Vec<Value>) {
    let refusal = Answer::status(status, json!({"error": {"message": words}}));
    let script = Script::new([refusal, Answer::text("blind")]).repeating_last();
    let server = ScriptedServer::start(script).await;
    let client = client(&settings(choice(&server, protocol, model)));
    let first = tell(&client, messages).await;
    let second = tell(&client, messages).await;
    (vec![first, second], bodies(&server))
}

fn notices(told: &Told) -> usize {
    assert_eq!(told.message.text(), "blind", "{:?}", told.end);
    let is_told = |notice: &&ModelNotice| matches!(notice, ModelNotice::PicturesLeftOut { .. });
    told.notices.iter().filter(is_told).count()
}

#[tokio::test]
async fn a_model_that_cannot_see_is_asked_again_without_pictures_and_never_sent_one_again() {
    let refusals = [
        (
            404,
            "No endpoints found that support image input",
            "the model of an aggregator",
        ),
        (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "llama.cpp",
        ),
    ];
    let mut messages = looked(vec![picture("AAAA")], vec![]);
    messages[0].parts.push(Part::Image(picture("BBBB")));
    let words = "is left out here: this model cannot see]";
    for wire in WIRES {
        for (status, refusal, who) in refusals {
            let (told, bodies) = told_without_pictures(wire, (status, refusal), &messages).await;
            assert_eq!(notices(&told[0]), 1, "{wire:?} {who}");
            assert_eq!(notices(&told[1]), 0, "{wire:?} {who}");
            assert_eq!(bodies.len(), 3, "{wire:?} {who}: refused once only");
            let first = bodies[0].to_string();
            assert!(first.contains("AAAA") && first.contains("BBBB"), "{first}");
            assert!(!first.contains(words), "{first}");
            for later in &bodies[1..] {
                let later = later.to_string();
                assert!(
                    !later.contains("AAAA") && !later.contains("BBBB"),
                    "{later}"
                );
                assert_eq!(later.matches(words).count(), 2, "{later}");
            }
            assert_eq!(bodies[1], bodies[2], "{wire:?}");
        }
    }
}

#[tokio::test]
async fn a_picture_that_is_refused_does_not_end_the_conversation() {
    let messages = looked(vec![picture("AAAA")], vec![]);
    let (told, bodies) =
        told_without_pictures(WIRES[2], (400, "Could not process image"), &messages).await;
    assert_eq!((notices(&told[0]), notices(&told[1])), (1, 0));
    assert!(bodies[1].to_string().contains("the provider refuses"));
    // The model can see: another request, perhaps without that picture, tries again.
    assert!(bodies[2].to_string().contains("AAAA"));
}

#[tokio::test]
async fn a_request_without_pictures_is_not_repeated_because_of_them() {
    let refusal = json!({"error": {"message": "this model does not support image input"}});
    let server = ScriptedServer::start(Script::always(Answer::status(400, refusal))).await;
    let client = client(&settings(choice(&server, WIRES[0].0, WIRES[0].1)));
    tell(&client, &[Message::user("hi")]).await.end.unwrap_err();
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn a_fallback_is_shown_what_the_first_model_could_not_see() {
    let blind = json!({"error": {"message": "this model does not support image input"}});
    let busy = Answer::status(400, json!({"error": {"message": "no"}}));
    let script = Script::new([Answer::status(400, blind), busy]).repeating_last();
    let first = ScriptedServer::start(script).await;
    let second = ScriptedServer::start(Script::always(Answer::text("a cat"))).await;
    let mut settings = settings(choice(&first, WIRES[0].0, "first"));
    settings.fallbacks = vec![choice(&second, WIRES[0].0, "second")];
    let messages = looked(vec![picture("AAAA")], vec![]);
    let told = tell(&client(&settings), &messages).await;
    assert_eq!(told.message.text(), "a cat");
    assert!(!bodies(&first)[1].to_string().contains("AAAA"));
    assert!(bodies(&second)[0].to_string().contains("AAAA"));
}
