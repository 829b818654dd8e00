//! A client with one server, as the agent would use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{Clock, Random, Tool, ToolContext, ToolError};
use hermes_mcp::{Mcp, McpPorts, Models, ServerSettings, ServerState, ServerStatus};
use hermes_testkit::TestClock;
use hermes_testkit::contract::tool;
use hermes_testkit::mcp::FaultyMcp;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Client {
    pub(crate) mcp: Mcp,
    pub(crate) logs: TempDir,
    pub(crate) clock: Arc<TestClock>,
}

/// Long enough for anything that should happen at all, on a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

impl Client {
    /// Connects to a server over HTTP, with these settings beside its address.
    pub(crate) async fn of(server: &FaultyMcp, settings: Value) -> Self {
        let mut section = json!({ "url": server.url(), "keepalive_interval": 0 });
        merge(&mut section, settings);
        let client = Self::new(&section);
        client.until_ready().await;
        client.tools().await;
        client
    }

    pub(crate) fn new(section: &Value) -> Self {
        Self::with(&[("test", section)])
    }

    /// Starts several servers, each with its name and its settings.
    pub(crate) fn with(sections: &[(&str, &Value)]) -> Self {
        Self::start(sections, None, &[("PATH", "/usr/bin:/bin")])
    }

    /// Starts servers that may ask a model.
    pub(crate) fn with_model(sections: &[(&str, &Value)], models: Option<Models>) -> Self {
        Self::start(sections, models, &[("PATH", "/usr/bin:/bin")])
    }

    /// Starts servers with these variables as our environment.
    pub(crate) fn in_environment(sections: &[(&str, &Value)], variables: &[(&str, &str)]) -> Self {
        Self::start(sections, None, variables)
    }

    fn start(
        sections: &[(&str, &Value)],
        models: Option<Models>,
        variables: &[(&str, &str)],
    ) -> Self {
        let logs = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::default());
        let parse =
            |(name, section): &(&str, &Value)| ServerSettings::parse(name, section).unwrap();
        let ports = McpPorts {
            log_folder: logs.path().to_owned(),
            media_folder: logs.path().join("media"),
            models,
            folders: vec![PathBuf::from("/")],
            is_attended: true,
            environment: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..McpPorts::alone_in(
                logs.path(),
                Arc::new(Random::seeded(7)),
                Arc::clone(&clock) as Arc<dyn Clock>,
            )
        };
        Self {
            clock,
            mcp: Mcp::start(sections.iter().map(parse).collect(), ports),
            logs,
        }
    }

    pub(crate) async fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.mcp.tools(PATIENCE).await
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let tools = self.tools().await;
        tools.iter().map(|tool| tool.spec().name.clone()).collect()
    }

    pub(crate) async fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let name = format!("mcp__test__{name}");
        let tools = self.tools().await;
        let found = tools.into_iter().find(|tool| tool.spec().name == name);
        found.unwrap_or_else(|| panic!("no tool {name}"))
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let tool = self.tool(tool).await;
        tool.run(arguments, &context()).await.map(|out| out.text)
    }

    pub(crate) async fn append(&self, word: &str) -> Result<String, ToolError> {
        self.call("append", json!({ "word": word })).await
    }

    pub(crate) fn status(&self) -> ServerStatus {
        self.mcp.status().remove(0)
    }

    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&ServerStatus) -> bool) {
        eventually(what, || is_so(&self.status())).await;
    }

    /// Waits until connecting has failed, and returns what is told about it.
    pub(crate) async fn error(&self) -> String {
        self.until("an error", |status| status.last_error.is_some())
            .await;
        self.status().last_error.unwrap()
    }

    pub(crate) async fn until_ready(&self) {
        self.until("ready", |status| status.state == ServerState::Ready)
            .await;
    }
}

pub(crate) fn context() -> ToolContext {
    tool::context(Path::new("/"))
}

/// Waits until something is so, and fails loudly if it never is.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn merge(section: &mut Value, more: Value) {
    if let (Value::Object(section), Value::Object(more)) = (section, more) {
        section.extend(more);
    }
}
