//! Names for what stands behind a command: what the interface suggests when it asks for a list.

use hermes_core::command::List;
use hermes_core::{Archive as _, ModelName, SessionFilter, SessionId};
use hermes_mcp::ServerStatus;
use hermes_tui::Item;

use super::earlier;
use crate::commands::tools::switchable;
use crate::host::Host;
use crate::known_models::OfferedModel;
use crate::personality::Personalities;

/// Sessions whose models are looked at: what somebody used lately is in them.
const RECENT_SESSIONS: usize = 100;

/// The names of a list as they can be told at once; none when they cannot be read, and the command itself tells why.
pub(super) async fn names(
    host: &Host,
    list: List,
    here: &SessionId,
    offered: &[OfferedModel],
) -> Vec<Item> {
    let wired = &host.prepared().wired;
    match list {
        List::Models => models(host, offered).await,
        List::Sessions => earlier::suggested(&*wired.archive, here).await,
        List::Personalities => personalities(host),
        List::Toolsets => toolsets(host),
        List::Servers => servers(&wired.servers.status()),
        List::Skills => {
            let skills = host.skill_names().await;
            skills.iter().map(|(name, text)| item(name, text)).collect()
        }
    }
}

async fn models(host: &Host, offered: &[OfferedModel]) -> Vec<Item> {
    let Ok(askable) = host.askable() else {
        return Vec::new();
    };
    let current = host.prepared().wired.ports.model.name();
    askable.items(&current, used(host).await, offered)
}

/// The models of the latest sessions, the latest first.
async fn used(host: &Host) -> Vec<ModelName> {
    let filter = SessionFilter {
        limit: RECENT_SESSIONS,
        ..SessionFilter::default()
    };
    let sessions = host.prepared().wired.archive.list(filter).await;
    let sessions = sessions.unwrap_or_default().into_iter();
    sessions.map(|record| record.model).collect()
}

fn personalities(host: &Host) -> Vec<Item> {
    let Ok(base) = host.settings_now() else {
        return Vec::new();
    };
    let all = Personalities::of(&base);
    all.iter()
        .map(|(name, text)| item(name, text.lines().next().unwrap_or_default()))
        .collect()
}

fn toolsets(host: &Host) -> Vec<Item> {
    let toolsets = host.settings_now().and_then(|base| switchable(&base));
    let toolsets = toolsets.unwrap_or_default().into_iter();
    let state = |is_on| if is_on { "on" } else { "off" };
    toolsets
        .map(|(toolset, is_on)| {
            let detail = format!("{} · {}", state(is_on), toolset.purpose);
            item(toolset.name, &detail)
        })
        .collect()
}

fn servers(servers: &[ServerStatus]) -> Vec<Item> {
    let named = servers
        .iter()
        .map(|server| item(&server.name, &server.state.to_string()));
    let all = (servers.len() > 1).then(|| item("all", "every one of them"));
    named.chain(all).collect()
}

fn item(name: &str, detail: &str) -> Item {
    Item {
        value: name.to_owned(),
        label: name.to_owned(),
        detail: detail.to_owned(),
    }
}
