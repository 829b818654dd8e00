//! A home with its token folder and its clock, in which clients start and people log in.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Clock, Random};
use hermes_mcp::{Callback, Login, LoginError, Mcp, McpPorts, ServerSettings};
use hermes_testkit::TestClock;
use hermes_testkit::mcp::FaultyMcp;
use hermes_testkit::oauth::{AuthServer, Browser};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;

pub(crate) struct Home {
    pub(crate) folder: TempDir,
    pub(crate) clock: Arc<TestClock>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::default(),
        }
    }

    pub(crate) fn ports(&self) -> McpPorts {
        McpPorts {
            log_folder: self.folder.path().to_owned(),
            token_folder: self.tokens(),
            ..McpPorts::alone_in(
                self.folder.path(),
                Arc::new(Random::seeded(7)),
                Arc::clone(&self.clock) as Arc<dyn Clock>,
            )
        }
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.folder.path().join("mcp-tokens")
    }

    /// Starts servers, each with its name and its settings, as a process of its own would.
    pub(crate) fn start(&self, sections: &[(&str, &Value)]) -> Client {
        let parse = |(name, section): &(&str, &Value)| settings(name, section);
        Client {
            clock: Arc::clone(&self.clock),
            mcp: Mcp::start(sections.iter().map(parse).collect(), self.ports()),
            logs: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts the server where there are persons to ask.
    pub(crate) async fn attended(&self, section: &Value) -> Client {
        let ports = McpPorts {
            is_attended: true,
            ..self.ports()
        };
        let client = Client {
            clock: Arc::clone(&self.clock),
            mcp: Mcp::start(vec![settings("test", section)], ports),
            logs: tempfile::tempdir().unwrap(),
        };
        client.until_ready().await;
        client
    }

    pub(crate) async fn ready(&self, section: &Value) -> Client {
        let client = self.start(&[("test", section)]);
        client.until_ready().await;
        client.tools().await;
        client
    }

    /// Logs in without a browser.
    pub(crate) fn log_in(&self, auth: &AuthServer, server: &FaultyMcp) {
        let mut token = auth.grant("read");
        let now = self.clock.now().as_millis() as f64 / 1e3;
        token["expires_at"] = json!(now + token["expires_in"].as_f64().unwrap());
        let meta = json!({
            "issuer": auth.url(), "token_endpoint": format!("{}/token", auth.url()), "resource": server.url(),
        });
        fs::create_dir_all(self.tokens()).unwrap();
        self.write("test.client.json", &json!({ "client_id": "client-0" }));
        self.write("test.meta.json", &meta);
        self.write("test.json", &token);
    }

    pub(crate) fn write(&self, name: &str, value: &Value) {
        let temporary = self.tokens().join(format!("{name}.new"));
        fs::write(&temporary, value.to_string()).unwrap();
        fs::rename(temporary, self.tokens().join(name)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.tokens().join(name)).unwrap()).unwrap()
    }

    /// Logs in as a person with a browser on this machine does. Returns what the page said.
    pub(crate) async fn visit(
        &self,
        section: &Value,
        scopes: &[&str],
    ) -> Result<String, LoginError> {
        let (server, ports) = (settings("test", section), self.ports());
        let mut callback = Callback::open(&server, &ports).await.unwrap();
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let login = Login::begin(&server, &ports, callback.redirect_uri(), &scopes).await?;
        let browser = async {
            let mut browser = Browser::default();
            let back = browser.get(login.url()).await;
            browser.get(back.leads_to()).await.text
        };
        let hermes = async {
            let returned = callback.returned().await;
            let finished = login.finish(&returned.answer).await;
            returned.show(&finished).await;
            finished
        };
        let (page, finished) = tokio::join!(browser, hermes);
        finished.map(|()| page)
    }
}

pub(crate) fn settings(name: &str, section: &Value) -> ServerSettings {
    ServerSettings::parse(name, section).unwrap()
}

/// Approves a login, and returns where the browser is sent.
pub(crate) async fn redirected(login: &Login) -> String {
    let page = Browser::default().get(login.url()).await;
    page.leads_to().to_owned()
}

/// A protected server, and the settings of a client for it.
pub(crate) async fn protected() -> (AuthServer, FaultyMcp, Value) {
    let (auth, server) = (AuthServer::start(), FaultyMcp::start().await);
    server.protect(&auth);
    let section = json!({ "url": server.url(), "auth": "oauth", "keepalive_interval": 0 });
    (auth, server, section)
}
