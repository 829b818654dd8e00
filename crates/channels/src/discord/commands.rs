//! Slash commands, as Discord suggests them.

use hermes_core::{ChannelError, ChatCommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::Discord;
use super::settings::Sync;

const COMMANDS_COUNT_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 32;
const DESCRIPTION_CHARS_MAX: usize = 100;

impl Discord {
    /// Puts all commands at once, if they are others than those that are there: Discord allows few changes a day.
    pub(super) async fn put_commands(&self, commands: &[ChatCommand]) -> Result<(), ChannelError> {
        if self.settings.sync == Sync::Never {
            return Ok(());
        }
        let wanted = menu(commands, self.settings.hides_commands);
        let path = format!("/applications/{}/commands", self.application().await?);
        if self.settings.sync == Sync::Safe {
            let known = self.api.get(&path).await.map_err(|failure| failure.error)?;
            if is_same(&known, &wanted) {
                return Ok(());
            }
        }
        let put = self
            .api
            .call(Method::PUT, &path, Some(&Value::Array(wanted)))
            .await;
        put.map(|_| ()).map_err(|failure| failure.error)
    }

    /// The application that the bot belongs to.
    async fn application(&self) -> Result<String, ChannelError> {
        if let Some(id) = self.known_application() {
            return Ok(id);
        }
        let found = self.api.get("/oauth2/applications/@me").await;
        let found = found.map_err(|failure| failure.error)?;
        let id = found["id"].as_str().unwrap_or_default().to_owned();
        self.set_application(&id);
        Ok(id)
    }
}

/// Commands by names that Discord takes. What has no such name is left out.
fn menu(commands: &[ChatCommand], is_hidden: bool) -> Vec<Value> {
    let mut names: Vec<String> = Vec::new();
    let mut menu = Vec::new();
    for command in commands {
        let name = command.name.trim_start_matches('/').to_lowercase();
        if menu.len() >= COMMANDS_COUNT_MAX || !is_name(&name) || names.contains(&name) {
            continue;
        }
        let description = match command.description.trim() {
            "" => name.clone(),
            given => hermes_core::text::shorten(given, DESCRIPTION_CHARS_MAX),
        };
        let arguments = json!({"type": 3, "name": "args", "description": "What else to say", "required": false});
        let mut entry =
            json!({"type": 1, "name": name, "description": description, "options": [arguments]});
        if is_hidden {
            // Nobody but who runs the server sees it.
            entry["default_member_permissions"] = "0".into();
        }
        menu.push(entry);
        names.push(name);
    }
    menu
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && name.chars().all(is_allowed)
}

/// Whether Discord has these commands already; it tells more of them than we did.
fn is_same(known: &Value, wanted: &[Value]) -> bool {
    let about = |command: &Value| {
        let options = command["options"].as_array().map_or(0, Vec::len);
        let text = |name: &str| command[name].as_str().unwrap_or_default().to_owned();
        let permissions = text("default_member_permissions");
        (text("name"), text("description"), permissions, options)
    };
    let mut known: Vec<_> = known.as_array().into_iter().flatten().map(about).collect();
    let mut wanted: Vec<_> = wanted.iter().map(about).collect();
    known.sort();
    wanted.sort();
    known == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn menus_have_only_what_discord_takes() {
        let command = |name: &str, description: &str| ChatCommand {
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let commands = [
            command("new", "Begin anew"),
            command("reload-mcp", " "),
            command("New", "the same again"),
            command("not a name!", ""),
            command(&"x".repeat(33), "too long"),
            command("help", &"h".repeat(300)),
        ];
        let menu = menu(&commands, false);
        let names: Vec<&str> = menu
            .iter()
            .filter_map(|entry| entry["name"].as_str())
            .collect();
        assert_eq!(names, ["new", "reload-mcp", "help"]);
        assert_eq!(menu[1]["description"], "reload-mcp");
        let shown = menu[2]["description"]
            .as_str()
            .map(|text| text.chars().count());
        assert_eq!(shown, Some(DESCRIPTION_CHARS_MAX));
    }

    #[test]
    fn commands_that_are_there_already_are_known_by_what_matters() {
        let commands = [ChatCommand {
            name: "new".to_owned(),
            description: "Begin anew".to_owned(),
        }];
        let wanted = menu(&commands, false);
        let mut known = wanted.clone();
        known[0]["id"] = "5".into();
        known[0]["version"] = "6".into();
        assert!(is_same(&json!(known), &wanted));
        assert!(!is_same(&json!(known), &menu(&commands, true)));
        assert!(!is_same(&json!([]), &wanted));
    }
}
