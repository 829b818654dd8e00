//! MCP servers as a user meets them: added by a command, used by the model, lost and found again.

use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss};
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::{Setting, bare};

#[tokio::test]
async fn a_call_survives_a_lost_session_and_runs_once() {
    let server = FaultyMcp::start().await;
    let setting = Setting::new(Script::new([
        Answer::call("c1", "mcp__tickets__append", json!({"word": "first"})),
        Answer::call("c2", "mcp__tickets__append", json!({"word": "second"})),
        Answer::text("both are in"),
    ]))
    .await;
    assert_eq!(
        setting
            .run(&["mcp", "add", "tickets", "--url", &server.url()])
            .code,
        Some(0)
    );
    server.fail(Rule::once(Fault::SessionLost(SessionLoss::ALL[0])).on("tools/call"));
    let output = setting.run(&["-z", "append two words"]);
    assert_eq!(
        (output.stdout.as_str(), output.code),
        ("both are in\n", Some(0)),
        "{output:?}"
    );
    assert_eq!(
        (server.executions("first"), server.executions("second")),
        (1, 1)
    );
    assert_eq!(server.count("initialize"), 2, "the session was made anew");
}

#[tokio::test]
async fn a_server_that_is_away_does_not_keep_anybody_from_working() {
    let setting = Setting::new(Script::new([Answer::text("fine without")])).await;
    let add = ["mcp", "add", "gone", "--url", "http://127.0.0.1:9/mcp"];
    assert_eq!(setting.run(&add).code, Some(0));
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(
        (output.stdout.as_str(), output.code),
        ("fine without\n", Some(0)),
        "{output:?}"
    );
}

#[tokio::test]
async fn servers_are_added_listed_tested_and_removed() {
    let server = FaultyMcp::start().await;
    let hermes = bare();
    let run = |args: &[&str]| hermes.clone().args(args.iter().copied()).run();
    assert!(run(&["mcp"]).stdout.contains("no MCP servers yet"));
    assert_eq!(
        run(&["mcp", "add", "tickets", "--url", &server.url()]).code,
        Some(0)
    );
    assert!(run(&["mcp", "list"]).stdout.contains("tickets"));
    let tested = run(&["mcp", "test", "tickets"]);
    assert!(
        tested.stdout.contains("ready") && tested.stdout.contains("append"),
        "{tested:?}"
    );
    let again = run(&["mcp", "add", "tickets", "--url", &server.url()]);
    assert_eq!(again.code, Some(2), "{again:?}");
    let unknown = run(&["mcp", "test", "ticket"]);
    assert!(
        unknown.stderr.contains("did you mean `tickets`"),
        "{unknown:?}"
    );
    let wrong = run(&["mcp", "add", "wrong", "--url", "tickets.example"]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("http"),
        "{wrong:?}"
    );
    assert_eq!(run(&["mcp", "remove", "tickets"]).code, Some(0));
    assert!(run(&["mcp", "list"]).stdout.contains("no MCP servers yet"));
}

#[tokio::test]
async fn toolsets_on_the_command_line_choose_servers_too() {
    let server = FaultyMcp::start().await;
    let setting = Setting::new(Script::always(Answer::text("ok"))).await;
    setting.run(&["mcp", "add", "tickets", "--url", &server.url()]);
    let offered = |flags: &[&str]| {
        let args: Vec<&str> = flags.iter().copied().chain(["-z", "hi"]).collect();
        assert_eq!(setting.run(&args).code, Some(0));
        let request = setting.server.requests().pop().unwrap();
        let tools = request.json["tools"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let names = tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let has = |tools: &[String], name: &str| tools.iter().any(|tool| tool == name);
    let usual = offered(&[]);
    assert!(
        has(&usual, "terminal") && has(&usual, "mcp__tickets__echo"),
        "{usual:?}"
    );
    let only_server = offered(&["-t", "tickets"]);
    assert!(
        !has(&only_server, "terminal") && has(&only_server, "mcp__tickets__echo"),
        "{only_server:?}"
    );
    let only_files = offered(&["-t", "file"]);
    let files = ["patch", "read_file", "search_files", "write_file"];
    assert_eq!(only_files, files);
    assert!(offered(&["-t", "none"]).is_empty());
}
