//! Over streamable HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hermes_testkit::process::{Hermes, Running};

use super::talked;
use crate::setting::bare;

/// A server in the background.
struct Served {
    running: Running,
    url: String,
}

impl Served {
    fn start(hermes: &Hermes, address: &str) -> Self {
        let running = hermes
            .clone()
            .args(["mcp", "serve", "--http", address])
            .spawn();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let told = running.stderr();
            if let Some(url) = told.trim_end().strip_prefix("serving on ") {
                let url = url.to_owned();
                return Self { running, url };
            }
            assert!(Instant::now() < deadline, "{told}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn authority(&self) -> &str {
        self.url
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/mcp")
            .unwrap()
    }

    /// Sends a request as it is and returns the status and everything after it.
    fn send(&self, request: &str) -> (u16, String) {
        let port = self.authority().rsplit(':').next().unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // The server may close before everything was sent; what it said counts.
        let _ = stream.read_to_string(&mut answer);
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (
            status.unwrap_or_else(|| panic!("no answer: {answer:?}")),
            answer,
        )
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: {}\r\n", self.authority()));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(&format!("{request}\r\n{body}"))
    }
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

#[tokio::test]
async fn our_own_client_finds_the_tools_over_http_and_over_pipes() {
    let setting = talked(&["a question"]).await;
    let served = Served::start(&setting.hermes, "127.0.0.1:0");
    let other = bare();
    let run = |args: &[&str]| other.clone().args(args.iter().copied()).run();
    assert_eq!(
        run(&["mcp", "add", "web", "--url", &served.url]).code,
        Some(0)
    );
    let home = format!("HERMES_HOME={}", setting.hermes.home().display());
    let program = env!("CARGO_BIN_EXE_hermes");
    let add = [
        "mcp",
        "add",
        "pipe",
        "--command",
        program,
        "--env",
        &home,
        "--",
        "mcp",
        "serve",
    ];
    assert_eq!(run(&add).code, Some(0));
    let tested = run(&["mcp", "test"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert_eq!(
        tested
            .stdout
            .matches("10 tools: conversations_list")
            .count(),
        2,
        "{tested:?}"
    );
}

#[tokio::test]
async fn a_request_needs_no_session_and_no_handshake() {
    let setting = talked(&["a question"]).await;
    let served = Served::start(&setting.hermes, "127.0.0.1:0");
    let (status, answer) = served.post("/mcp", &[], &call("conversations_list", "{}"));
    assert!(status == 200 && answer.contains("a question"), "{answer}");
    let missing = call("messages_read", r#"{"session_key":"nobody"}"#);
    let (status, answer) = served.post("/mcp", &[], &missing);
    assert!(
        status == 200 && answer.contains("no conversation `nobody`"),
        "{answer}"
    );
}

#[test]
fn web_pages_and_foreign_names_are_kept_out() {
    let served = Served::start(&bare(), "127.0.0.1:0");
    let status = |headers: &[(&str, &str)]| served.post("/mcp", headers, LIST).0;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("host", "localhost")]), 200);
    assert_eq!(status(&[("host", "evil.example")]), 403);
    assert_eq!(status(&[("origin", "https://evil.example")]), 403);
    assert_eq!(status(&[("origin", "null")]), 403);
}

#[test]
fn junk_gets_an_answer_and_the_server_goes_on() {
    let served = Served::start(&bare(), "127.0.0.1:0");
    assert_eq!(served.post("/", &[], LIST).0, 404);
    assert_eq!(served.post("/mcp", &[], "not json").0, 415);
    assert_eq!(served.post("/mcp", &[], &"x".repeat(2 << 20)).0, 413);
    assert_eq!(
        served
            .send("GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .0,
        405
    );
    assert_eq!(served.send("nonsense\r\n\r\n").0, 400);
    let (status, answer) = served.post("/mcp", &[], &call("nothing", "{}"));
    assert!(
        status == 200 && answer.contains("unknown tool `nothing`"),
        "{answer}"
    );
    assert_eq!(served.post("/mcp", &[], LIST).0, 200);
}

#[test]
fn beyond_this_machine_a_token_is_needed() {
    let hermes = bare();
    let refused = hermes
        .clone()
        .args(["mcp", "serve", "--http", "0.0.0.0:0"])
        .run();
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(
        refused.stderr.contains("no token") && refused.stderr.contains(" hint: "),
        "{refused:?}"
    );

    let set = hermes
        .clone()
        .args(["config", "set", "HERMES_MCP_SERVE_TOKEN", "long-and-random"])
        .run();
    assert_eq!(set.code, Some(0), "{set:?}");
    let served = Served::start(&hermes, "0.0.0.0:0");
    let status = |headers: &[(&str, &str)]| served.post("/mcp", headers, LIST).0;
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("authorization", "Bearer wrong")]), 401);
    assert_eq!(status(&[("authorization", "Basic long-and-random")]), 401);
    assert_eq!(status(&[("authorization", "Bearer long-and-random")]), 200);
    assert_eq!(
        status(&[
            ("authorization", "bearer long-and-random"),
            ("host", "nas.local")
        ]),
        200
    );
    assert!(!served.running.stderr().contains("long-and-random"));
}

#[test]
fn an_address_in_use_or_unreadable_is_told() {
    let served = Served::start(&bare(), "127.0.0.1:0");
    for (address, told) in [
        (served.authority(), "cannot listen"),
        ("nowhere", "not an address"),
    ] {
        let refused = bare().args(["mcp", "serve", "--http", address]).run();
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.stderr.contains(told) && refused.stderr.contains(" hint: "),
            "{refused:?}"
        );
    }
}

#[test]
fn without_a_token_nobody_answers_what_waits_for_consent() {
    let answer = call(
        "permissions_respond",
        r#"{"id":"nobody","code":"222222","decision":"allow-once"}"#,
    );
    let open = Served::start(&bare(), "127.0.0.1:0");
    let (_, told) = open.post("/mcp", &[], &answer);
    assert!(told.contains("this server has no token"), "{told}");

    let kept = bare().env("HERMES_MCP_SERVE_TOKEN", "long-and-random");
    let kept = Served::start(&kept, "127.0.0.1:0");
    let (_, told) = kept.post(
        "/mcp",
        &[("authorization", "Bearer long-and-random")],
        &answer,
    );
    assert!(told.contains("there is no question `nobody`"), "{told}");
}
