//! The same logins at real servers: `oidc-provider`, which checks everything, and FastMCP's own provider.
//!
//! `scripts/peers-oauth` installs them.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hermes_mcp::{Callback, Login};
use hermes_testkit::oauth::{Browser, Page};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::oauth_home::{Home, settings};

/// Says where the servers are installed, if not in the cache.
const FOLDER: &str = "HERMES_TEST_PEERS";
/// Lets the tests pass without them. Nobody sets it by accident.
const SKIP: &str = "HERMES_SKIP_TEST_PEERS";
/// Interpreters take their time on a busy machine.
const START_WAIT: Duration = Duration::from_secs(60);
/// Pages between the first and the last of a login; more are a loop.
const PAGES_MAX: usize = 12;

/// A running server; it ends with the test.
struct Peer {
    section: Value,
    _process: Child,
    /// A server that finds nobody reading what it says would end.
    _words: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts `oidc-provider` with an MCP server beside it.
    async fn oidc(lifetime: Duration) -> Option<Self> {
        let folder = installed("oidc-provider")?;
        let arguments = [source("oidc_server.mjs"), folder.display().to_string()];
        Some(Self::start("node".into(), &arguments, lifetime).await)
    }

    /// Starts a FastMCP server that is its own authorisation server.
    async fn fastmcp(lifetime: Duration) -> Option<Self> {
        let python = installed("fastmcp")?.join("bin/python");
        Some(Self::start(python, &[source("fastmcp_server.py")], lifetime).await)
    }

    async fn start(program: PathBuf, arguments: &[String], lifetime: Duration) -> Self {
        let mut process = command(program)
            .args(arguments)
            .arg(lifetime.as_secs().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut words = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = timeout(START_WAIT, words.next_line()).await.unwrap();
        let url = url.unwrap().expect("it says where it is");
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        timeout(START_WAIT, listening(address)).await.unwrap();
        let section = json!({ "url": url, "auth": "oauth", "keepalive_interval": 0 });
        Self {
            section,
            _process: process,
            _words: words,
        }
    }
}

async fn listening(address: &str) {
    while TcpStream::connect(address).await.is_err() {
        sleep(Duration::from_millis(50)).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the test owns these processes")]
fn command(program: PathBuf) -> Command {
    Command::new(program)
}

fn source(name: &str) -> String {
    format!("{}/tests/it/oauth_peers/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns where a server is installed, or `None` if the user wants to do without.
#[expect(clippy::print_stdout, reason = "a test without its peer says so")]
fn installed(name: &str) -> Option<PathBuf> {
    let in_cache = |cache: PathBuf| cache.join("hermes-test-peers");
    let folder = variable(FOLDER)
        .map(PathBuf::from)
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| in_cache(cache.into())))
        .or_else(|| variable("HOME").map(|home| in_cache(PathBuf::from(home).join(".cache"))))
        .expect("HOME is set")
        .join(name);
    if folder.join("installed").exists() {
        return Some(folder);
    }
    assert!(
        variable(SKIP).is_some(),
        "`{name}` is not in {}; run scripts/peers-oauth, or set {SKIP}=1 to do without this proof",
        folder.display()
    );
    println!("SKIPPED: `{name}` is not installed and {SKIP} is set");
    None
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told this way where their peers are"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Logs in as a person does: fills in every form until the browser is sent back to us.
async fn log_in(home: &Home, section: &Value) {
    let (server, ports) = (settings("test", section), home.ports());
    let mut callback = Callback::open(&server, &ports).await.unwrap();
    let way_back = callback.redirect_uri().to_owned();
    let login = Login::begin(&server, &ports, &way_back, &[]).await.unwrap();
    let mut browser = Browser::default();
    let mut page = browser.get(login.url()).await;
    for _ in 0..PAGES_MAX {
        page = match page.location {
            Some(location) if location.starts_with(&way_back) => {
                let hermes = async {
                    let returned = callback.returned().await;
                    login.finish(&returned.answer).await.unwrap();
                    returned.show(&Ok(())).await;
                };
                tokio::join!(browser.get(&location), hermes);
                return;
            }
            Some(location) => browser.get(&location).await,
            None => {
                let (action, form) = filled_in(&page);
                browser.post(&action, &form).await
            }
        };
    }
    panic!("the login does not end: {page:?}");
}

/// Fills in the one form of a page of `oidc-provider`.
fn filled_in(page: &Page) -> (String, String) {
    let between = |start: &str, end: &str| {
        let (_, rest) = page.text.split_once(start)?;
        Some(rest.split_once(end)?.0.to_owned())
    };
    let action = between("action=\"", "\"");
    let action = action.unwrap_or_else(|| panic!("no form: {page:?}"));
    match page.text.contains("value=\"login\"") {
        true => (action, "prompt=login&login=somebody&password=x".to_owned()),
        false => (action, "prompt=consent".to_owned()),
    }
}

fn access_token(home: &Home) -> String {
    home.read("test.json")["access_token"].to_string()
}

/// Logs in, calls, and renews the token twice: the second time with what the first renewal gave.
async fn is_logged_in_and_renewed(peer: &Peer) {
    let home = Home::new();
    log_in(&home, &peer.section).await;
    let client = home.ready(&peer.section).await;
    for _ in 0..2 {
        let before = access_token(&home);
        assert_eq!(client.append("one").await.unwrap(), "appended one");
        assert_eq!(access_token(&home), before, "not renewed before its time");
        home.clock.advance(LIFETIME - Duration::from_secs(30));
        assert_eq!(client.append("two").await.unwrap(), "appended two");
        assert_ne!(access_token(&home), before, "renewed before it expires");
    }
}

/// Two processes whose token expires at the server under their hands renew it in turn, and nobody is logged out.
async fn survives_expiry_in_two_processes(peer: &Peer) {
    let home = Home::new();
    log_in(&home, &peer.section).await;
    let (one, two) = (
        home.ready(&peer.section).await,
        home.ready(&peer.section).await,
    );
    let mut seen = std::collections::HashSet::from([access_token(&home)]);
    // The clock of this home stands still: only the server knows that the token has expired.
    while seen.len() < 4 {
        let (first, second) = tokio::join!(one.append("one"), two.append("two"));
        assert_eq!(
            (first.unwrap(), second.unwrap()),
            ("appended one".into(), "appended two".into())
        );
        seen.insert(access_token(&home));
        sleep(Duration::from_millis(50)).await;
    }
}

const LIFETIME: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn oidc_provider_logs_us_in_and_renews_our_tokens() {
    if let Some(peer) = Peer::oidc(LIFETIME).await {
        is_logged_in_and_renewed(&peer).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_expire_at_oidc_provider_are_renewed_without_a_failed_call() {
    if let Some(peer) = Peer::oidc(SHORT).await {
        survives_expiry_in_two_processes(&peer).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_logs_us_in_and_renews_our_tokens() {
    if let Some(peer) = Peer::fastmcp(LIFETIME).await {
        is_logged_in_and_renewed(&peer).await;
    }
}

/// This provider takes the refresh token back together with an expired access token.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_fastmcp_takes_back_is_asked_for_and_the_next_one_is_found() {
    let Some(peer) = Peer::fastmcp(Duration::from_secs(3)).await else {
        return;
    };
    let home = Home::new();
    log_in(&home, &peer.section).await;
    let client = home.ready(&peer.section).await;
    let error = loop {
        match client.append("one").await {
            Ok(_) => sleep(Duration::from_millis(50)).await,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("run `hermes mcp login test`"), "{error}");
    log_in(&home, &peer.section).await;
    client.until_ready().await;
    assert_eq!(client.append("two").await.unwrap(), "appended two");
}
