//! The prefix of a conversation is sent as the same bytes every time, and signatures go back to their maker only.

use hermes_core::{Arguments, Message, Part, Reasoning, ResultStatus, Role, ToolCall, ToolResult};
use hermes_llm::Protocol;
use hermes_testkit::contract::model::tell;
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::world::{choice, client, settings};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::OpenAiChat,
    Protocol::OpenAiResponses,
    Protocol::Anthropic,
    Protocol::Gemini,
];

/// A conversation with everything in it, whose reasoning and call were signed by `maker`.
fn conversation(maker: &str) -> Vec<Message> {
    let signature = match maker {
        "custom" => r#"custom|{"type":"reasoning.text","signature":"sig-r"}"#,
        _ => "somebody-else|sig-r",
    };
    let call = ToolCall {
        id: "c1".into(),
        name: "read_file".into(),
        arguments: Arguments::Json(json!({"z": 1, "a": [true, null], "m": {"y": "é", "b": 2.5}})),
        signatures: vec![format!("{maker}|sig-c")],
    };
    let malformed = ToolCall {
        id: "c2".into(),
        arguments: Arguments::Malformed("{\"path\":".into()),
        signatures: vec![],
        ..call.clone()
    };
    let result =
        |call: &ToolCall| Message::result(ToolResult::new(call, ResultStatus::Ok, "contents"));
    let reply = Message {
        role: Role::Assistant,
        origin: None,
        parts: vec![
            Part::Reasoning(Reasoning {
                text: "hm".into(),
                signature: Some(signature.into()),
            }),
            Part::text("let me see"),
            Part::ToolCall(call.clone()),
            Part::ToolCall(malformed.clone()),
        ],
    };
    vec![
        Message::user("read it"),
        reply,
        result(&call),
        result(&malformed),
        Message::assistant("done"),
        Message::user("thanks"),
        Message::assistant("welcome"),
        Message::user("bye"),
    ]
}

async fn sent(protocol: Protocol, messages: &[Message]) -> Value {
    let server = ScriptedServer::start(Script::always(Answer::text("ok"))).await;
    let client = client(&settings(choice(&server, protocol, "scripted")));
    tell(&client, messages).await.end.unwrap();
    server.requests().remove(0).json
}

fn messages_of(protocol: Protocol, body: &Value) -> Vec<Value> {
    let field = match protocol {
        Protocol::OpenAiChat | Protocol::Anthropic => "messages",
        Protocol::OpenAiResponses => "input",
        Protocol::Gemini => "contents",
    };
    body[field]
        .as_array()
        .unwrap()
        .iter()
        .map(unmarked)
        .collect()
}

fn texts(messages: &[Value]) -> Vec<String> {
    messages.iter().map(Value::to_string).collect()
}

/// Takes cache marks out: they move with the end of the conversation, and the provider does not count them as text.
fn unmarked(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    for block in message["content"].as_array_mut().into_iter().flatten() {
        if let Some(block) = block.as_object_mut() {
            block.shift_remove("cache_control");
        }
    }
    message
}

#[tokio::test]
async fn a_longer_conversation_begins_with_the_same_bytes() {
    let messages = conversation("custom");
    for protocol in PROTOCOLS {
        let mut previous = sent(protocol, &messages[..1]).await;
        for length in [4, 6, 8] {
            let body = sent(protocol, &messages[..length]).await;
            for field in ["tools", "system", "instructions", "systemInstruction"] {
                assert_eq!(body[field].to_string(), previous[field].to_string());
            }
            // As text, because values that are equal may differ in the order of their fields.
            let before = texts(&messages_of(protocol, &previous));
            let after = texts(&messages_of(protocol, &body));
            assert!(before.len() < after.len());
            assert_eq!(before, after[..before.len()], "{protocol:?}");
            previous = body;
        }
    }
}

#[tokio::test]
async fn signatures_return_to_their_maker_and_to_nobody_else() {
    for protocol in PROTOCOLS {
        let own = sent(protocol, &conversation("custom")).await.to_string();
        let foreign = sent(protocol, &conversation("somebody-else"))
            .await
            .to_string();
        assert!(own.contains("sig-r"), "{protocol:?}: {own}");
        assert_eq!(own.contains("sig-c"), protocol == Protocol::Gemini, "{own}");
        assert!(!foreign.contains("sig-"), "{protocol:?}: {foreign}");
        assert!(!foreign.contains("hm"), "{protocol:?}: {foreign}");
    }
}

#[tokio::test]
async fn a_signed_reply_survives_the_round_trip() {
    for protocol in PROTOCOLS {
        let answer = Answer::text("42").signed_reasoning("six times seven", "c2lnbmVk");
        let server = ScriptedServer::start(Script::always(answer)).await;
        let client = client(&settings(choice(&server, protocol, "scripted")));
        let mut messages = vec![Message::user("6 * 7?")];
        messages.push(tell(&client, &messages).await.message);
        messages.push(Message::user("sure?"));
        tell(&client, &messages).await.end.unwrap();
        let body = server.requests().remove(1).json.to_string();
        assert!(body.contains("c2lnbmVk"), "{protocol:?}: {body}");
    }
}

#[tokio::test]
async fn anthropic_is_told_what_to_cache() {
    let body = sent(Protocol::Anthropic, &conversation("custom")).await;
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    let is_marked = |message: &Value| message.to_string().contains("cache_control");
    let marked: Vec<bool> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(is_marked)
        .collect();
    assert_eq!(
        marked,
        [false, false, false, false, false, true, true, true]
    );
}

#[tokio::test]
async fn openai_is_told_the_session_for_its_cache_and_others_are_not() {
    let server = ScriptedServer::start(Script::always(Answer::text("ok"))).await;
    for (provider, key) in [("openai", json!("session")), ("groq", Value::Null)] {
        let mut choice = choice(&server, Protocol::OpenAiChat, "m");
        choice.provider = Some(provider.into());
        tell(&client(&settings(choice)), &[Message::user("hi")])
            .await
            .end
            .unwrap();
        assert_eq!(
            server.requests().pop().unwrap().json["prompt_cache_key"],
            key
        );
    }
}

#[tokio::test]
async fn thoughts_go_back_with_calls_where_the_provider_insists() {
    let server = ScriptedServer::start(Script::always(Answer::text("ok"))).await;
    let mut choice = choice(&server, Protocol::OpenAiChat, "deepseek-chat");
    choice.provider = Some("deepseek".into());
    let client = client(&settings(choice));
    tell(&client, &conversation("somebody-else"))
        .await
        .end
        .unwrap();
    let body = server.requests().remove(0).json;
    let replies: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| &message["reasoning_content"])
        .collect();
    assert_eq!(replies, [&json!("hm"), &Value::Null, &Value::Null]);
}
