//! Which answer a request gets, and what is remembered of it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::client::{End, post};

const CHAT: &str = "/v1/chat/completions";

fn say(server: &ScriptedServer, text: &str) -> Value {
    let body = json!({"messages": [{"role": "user", "content": text}]});
    let response = post(server, CHAT, &body).json();
    response["choices"][0]["message"]["content"].clone()
}

#[tokio::test]
async fn requests_are_recorded_as_they_came() {
    let server = ScriptedServer::start(Script::new([Answer::text("hi")])).await;
    say(&server, "hello");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].method.as_str(), requests[0].path.as_str()),
        ("POST", CHAT)
    );
    assert_eq!(requests[0].header("host"), Some("test"));
    assert_eq!(requests[0].json["messages"][0]["content"], "hello");
    assert_eq!(requests[0].json.to_string().as_bytes(), requests[0].body);
}

#[tokio::test]
async fn a_request_beyond_the_script_is_refused_with_a_reason() {
    let server = ScriptedServer::start(Script::new([Answer::text("only")])).await;
    assert_eq!(say(&server, "a"), "only");
    let response = post(&server, CHAT, &json!({"messages": []}));
    assert_eq!(response.status, 400);
    assert!(response.body().contains("no answer"));
}

#[tokio::test]
async fn conversations_at_the_same_time_keep_apart() {
    let script = Script::new([Answer::text("default")])
        .when("alpha", [Answer::text("a1"), Answer::text("a2")])
        .when("beta", [Answer::text("b1")]);
    let server = ScriptedServer::start(script).await;
    assert_eq!(say(&server, "beta"), "b1");
    assert_eq!(say(&server, "alpha"), "a1");
    assert_eq!(say(&server, "gamma"), "default");
    assert_eq!(say(&server, "alpha"), "a2");
}

#[tokio::test]
async fn by_step_a_client_that_asks_again_is_told_the_same() {
    let calls = Answer::call("c1", "ls", json!({}));
    let script = Script::new([calls, Answer::text("done")]).by_step();
    let server = ScriptedServer::start(script).await;
    let first = json!({"input": "go"});
    let second = json!({"input": [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "x"}]});
    for _ in 0..2 {
        let response = post(&server, "/v1/responses", &first).json();
        assert_eq!(response["output"][0]["call_id"], "c1");
        let response = post(&server, "/v1/responses", &second).json();
        assert_eq!(response["output"][0]["content"][0]["text"], "done");
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let server = ScriptedServer::start(Script::always(Answer::text("hi"))).await;
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    for _ in 0..3 {
        stream
            .write_all(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
            .unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"0\r\n\r\n") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).unwrap();
            assert_ne!(
                count,
                0,
                "closed after {:?}",
                String::from_utf8_lossy(&received)
            );
            received.extend_from_slice(&bytes[..count]);
        }
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let server = ScriptedServer::start(Script::always(Answer::text("hi"))).await;
    let response = crate::client::request(server.address(), "POST", CHAT, "{");
    assert_eq!((response.status, response.end), (400, End::Complete));
}
