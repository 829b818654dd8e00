//! Names for what stands behind a command: what a surface suggests when somebody begins to type one.

use hermes_core::choice::Item;
use hermes_core::command::List;
use hermes_core::{Archive as _, ModelName, SessionFilter, SessionId};
use hermes_mcp::ServerStatus;

use super::{Conversation, earlier};
use crate::models::known::OfferedModel;
use crate::personality::Personalities;
use crate::tools::switch::switchable;

/// Sessions whose models are looked at: what somebody used lately is in them.
const RECENT_SESSIONS: usize = 100;

impl Conversation {
    /// The names of a list as they can be told at once; none when they cannot be read, and the command itself tells why.
    pub async fn names(&self, list: List, here: &SessionId, offered: &[OfferedModel]) -> Vec<Item> {
        let runtime = self.runtime();
        match list {
            List::Models => models(self, offered).await,
            List::Sessions => earlier::suggested(&**runtime.store(), here).await,
            List::Personalities => personalities(self),
            List::Toolsets => toolsets(self),
            List::Servers => servers(&runtime.servers().status()),
            List::Skills => {
                let skills = self.skill_names().await;
                skills.iter().map(|(name, text)| item(name, text)).collect()
            }
        }
    }
}

async fn models(conversation: &Conversation, offered: &[OfferedModel]) -> Vec<Item> {
    let Ok(askable) = conversation.askable() else {
        return Vec::new();
    };
    let current = conversation.setup().ports.model.name();
    let known = askable.items(&current, used(conversation).await, offered);
    let known = known.into_iter();
    known
        .map(|one| item(&one.name.to_string(), &one.details.join(" · ")))
        .collect()
}

/// The models of the latest sessions, the latest first.
async fn used(conversation: &Conversation) -> Vec<ModelName> {
    let filter = SessionFilter {
        limit: RECENT_SESSIONS,
        ..SessionFilter::default()
    };
    let sessions = conversation.runtime().store().list(filter).await;
    let sessions = sessions.unwrap_or_default().into_iter();
    sessions.map(|record| record.model).collect()
}

fn personalities(conversation: &Conversation) -> Vec<Item> {
    let Ok(base) = conversation.settings_now() else {
        return Vec::new();
    };
    let all = Personalities::of(&base);
    all.iter()
        .map(|(name, text)| item(name, text.lines().next().unwrap_or_default()))
        .collect()
}

fn toolsets(conversation: &Conversation) -> Vec<Item> {
    let toolsets = conversation
        .settings_now()
        .and_then(|base| switchable(&base));
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
