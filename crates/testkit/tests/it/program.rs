//! The `hermes-scripted-server` program.

use std::{fs, net::SocketAddr, time::Duration};

use hermes_testkit::process::{Hermes, Running};
use serde_json::{Value, json};

use crate::client::request;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hermes-scripted-server");

fn listening_address(server: &mut Running) -> SocketAddr {
    server.expect_stdout("\n", Duration::from_secs(10));
    let stdout = server.stdout();
    let address = stdout.trim_end().strip_prefix("listening on http://");
    address.unwrap().parse().unwrap()
}

#[test]
fn it_serves_a_script_and_logs_each_request() {
    let hermes = Hermes::new(PROGRAM);
    let log = hermes.work_folder().join("log.jsonl");
    let script = json!({
        "select": "by_step",
        "turns": [
            {"when": {"contains": "weather"}, "answers": [
                {"parts": [{"call": "look", "id": "c1", "arguments": {"at": "sky"}}]},
                {"parts": [{"text": "sunny"}], "faults": {"chunk_delay_ms": 1}}]},
            {"answers": [{"refusal": {"status": 529, "body": {"error": "busy"}}}]},
        ],
    });
    fs::write(hermes.work_folder().join("script.json"), script.to_string()).unwrap();
    let mut server = hermes.args(["script.json", "--log", "log.jsonl"]).spawn();
    let address = listening_address(&mut server);

    let question = json!({"messages": [{"role": "user", "content": "weather?"},
        {"role": "assistant", "content": null}, {"role": "tool", "content": "blue"}]});
    let ask = |body: &Value| request(address, "POST", "/chat/completions", &body.to_string());
    let response = ask(&question).json();
    assert_eq!(response["choices"][0]["message"]["content"], "sunny");
    assert_eq!(ask(&json!({"messages": []})).status, 529);

    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["path"], "/chat/completions");
    assert_eq!(lines[0]["step"], 1);
    assert_eq!(
        (&lines[0]["last_role"], &lines[0]["last_text"]),
        (&json!("tool"), &json!("blue"))
    );
    assert_ne!(lines[0]["body_hash"], lines[1]["body_hash"]);
}

#[test]
fn it_says_what_is_wrong_with_a_script() {
    let hermes = Hermes::new(PROGRAM);
    fs::write(hermes.work_folder().join("script.json"), r#"{"turn": []}"#).unwrap();
    let output = hermes.args(["script.json"]).run();
    assert!(!output.is_success());
    assert!(
        output.stderr.contains("`script.json` is not a script"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("unknown field `turn`"),
        "{}",
        output.stderr
    );
}
