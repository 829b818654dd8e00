//! A live client of one real server, to which something happens between two calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{Random, Tool, ToolContext};
use hermes_mcp::{BreakerStatus, Mcp, McpPorts, ServerSettings};
use hermes_testkit::TestClock;
use hermes_testkit::contract::tool;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peer::variable;

/// For the first connection: the server may have to be started.
const FIRST_WAIT: Duration = Duration::from_secs(60);

/// How long a caller waits for a connection that was lost.
const CALLER_WAIT: Duration = Duration::from_secs(15);

pub(crate) struct Trial {
    name: String,
    mcp: Mcp,
    tool: &'static str,
    folder: TempDir,
}

impl Trial {
    /// Prepares a trial with a server that is still to be connected to; its files go to [`Self::ledger`]'s folder.
    pub(crate) fn new(name: &str, folder: TempDir, tool: &'static str, section: &Value) -> Self {
        let settings = ServerSettings::parse("real", section).unwrap();
        let ports = McpPorts {
            environment: ["PATH", "HOME"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), variable(name)?)))
                .collect(),
            ..McpPorts::alone_in(
                folder.path(),
                Arc::new(Random::seeded(3)),
                Arc::new(TestClock::default()),
            )
        };
        Self {
            name: name.to_owned(),
            mcp: Mcp::start(vec![settings], ports),
            tool,
            folder,
        }
    }

    /// Makes a call, lets something happen, and makes another: it succeeds at the first try and runs once, and the
    /// tools are the same.
    pub(crate) async fn survives(&self, what: &str, happen: impl FnOnce()) {
        let word = |when: &str| format!("{when}-{}", what.replace(' ', "-"));
        self.call(&word("before")).await;
        let tools = self.names().await;
        tokio::task::block_in_place(happen);
        self.wait_for_the_breaker().await;
        let started = Instant::now();
        self.call(&word("after")).await;
        let took = started.elapsed();
        println!("{}, {what}: healed in {} ms", self.name, took.as_millis());
        assert_eq!(self.names().await, tools, "{}, {what}", self.name);
    }

    /// A server that took longer than ten seconds to start has opened the breaker, as it should: then calls are refused
    /// until the connection is back.
    async fn wait_for_the_breaker(&self) {
        let started = Instant::now();
        while self.mcp.status()[0].breaker != BreakerStatus::Closed {
            assert!(started.elapsed() < FIRST_WAIT, "{}", self.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Calls the tool, which has to succeed, and to leave exactly one trace if it leaves any.
    async fn call(&self, word: &str) {
        let tools = self.mcp.tools(FIRST_WAIT).await;
        let name = format!("mcp__real__{}", self.tool);
        let tool = tools.iter().find(|tool| tool.spec().name == name);
        let tool = tool.unwrap_or_else(|| panic!("no `{name}`: {:?}", self.mcp.status()));
        let parameter = match self.tool {
            "echo" => "message",
            _ => "word",
        };
        let text = self.run(tool, &json!({ parameter: word })).await;
        assert!(text.contains(word), "{text}");
        if let Ok(ledger) = fs::read_to_string(ledger(&self.folder)) {
            let executions = ledger.lines().filter(|line| *line == word).count();
            assert_eq!(executions, 1, "{}, {word}", self.name);
        }
    }

    /// Runs the tool, which has to succeed at the first try, unless the server takes longer to start than any caller
    /// waits: who has waited that long and is told that the call did not run may try again.
    async fn run(&self, tool: &Arc<dyn Tool>, arguments: &Value) -> String {
        let first = Instant::now();
        loop {
            let started = Instant::now();
            let error = match tool.run(arguments.clone(), &context()).await {
                Ok(output) => return output.text,
                Err(error) => error.to_string(),
            };
            let has_waited = started.elapsed() >= CALLER_WAIT && first.elapsed() < FIRST_WAIT;
            assert!(
                has_waited && error.contains("did not run"),
                "{}, {arguments}: {error}",
                self.name
            );
            self.wait_for_the_breaker().await;
        }
    }

    async fn names(&self) -> Vec<String> {
        let tools = self.mcp.tools(FIRST_WAIT).await;
        let name = |tool: &Arc<dyn Tool>| tool.spec().name.clone();
        tools.iter().map(name).collect()
    }
}

/// Returns the file in which servers of ours note what they have executed.
pub(crate) fn ledger(folder: &TempDir) -> PathBuf {
    folder.path().join("ledger")
}

pub(crate) fn context() -> ToolContext {
    tool::context(Path::new("/"))
}
