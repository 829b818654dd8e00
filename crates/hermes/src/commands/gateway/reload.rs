//! Settings that change while the gateway runs: platforms come, go and change, and MCP servers follow; no turn is dropped.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::command::{self, ParsedLine, Surface};
use hermes_core::skill::SkillNames;
use hermes_core::{SessionId, SessionOptions};
use hermes_gateway::notify::ServiceManager;
use hermes_runtime::commands::Here;
use hermes_runtime::{Conversation, shown};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

use super::chats::{self, Opened, SetUp};
use super::desk::Desk;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;

/// As wide as a line of a log.
const COLUMNS: usize = 100;

/// Reads the settings again whenever that is wanted. Never ends.
pub(super) async fn whenever(
    wanted: &Notify,
    base: &Base,
    desk: &Arc<Desk>,
    mut known: Vec<SetUp>,
    manager: Option<&ServiceManager>,
) {
    loop {
        wanted.notified().await;
        if let Some(manager) = manager {
            manager.reloading(monotonic());
        }
        match reload(base, desk, &mut known).await {
            Ok(told) => note(&format!("gateway: the settings were read again: {told}")),
            Err(failure) => note(&format!(
                "gateway: the settings stay as they were: {}",
                failure.to_string().trim_start_matches("error: ")
            )),
        }
        if let Some(manager) = manager {
            let labels: Vec<String> = known.iter().map(SetUp::label).collect();
            manager.ready(&labels.join(", "));
        }
    }
}

/// Lets the gateway follow its settings. An error leaves everything as it was.
async fn reload(base: &Base, desk: &Arc<Desk>, known: &mut Vec<SetUp>) -> Outcome<String> {
    let base = base.with_options(&SessionOptions::default())?;
    let mut told = Vec::new();
    if let Some(chats) = desk.chats.get() {
        let settings = chats::settings(&base)?;
        let wanted = chats::wanted(&base);
        let is_changed = |old: &&SetUp| !wanted.contains(old);
        let removed: Vec<_> = known.iter().filter(is_changed).map(SetUp::name).collect();
        let (mut kept, new): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|one| known.contains(one));
        let opened = Opened::of(desk, new);
        let names: Vec<_> = opened.known.iter().map(SetUp::name).collect();
        told.extend(changes(&removed, &names));
        let refused = opened.reports(desk.runtime.clock().now());
        told.extend(
            refused
                .iter()
                .map(|one| format!("{} cannot be used", one.platform)),
        );
        desk.refuses(refused);
        chats.change(settings, removed, opened.channels).await;
        // Those that cannot be used are tried again the next time.
        kept.extend(opened.known);
        *known = kept;
    }
    desk.hooks.reload();
    if told.is_empty() {
        told.push("the same platforms".to_owned());
    }
    told.push(match reload_servers(desk).await {
        Ok(told) => told,
        Err(failure) => format!("MCP: the servers stay as they are: {}", failure.message),
    });
    Ok(told.join("; "))
}

fn changes(removed: &[&str], added: &[&str]) -> Vec<String> {
    let gone = removed.iter().filter(|name| !added.contains(name));
    let gone = gone.map(|name| format!("{name} is gone"));
    let others = added.iter().map(|name| {
        let how = if removed.contains(name) {
            "changed"
        } else {
            "added"
        };
        format!("{name} is {how}")
    });
    gone.chain(others).collect()
}

/// As `/reload-mcp` does it.
async fn reload_servers(desk: &Desk) -> Outcome<String> {
    let runtime = Arc::clone(&desk.runtime);
    let mut conversation = Conversation::new(runtime, SessionOptions::default()).await?;
    let none = SkillNames::default();
    let ParsedLine::Command { command, .. } = command::read("/reload-mcp", Surface::Chat, &none)
    else {
        return Err(Failure::new("MCP servers cannot be read again"));
    };
    let here = Here {
        session: SessionId::from(""),
        is_busy: false,
        can_choose: false,
        surface: Surface::Chat,
    };
    let done = conversation.run(command, "", &here).await?;
    let text = shown::text(&done.shown, COLUMNS).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    Ok(format!("MCP: {first}"))
}

/// The clock that service managers compare times of.
fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}
