//! Names for what stands behind a command: what the interface suggests when it asks for a list.

use hermes_core::command::List;
use hermes_core::{Archive as _, ModelName, SessionFilter, SessionId};
use hermes_mcp::ServerStatus;
use hermes_tui::Item;

use super::earlier;
use hermes_runtime::Conversation;
use hermes_runtime::models::known::OfferedModel;
use hermes_runtime::personality::Personalities;
use hermes_runtime::tools::switch::switchable;

/// Sessions whose models are looked at: what somebody used lately is in them.
const RECENT_SESSIONS: usize = 100;

/// The names of a list as they can be told at once; none when they cannot be read, and the command itself tells why.
pub(super) async fn names(
    host: &Conversation,
    list: List,
    here: &SessionId,
    offered: &[OfferedModel],
) -> Vec<Item> {
    let runtime = host.runtime();
    match list {
        List::Models => models(host, offered).await,
        List::Sessions => earlier::suggested(&**runtime.store(), here).await,
        List::Personalities => personalities(host),
        List::Toolsets => toolsets(host),
        List::Servers => servers(&runtime.servers().status()),
        List::Skills => {
            let skills = host.skill_names().await;
            skills.iter().map(|(name, text)| item(name, text)).collect()
        }
    }
}

async fn models(host: &Conversation, offered: &[OfferedModel]) -> Vec<Item> {
    let Ok(askable) = host.askable() else {
        return Vec::new();
    };
    let current = host.setup().ports.model.name();
    let known = askable.items(&current, used(host).await, offered);
    let known = known.into_iter();
    known
        .map(|one| item(&one.name.to_string(), &one.details.join(" · ")))
        .collect()
}

/// The models of the latest sessions, the latest first.
async fn used(host: &Conversation) -> Vec<ModelName> {
    let filter = SessionFilter {
        limit: RECENT_SESSIONS,
        ..SessionFilter::default()
    };
    let sessions = host.runtime().store().list(filter).await;
    let sessions = sessions.unwrap_or_default().into_iter();
    sessions.map(|record| record.model).collect()
}

fn personalities(host: &Conversation) -> Vec<Item> {
    let Ok(base) = host.settings_now() else {
        return Vec::new();
    };
    let all = Personalities::of(&base);
    all.iter()
        .map(|(name, text)| item(name, text.lines().next().unwrap_or_default()))
        .collect()
}

fn toolsets(host: &Conversation) -> Vec<Item> {
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
