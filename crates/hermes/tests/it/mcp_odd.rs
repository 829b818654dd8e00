//! Servers whose lists of tools are not quite right: one bad tool hides one tool, and every command says the same.

use std::path::Path;

use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use hermes_testkit::process::Hermes;
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::{Setting, bare, write_config};

/// A server over standard input and output that lists what a file says.
const LISTING: &str = r#"
import json, sys
listed = open(sys.argv[1]).read()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, head = message["method"], '{"jsonrpc": "2.0", "id": %s, ' % json.dumps(message["id"])
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "listing", "version": "1"}}
        print(head + '"result": %s}' % json.dumps(result), flush=True)
    elif method == "tools/list":
        print(head + '"result": {"tools": %s}}' % listed, flush=True)
    elif method == "tools/call":
        text = "called " + message["params"]["name"]
        print(head + '"result": %s}' % json.dumps({"content": [{"type": "text", "text": text}]}), flush=True)
    else:
        print(head + '"error": {"code": -32601, "message": "Method not found"}}', flush=True)
"#;

/// Everything that a tool can get wrong, and one that is right.
fn odd_tools() -> String {
    let deep = format!("{}1{}", r#"{"items":["#.repeat(400), "]}".repeat(400));
    let tools = json!([
        { "name": "good", "description": "Good.", "inputSchema": { "type": "object" } },
        { "name": "missing" },
        { "name": "null", "inputSchema": null },
        { "name": "boolean", "inputSchema": true },
        { "name": "hints", "inputSchema": {}, "annotations": { "readOnlyHint": "yes" } },
        { "name": "good", "inputSchema": {} },
        { "inputSchema": {} },
        17,
    ])
    .to_string();
    let deep = format!(r#",{{"name":"deep","inputSchema":{deep}}}]"#);
    tools.strip_suffix(']').unwrap().to_owned() + &deep
}

fn section(hermes: &Hermes) -> String {
    let file = |name: &str, text: &str| {
        let path = hermes.home().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let show = |path: &Path| path.display().to_string();
    let (program, tools) = (
        file("listing.py", LISTING),
        file("tools.json", &odd_tools()),
    );
    let (program, tools) = (show(&program), show(&tools));
    format!("mcp_servers:\n  odd: {{ command: python3, args: ['{program}', '{tools}'] }}\n")
}

const USABLE: &[&str] = &["good", "missing", "null", "boolean", "hints", "deep"];
const NOTES: &[&str] = &[
    "tool `missing`: its `inputSchema` is missing",
    "tool `null`: its `inputSchema` is null",
    "tool `boolean`: its `inputSchema` is a boolean",
    "tool `hints`: some of its `annotations` make no sense",
    "tool `good` is listed twice",
    "entry 7 of its tools is left out: it has no name",
    "entry 8 of its tools is left out: it is a number",
    "tool `deep`: its schema is nested too deeply",
];

#[tokio::test]
async fn one_bad_tool_hides_one_tool() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "mcp__odd__good", json!({})),
        Answer::call("c2", "mcp__odd__missing", json!({})),
        Answer::text("done"),
    ]))
    .await;
    let more = section(&setting.hermes);
    write_config(&setting.hermes, &setting.server.url(), &more);
    let output = setting.run(&["-z", "call them"]);
    assert_eq!(output.stdout, "done\n", "{output:?}");
    let requests = setting.server.requests();
    let offered = requests[0].json["tools"].to_string();
    for name in USABLE {
        assert!(
            offered.contains(&format!("mcp__odd__{name}\"")),
            "{name}: {offered}"
        );
    }
    let said = requests[2].json["messages"].to_string();
    assert!(
        said.contains("called good") && said.contains("called missing"),
        "{said}"
    );
    for (command, code) in [("status", 0), ("test", 0)] {
        let told = setting.run(&["mcp", command, "--json"]);
        assert_eq!(told.code, Some(code), "{told:?}");
        let servers: Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!(servers[0]["tool_count"], USABLE.len(), "{servers}");
        let warnings = servers[0]["warnings"].to_string();
        for note in NOTES {
            assert!(
                warnings.contains(note) && told.stderr.contains(note),
                "{note}: {told:?}"
            );
        }
    }
    let doctor = setting.run(&["doctor"]);
    for note in NOTES {
        assert!(doctor.stdout.contains(note), "{note}: {doctor:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_not_ready_and_fails_every_look() {
    let (hanging, refusing) = (FaultyMcp::start().await, FaultyMcp::start().await);
    hanging.fail(Rule::once(Fault::Hang).on("tools/list").until_cleared());
    let broken = Fault::Status {
        status: 500,
        retry_after: None,
    };
    refusing.fail(Rule::once(broken).on("tools/list").until_cleared());
    for (config, why) in [
        (
            format!("hanging: {{ url: '{}' }}", hanging.url()),
            "does not come",
        ),
        (
            format!("refusing: {{ url: '{}' }}", refusing.url()),
            "cannot be listed",
        ),
        ("invalid: { timeout: 3 }".to_owned(), "neither `url`"),
    ] {
        let hermes = bare();
        let config = format!("mcp_servers:\n  {config}\n");
        std::fs::write(hermes.home().join("config.yaml"), config).unwrap();
        for command in ["status", "test"] {
            let args = ["mcp", command, "--wait", "3", "--json"];
            let told = hermes.clone().args(args).run();
            assert_eq!(told.code, Some(1), "{command}: {told:?}");
            let servers: Value = serde_json::from_str(&told.stdout).unwrap();
            assert_ne!(servers[0]["state"], "ready", "{command}: {told:?}");
            assert!(servers[0].to_string().contains(why), "{command}: {told:?}");
        }
    }
}
