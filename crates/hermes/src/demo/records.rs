//! An MCP server for the demo: this very program, which reads out the demo's own conversations. It can be killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Random, Tool};
use hermes_mcp::{Mcp, McpPorts, ServerSettings};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use hermes_runtime::SystemClock;

/// How long the server may take to start.
const START_MAX: Duration = Duration::from_secs(20);

pub(super) struct Records {
    mcp: Mcp,
    /// Where the server's process writes its number.
    pid_file: PathBuf,
}

impl Records {
    pub(super) fn start(home: &Path, environment: Vec<(String, String)>) -> Outcome<Self> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find myself: {error}")))?;
        let pid_file = home.join("records.pid");
        let section = json!({
            "command": "sh",
            "args": ["-c", "echo $$ > \"$0\"; exec \"$1\" mcp serve", pid_file, program],
            "env": { "HERMES_HOME": home },
            // Its word is our own: what only reads may be asked again when its answer is lost.
            "trust_annotations": true,
        });
        let settings = ServerSettings::parse("records", &section)
            .map_err(|error| Failure::new(error.to_string()))?;
        let ports = McpPorts {
            folders: vec![home.to_owned()],
            environment,
            ..McpPorts::alone_in(home, Arc::new(Random::from_system()), Arc::new(SystemClock))
        };
        Ok(Self {
            mcp: Mcp::start(vec![settings], ports),
            pid_file,
        })
    }

    pub(super) async fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.mcp.tools(START_MAX).await
    }

    /// Kills the server's process, as a crash or an upgrade would.
    pub(super) fn kill(&self) {
        let written = std::fs::read_to_string(&self.pid_file).unwrap_or_default();
        if let Some(pid) = written.trim().parse().ok().and_then(Pid::from_raw) {
            // One that is gone already is as dead as can be.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    pub(super) fn reconnects(&self) -> u64 {
        self.mcp
            .status()
            .iter()
            .map(|server| server.reconnects)
            .sum()
    }

    pub(super) async fn stop(self) {
        self.mcp.shutdown().await;
    }
}
