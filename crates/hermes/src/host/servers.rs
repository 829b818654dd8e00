//! `/mcp` and `/reload-mcp`: the MCP servers of a conversation, and that they follow their settings.

use super::{Host, describe};
use crate::failure::{Failure, Outcome};

impl Host {
    /// Shows the MCP servers, after connecting some of them anew.
    pub(super) async fn servers(&self, arguments: &str) -> Outcome<String> {
        let servers = &self.prepared.wired.servers;
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
                return Err(Failure::usage("/mcp does not know these words")
                    .hint("/mcp, /mcp reconnect NAME or /mcp reconnect all"));
            }
        };
        for name in &names {
            let reconnected = servers.reconnect(name).await;
            reconnected.map_err(|error| Failure::new(error.to_string()))?;
        }
        Ok(if names.is_empty() {
            describe::servers(&servers.status())
        } else {
            format!(
                "connecting to {} anew; /mcp shows what came of it",
                names.join(", ")
            )
        })
    }

    pub(super) async fn reload_servers(&mut self) -> Outcome<String> {
        let wired = &mut self.prepared.wired;
        let reloaded = wired.reload_servers(&self.base, &self.flags).await?;
        let has_news = wired.has_news();
        let servers = &wired.servers;
        let warnings = servers
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}\n"));
        Ok(format!(
            "{}{}\n\n{}",
            warnings.collect::<String>(),
            describe::servers(&servers.status()),
            describe::reloaded(&reloaded, has_news)
        ))
    }

    /// Lets the MCP servers follow their settings, if those have changed. Returns what the person should know.
    ///
    /// To be called when a turn begins.
    pub async fn follow_settings(&mut self) -> Option<String> {
        let wired = &mut self.prepared.wired;
        let known = wired.servers.warnings.clone();
        match wired.follow_settings(&self.base, &self.flags).await {
            Ok(reloaded) => {
                let is_new = |warning: &&String| !known.contains(warning);
                let news = wired.servers.warnings.iter().filter(is_new);
                describe::followed(&reloaded?, news)
            }
            Err(failure) => Some(format!(
                "the settings have changed and cannot be used; the MCP servers stay as they are: {failure}"
            )),
        }
    }
}
