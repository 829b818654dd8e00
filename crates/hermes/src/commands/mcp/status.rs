//! `hermes mcp status`: how all servers are, once or for as long as somebody looks.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::text::shorten;
use hermes_core::{Clock as _, Random};
use hermes_mcp::{Mcp, McpPorts, ServerStatus};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::{NONE_YET, already_told, known};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{one_line, print_json};
use crate::failure::Outcome;
use crate::mcp::{ports, unusable};
use crate::output::{note, print, println};
use crate::signals::Signals;
use crate::style::Style;
use hermes_runtime::SystemClock;
use hermes_runtime::shown::servers::{as_json, is_well, table};

/// On a terminal, ages and waits are shown anew this often.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Shows every server once. Fails when one is not ready.
pub(super) async fn once(base: &Base, wait: Duration, json: &JsonFlag) -> Outcome<()> {
    let started = start(base);
    if started.is_none() && unusable(base).is_empty() {
        return if json.json {
            print_json(&json!([]))
        } else {
            println(NONE_YET)
        };
    }
    let mcp = started.unwrap_or_else(|| Mcp::start(Vec::new(), ports_of(base)));
    mcp.tools(wait).await;
    let servers = [mcp.status(), unusable(base)].concat();
    mcp.shutdown().await;
    if json.json {
        print_json(&servers.iter().map(as_json).collect())?;
    } else {
        let style = Style::of(&io::stdout(), &base.environment);
        println(&table(&servers, style))?;
    }
    for server in &servers {
        warn_of(server);
    }
    if servers.iter().all(is_well) {
        Ok(())
    } else {
        Err(already_told())
    }
}

/// Stays connected and shows every change until somebody ends it: in place on a terminal, otherwise line by line.
pub(super) async fn watch(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let mut signals = Signals::listen()?;
    let Some(mcp) = start(base) else {
        return println(NONE_YET);
    };
    let shown = async {
        if json.json || !io::stdout().is_terminal() {
            tell_changes(&mcp, json).await
        } else {
            redraw(&mcp, Style::of(&io::stdout(), &base.environment)).await
        }
    };
    let outcome = tokio::select! {
        outcome = shown => outcome,
        _ = signals.interrupted() => Ok(()),
    };
    mcp.shutdown().await;
    outcome
}

fn start(base: &Base) -> Option<Mcp> {
    let servers = known(base);
    (!servers.is_empty()).then(|| Mcp::start(servers, ports_of(base)))
}

fn ports_of(base: &Base) -> McpPorts {
    ports(base, Arc::new(Random::from_system()))
}

/// Says what is odd about the tools of a server.
pub(super) fn warn_of(server: &ServerStatus) {
    for text in &server.notes {
        note(&format!(
            "warning: MCP server `{}`: {}",
            server.name,
            one_line(text)
        ));
    }
}

/// Writes the table over itself, for ever.
async fn redraw(mcp: &Mcp, style: Style) -> Outcome<()> {
    let mut events = mcp.events();
    let mut lines_above = 0;
    loop {
        let back = match lines_above {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r"),
        };
        let table = table(&mcp.status(), Style::PLAIN);
        let heading = table.lines().take(1).map(|line| style.bold(cut(line)));
        let servers = table.lines().skip(1).map(cut);
        // Each line is cleared behind its end, and everything below the last.
        let lines = heading.chain(servers).map(|line| format!("{line}\x1b[K\n"));
        print(&format!("{back}{}\x1b[J", lines.collect::<String>()))?;
        lines_above = table.lines().count();
        // A change is shown at once; otherwise only ages grow.
        let _ = timeout(REDRAW_INTERVAL, events.recv()).await;
    }
}

/// Makes a line fit the terminal: one that is broken into two could not be written over.
fn cut(line: &str) -> String {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
    match columns {
        0 => line.to_owned(),
        columns => shorten(line, usize::from(columns)),
    }
}

/// Writes a line for every server, then one for every change.
async fn tell_changes(mcp: &Mcp, json: &JsonFlag) -> Outcome<()> {
    let mut events = mcp.events();
    for server in mcp.status() {
        tell(&server, json)?;
    }
    loop {
        let changed = match events.recv().await {
            Ok(event) => Some(event.server),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return Ok(()),
        };
        // After a gap, all of them may have changed.
        let is_news =
            |server: &ServerStatus| changed.as_ref().is_none_or(|name| *name == server.name);
        for server in mcp.status().iter().filter(|server| is_news(server)) {
            tell(server, json)?;
        }
    }
}

fn tell(server: &ServerStatus, json: &JsonFlag) -> Outcome<()> {
    let now = SystemClock.now().to_text();
    if json.json {
        let mut line = as_json(server);
        line["at"] = json!(now);
        return println(&line.to_string());
    }
    let state = one_line(&server.state.to_string());
    println(&format!("{now}  {}  {state}", server.name))
}
