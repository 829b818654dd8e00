//! Logins at real servers: `oidc-provider`, which checks everything, and FastMCP's own provider.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Clock, Random, ToolError};
use hermes_mcp::{Callback, Login, Mcp, McpPorts, ServerSettings, ServerState};
use hermes_testkit::TestClock;
use hermes_testkit::oauth::{Browser, Page};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::peer::Peer;
use crate::process::HttpServer;
use crate::trial::context;

/// For the first connection, and for a login elsewhere to be found.
const WAIT: Duration = Duration::from_secs(30);
/// Pages between the first and the last of a login; more are a loop.
const PAGES_MAX: usize = 12;
const LIFETIME: Duration = Duration::from_secs(3600);

/// Starts `oidc-provider` with an MCP server beside it.
fn oidc(lifetime: Duration) -> Option<HttpServer> {
    let (peer, lifetime) = (
        Peer::installed("oidc-provider")?,
        lifetime.as_secs().to_string(),
    );
    let command = |port: &str| peer.node_program("oidc.mjs", &[port, &lifetime]);
    Some(HttpServer::start(command))
}

/// Starts a FastMCP server that is its own authorisation server.
fn fastmcp(lifetime: Duration) -> Option<HttpServer> {
    let (peer, lifetime) = (Peer::installed("fastmcp")?, lifetime.as_secs().to_string());
    let command = |port: &str| peer.python_program("behind_oauth.py", &[port, &lifetime]);
    Some(HttpServer::start(command))
}

/// A home with a login, and the clients that share it.
struct Home {
    folder: TempDir,
    /// Moved by tests only, so that the server's clock and ours can differ.
    clock: Arc<TestClock>,
    settings: ServerSettings,
}

impl Home {
    fn new(server: &HttpServer) -> Self {
        let section = json!({ "url": server.url(), "auth": "oauth", "keepalive_interval": 0 });
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::default(),
            settings: ServerSettings::parse("real", &section).unwrap(),
        }
    }

    fn ports(&self) -> McpPorts {
        McpPorts::alone_in(
            self.folder.path(),
            Arc::new(Random::seeded(3)),
            Arc::clone(&self.clock) as Arc<dyn Clock>,
        )
    }

    /// Connects, as a process of its own would.
    async fn client(&self) -> Mcp {
        let mcp = Mcp::start(vec![self.settings.clone()], self.ports());
        mcp.tools(WAIT).await;
        mcp
    }

    fn access_token(&self) -> String {
        let file: PathBuf = self.folder.path().join("mcp-tokens/real.json");
        let file: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        file["access_token"].to_string()
    }

    /// Logs in as a person does: fills in every form until the browser is sent back to us.
    async fn log_in(&self) {
        let ports = self.ports();
        let mut callback = Callback::open(&self.settings, &ports).await.unwrap();
        let way_back = callback.redirect_uri().to_owned();
        let login = Login::begin(&self.settings, &ports, &way_back, &[])
            .await
            .unwrap();
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
}

/// Fills in the one form of a page of `oidc-provider`.
fn filled_in(page: &Page) -> (String, String) {
    let between = |start: &str, end: &str| {
        let (_, rest) = page.text.split_once(start)?;
        Some(rest.split_once(end)?.0.to_owned())
    };
    let action = between("action=\"", "\"");
    let action = action.unwrap_or_else(|| panic!("no form: {page:?}"));
    if page.text.contains("value=\"login\"") {
        (action, "prompt=login&login=somebody&password=x".to_owned())
    } else {
        (action, "prompt=consent".to_owned())
    }
}

async fn append(mcp: &Mcp, word: &str) -> Result<String, ToolError> {
    let tools = mcp.tools(WAIT).await;
    let tool = tools
        .iter()
        .find(|tool| tool.spec().name == "mcp__real__append");
    let tool = tool.unwrap_or_else(|| panic!("no tool: {:?}", mcp.status()));
    let output = tool.run(json!({ "word": word }), &context()).await;
    output.map(|output| output.text)
}

/// Logs in, calls, and renews the token twice: the second time with what the first renewal gave.
async fn is_logged_in_and_renewed(server: &HttpServer) {
    let home = Home::new(server);
    home.log_in().await;
    let mcp = home.client().await;
    for _ in 0..2 {
        let before = home.access_token();
        assert_eq!(append(&mcp, "one").await.unwrap(), "appended one");
        assert_eq!(home.access_token(), before, "not renewed before its time");
        home.clock.advance(LIFETIME - Duration::from_secs(30));
        assert_eq!(append(&mcp, "two").await.unwrap(), "appended two");
        assert_ne!(home.access_token(), before, "renewed before it expires");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oidc_provider_logs_us_in_and_renews_our_tokens() {
    if let Some(server) = oidc(LIFETIME) {
        is_logged_in_and_renewed(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_logs_us_in_and_renews_our_tokens() {
    if let Some(server) = fastmcp(LIFETIME) {
        is_logged_in_and_renewed(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_whose_token_expires_at_oidc_provider_lose_no_call_and_no_login() {
    let Some(server) = oidc(Duration::from_secs(1)) else {
        return;
    };
    let home = Home::new(&server);
    home.log_in().await;
    let (one, two) = (home.client().await, home.client().await);
    let mut seen = std::collections::HashSet::from([home.access_token()]);
    // Our clock stands still: only the server knows that the token has expired.
    while seen.len() < 4 {
        let (first, second) = tokio::join!(append(&one, "one"), append(&two, "two"));
        assert_eq!(first.unwrap(), "appended one");
        assert_eq!(second.unwrap(), "appended two");
        seen.insert(home.access_token());
        sleep(Duration::from_millis(50)).await;
    }
}

/// This provider takes the refresh token back together with an expired access token.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_fastmcp_takes_back_is_asked_for_and_the_next_one_is_found() {
    let Some(server) = fastmcp(Duration::from_secs(3)) else {
        return;
    };
    let home = Home::new(&server);
    home.log_in().await;
    let mcp = home.client().await;
    let error = loop {
        match append(&mcp, "one").await {
            Ok(_) => sleep(Duration::from_millis(50)).await,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("run `hermes mcp login real`"), "{error}");
    home.log_in().await;
    let mut events = mcp.events();
    while mcp.status()[0].state != ServerState::Ready {
        events.recv().await.unwrap();
    }
    assert_eq!(append(&mcp, "two").await.unwrap(), "appended two");
}
