//! Whether the MCP servers of the settings work: each is connected to and asked for its tools.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::Random;
use hermes_mcp::{Mcp, ServerState, ServerStatus};

use super::Check;
use crate::base::Base;
use crate::commands::layout::{count, one_line};
use crate::mcp;

const NAME: &str = "MCP server";
/// As long as programs that start with a download may take; all of them are waited for together.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

pub(super) async fn checks(base: &Base, is_offline: bool) -> Vec<Check> {
    let (servers, warnings) = mcp::settings(base);
    let wrong = warnings
        .into_iter()
        .map(|warning| Check::broken(NAME, warning, "`hermes config edit`"));
    let mut checks: Vec<Check> = wrong.collect();
    if is_offline || servers.is_empty() {
        return checks;
    }
    let ports = mcp::ports(base, Arc::new(Random::from_system()));
    let mcp = Mcp::start(servers, ports);
    mcp.tools(ANSWER_DEADLINE).await;
    checks.extend(mcp.status().iter().map(check));
    mcp.shutdown().await;
    checks
}

fn check(server: &ServerStatus) -> Check {
    let name = &server.name;
    match &server.state {
        ServerState::Ready | ServerState::Resting => {
            let tools = count(server.tools as u64, "tool");
            Check::good(NAME, format!("`{name}` answers and offers {tools}"))
        }
        ServerState::Disabled => Check::good(NAME, format!("`{name}` is switched off")),
        ServerState::NeedsAuth { reason } => Check::broken(
            NAME,
            format!("`{name}` wants a login: {}", one_line(reason)),
            format!("`hermes mcp login {name}`"),
        ),
        state => {
            let why = server.last_error.as_deref().map(one_line);
            let why = why.unwrap_or_else(|| state.to_string());
            Check::broken(
                NAME,
                format!("`{name}` does not work: {why}"),
                format!("`hermes mcp doctor {name}` finds out why"),
            )
        }
    }
}
