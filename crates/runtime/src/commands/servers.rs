//! `/mcp` and `/reload-mcp`: the MCP servers of a conversation, and that they follow their settings.

use std::sync::Arc;

use super::{Conversation, Done, Shown, describe};
use crate::base::Base;
use crate::error::{Error, Result};
use crate::mcp::{McpContext, Reread};
use crate::tools::toolsets::Toolsets;

impl Conversation {
    /// Shows the MCP servers, after connecting some of them anew.
    pub(super) async fn servers(&self, arguments: &str) -> Result<Shown> {
        let servers = self.runtime.servers();
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let names: Vec<String> = match words.as_slice() {
            [] => Vec::new(),
            ["reconnect", "all"] => servers
                .status()
                .into_iter()
                .map(|server| server.name)
                .collect(),
            ["reconnect", name] => vec![(*name).to_owned()],
            _ => {
                return Err(Error::asked("/mcp does not know these words")
                    .with_hint("/mcp, /mcp reconnect NAME or /mcp reconnect all"));
            }
        };
        for name in &names {
            let reconnected = servers.reconnect(name).await;
            reconnected.map_err(|error| Error::failed(error.to_string()))?;
        }
        Ok(if names.is_empty() {
            Shown::Servers {
                warnings: Vec::new(),
                servers: servers.status(),
            }
        } else {
            Shown::Text(format!(
                "connecting to {} anew; /mcp shows what came of it",
                names.join(", ")
            ))
        })
    }

    pub(super) async fn reload_servers(&mut self) -> Result<Done> {
        let servers = Arc::clone(self.runtime.servers());
        servers.files_have_changed().await;
        let base = self.settings_now()?;
        let reread = self.reread(&base).await?;
        // Those who are quick are shown as they are.
        servers.wait_a_moment(&base).await?;
        let told = describe::reloaded(&reread.reloaded, self.setup.has_news());
        let shown = Shown::Servers {
            warnings: reread.warnings,
            servers: servers.status(),
        };
        Ok(Done::shown(shown).telling(told))
    }

    /// Lets the MCP servers follow their settings, if those have changed. Returns what the person should know; an error
    /// says that the settings cannot be used, and the servers stay as they are.
    ///
    /// To be called when a turn begins.
    pub async fn follow_settings(&mut self) -> Result<Option<String>> {
        let servers = Arc::clone(self.runtime.servers());
        if !servers.files_have_changed().await {
            return Ok(None);
        }
        let known = servers.warnings().await;
        let base = self.settings_now()?;
        if !base.settings.bool("mcp.auto_reload_on_config_change")? {
            return Ok(None);
        }
        let reread = self.reread(&base).await?;
        let is_new = |warning: &&String| !known.contains(warning);
        let news = reread.warnings.iter().filter(is_new);
        Ok(describe::followed(&reread.reloaded, news))
    }

    /// Reads the settings of the MCP servers again. Sessions that run keep their tools; see [`Setup::refresh_tools`].
    ///
    /// [`Setup::refresh_tools`]: crate::setup::Setup::refresh_tools
    async fn reread(&self, base: &Base) -> Result<Reread> {
        let chosen = Toolsets::chosen(base, &self.options)?;
        let context = McpContext {
            model: Arc::clone(&self.setup.ports.model),
            cwd: self.setup.settings.cwd.clone(),
            is_attended: self.setup.settings.is_attended,
        };
        let servers = self.runtime.servers();
        Ok(servers.reload(base, &chosen, context).await)
    }
}
