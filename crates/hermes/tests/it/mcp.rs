//! MCP servers as a user meets them: added by a command, used by the model, lost and found again.

use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss};
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use std::time::Duration;

use crate::setting::{Setting, bare};

const SOON: Duration = Duration::from_secs(20);

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
    setting.run(&["config", "set", "mcp_servers.gone.connect_timeout", "1"]);
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
    let usual = [
        "mcp",
        "add",
        "files",
        "--command",
        "npx",
        "--args",
        "-y",
        "some/server",
        "--flag",
    ];
    assert_eq!(run(&usual).code, Some(0));
    let listed = run(&["mcp", "list"]).stdout;
    assert!(listed.contains("npx -y some/server --flag"), "{listed}");
    run(&["mcp", "remove", "files"]);
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

#[tokio::test]
async fn what_is_wrong_with_a_server_is_told_by_its_name_and_the_others_work() {
    let (good, page) = (FaultyMcp::start().await, FaultyMcp::start().await);
    page.fail(Rule::once(Fault::Html).on_everything().until_cleared());
    let hermes = bare();
    let config = format!(
        "mcp_servers:\n\
         \x20 good: {{ url: '{}', time_out: 3 }}\n\
         \x20 page: {{ url: '{}' }}\n\
         \x20 secret: {{ url: '{}', headers: {{ Authorization: 'Bearer ${{NO_SUCH_TOKEN}}' }} }}\n\
         \x20 neither: {{ timeout: 3 }}\n",
        good.url(),
        page.url(),
        good.url(),
    );
    std::fs::write(hermes.home().join("config.yaml"), config).unwrap();
    let tested = hermes.clone().args(["mcp", "test", "--wait", "2"]).run();
    assert_eq!(tested.code, Some(1), "{tested:?}");
    for warning in [
        "`mcp_servers.good.time_out` is not a known key; did you mean `timeout`?",
        "`mcp_servers.secret.headers.Authorization` needs the variable `NO_SUCH_TOKEN`",
        "MCP server `neither` has neither `url`",
    ] {
        assert!(tested.stderr.contains(warning), "{warning}: {tested:?}");
    }
    let lines: Vec<&str> = tested.stdout.lines().collect();
    assert!(lines[0].starts_with("good  ready"), "{lines:?}");
    let page = lines.iter().position(|line| line.starts_with("page  "));
    assert!(lines[page.unwrap() + 1].contains("text/html"), "{lines:?}");
}

#[tokio::test]
async fn a_chat_shows_reconnects_and_reloads_its_servers_and_keeps_its_prompt() {
    let (old, new) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let setting = Setting::new(Script::always(Answer::text("an answer"))).await;
    let add = |name: &str, server: &FaultyMcp| {
        let added = setting.run(&["mcp", "add", name, "--url", &server.url()]);
        assert_eq!(added.code, Some(0), "{added:?}");
    };
    add("old", &old);
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("hello\n");
    terminal.expect("an answer", SOON);
    terminal.send("/mcp\n");
    terminal.expect("old     ready", SOON);
    terminal.send("/mcp reconnect nobody\n");
    terminal.expect("there is no MCP server `nobody`", SOON);
    terminal.send("/mcp reconnect old\n");
    terminal.expect("connecting to old anew", SOON);
    terminal.send("/reload-mcp\n");
    terminal.expect("nothing has changed", SOON);
    add("new", &new);
    terminal.send("/reload-mcp\n");
    terminal.expect("started new", SOON);
    terminal.expect("keeps the tools it began with", SOON);
    terminal.send("once more\n");
    terminal.expect("an answer", SOON);
    terminal.send("/new\n");
    terminal.expect("a new conversation", SOON);
    terminal.send("with new tools\n");
    terminal.expect("an answer", SOON);
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(SOON), Some(0));

    let requests = setting.server.requests();
    let tools: Vec<String> = requests
        .iter()
        .map(|request| request.json["tools"].to_string())
        .collect();
    assert_eq!(
        tools[0], tools[1],
        "the prompt of a conversation never changes"
    );
    assert!(!tools[1].contains("mcp__new__echo") && tools[2].contains("mcp__new__echo"));
    assert_eq!(
        old.count("initialize"),
        2,
        "only the reconnect made a new session"
    );
}

#[tokio::test]
async fn a_chat_follows_its_settings_and_a_broken_file_changes_nothing() {
    let (same, old, new) = (
        FaultyMcp::start().await,
        FaultyMcp::start().await,
        FaultyMcp::start().await,
    );
    let call =
        |id: &str, word: &str| Answer::call(id, "mcp__moving__append", json!({ "word": word }));
    let setting = Setting::new(Script::new([
        call("c1", "broken"),
        Answer::text("first answer"),
        Answer::text("second answer"),
        call("c2", "moved"),
        Answer::text("third answer"),
    ]))
    .await;
    for (name, server) in [("same", &same), ("moving", &old)] {
        let added = setting.run(&["mcp", "add", name, "--url", &server.url()]);
        assert_eq!(added.code, Some(0), "{added:?}");
    }
    let config = setting.hermes.home().join("config.yaml");
    let before = std::fs::read_to_string(&config).unwrap();
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    std::fs::write(&config, "mcp_servers: [\n").unwrap();
    terminal.send("hello\n");
    terminal.expect("the MCP servers stay as they are", SOON);
    terminal.expect("first answer", SOON);
    assert_eq!(old.executions("broken"), 1);
    // What was said once is not said again, and other settings are nobody's business here.
    std::fs::write(&config, format!("{before}\ndisplay:\n  show_cost: true\n")).unwrap();
    terminal.send("hello again\n");
    terminal.expect("second answer", SOON);
    assert!(!terminal.screen().contains("have changed:"));
    std::fs::write(&config, before.replace(&old.url(), &new.url())).unwrap();
    terminal.send("and now\n");
    terminal.expect(
        "the settings of MCP servers have changed: restarted moving",
        SOON,
    );
    terminal.expect("third answer", SOON);
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(SOON), Some(0));
    assert_eq!((old.executions("moved"), new.executions("moved")), (0, 1));
    assert_eq!(
        same.count("initialize"),
        1,
        "the other server was left alone"
    );
}
