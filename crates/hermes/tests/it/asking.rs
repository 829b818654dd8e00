//! What an MCP server asks, as a user meets it.

use std::time::Duration;

use hermes_testkit::mcp::{FaultyMcp, Options, Settings};
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(10);

async fn setting(script: Script) -> (Setting, FaultyMcp) {
    let options = Options {
        settings: Settings {
            has_asking_tools: true,
            ..Settings::default()
        },
        ..Options::default()
    };
    let server = FaultyMcp::start_with(&options).unwrap();
    let setting = Setting::new(script).await;
    let add = ["mcp", "add", "tickets", "--url", &server.url()];
    assert_eq!(setting.run(&add).code, Some(0));
    (setting, server)
}

fn ask(method: &str, params: Value) -> Answer {
    let arguments = json!({ "method": method, "params": params });
    Answer::call("c1", "mcp__tickets__ask", arguments)
}

fn form() -> Answer {
    let schema = json!({ "type": "object", "required": ["seats"], "properties": {
        "seats": { "type": "integer", "title": "How many seats", "minimum": 1 },
        "class": { "type": "string", "oneOf": [{ "const": "1", "title": "First" }, { "const": "2", "title": "Second" }],
            "default": "2" },
        "note": { "type": "string" },
    } });
    let params = json!({ "message": "Which \u{1b}[2Ktickets?", "requestedSchema": schema });
    ask("elicitation/create", params)
}

/// What the model was told about its call.
fn told(setting: &Setting) -> String {
    let requests = setting.server.requests();
    let messages = requests.last().unwrap().json["messages"].clone();
    let mut latest = messages.as_array().unwrap().iter().rev();
    latest.find(|message| message["role"] == "tool").unwrap()["content"].to_string()
}

#[tokio::test]
async fn a_form_is_asked_field_by_field_until_the_answers_fit() {
    let script = Script::new([form(), Answer::text("booked")]);
    let (setting, _server) = setting(script).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("book\n");
    terminal.expect("MCP server `tickets` asks: Which \\x1b[2Ktickets?", SOON);
    terminal.expect("How many seats:", SOON);
    terminal.send("none\n");
    terminal.expect("whole number", SOON);
    terminal.send("2\n");
    terminal.expect("1. First", SOON);
    terminal.send("first\n");
    terminal.expect("note", SOON);
    terminal.send("/by the window\n");
    terminal.expect("booked", SOON);
    let told = told(&setting);
    for value in [
        r#"seats\":2"#,
        r#"class\":\"1"#,
        r#"note\":\"/by the window"#,
    ] {
        assert!(told.contains(value), "{value}: {told}");
    }
}

#[tokio::test]
async fn a_form_can_be_declined() {
    let script = Script::new([form(), Answer::text("never mind")]);
    let (setting, _server) = setting(script).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("book\n");
    terminal.expect("How many seats:", SOON);
    terminal.send("/decline\n");
    terminal.expect("never mind", SOON);
    assert!(told(&setting).contains("decline"));
}

#[tokio::test]
async fn where_nobody_is_a_form_is_declined_at_once() {
    let script = Script::new([form(), Answer::text("not booked")]);
    let (setting, _server) = setting(script).await;
    let output = setting.run(&["-z", "book"]);
    assert_eq!(output.stdout, "not booked\n", "{output:?}");
    assert!(told(&setting).contains("decline"));
}

#[tokio::test]
async fn a_server_asks_the_model_that_the_user_has() {
    let params = json!({ "maxTokens": 50, "messages": [
        { "role": "user", "content": { "type": "text", "text": "sum it up" } },
    ] });
    let script = Script::new([
        ask("sampling/createMessage", params),
        Answer::text("it is short"),
        Answer::text("done"),
    ]);
    let (setting, _server) = setting(script).await;
    let report = setting.hermes.work_folder().join("usage.json");
    let output = setting.run(&["-z", "go", "--usage-file", report.to_str().unwrap()]);
    assert_eq!(output.stdout, "done\n", "{output:?}");
    assert!(told(&setting).contains("it is short"));
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["api_calls"], 3, "{report}");
    let asked = setting.server.requests()[1].json.clone();
    assert!(
        asked["messages"].to_string().contains("sum it up"),
        "{asked}"
    );
}

#[tokio::test]
async fn media_are_kept_in_the_home() {
    let script = Script::new([
        Answer::call("c1", "mcp__tickets__draw", json!({})),
        Answer::text("seen"),
    ]);
    let (setting, _server) = setting(script).await;
    setting.run(&["-z", "draw"]);
    let folder = setting.hermes.home().join("cache/media");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
    assert!(told(&setting).contains(&format!("MEDIA:{}", folder.display())));
}
