//! Whether the MCP servers of the settings work: each is connected to and asked for its tools. Those that do not are
//! looked at step by step, as `hermes mcp doctor` does it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hermes_core::Random;
use hermes_mcp::{Fault, Mcp, ServerSettings, ServerState, ServerStatus, diagnose};
use tokio::time::timeout;

use super::Check;
use crate::base::Base;
use crate::layout::{count, one_line};
use crate::mcp;

const NAME: &str = "MCP server";
/// As long as programs that start with a download may take; all of them are waited for together.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);
/// What fails, fails sooner; a server that only keeps silent has been waited for already.
const DIAGNOSIS_DEADLINE: Duration = Duration::from_secs(10);

pub(super) async fn checks(base: &Base, is_offline: bool) -> Vec<Check> {
    let (servers, warnings) = mcp::settings(base);
    let wrong = warnings.into_iter().map(|warning| {
        let fix = "`hermes config edit`, or `hermes mcp remove NAME`";
        Check::broken(NAME, warning, fix)
    });
    let mut checks: Vec<Check> = wrong.collect();
    if is_offline || servers.is_empty() {
        return checks;
    }
    let ports = mcp::ports(base, Arc::new(Random::from_system()));
    let mcp = Mcp::start(servers.clone(), ports);
    mcp.tools(ANSWER_DEADLINE).await;
    let found = mcp.status();
    mcp.shutdown().await;
    let looked = found.iter().map(|server| check(base, server, &servers));
    checks.extend(join_all(looked).await);
    for server in &found {
        let odd = server.notes.iter().map(|note| odd(&server.name, note));
        checks.extend(odd);
    }
    checks
}

async fn check(base: &Base, server: &ServerStatus, known: &[ServerSettings]) -> Check {
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
            let settings = known.iter().find(|settings| settings.name == *name);
            match fault(base, settings.cloned()).await {
                Some(fault) => Check::broken(
                    NAME,
                    format!("`{name}` does not work: {}", one_line(&fault.cause)),
                    format!(
                        "{} (`hermes mcp doctor {name}` shows every step)",
                        one_line(&fault.advice)
                    ),
                ),
                None => Check::broken(
                    NAME,
                    format!("`{name}` does not work: {why}"),
                    format!("`hermes mcp doctor {name}` finds out why"),
                ),
            }
        }
    }
}

/// One tool of a server that works otherwise.
fn odd(server: &str, note: &str) -> Check {
    let text = format!("`{server}`: {}", one_line(note));
    Check::doubtful(NAME, text, "the others work; tell whoever makes the server")
}

/// The step on the way to a server that fails, if one is found in time.
async fn fault(base: &Base, settings: Option<ServerSettings>) -> Option<Fault> {
    let ports = mcp::ports(base, Arc::new(Random::from_system()));
    let mut fault = None;
    let walk = diagnose(settings?, ports, |step| fault = step.outcome.err());
    timeout(DIAGNOSIS_DEADLINE, walk).await.ok()?;
    fault
}
