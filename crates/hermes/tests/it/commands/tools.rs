//! `hermes tools`: what models are offered.

use std::time::Duration;

use hermes_testkit::mcp::FaultyMcp;
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(20);

async fn setting() -> Setting {
    Setting::new(Script::always(Answer::text("ok"))).await
}

/// The names of the tools the last request offered.
fn offered(setting: &Setting) -> Vec<String> {
    let request = setting.server.requests().pop().unwrap();
    let tools = request.json["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn a_toolset_that_is_switched_off_is_offered_no_more() {
    let setting = setting().await;
    let saved = setting.run(&["tools", "disable", "terminal"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert!(
        saved.stdout.contains("from the next conversation on"),
        "{saved:?}"
    );
    setting.run(&["-z", "hi"]);
    let tools = offered(&setting);
    assert!(
        !tools.contains(&"terminal".to_owned()) && tools.contains(&"todo".to_owned()),
        "{tools:?}"
    );

    let listed = setting.run(&["tools", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let is_on = |name: &str| {
        let toolsets = listed["toolsets"].as_array().unwrap();
        let toolset = toolsets.iter().find(|toolset| toolset["name"] == name);
        toolset.unwrap()["enabled"].as_bool().unwrap()
    };
    assert!(!is_on("terminal") && is_on("file"));

    setting.run(&["tools", "enable", "terminal"]);
    setting.run(&["-z", "hi"]);
    assert!(offered(&setting).contains(&"terminal".to_owned()));
}

#[tokio::test]
async fn settings_written_for_more_toolsets_than_there_are_keep_them() {
    let setting = setting().await;
    setting.run(&[
        "config",
        "set",
        "platform_toolsets.cli",
        "[vision, file, browser]",
    ]);
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(0), ""),
        "{output:?}"
    );
    assert_eq!(
        offered(&setting),
        ["patch", "read_file", "search_files", "write_file"]
    );
    setting.run(&["tools", "disable", "file"]);
    let names = setting
        .run(&["config", "get", "platform_toolsets.cli"])
        .stdout;
    assert!(
        names.contains("vision") && names.contains("browser") && !names.contains("file"),
        "{names}"
    );
}

#[tokio::test]
async fn an_unknown_name_changes_nothing() {
    let setting = setting().await;
    let output = setting.run(&["tools", "disable", "file", "termnal"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.stderr.contains("did you mean `terminal`?"),
        "{output:?}"
    );
    let summary = setting.run(&["tools", "--summary"]).stdout;
    assert!(
        summary.contains("file") && summary.starts_with("cli: "),
        "{summary}"
    );
}

#[tokio::test]
async fn at_a_terminal_toolsets_of_each_surface_are_switched_by_their_numbers() {
    let setting = setting().await;
    let tools = |args: &[&str]| {
        let hermes = setting.hermes.clone().args(args.iter().copied());
        let mut terminal = hermes.env("NO_COLOR", "1").spawn_in_terminal();
        terminal.expect("switch which?", SOON);
        terminal
    };
    let mut terminal = tools(&["tools", "--platform", "telegram"]);
    terminal.send("99\n");
    terminal.expect("write numbers from 1 to", SOON);
    terminal.expect("switch which?", SOON);
    terminal.send("none\n");
    terminal.expect("switch which?", SOON);
    terminal.send("1\n");
    terminal.expect("[x] clarify", SOON);
    terminal.expect("switch which?", SOON);
    terminal.send("\n");
    terminal.expect("telegram offers clarify", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    let mut terminal = tools(&["tools"]);
    terminal.send("none\n");
    terminal.expect("switch which?", SOON);
    terminal.send("q\n");
    terminal.expect("nothing was changed", SOON);
    let settings = std::fs::read_to_string(setting.hermes.home().join("config.yaml")).unwrap();
    assert!(settings.starts_with("# written by hand"), "{settings}");
    let summary = |args: &[&str]| setting.run(args).stdout;
    let telegram = summary(&["tools", "--summary", "--platform", "telegram"]);
    assert!(telegram.starts_with("telegram: 1 of "), "{telegram}");
    assert!(!summary(&["tools", "--summary"]).contains(": 0 of "));
}

#[tokio::test]
async fn a_single_tool_of_a_server_is_hidden_and_shown_again() {
    let server = FaultyMcp::start().await;
    let setting = setting().await;
    setting.run(&["mcp", "add", "tickets", "--url", &server.url()]);
    for (verb, is_offered) in [("disable", false), ("enable", true)] {
        let output = setting.run(&["tools", verb, "tickets:append"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        setting.run(&["-z", "hi"]);
        let tools = offered(&setting);
        assert_eq!(
            tools.contains(&"mcp__tickets__append".to_owned()),
            is_offered,
            "{tools:?}"
        );
    }
}

#[tokio::test]
async fn tools_that_are_many_are_found_described_and_called() {
    let server = FaultyMcp::start().await;
    let append = "mcp__tickets__append";
    let setting = Setting::new(Script::new([
        Answer::call("c1", "tool_search", json!({"query": "append a word"})),
        Answer::call("c2", "tool_describe", json!({"name": append})),
        Answer::call(
            "c3",
            "tool_call",
            json!({"name": append, "arguments": {"word": "found"}}),
        ),
        Answer::text("it is in"),
    ]))
    .await;
    setting.run(&["mcp", "add", "tickets", "--url", &server.url()]);
    setting.run(&["config", "set", "tools.tool_search.enabled", "on"]);
    let output = setting.run(&["-z", "append a word"]);
    assert_eq!(output.stdout, "it is in\n", "{output:?}");
    assert_eq!(server.executions("found"), 1);
    let tools = offered(&setting);
    assert!(
        tools.contains(&"tool_call".to_owned()) && !tools.contains(&append.to_owned()),
        "{tools:?}"
    );
    let messages = setting.server.requests().pop().unwrap().json["messages"].to_string();
    assert!(
        messages.contains("source_name") && messages.contains("parameters"),
        "{messages}"
    );
}
