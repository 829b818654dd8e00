//! What goes wrong goes wrong as scripted, and not otherwise.

use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Ending, NoiseKind, Point, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::client::{End, Response, post};

const PATHS: &[&str] = &[
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/m:streamGenerateContent?alt=sse",
    "/api/chat",
];

async fn ask(answer: Answer, path: &str) -> Response {
    let server = ScriptedServer::start(Script::new([answer])).await;
    post(&server, path, &json!({"model": "m", "stream": true}))
}

fn letters() -> Answer {
    Answer::text("ABCD").pieces(4)
}

/// Returns which of the four letters a body carries.
fn letters_in(response: &Response) -> String {
    let body = response.body();
    let has_arrived = |letter: &char| body.contains(&format!("\"{letter}\""));
    "ABCD".chars().filter(has_arrived).collect()
}

#[tokio::test]
async fn a_refusal_has_its_status_headers_and_body() {
    let body = json!({"error": {"message": "slow down"}});
    let answer = Answer::status(429, body.clone()).header("retry-after", "2");
    let response = ask(answer, PATHS[0]).await;
    assert_eq!(response.status, 429);
    assert!(response.head.contains("retry-after: 2"));
    assert!(response.head.contains("content-type: application/json"));
    assert_eq!(response.json(), body);

    let response = ask(Answer::status(503, "<h1>down</h1>"), PATHS[0]).await;
    assert!(response.head.contains("content-type: text/plain"));
    assert_eq!(response.body(), "<h1>down</h1>");
}

#[tokio::test]
async fn a_reset_is_a_reset_on_every_wire_and_loses_nothing_before_it() {
    for path in PATHS {
        let response = ask(letters().reset_after(2), path).await;
        assert_eq!(response.end, End::Reset, "{path}");
        assert_eq!(letters_in(&response), "AB", "{path}");
    }
}

#[tokio::test]
async fn a_stall_keeps_the_connection_open_and_silent() {
    for path in PATHS {
        let response = ask(letters().stall_after(3), path).await;
        assert_eq!(response.end, End::Silence, "{path}");
        assert_eq!(letters_in(&response), "ABC", "{path}");
    }
}

#[tokio::test]
async fn a_truncated_body_ends_without_its_last_chunk() {
    for path in PATHS {
        let response = ask(letters().truncate_after(1), path).await;
        assert_eq!(response.end, End::Truncated, "{path}");
        assert_eq!(letters_in(&response), "A", "{path}");
    }
}

#[tokio::test]
async fn a_clean_close_completes_the_body_without_the_closing_events() {
    for path in PATHS {
        let response = ask(letters().close_after(4), path).await;
        assert_eq!(response.end, End::Complete, "{path}");
        let body = response.body();
        let closings = [
            "[DONE]",
            ".completed",
            "message_stop",
            "finishReason",
            "\"done\":true",
        ];
        for closing in closings {
            assert!(!body.contains(closing), "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn nothing_at_all_is_sent_before_the_headers() {
    let before = |how| letters().break_off(Point::BeforeHeaders, how);
    let expected = [
        (Ending::Stall, End::Silence),
        (Ending::Reset, End::Reset),
        (Ending::Truncate, End::Truncated),
    ];
    for (how, end) in expected {
        let response = ask(before(how), PATHS[0]).await;
        assert_eq!((response.status, response.end), (0, end));
    }
}

#[tokio::test]
async fn a_break_after_bytes_is_exact() {
    let answer = letters().break_off(Point::Bytes(100), Ending::Truncate);
    let response = ask(answer, PATHS[0]).await;
    assert_eq!(response.chunks.concat().len(), 100);
    assert_eq!(response.end, End::Truncated);
}

#[tokio::test]
async fn cuts_fall_where_they_are_asked_for_also_inside_a_character_and_a_line_ending() {
    for path in PATHS {
        let answer = || Answer::text("€").crlf();
        let whole = ask(answer(), path).await.body();
        let sliced = ask(answer().cut_every(1), path).await;
        assert!(sliced.chunks.iter().all(|chunk| chunk.len() == 1), "{path}");
        assert_eq!(sliced.body(), whole, "{path}");
        assert!(whole.contains("\r\n"), "{path}");
    }
    let response = ask(Answer::text("hi").cut_at([3, 5]), PATHS[0]).await;
    let sizes: Vec<usize> = response.chunks.iter().map(Vec::len).collect();
    assert_eq!(sizes[..4], [3, 5, 3, 5]);
}

#[tokio::test]
async fn an_error_in_the_stream_speaks_the_language_of_the_wire() {
    let answer = || letters().error_after(2, "overloaded_error", "too much");
    let expected = [
        json!({"error": {"message": "too much", "type": "overloaded_error", "param": null,
            "code": null}}),
        json!({"type": "error", "code": "overloaded_error", "message": "too much",
            "param": null}),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "too much"}}),
        json!({"error": {"code": 500, "message": "too much", "status": "overloaded_error"}}),
        json!({"error": "too much"}),
    ];
    for (path, error) in PATHS.iter().zip(expected) {
        let response = ask(answer(), path).await;
        let body = response.body();
        let last = body.trim_end().lines().last().unwrap();
        let last = last.strip_prefix("data: ").unwrap_or(last);
        assert_eq!(
            serde_json::from_str::<Value>(last).unwrap(),
            error,
            "{path}"
        );
        assert_eq!(letters_in(&response), "AB", "{path}");
    }
}

#[tokio::test]
async fn noise_is_heard_and_the_answer_goes_on() {
    let keepalive = NoiseKind::Comment("keep-alive".to_owned());
    let answer = letters()
        .noise_after(1, keepalive)
        .noise_after(2, NoiseKind::BadJson);
    let response = ask(answer, PATHS[0]).await;
    let body = response.body();
    assert!(body.contains(": keep-alive\n\n"));
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let bad = data.filter(|data| serde_json::from_str::<Value>(data).is_err());
    // `[DONE]` is not JSON either.
    assert_eq!(bad.count(), 2);
    assert_eq!(letters_in(&response), "ABCD");
}

#[tokio::test]
async fn a_huge_line_is_one_line() {
    let response = ask(Answer::huge_line(1_000_000), PATHS[0]).await;
    let longest = response.body().lines().map(str::len).max().unwrap();
    assert!(longest > 1_000_000);
}

#[tokio::test]
async fn the_content_type_can_be_wrong() {
    let response = ask(letters().content_type("text/html"), PATHS[0]).await;
    assert!(response.head.contains("content-type: text/html"));
}

#[tokio::test]
async fn delays_are_waited_for() {
    let pause = Duration::from_millis(40);
    let delayed = [
        (letters().headers_delay(pause), pause),
        (letters().body_delay(pause), pause),
        // Role, four letters, the end and `[DONE]`: six gaps.
        (letters().chunk_delay(pause), pause * 6),
    ];
    for (answer, least) in delayed {
        let start = Instant::now();
        let response = ask(answer, PATHS[0]).await;
        assert!(start.elapsed() >= least);
        assert_eq!(letters_in(&response), "ABCD");
    }
}

#[tokio::test]
async fn a_stopped_server_takes_no_more_connections() {
    let server = ScriptedServer::start(Script::default()).await;
    let address = server.address();
    server.stop();
    assert!(std::net::TcpStream::connect(address).is_err());
}
