//! What nobody should send: it is refused in words, and everybody else is served meanwhile.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::{KEY, served};

/// Sends bytes as they are, and returns what comes before the connection ends.
fn raw(client: &Client, bytes: &[u8]) -> String {
    let mut stream = client.connect();
    // The server may close before everything was sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(client: &Client, more: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {KEY}\r\n{more}\r\n",
        client.authority
    )
}

#[tokio::test]
async fn bodies_that_are_too_large_are_not_read() {
    let (_setting, gateway) = served("hi").await;
    let client = &gateway.client;
    let announced = raw(
        client,
        head(client, "content-length: 10000001\r\n").as_bytes(),
    );
    assert!(announced.starts_with("HTTP/1.1 413"), "{announced}");
    assert!(announced.contains("request_too_large"), "{announced}");
    // One that never ends, in pieces.
    let mut stream = client.connect();
    stream
        .write_all(head(client, "transfer-encoding: chunked\r\n").as_bytes())
        .unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..400 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(client.get("/health").status, 200);
}

#[tokio::test]
async fn whoever_says_nothing_is_let_go_and_others_are_served() {
    let (_setting, gateway) = served("hi").await;
    let client = &gateway.client;
    let mut silent: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = client.connect();
            let _ = stream.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nx: ");
            stream
        })
        .collect();
    let began = Instant::now();
    // Those who say nothing make room for those who ask, long before they are let go.
    assert_eq!(client.get("/health").status, 200);
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let mut rest = Vec::new();
    let first = &mut silent[0];
    first
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let _ = first.read_to_end(&mut rest);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it was not let go"
    );
}

#[tokio::test]
async fn nonsense_is_refused_in_words() {
    let (setting, gateway) = served("hi").await;
    let client = &gateway.client;
    for (body, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("[]", ""),
        ("null", ""),
        (&"[".repeat(100_000), "invalid_json"),
        (
            r#"{"messages": [{"role": "user", "content": {"a": 1}}]}"#,
            "",
        ),
        (r#"{"messages": [{"role": 7, "content": "x"}]}"#, ""),
    ] {
        let length = format!("content-length: {}\r\n", body.len());
        let answer = raw(
            client,
            format!("{}{body}", head(client, &length)).as_bytes(),
        );
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(
            answer.contains("\"error\"") && answer.contains(code),
            "{answer}"
        );
    }
    for name in ["../../etc/passwd", "a/b", "a\tb"] {
        let answer = client.chat_with(
            &[("x-hermes-session-id", name)],
            &json!({"messages": [{"role": "user", "content": "x"}]}),
        );
        assert_eq!(answer.status, 400, "{name:?}: {answer:?}");
    }
    assert_eq!(client.get("/v1/nothing").status, 404);
    assert_eq!(client.get("/v1/chat/completions").status, 405);
    for bytes in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = client.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let huge = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    assert!(!raw(client, huge.as_bytes()).starts_with("HTTP/1.1 200"));
    assert_eq!(client.get("/health").status, 200);
    assert!(setting.server.requests().is_empty());
}

#[tokio::test]
async fn keys_and_origins_are_checked_before_anything_is_read() {
    let (setting, gateway) = served("hi").await;
    let ask = json!({"messages": [{"role": "user", "content": "x"}]});
    for authorization in [
        "",
        "Bearer",
        "Bearer wrong",
        "Basic dGVzdA==",
        &format!("Bearer {KEY}x"),
        &format!("Bearer {}", &KEY[1..]),
    ] {
        let answer = gateway
            .client
            .chat_with(&[("authorization", authorization)], &ask);
        assert_eq!(answer.status, 401, "{authorization:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    let page = gateway
        .client
        .chat_with(&[("origin", "https://evil.example")], &ask);
    assert_eq!(page.status, 403, "{page:?}");
    assert_eq!(page.header("access-control-allow-origin"), None);
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(setting.server.requests().is_empty());
}

#[tokio::test]
async fn names_that_say_two_things_and_broken_addresses_are_refused_in_words() {
    let (setting, gateway) = served("hi").await;
    let client = &gateway.client;
    let ask = json!({"messages": [{"role": "user", "content": "x"}]});
    for name in [
        "x-hermes-session-id",
        "x-hermes-session-key",
        "idempotency-key",
    ] {
        let refused = client.chat_with(&[(name, "a"), (name, "b")], &ask);
        assert_eq!(refused.status, 400, "{name}: {refused:?}");
        assert!(refused.json()["error"]["message"].is_string());
    }
    let right = format!("Bearer {KEY}");
    let both = [
        ("authorization", right.as_str()),
        ("authorization", "Bearer other"),
    ];
    assert_eq!(client.chat_with(&both, &ask).status, 401);
    for path in [
        "/api/sessions/%ff",
        "/v1/runs/%ff",
        "/api/jobs/%ff",
        "/api/sessions?limit=x",
    ] {
        let refused = client.get(path);
        assert_eq!(refused.status, 400, "{path}: {refused:?}");
        assert!(refused.json()["error"]["message"].is_string(), "{path}");
    }
    for (path, param) in [
        ("/api/sessions?limit=abc", "limit"),
        ("/api/sessions?limit=1&limit=2", "limit"),
        ("/api/sessions?offset=-1", "offset"),
    ] {
        let refused = client.get(path).json()["error"].clone();
        assert_eq!(refused["param"], param, "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(!message.contains("serialize"), "{message}");
    }
    for body in [
        json!([]),
        json!({"id": 7}),
        json!({"title": "x".repeat(401)}),
    ] {
        assert_eq!(client.post("/api/sessions", &body).status, 400, "{body}");
    }
    assert!(setting.server.requests().is_empty());
}

#[tokio::test]
async fn a_text_that_is_too_long_is_refused_with_the_setting_that_allows_it() {
    let (setting, gateway) = super::served("x").await;
    let long = "ü".repeat(65_537);
    let chat = serde_json::json!({"messages": [{"role": "user", "content": long}]});
    let input = serde_json::json!({"input": long, "message": long});
    gateway
        .client
        .post("/api/sessions", &serde_json::json!({"id": "s"}));
    for (path, body) in [
        ("/v1/chat/completions", &chat),
        ("/v1/responses", &input),
        ("/v1/runs", &input),
        ("/api/sessions/s/chat", &input),
    ] {
        let refused = gateway.client.post(path, body);
        assert_eq!(refused.status, 413, "{path}: {refused:?}");
        assert!(refused.body.contains("max_text_chars"), "{refused:?}");
    }
    // What was said before may be as long as it was.
    let said = serde_json::json!({"messages": [
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": long}, {"role": "user", "content": "and?"},
    ]});
    assert_eq!(gateway.client.chat(&said).status, 200);
    assert_eq!(setting.server.requests().len(), 1);
}

#[tokio::test]
async fn pages_of_origins_that_are_named_may_ask() {
    let more = "platforms:\n  api_server: {cors_origins: ['https://app.example']}\n";
    let script = hermes_testkit::server::Script::always(hermes_testkit::server::Answer::text("hi"));
    let setting = crate::setting::Setting::with(script, more).await;
    let gateway = super::Gateway::start(&setting.hermes);
    let origin = ("origin", "https://app.example");
    let asked = gateway
        .client
        .send("OPTIONS", "/v1/chat/completions", &[origin], None);
    assert_eq!(asked.status, 204, "{asked:?}");
    assert_eq!(asked.header("access-control-max-age"), Some("600"));
    let methods = asked.header("access-control-allow-methods").unwrap();
    assert!(methods.contains("PUT"), "{methods}");
    // What the official client sends along.
    let wanted = "authorization,content-type,x-stainless-lang,x-stainless-retry-count";
    let headers = [origin, ("access-control-request-headers", wanted)];
    let asked = gateway
        .client
        .send("OPTIONS", "/v1/chat/completions", &headers, None);
    assert_eq!(asked.header("access-control-allow-headers"), Some(wanted));
    assert!(
        asked
            .header("vary")
            .unwrap()
            .contains("Access-Control-Request-Headers")
    );
    let models = gateway.client.send("GET", "/v1/models", &[origin], None);
    assert_eq!(
        models.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let other = gateway.client.send(
        "GET",
        "/v1/models",
        &[("origin", "https://other.example")],
        None,
    );
    assert_eq!(other.status, 403);
    let stranger = [
        ("origin", "https://other.example"),
        ("access-control-request-headers", wanted),
    ];
    let refused = gateway
        .client
        .send("OPTIONS", "/v1/models", &stranger, None);
    assert_eq!(
        refused.header("access-control-allow-headers"),
        None,
        "{refused:?}"
    );
}
