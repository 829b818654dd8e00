//! `hermes mcp login` as a person meets it: in a terminal, with a browser near or far.

use std::time::Duration;

use hermes_testkit::mcp::FaultyMcp;
use hermes_testkit::oauth::{AuthServer, Browser};
use hermes_testkit::process::{Hermes, Terminal};

use crate::setting::bare;

const PATIENCE: Duration = Duration::from_secs(20);

/// A home with one server that wants a login.
async fn protected() -> (AuthServer, FaultyMcp, Hermes) {
    let (auth, server, hermes) = (AuthServer::start(), FaultyMcp::start().await, bare());
    server.protect(&auth);
    let add = ["mcp", "add", "tickets", "--auth", "oauth", "--url"];
    let added = hermes.clone().args(add).args([server.url()]).run();
    assert!(
        added.stdout.contains("hermes mcp login tickets"),
        "{added:?}"
    );
    (auth, server, hermes)
}

/// Starts a command that logs in, and returns the address it shows.
fn begin(hermes: &Hermes, command: &str) -> (Terminal, String) {
    begin_with(hermes, &["mcp", command, "tickets", "--no-browser"])
}

fn begin_with(hermes: &Hermes, args: &[&str]) -> (Terminal, String) {
    let args = args.iter().copied();
    let mut terminal = hermes.clone().args(args).spawn_in_terminal();
    terminal.expect("paste the address", PATIENCE);
    let output = terminal.output();
    let mut words = output.split_whitespace();
    let url = words.find(|word| word.starts_with("http://"));
    (terminal, url.expect("an address").to_owned())
}

#[tokio::test]
async fn a_browser_on_this_machine_completes_the_login() {
    let (_auth, server, hermes) = protected().await;
    let (mut terminal, url) = begin(&hermes, "login");
    let mut browser = Browser::default();
    let back = browser.get(&url).await;
    let page = browser.get(back.leads_to()).await;
    assert!(page.text.contains("You are logged in"), "{page:?}");
    terminal.expect("logged in at `tickets`", PATIENCE);
    terminal.expect("ready", PATIENCE);
    assert_eq!(terminal.wait(PATIENCE), Some(0));
    assert!(server.count("tools/list") > 0, "it was tried at once");
}

#[tokio::test]
async fn an_address_pasted_from_another_machine_completes_the_login() {
    let (auth, _server, hermes) = protected().await;
    let (mut terminal, url) = begin(&hermes, "login");
    terminal.send("http://127.0.0.1:1/callback?code=x&state=wrong\r");
    terminal.expect("not the answer to this login", PATIENCE);
    let back = Browser::default().get(&url).await;
    terminal.send(&format!("{}\r", back.leads_to()));
    terminal.expect("ready", PATIENCE);
    assert_eq!(terminal.wait(PATIENCE), Some(0));
    let (mut terminal, url) = begin(&hermes, "reauth");
    let back = Browser::default().get(&url).await;
    terminal.send(&format!("{}\r", back.leads_to()));
    terminal.expect("ready", PATIENCE);
    assert_eq!(auth.registrations(), 2, "everything was forgotten before");
}

#[tokio::test]
async fn all_logins_can_be_made_anew_and_servers_without_one_are_left_alone() {
    let (auth, _server, hermes) = protected().await;
    let plain = ["mcp", "add", "plain", "--command", "cat"];
    assert_eq!(hermes.clone().args(plain).run().code, Some(0));
    let (mut terminal, url) = begin_with(&hermes, &["mcp", "reauth", "--all", "--no-browser"]);
    let back = Browser::default().get(&url).await;
    terminal.send(&format!("{}\r", back.leads_to()));
    terminal.expect("logged in at `tickets`", PATIENCE);
    assert_eq!(terminal.wait(PATIENCE), Some(0));
    assert_eq!(auth.registrations(), 1);
    let output = bare().args(["mcp", "reauth", "--all"]).run();
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("--auth oauth"), "{output:?}");
}

#[tokio::test]
async fn ctrl_c_calls_the_login_off_and_keeps_nothing() {
    let (_auth, _server, hermes) = protected().await;
    let (mut terminal, _url) = begin(&hermes, "login");
    terminal.send("\x03");
    terminal.expect("called off", PATIENCE);
    assert_eq!(terminal.wait(PATIENCE), Some(130));
    assert!(!hermes.home().join("mcp-tokens/tickets.json").exists());
}

#[test]
fn a_program_on_this_machine_is_nothing_to_log_in_at() {
    let hermes = crate::setting::bare();
    let config = "mcp_servers:\n  tickets: { command: tickets-mcp }\n";
    std::fs::write(hermes.home().join("config.yaml"), config).unwrap();
    for command in ["login", "reauth"] {
        let output = hermes.clone().args(["mcp", command, "tickets"]).run();
        assert_eq!(output.code, Some(2), "{output:?}");
        for words in [
            "is a program on this machine (`tickets-mcp`)",
            "`mcp_servers.tickets.env`",
        ] {
            assert!(output.stderr.contains(words), "{output:?}");
        }
    }
}

#[tokio::test]
async fn without_a_terminal_a_login_says_what_to_do() {
    let (_auth, server, hermes) = protected().await;
    let output = hermes.clone().args(["mcp", "login", "tickets"]).run();
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.stderr.contains("run `hermes mcp login tickets`"),
        "{output:?}"
    );
    let output = hermes.clone().args(["mcp", "test", "tickets"]).run();
    assert!(
        output.stdout.contains("run `hermes mcp login tickets`"),
        "{output:?}"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_server_without_oauth_is_told_how_to_have_it() {
    let (server, hermes) = (FaultyMcp::start().await, bare());
    let add = ["mcp", "add", "plain", "--url"];
    hermes.clone().args(add).args([server.url()]).run();
    let args = ["mcp", "login", "plain"];
    let mut terminal = hermes.clone().args(args).spawn_in_terminal();
    terminal.expect("lack `auth: oauth`", PATIENCE);
    terminal.expect("hermes config set mcp_servers.plain.auth oauth", PATIENCE);
    assert_eq!(terminal.wait(PATIENCE), Some(1));
}
