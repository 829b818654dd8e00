//! Over standard input and output.

use std::process::Stdio;
use std::time::Duration;

use hermes_testkit::process::Hermes;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RunningService, ServiceError, ServiceExt as _};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::{list, say, talked};
use crate::approvals::Asking;
use crate::edits::Editing;
use crate::setting::bare;

/// A client of its own process.
struct Client {
    service: RunningService<RoleClient, ()>,
    child: Child,
    /// Keeps the home.
    _hermes: Hermes,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a client starts its server itself"
)]
fn start(hermes: &Hermes) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hermes"))
        .args(["mcp", "serve"])
        .env("HERMES_HOME", hermes.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

impl Client {
    async fn connect(hermes: &Hermes) -> Self {
        let mut child = start(hermes);
        let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let transport = AsyncRwTransport::new_client(pipes.0, pipes.1);
        let service = ().serve(transport).await.unwrap();
        Self {
            service,
            child,
            _hermes: hermes.clone(),
        }
    }

    async fn result(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        self.try_call(tool, arguments).await.unwrap()
    }

    async fn try_call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let Value::Object(arguments) = arguments else {
            panic!("{arguments}")
        };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.service.call_tool(request).await
    }

    /// Calls a tool that must succeed.
    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.result(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        result.structured_content.unwrap()
    }

    /// Calls a tool that must refuse, and returns why.
    async fn refused(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.result(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        result.content[0].as_text().unwrap().text.clone()
    }
}

#[tokio::test]
async fn conversations_are_listed_described_and_read() {
    let setting = talked(&["first question", "second question"]).await;
    let client = Client::connect(&setting.hermes).await;
    let tools = client.service.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 10);

    let all = client.call("conversations_list", json!({})).await;
    let conversations = list(&all, "conversations");
    assert_eq!((conversations.len(), &all["total"]), (2, &json!(2)));
    assert_eq!(conversations[0]["preview"], "second question");
    assert_eq!(conversations[0]["platform"], "oneshot");
    let key = conversations[1]["session_key"].as_str().unwrap();

    let found = client
        .call("conversations_list", json!({"search": "first"}))
        .await;
    assert_eq!(list(&found, "conversations")[0]["session_key"], key);
    assert_eq!(found["count"], 1);

    let described = client
        .call("conversation_get", json!({"session_key": key}))
        .await;
    assert_eq!(described["messages"], 2);
    assert_eq!(described["model"], "custom:test-model");

    let read = client
        .call("messages_read", json!({"session_key": key}))
        .await;
    let said: Vec<_> = list(&read, "messages")
        .iter()
        .map(|message| {
            (
                message["role"].as_str().unwrap(),
                message["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [("user", "first question"), ("assistant", "a fine answer")]
    );
    let last = client
        .call("messages_read", json!({"session_key": key, "limit": 1}))
        .await;
    assert_eq!(list(&last, "messages")[0]["role"], "assistant");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_polled_page_by_page_and_waited_for() {
    let setting = talked(&["one", "two"]).await;
    let client = Client::connect(&setting.hermes).await;
    let mut cursor = json!(0);
    let mut seen = Vec::new();
    loop {
        let page = json!({"after_cursor": cursor, "limit": 3});
        let page = client.call("events_poll", page).await;
        if page["count"] == 0 {
            break;
        }
        let text = |event: &Value| event["message"]["content"].as_str().unwrap().to_owned();
        seen.extend(list(&page, "events").iter().map(text));
        cursor = page["next_cursor"].clone();
    }
    assert_eq!(seen, ["one", "a fine answer", "two", "a fine answer"]);

    let now = client.call("events_poll", json!({})).await;
    assert_eq!((&now["count"], &now["next_cursor"]), (&json!(0), &cursor));
    let started = Instant::now();
    let nothing = client.call("events_wait", json!({"timeout_ms": 300})).await;
    assert_eq!(
        (&nothing["event"], &nothing["reason"]),
        (&json!(null), &json!("timeout"))
    );
    assert!(started.elapsed() >= Duration::from_millis(300));

    let waiting = client.call("events_wait", json!({"timeout_ms": 20_000}));
    let saying = async {
        // The wait has begun when a call behind it is answered.
        client.call("events_poll", json!({})).await;
        tokio::task::block_in_place(|| say(&setting, "three"));
    };
    let (event, ()) = tokio::join!(waiting, saying);
    assert_eq!(event["event"]["message"]["content"], "three", "{event}");
}

#[tokio::test]
async fn what_does_not_exist_yet_is_said_truly() {
    let client = Client::connect(&bare()).await;
    let none = client.call("conversations_list", json!({})).await;
    assert_eq!(none["count"], 0);
    assert_eq!(client.call("channels_list", json!({})).await["count"], 0);
    let open = client.call("permissions_list_open", json!({})).await;
    assert_eq!(open["count"], 0);
    let sent = client
        .refused(
            "messages_send",
            json!({"target": "telegram:1", "message": "hi"}),
        )
        .await;
    assert!(sent.contains("nothing was sent"), "{sent}");
    let answer = json!({"id": "x", "code": "222222", "decision": "allow-once"});
    let answered = client.refused("permissions_respond", answer).await;
    assert!(answered.contains("no question `x`"), "{answered}");
}

#[tokio::test]
async fn a_change_that_waits_for_permission_is_listed_with_its_diff() {
    let editing = Editing::new().await;
    let _terminal = editing.ask();
    let client = Client::connect(&editing.setting.hermes).await;
    let open = client.call("permissions_list_open", json!({})).await;
    let [question] = list(&open, "approvals") else {
        panic!("{open}")
    };
    let diff = question["diff"].as_str().unwrap();
    assert!(diff.contains("\n+alias ll="), "{diff}");
    assert_eq!(question["tool"], "write_file");
}

#[tokio::test]
async fn what_waits_for_permission_is_listed_and_answered() {
    let asking = Asking::new(600).await;
    let mut terminal = asking.ask();
    let client = Client::connect(&asking.setting.hermes).await;
    let open = client.call("permissions_list_open", json!({})).await;
    let [question] = list(&open, "approvals") else {
        panic!("{open}")
    };
    assert_eq!(question["what"], "rm -r victim");
    assert_eq!(
        question["decisions"],
        json!(["allow-once", "allow-always", "deny"])
    );
    let answer = |code: &Value| json!({"id": question["id"], "code": code, "decision": "deny", "reason": "keep it"});
    let wrong = client
        .refused("permissions_respond", answer(&json!("222222")))
        .await;
    assert!(
        wrong.contains("no question that waits has this code"),
        "{wrong}"
    );
    let answer = answer(&question["code"]);
    let answered = client.call("permissions_respond", answer.clone()).await;
    assert_eq!(answered["resolved"], true, "{answered}");
    terminal.expect(
        "answered elsewhere (over MCP): refused",
        Duration::from_secs(30),
    );
    let late = client.refused("permissions_respond", answer).await;
    assert!(late.contains("is over: refused over MCP"), "{late}");
    let open = client.call("permissions_list_open", json!({})).await;
    assert_eq!(open["count"], 0);
}

#[tokio::test]
async fn wrong_calls_are_refused_with_what_would_be_right() {
    let setting = talked(&["hello"]).await;
    let client = Client::connect(&setting.hermes).await;
    for (tool, arguments, reason) in [
        ("messages_read", json!({}), "`session_key` is missing"),
        ("messages_read", json!({"session_key": 7}), "must be a text"),
        (
            "messages_read",
            json!({"session_key": "nobody"}),
            "no conversation `nobody`",
        ),
        (
            "conversation_get",
            json!({"session_key": "'; --"}),
            "no conversation",
        ),
        ("conversations_list", json!({"limit": 0}), "from 1 to 200"),
        (
            "conversations_list",
            json!({"limt": 5}),
            "did you mean `limit`",
        ),
        (
            "events_wait",
            json!({"timeout_ms": 300_001}),
            "from 0 to 300000",
        ),
        ("events_poll", json!({"after_cursor": -1}), "whole number"),
        (
            "attachments_fetch",
            json!({"session_key": "2", "message_id": 99}),
            "no message 99",
        ),
        (
            "permissions_respond",
            json!({"id": "x", "code": "222222", "decision": "yes"}),
            "`allow-once`",
        ),
    ] {
        let refused = client.refused(tool, arguments).await;
        assert!(refused.contains(reason), "{tool}: {refused}");
    }
    let unknown = client.try_call("conversation_list", json!({})).await;
    assert!(
        matches!(&unknown, Err(ServiceError::McpError(error)) if error.message.contains("conversations_list")),
        "{unknown:?}"
    );
    client.call("conversations_list", json!({})).await;
}

#[tokio::test]
async fn reading_works_while_another_process_writes() {
    let setting = talked(&["before"]).await;
    let client = Client::connect(&setting.hermes).await;
    for round in 0..3 {
        say(&setting, &format!("question {round}"));
        let listed = client.call("conversations_list", json!({})).await;
        assert_eq!(listed["count"], 2 + round);
    }
}

#[tokio::test]
async fn the_process_ends_with_its_client_and_on_sigterm() {
    let Client {
        service,
        mut child,
        _hermes,
    } = Client::connect(&bare()).await;
    service.cancel().await.unwrap();
    let status = timeout(Duration::from_secs(10), child.wait()).await;
    assert!(status.unwrap().unwrap().success());

    let mut client = Client::connect(&bare()).await;
    let waiting = client.try_call("events_wait", json!({"timeout_ms": 300_000}));
    let ending = async {
        client.call("events_poll", json!({})).await;
        terminate(client.child.id().unwrap());
    };
    // Whatever the waiting call is told, it does not go on waiting.
    let _ = tokio::join!(waiting, ending);
    let status = timeout(Duration::from_secs(10), client.child.wait()).await;
    assert!(status.unwrap().unwrap().success());
}

fn terminate(id: u32) {
    let pid = rustix::process::Pid::from_raw(id as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// What the server answers to these lines, and how it ends.
fn converse(lines: &[&str]) -> hermes_testkit::process::Output {
    let input: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    bare().args(["mcp", "serve"]).stdin(input).run()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

#[test]
fn junk_and_huge_lines_do_not_end_the_conversation() {
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"{}"}}}}"#,
        "x".repeat(4 << 20)
    );
    let output = converse(&[
        "", "not json", "[1,2", "\u{0}", INITIALIZE, "{}", "null", &huge, LIST,
    ]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("standard output carries only messages"))
        .collect();
    let answer = |id: u64| lines.iter().find(|line| line["id"] == id);
    assert!(answer(1).is_some_and(|answer| answer["result"]["serverInfo"]["name"] == "hermes"));
    assert_eq!(list(&answer(2).unwrap()["result"], "tools").len(), 10);
}

#[test]
fn a_client_that_says_nothing_or_the_wrong_thing_is_no_crash() {
    assert_eq!(converse(&[]).code, Some(0));
    let wrong = converse(&[r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""));
    assert!(wrong.stderr.contains("not `initialize`"), "{wrong:?}");
}
