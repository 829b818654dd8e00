//! `hermes mcp` beside adding and testing: how servers are, what is wrong with them, which tools are wanted.

use std::fs;
use std::time::Duration;

use hermes_testkit::mcp::{Fault, FaultyMcp, Rule};
use hermes_testkit::process::Hermes;
use serde_json::{Value, json};

use super::{contains, json, refused, run, stdout};
use crate::setting::bare;

const SOON: Duration = Duration::from_secs(20);

/// A home with these servers, written as a person would.
fn home(servers: &str) -> Hermes {
    let hermes = bare();
    let config = format!("# by hand\nmcp_servers:\n{servers}");
    fs::write(hermes.home().join("config.yaml"), config).unwrap();
    hermes
}

fn with_server(url: &str) -> Hermes {
    home(&format!(
        "  # the ticket system\n  tickets:\n    url: {url} # inside only\n"
    ))
}

#[test]
fn a_server_is_added_with_its_variables_and_without_a_place_both_ways_are_told() {
    let hermes = bare();
    refused(
        &run(&hermes, &["mcp", "add", "x"]),
        2,
        &["`x`", "mcp add x --url URL", "mcp add x -- PROGRAM"],
    );
    let add = ["mcp", "add", "x", "--command", "cat"];
    let env = ["--env", "A=1", "B=2", "--env", "C=3", "--", "-u"];
    stdout(&hermes, &[&add[..], &env[..]].concat());
    let server = json(&hermes, &["config", "get", "mcp_servers.x", "--json"]);
    let names = server["env"].as_object().unwrap().keys();
    let names: Vec<_> = names.map(String::as_str).collect();
    assert_eq!(
        (names, &server["args"]),
        (vec!["A", "B", "C"], &json!(["-u"]))
    );
}

#[tokio::test]
async fn the_doctor_looks_at_all_servers_when_none_is_named() {
    let server = FaultyMcp::start().await;
    let hermes = home(&format!(
        "  tickets:\n    url: {}\n  gone:\n    command: no-such-program\n",
        server.url()
    ));
    let output = run(&hermes, &["mcp", "doctor"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(
        &output.stdout,
        &["tickets\n", "✓ ping", "gone\n", "✗ program"],
    );
    let all = run(&hermes, &["mcp", "doctor", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
    let wells = [&all[0]["is_well"], &all[1]["is_well"]];
    assert_eq!(wells, [&json!(true), &json!(false)]);
    contains(
        &stdout(&bare(), &["mcp", "doctor"]),
        &["no MCP servers yet"],
    );
}

#[tokio::test]
async fn the_status_tells_ready_servers_from_those_that_are_not() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    contains(
        &stdout(&hermes, &["mcp", "status"]),
        &["SERVER", "tickets", "ready"],
    );
    let servers = json(&hermes, &["mcp", "status", "--json"]);
    assert_eq!(
        (
            &servers[0]["state"],
            &servers[0]["breaker"],
            &servers[0]["reconnects"]
        ),
        (&json!("ready"), &json!("closed"), &json!(0))
    );
    let hermes =
        home("  gone: {url: 'http://127.0.0.1:9/mcp'}\n  off: {command: x, enabled: false}\n");
    let output = run(&hermes, &["mcp", "status", "--wait", "1"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(
        &output.stdout,
        &["gone", "reconnecting", "next try in", "off", "disabled"],
    );
    contains(
        &stdout(&bare(), &["mcp", "status"]),
        &["no MCP servers yet"],
    );
    assert_eq!(json(&bare(), &["mcp", "status", "--json"]), json!([]));
}

#[tokio::test]
async fn watching_writes_lines_into_a_pipe_and_redraws_on_a_terminal() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    let mut piped = hermes.clone().args(["mcp", "status", "--watch"]).spawn();
    piped.expect_stdout("tickets  ready", SOON);
    assert!(!piped.stdout().contains('\x1b'), "{}", piped.stdout());
    let mut lines = hermes
        .clone()
        .args(["mcp", "status", "--watch", "--json"])
        .spawn();
    lines.expect_stdout(r#""state":"ready""#, SOON);
    let whole = lines
        .stdout()
        .lines()
        .all(|line| serde_json::from_str::<Value>(line).is_ok());
    assert!(whole, "{}", lines.stdout());

    let mut terminal = hermes
        .clone()
        .args(["mcp", "status", "--watch"])
        .spawn_in_terminal();
    terminal.expect("ready", SOON);
    terminal.expect("\x1b[2A", SOON);
    terminal.send("\x03");
    assert_eq!(terminal.wait(SOON), Some(0));
}

#[tokio::test]
async fn reconnecting_connects_anew_and_needs_a_name_or_all() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    for args in [
        ["mcp", "reconnect", "tickets"],
        ["mcp", "reconnect", "--all"],
    ] {
        contains(&stdout(&hermes, &args), &["tickets", "ready"]);
    }
    assert_eq!(server.count("initialize"), 2);
    assert_eq!(run(&hermes, &["mcp", "reconnect"]).code, Some(2));
    refused(
        &run(&hermes, &["mcp", "reconnect", "ticket"]),
        1,
        &["did you mean `tickets`"],
    );
}

#[tokio::test]
async fn the_doctor_walks_every_step_to_a_server_that_works() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    let report = json(&hermes, &["mcp", "doctor", "tickets", "--json"]);
    let steps = report["steps"].as_array().unwrap();
    let phases: Vec<&str> = steps
        .iter()
        .map(|step| step["phase"].as_str().unwrap())
        .collect();
    let expected = [
        "settings",
        "address",
        "connection",
        "handshake",
        "tools",
        "ping",
    ];
    assert_eq!(
        (phases.as_slice(), &report["is_well"]),
        (&expected[..], &json!(true))
    );
    assert!(steps[3]["elapsed_ms"].as_f64().unwrap() > 0.0);
    contains(
        &stdout(&hermes, &["mcp", "doctor", "tickets"]),
        &["✓ settings", "config.yaml:5", "✓ ping"],
    );
}

#[tokio::test]
async fn the_doctor_names_the_step_that_fails_and_what_to_do() {
    let program = "  exits: {command: sh, args: ['-c', 'echo no key >&2; exit 3']}\n  missing: {command: no-such-program}\n";
    let network = "  gone: {url: 'http://127.0.0.1:9/mcp'}\n  nowhere: {url: 'http://no-such-host.invalid/mcp'}\n";
    let settings = "  both: {url: 'http://x', command: y}\n  unset: {command: sh, env: {K: '${NOT_SET_KEY}'}, connect_timeout: 1}\n";
    let hermes = home(&format!("{program}{network}{settings}"));
    let check = |server: &str, phrases: &[&str]| {
        let output = run(&hermes, &["mcp", "doctor", server]);
        assert_eq!(output.code, Some(1), "{output:?}");
        contains(&output.stdout, phrases);
        contains(&output.stdout, &["fix: "]);
    };
    check("missing", &["✗ program", "no-such-program", "install it"]);
    check("exits", &["✓ program", "✗ handshake", "no key"]);
    check("gone", &["✓ address", "✗ connection", "nothing listens"]);
    check("nowhere", &["✗ address", "no-such-host.invalid"]);
    check("both", &["✗ settings", "both `url` and `command`"]);
    check("unset", &["✗ variables", "NOT_SET_KEY", ".env"]);
    refused(
        &run(&hermes, &["mcp", "doctor", "exit"]),
        1,
        &["did you mean `exits`"],
    );
}

#[tokio::test]
async fn the_doctor_tells_a_web_page_and_a_refusal_from_a_server() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    for (fault, phrases) in [
        (Fault::Html, ["✗ http", "path"]),
        (Fault::Unauthorized, ["✗ http", "headers"]),
        (
            Fault::CaptivePortal,
            ["http://portal.example/login", "it has moved"],
        ),
        (
            Fault::RedirectCrossOrigin,
            ["http://localhost:", "mcp_servers.tickets.url"],
        ),
    ] {
        server.fail(Rule::once(fault).on_everything().until_cleared());
        let output = run(&hermes, &["mcp", "doctor", "tickets"]);
        server.clear();
        assert_eq!(output.code, Some(1), "{output:?}");
        contains(&output.stdout, &phrases);
    }
}

#[tokio::test]
async fn tools_are_chosen_by_flags_and_comments_stay() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    let configure = |flags: &[&str]| {
        let args = ["mcp", "configure", "tickets"].iter().chain(flags).copied();
        stdout(&hermes, &args.collect::<Vec<_>>());
        fs::read_to_string(hermes.home().join("config.yaml")).unwrap()
    };
    let before = fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    let config = configure(&["--exclude", "echo,append"]);
    contains(
        &config,
        &[
            "# by hand",
            "# the ticket system",
            "# inside only",
            "exclude:",
        ],
    );
    let tested = json(&hermes, &["mcp", "test", "tickets", "--json"]);
    assert_eq!(tested[0]["tools_off"], json!(["echo", "append"]));
    let config = configure(&["--include", "echo"]);
    assert!(
        config.contains("include:") && !config.contains("exclude:"),
        "{config}"
    );
    let tested = json(&hermes, &["mcp", "test", "tickets", "--json"]);
    assert_eq!(tested[0]["tools"], json!(["echo"]));
    assert_eq!(configure(&["--all"]), before);
    refused(
        &run(&hermes, &["mcp", "configure", "tickets"]),
        2,
        &["--include"],
    );
    let both = [
        "mcp",
        "configure",
        "tickets",
        "--include",
        "a",
        "--exclude",
        "b",
    ];
    assert_eq!(run(&hermes, &both).code, Some(2));
}

#[tokio::test]
async fn tools_are_chosen_in_a_list_on_a_terminal() {
    let server = FaultyMcp::start().await;
    let hermes = with_server(&server.url());
    let mut terminal = hermes
        .clone()
        .args(["mcp", "configure", "tickets"])
        .spawn_in_terminal();
    terminal.expect("switch which?", SOON);
    terminal.send("99\r");
    terminal.expect("write numbers from 1 to", SOON);
    terminal.expect("switch which?", SOON);
    terminal.send("none\r");
    terminal.expect("switch which?", SOON);
    terminal.send("1\r");
    terminal.expect("switch which?", SOON);
    terminal.send("\r");
    terminal.expect("models see all tools but", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    let tested = json(&hermes, &["mcp", "test", "tickets", "--json"]);
    assert_eq!(tested[0]["tools"].as_array().unwrap().len(), 1);

    let mut terminal = hermes
        .clone()
        .args(["mcp", "configure", "tickets"])
        .spawn_in_terminal();
    terminal.expect("switch which?", SOON);
    terminal.send("all\r");
    terminal.expect("switch which?", SOON);
    terminal.send("q\r");
    terminal.expect("nothing was changed", SOON);
}
