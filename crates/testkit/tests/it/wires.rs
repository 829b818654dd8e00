//! The bytes of every API.

use hermes_testkit::server::{Answer, Finish, Script, ScriptedServer, Usage};
use serde_json::{Value, json};

use crate::client::{End, Response, get, post};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
const OLLAMA: &str = "/api/chat";

/// Thinks, speaks and calls: everything an answer can hold.
fn full_answer() -> Answer {
    Answer::text("Grüße")
        .signed_reasoning("hm", "sig")
        .also_call("c1", "ls", json!({"path": "."}))
        .pieces(2)
        .usage(Usage {
            prompt: 100,
            completion: 20,
            cached: 40,
            reasoning: 5,
        })
}

async fn ask(answer: Answer, path: &str, body: &Value) -> Response {
    let server = ScriptedServer::start(Script::new([answer])).await;
    let response = post(&server, path, body);
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.end, End::Complete, "{response:?}");
    response
}

/// Returns the data of each SSE event, after checking that it is named by its type.
fn events(response: &Response) -> Vec<Value> {
    let body = response.body();
    let event = |event: &str| -> Value {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        data
    };
    let body = body.strip_suffix("\n\n").unwrap();
    body.split("\n\n").map(event).collect()
}

#[tokio::test]
async fn a_chat_completion_streams_its_deltas_byte_for_byte() {
    let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}});
    let response = ask(full_answer(), CHAT, &body).await;
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\
             \"created\":1700000000,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
             \"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
        )
    };
    let deltas = [
        r#"{"role":"assistant","content":""}"#,
        r#"{"reasoning_content":"h"}"#,
        r#"{"reasoning_content":"m"}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"","signature":"sig","format":"anthropic-claude-v1","index":0}]}"#,
        r#"{"content":"Grü"}"#,
        r#"{"content":"ße"}"#,
        r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"ls","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"path"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"\":\".\"}"}}]}"#,
    ];
    let mut expected: String = deltas.iter().map(|delta| chunk(delta, "null")).collect();
    expected += &chunk("{}", "\"tool_calls\"");
    expected += "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\
        \"created\":1700000000,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\
        \"completion_tokens\":20,\"total_tokens\":120,\
        \"prompt_tokens_details\":{\"cached_tokens\":40},\
        \"completion_tokens_details\":{\"reasoning_tokens\":5}}}\n\n";
    expected += "data: [DONE]\n\n";
    assert_eq!(response.body(), expected);
    assert!(response.head.contains("content-type: text/event-stream"));
}

#[tokio::test]
async fn a_chat_completion_without_usage_asked_for_has_none() {
    let body = json!({"model": "m", "stream": true});
    let response = ask(Answer::text("hi"), CHAT, &body).await;
    assert!(!response.body().contains("usage"));
}

#[tokio::test]
async fn a_chat_completion_is_collected() {
    let response = ask(full_answer(), CHAT, &json!({"model": "m"})).await;
    let json = response.json();
    assert_eq!(json["object"], "chat.completion");
    assert_eq!(
        json["choices"][0]["message"],
        json!({
            "role": "assistant",
            "content": "Grüße",
            "refusal": null,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "ls", "arguments": "{\"path\":\".\"}"}}],
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "sig",
                "format": "anthropic-claude-v1", "index": 0}],
        })
    );
    assert_eq!(json["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(json["usage"]["total_tokens"], 120);
}

#[tokio::test]
async fn a_response_streams_items_in_numbered_events() {
    let response = ask(
        full_answer(),
        RESPONSES,
        &json!({"model": "m", "stream": true}),
    )
    .await;
    let events = events(&response);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    assert_eq!(
        events[12],
        json!({"type": "response.output_text.delta", "sequence_number": 12, "content_index": 0,
            "delta": "ße", "item_id": "msg_1_1", "output_index": 1})
    );
    assert_eq!(
        events[18],
        json!({"type": "response.function_call_arguments.delta", "sequence_number": 18,
            "delta": "\":\".\"}", "item_id": "fc_1_2", "output_index": 2})
    );
}

#[tokio::test]
async fn a_response_ends_with_all_its_items_and_the_usage() {
    let body = json!({"model": "m", "stream": true});
    let streamed = ask(full_answer(), RESPONSES, &body).await;
    let collected = ask(full_answer(), RESPONSES, &json!({"model": "m"})).await;
    let last = events(&streamed).pop().unwrap();
    assert_eq!(last["response"], collected.json());
    assert_eq!(
        collected.json(),
        json!({
            "id": "resp_1", "object": "response", "created_at": 1_700_000_000,
            "status": "completed", "error": null, "incomplete_details": null, "model": "m",
            "output": [
                {"type": "reasoning", "id": "rs_1_0",
                    "summary": [{"type": "summary_text", "text": "hm"}],
                    "encrypted_content": "sig"},
                {"type": "message", "id": "msg_1_1", "status": "completed", "role": "assistant",
                    "content": [{"type": "output_text", "text": "Grüße", "annotations": [],
                        "logprobs": []}]},
                {"type": "function_call", "id": "fc_1_2", "status": "completed", "call_id": "c1",
                    "name": "ls", "arguments": "{\"path\":\".\"}"},
            ],
            "parallel_tool_calls": true,
            "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 120},
        })
    );
}

#[tokio::test]
async fn a_response_cut_short_is_incomplete() {
    let answer = Answer::text("and then").finish(Finish::Length);
    let response = ask(answer, RESPONSES, &json!({"model": "m", "stream": true})).await;
    let last = events(&response).pop().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(
        last["response"]["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
}

#[tokio::test]
async fn a_message_streams_its_blocks() {
    let response = ask(
        full_answer(),
        MESSAGES,
        &json!({"model": "m", "stream": true}),
    )
    .await;
    let usage = |output_tokens: u64| {
        json!({"input_tokens": 60, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 40, "output_tokens": output_tokens})
    };
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    assert_eq!(
        events(&response),
        [
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
                "role": "assistant", "model": "m", "content": [], "stop_reason": null,
                "stop_sequence": null, "usage": usage(1)}}),
            start(
                0,
                json!({"type": "thinking", "thinking": "", "signature": ""})
            ),
            json!({"type": "ping"}),
            delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
            delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
            delta(0, json!({"type": "signature_delta", "signature": "sig"})),
            stop(0),
            start(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "Grü"})),
            delta(1, json!({"type": "text_delta", "text": "ße"})),
            stop(1),
            start(
                2,
                json!({"type": "tool_use", "id": "c1", "name": "ls", "input": {}})
            ),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": "{\"path"})
            ),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": "\":\".\"}"})
            ),
            stop(2),
            json!({"type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage(20)}),
            json!({"type": "message_stop"}),
        ]
    );
}

#[tokio::test]
async fn a_message_is_collected() {
    let response = ask(full_answer(), MESSAGES, &json!({"model": "m"})).await;
    let json = response.json();
    assert_eq!(
        json["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Grüße"},
            {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
        ])
    );
    assert_eq!(json["stop_reason"], "tool_use");
}

#[tokio::test]
async fn gemini_streams_whole_responses_with_crlf() {
    let response = ask(full_answer(), GEMINI, &json!({})).await;
    let body = response.body();
    let events: Vec<Value> = body
        .split_terminator("\r\n\r\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let parts: Vec<&Value> = events
        .iter()
        .map(|event| &event["candidates"][0]["content"]["parts"][0])
        .collect();
    assert_eq!(
        parts,
        [
            &json!({"text": "h", "thought": true}),
            &json!({"text": "m", "thought": true}),
            &json!({"text": "Grü"}),
            &json!({"text": "ße"}),
            &json!({"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}},
                "thoughtSignature": "sig"}),
            &json!({"text": ""}),
        ]
    );
    let last = events.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(
        last["usageMetadata"],
        json!({"promptTokenCount": 100, "cachedContentTokenCount": 40,
            "candidatesTokenCount": 15, "thoughtsTokenCount": 5, "totalTokenCount": 120})
    );
    assert_eq!(last["modelVersion"], "gemini-x");
}

#[tokio::test]
async fn gemini_is_collected_on_its_other_path() {
    let path = "/v1beta/models/gemini-x:generateContent";
    let response = ask(Answer::text("hi"), path, &json!({})).await;
    let candidate = &response.json()["candidates"][0];
    assert_eq!(
        candidate["content"],
        json!({"parts": [{"text": "hi"}], "role": "model"})
    );
}

#[tokio::test]
async fn ollama_streams_lines_unless_told_not_to() {
    let response = ask(full_answer(), OLLAMA, &json!({"model": "m"})).await;
    let lines: Vec<Value> = response
        .body()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let messages: Vec<&Value> = lines.iter().map(|line| &line["message"]).collect();
    let call = json!({"id": "c1", "function": {"index": 0, "name": "ls",
        "arguments": {"path": "."}}});
    assert_eq!(
        messages,
        [
            &json!({"role": "assistant", "content": "", "thinking": "h"}),
            &json!({"role": "assistant", "content": "", "thinking": "m"}),
            &json!({"role": "assistant", "content": "Grü"}),
            &json!({"role": "assistant", "content": "ße"}),
            &json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            &json!({"role": "assistant", "content": ""}),
        ]
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["done"], &last["done_reason"]),
        (&json!(true), &json!("stop"))
    );
    assert_eq!(
        (&last["prompt_eval_count"], &last["eval_count"]),
        (&json!(100), &json!(20))
    );
    assert!(response.head.contains("application/x-ndjson"));

    let collected = ask(
        full_answer(),
        OLLAMA,
        &json!({"model": "m", "stream": false}),
    )
    .await;
    assert_eq!(
        collected.json()["message"],
        json!({"role": "assistant", "content": "Grüße", "thinking": "hm", "tool_calls": [call]})
    );
}

#[tokio::test]
async fn malformed_arguments_are_sent_as_they_are() {
    let answer = || Answer::call("c1", "ls", json!("{\"path\": "));
    let chat = ask(answer(), CHAT, &json!({"stream": true})).await;
    assert!(chat.body().contains(r#""arguments":"{\"path\": ""#));
    let gemini = ask(answer(), GEMINI, &json!({})).await;
    assert!(gemini.body().contains(r#""args":"{\"path\": ""#));
}

#[tokio::test]
async fn the_model_lists_name_the_models_of_the_script() {
    let server = ScriptedServer::start(Script::default().model("tiny")).await;
    assert_eq!(get(&server, "/v1/models").json()["data"][0]["id"], "tiny");
    assert_eq!(
        get(&server, "/v1beta/models").json()["models"][0]["name"],
        "models/tiny"
    );
    assert_eq!(
        get(&server, "/api/tags").json()["models"][0]["name"],
        "tiny"
    );
    assert_eq!(get(&server, "/health").json(), json!({"status": "ok"}));
    assert_eq!(get(&server, "/nowhere").status, 404);
}

#[tokio::test]
async fn twenty_thousand_chunks_arrive_complete() {
    let response = ask(Answer::text_chunks(20_000), CHAT, &json!({"stream": true})).await;
    // The role, the end and `[DONE]` come on top.
    assert_eq!(response.chunks.len(), 20_003);
}
