//! MCP servers that are slow, away, or seen for the first time: a conversation begins with the tools it had, and is told
//! of those that come later.

use std::time::{Duration, Instant};

use hermes_testkit::mcp::FaultyMcp;
use hermes_testkit::peers::{self, wait_until};
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);
const MANUAL: &str = "approvals:\n  mode: manual\n";

/// A server over standard input and output that takes its time before it reads anything.
const SLEEPY: &str = r#"
import json, sys, time
time.sleep(float(sys.argv[1]))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, reply = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        reply["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "sleepy", "version": "1"}}
    elif method == "tools/list":
        reply["result"] = {"tools": [{"name": "yawn", "description": "Yawns.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        reply["result"] = {"content": [{"type": "text", "text": "a long yawn"}]}
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(reply), flush=True)
"#;

/// A home with so many of these servers, each of which sleeps for so long.
async fn with_sleepers(script: Script, servers: usize, seconds: f32) -> Setting {
    let setting = Setting::new(script).await;
    let program = setting.hermes.home().join("sleepy.py");
    std::fs::write(&program, SLEEPY).unwrap();
    let section = |number: usize| {
        let program = program.display();
        format!("  sleepy{number}: {{ command: python3, args: ['{program}', '{seconds}'] }}\n")
    };
    let sections: String = (0..servers).map(section).collect();
    let config = format!("{MANUAL}mcp_servers:\n{sections}");
    crate::setting::write_config(&setting.hermes, &setting.server.url(), &config);
    setting
}

fn tools_of(request: &hermes_testkit::server::Request) -> Vec<String> {
    let tools = request.json["tools"].as_array().cloned();
    let name = |tool: Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.unwrap_or_default().into_iter().map(name).collect()
}

#[tokio::test]
async fn a_server_that_is_slow_is_waited_for_once_and_then_known() {
    let yawn = || Answer::call("c1", "mcp__sleepy0__yawn", json!({}));
    let script = [
        yawn(),
        Answer::text("first"),
        yawn(),
        Answer::text("second"),
    ];
    let setting = with_sleepers(Script::new(script), 1, 2.0).await;
    let first = setting.run(&["-z", "yawn"]);
    assert_eq!(first.stdout, "first\n", "{first:?}");
    assert!(
        first.stderr.contains("waiting for MCP server `sleepy0`"),
        "{first:?}"
    );
    let second = setting.run(&["-z", "yawn"]);
    assert_eq!(
        (second.stdout.as_str(), second.stderr.as_str()),
        ("second\n", "")
    );
    let requests = setting.server.requests();
    assert_eq!(requests.len(), 4);
    assert!(tools_of(&requests[0]).contains(&"mcp__sleepy0__yawn".to_owned()));
    for request in &requests {
        assert_eq!(request.json["tools"], requests[0].json["tools"]);
    }
    for answered in [&requests[1], &requests[3]] {
        assert!(
            answered.json["messages"]
                .to_string()
                .contains("a long yawn")
        );
    }
}

#[tokio::test]
async fn a_person_too_begins_with_the_tools_of_a_server_that_is_slow() {
    let script = Script::new([Answer::text("good morning")]);
    let setting = with_sleepers(script, 1, 2.5).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("hello\n");
    terminal.expect("waiting for MCP server `sleepy0`", SOON);
    terminal.expect("good morning", SOON);
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(SOON), Some(0));
    let requests = setting.server.requests();
    assert!(tools_of(&requests[0]).contains(&"mcp__sleepy0__yawn".to_owned()));
}

#[tokio::test]
async fn a_program_that_keeps_crashing_is_not_waited_for_in_vain() {
    let setting = Setting::new(Script::always(Answer::text("fine"))).await;
    let crash = "echo broken >&2; exit 3";
    setting.run(&["mcp", "add", "crashing", "--", "sh", "-c", crash]);
    let asked = Instant::now();
    let missed = setting.run(&["-z", "hi"]);
    assert_eq!((missed.stdout.as_str(), missed.code), ("fine\n", Some(0)));
    assert!(asked.elapsed() < SOON, "{missed:?}");
    for words in ["MCP server `crashing`", "broken", "tried again in"] {
        assert!(missed.stderr.contains(words), "{words}: {missed:?}");
    }
}

#[tokio::test]
async fn a_section_that_cannot_be_used_is_named_in_scripts_too() {
    for (servers, named) in [
        ("  broken: 5\n", "`mcp_servers.broken`"),
        (
            "  broken: { url: 'http://127.0.0.1:9/mcp', timeout: soon, enabled: false }\n",
            "`mcp_servers.broken.timeout`",
        ),
        ("  - broken\n", "`mcp_servers` must be a section"),
    ] {
        let script = Script::always(Answer::text("fine"));
        let setting = Setting::with(script, &format!("{MANUAL}mcp_servers:\n{servers}")).await;
        let asked = setting.run(&["-z", "hi"]);
        assert_eq!(asked.stdout, "fine\n", "{asked:?}");
        assert!(asked.stderr.contains(named), "{asked:?}");
        for look in [
            &["mcp", "status"][..],
            &["mcp", "test"],
            &["mcp", "doctor"],
            &["config", "check"],
        ] {
            let looked = setting.run(look);
            assert_eq!(looked.code, Some(1), "{look:?}: {looked:?}");
            let told = [looked.stdout, looked.stderr].concat();
            assert!(told.contains("mcp_servers"), "{look:?}: {told}");
        }
        let listed = setting.run(&["mcp", "list"]);
        assert!(listed.stdout.contains("misconfigured"), "{listed:?}");
    }
}

#[tokio::test]
async fn a_server_that_died_changes_no_byte_of_the_prompt() {
    let server = FaultyMcp::start().await;
    let setting = Setting::new(Script::always(Answer::text("fine"))).await;
    setting.run(&["mcp", "add", "tickets", "--url", &server.url()]);
    assert_eq!(setting.run(&["-z", "hi"]).code, Some(0));
    server.stop_listening();
    let dead = setting.run(&["-z", "hi"]);
    assert_eq!((dead.stdout.as_str(), dead.stderr.as_str()), ("fine\n", ""));
    let requests = setting.server.requests();
    assert!(tools_of(&requests[0]).contains(&"mcp__tickets__append".to_owned()));
    assert_eq!(requests[0].json["tools"], requests[1].json["tools"]);
    assert_eq!(
        requests[0].json["messages"][0],
        requests[1].json["messages"][0]
    );
}

#[tokio::test]
async fn a_server_that_never_comes_is_named_and_missed() {
    let setting = Setting::new(Script::always(Answer::text("fine"))).await;
    let url = "http://127.0.0.1:9/mcp";
    setting.run(&["mcp", "add", "gone", "--url", url]);
    setting.run(&["config", "set", "mcp_servers.gone.connect_timeout", "1"]);
    let missed = setting.run(&["-z", "hi"]);
    assert_eq!((missed.stdout.as_str(), missed.code), ("fine\n", Some(0)));
    for words in ["waiting for MCP server `gone`", "was not there within 1 s"] {
        assert!(missed.stderr.contains(words), "{missed:?}");
    }
}

#[tokio::test]
async fn a_server_that_comes_later_is_announced_and_can_be_called() {
    let server = FaultyMcp::start().await;
    server.stop_listening();
    let append = |word: &str| json!({ "word": word });
    let found = json!({ "name": "mcp__late__append", "arguments": append("found") });
    let setting = Setting::new(Script::new([
        Answer::text("first answer"),
        Answer::call("c1", "mcp__late__append", append("named")),
        Answer::call("c2", "tool_call", found),
        Answer::text("second answer"),
        Answer::text("third answer"),
    ]))
    .await;
    setting.run(&["mcp", "add", "late", "--url", &server.url()]);
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("hello\n");
    terminal.expect("waiting for MCP server `late`", SOON);
    terminal.expect("`late` is not there yet", SOON);
    terminal.expect("first answer", SOON);
    server.listen_again();
    wait_until("it is listed", || server.count("tools/list") > 0);
    std::thread::sleep(Duration::from_millis(200));
    terminal.send("use it\n");
    terminal.expect("tools have come: late", SOON);
    terminal.expect("second answer", SOON);
    terminal.send("once more\n");
    terminal.expect("third answer", SOON);
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(SOON), Some(0));
    assert_eq!(
        (server.executions("named"), server.executions("found")),
        (1, 1)
    );
    let requests = setting.server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.json["tools"] == requests[0].json["tools"])
    );
    let said = |request: usize| requests[request].json["messages"].to_string();
    assert!(!said(0).contains("mcp__late__append"));
    assert!(said(1).contains("mcp__late__append`: "), "{}", said(1));
    assert_eq!(
        said(4).matches("Tools that are new").count(),
        1,
        "told once"
    );
}

/// A server that has another tool once one was called.
const GROWING: &str = r#"
import json, sys
tools = ["grow"]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, reply = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        reply["result"] = {"protocolVersion": message["params"]["protocolVersion"],
                           "capabilities": {"tools": {"listChanged": True}},
                           "serverInfo": {"name": "garden", "version": "1"}}
    elif method == "tools/list":
        reply["result"] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    elif method == "tools/call":
        if message["params"]["name"] == "grow":
            tools.append("bloom")
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
        reply["result"] = {"content": [{"type": "text", "text": message["params"]["name"] + " is done"}]}
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(reply), flush=True)
"#;

#[tokio::test]
async fn a_tool_that_comes_in_the_middle_of_a_turn_can_be_called_in_it() {
    let script = Script::new([
        Answer::call("c1", "mcp__garden__grow", json!({})),
        Answer::call("c2", "terminal", json!({"command": "sleep 1"})),
        Answer::call("c3", "mcp__garden__bloom", json!({})),
        Answer::text("it blooms"),
    ]);
    let setting = Setting::new(script).await;
    let program = setting.hermes.home().join("garden.py");
    std::fs::write(&program, GROWING).unwrap();
    let config = format!(
        "mcp_servers:\n  garden: {{ command: python3, args: ['{}'] }}\n",
        program.display()
    );
    crate::setting::write_config(&setting.hermes, &setting.server.url(), &config);
    let output = setting.run(&["-z", "make it bloom"]);
    assert_eq!(output.stdout, "it blooms\n", "{output:?}");
    let requests = setting.server.requests();
    assert!(!tools_of(&requests[0]).contains(&"mcp__garden__bloom".to_owned()));
    let messages = requests[3].json["messages"].to_string();
    assert!(messages.contains("bloom is done"), "{messages}");
}

#[tokio::test]
async fn the_interface_is_there_while_servers_sleep() {
    if !peers::is_there("tmux") {
        return;
    }
    let setting = with_sleepers(Script::always(Answer::text("an answer")), 6, 100.0).await;
    let tmux = setting.hermes.spawn_in_tmux();
    tmux.expect_screen("\n›\n", SOON);
    tmux.write("hello");
    tmux.press("Enter");
    tmux.expect_screen("waiting for MCP servers", SOON);
    tmux.press("C-c");
    tmux.expect_screen("an answer", SOON);
    assert!(
        !tmux.screen().contains("is not there yet"),
        "who interrupts does not wait"
    );
}
