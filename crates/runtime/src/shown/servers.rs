//! How MCP servers are: for people, and for programs.

use std::time::Duration;

use hermes_core::text::shorten;
use hermes_mcp::{BreakerStatus, ServerState, ServerStatus};
use serde_json::{Value, json};

use crate::layout::{Table, one_line};
use crate::style::Style;

/// Enough of an error to recognise it, and short enough for a line.
const ERROR_CHARS_MAX: usize = 60;

/// One line per server, with what a person asks first.
pub fn table(servers: &[ServerStatus], style: Style) -> String {
    let mut table = Table::new([
        "SERVER",
        "STATE",
        "TOOLS",
        "LAST ANSWER",
        "TRIP",
        "RECONNECTS",
        "TROUBLE",
    ]);
    for server in servers {
        table.row([
            server.name.clone(),
            word(&server.state).to_owned(),
            server.tools.to_string(),
            server.last_success.map_or_else(|| "–".to_owned(), ago),
            server.round_trip.map_or_else(|| "–".to_owned(), millis),
            server.reconnects.to_string(),
            trouble(server),
        ]);
    }
    table.styled(style)
}

/// The state in a word; what is wrong stands in a column of its own.
fn word(state: &ServerState) -> &'static str {
    match state {
        ServerState::Disabled => "disabled",
        ServerState::Connecting => "connecting",
        ServerState::Ready => "ready",
        ServerState::Resting => "resting",
        ServerState::Degraded => "degraded",
        ServerState::Reconnecting { .. } => "reconnecting",
        ServerState::NeedsAuth { .. } => "needs credentials",
        ServerState::Misconfigured { .. } => "misconfigured",
        ServerState::Stopped => "stopped",
    }
}

fn trouble(server: &ServerStatus) -> String {
    let seconds = |time: Duration| time.as_secs().max(1);
    let next = match (server.breaker, server.next_attempt) {
        (BreakerStatus::Open { probe_in }, _) => {
            format!("left alone for {} s: ", seconds(probe_in))
        }
        (_, Some(next)) => format!("next try in {} s: ", seconds(next)),
        _ => String::new(),
    };
    let cause = match &server.state {
        ServerState::NeedsAuth { reason } | ServerState::Misconfigured { reason } => reason,
        ServerState::Ready | ServerState::Resting | ServerState::Disabled => return String::new(),
        ServerState::Connecting => server.last_error.as_deref().unwrap_or("no answer so far"),
        _ => server.last_error.as_deref().unwrap_or_default(),
    };
    format!("{next}{}", shorten(&one_line(cause), ERROR_CHARS_MAX))
}

fn ago(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s ago"),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3600),
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// The whole state, in the colour of how good it is.
pub fn state(server: &ServerStatus, style: Style) -> String {
    let text = one_line(&server.state.to_string());
    match server.state {
        ServerState::Ready | ServerState::Resting => style.green(text),
        ServerState::Disabled => style.dim(text),
        _ => style.red(text),
    }
}

/// Whether nothing has to be done about a server.
pub fn is_well(server: &ServerStatus) -> bool {
    use ServerState::{Disabled, Ready, Resting};
    matches!(server.state, Ready | Resting | Disabled)
}

/// A server for programs.
pub fn as_json(server: &ServerStatus) -> Value {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    json!({
        "name": server.name,
        "state": word(&server.state),
        "detail": server.state.to_string(),
        "tool_count": server.tools,
        "last_success_ms_ago": server.last_success.map(millis),
        "round_trip_ms": server.round_trip.map(millis),
        "reconnects": server.reconnects,
        "breaker": match server.breaker {
            BreakerStatus::Closed => "closed",
            BreakerStatus::Open { .. } => "open",
            BreakerStatus::HalfOpen => "half-open",
        },
        "next_attempt_ms": server.next_attempt.map(millis),
        "last_error": server.last_error,
        "warnings": server.notes,
    })
}
