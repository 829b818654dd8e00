//! The menu of commands.

use hermes_core::{ChannelError, ChatCommand};
use serde_json::{Value, json};

use super::Telegram;
use super::refusal::Cause;

const NAME_CHARS_MAX: usize = 32;
const DESCRIPTION_CHARS_MAX: usize = 256;

/// Whom menus are for. Each must be told, or one that another program left there stays.
const SCOPES: [&str; 3] = ["default", "all_private_chats", "all_group_chats"];

impl Telegram {
    pub(super) async fn put_commands(&self, commands: &[ChatCommand]) -> Result<(), ChannelError> {
        let mut menu = menu(commands, self.settings.commands_count_max);
        for scope in SCOPES {
            menu = self.put_menu(scope, menu).await?;
        }
        Ok(())
    }

    /// Puts a menu, and returns as much of it as Telegram took.
    async fn put_menu(
        &self,
        scope: &str,
        mut menu: Vec<Value>,
    ) -> Result<Vec<Value>, ChannelError> {
        loop {
            let body = json!({"commands": menu, "scope": {"type": scope}});
            match self.api.call("setMyCommands", &body).await {
                Ok(_) => return Ok(menu),
                // All of them together must not be too long either.
                Err(failure) if failure.is(Cause::TooManyCommands) && menu.len() > 1 => {
                    menu.truncate(menu.len() / 2);
                }
                Err(failure) => return Err(failure.error),
            }
        }
    }
}

/// Commands by names that Telegram takes. Hyphens become underscores; what has no such name is left out.
fn menu(commands: &[ChatCommand], count_max: usize) -> Vec<Value> {
    let mut names: Vec<String> = Vec::new();
    let mut menu = Vec::new();
    for command in commands {
        let name = command
            .name
            .trim_start_matches('/')
            .to_ascii_lowercase()
            .replace('-', "_");
        let is_known = names.contains(&name);
        if menu.len() < count_max && is_name(&name) && !is_known {
            let description = match command.description.trim() {
                "" => name.clone(),
                given => hermes_core::text::shorten(given, DESCRIPTION_CHARS_MAX),
            };
            menu.push(json!({"command": name, "description": description}));
            names.push(name);
        }
    }
    menu
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn menus_have_only_what_telegram_takes() {
        let command = |name: &str, description: &str| ChatCommand {
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let long = "x".repeat(33);
        let commands = [
            command("new", "Begin anew"),
            command("reload-mcp", " "),
            command("reload_mcp", "the same again"),
            command("Größe", "not a name"),
            command(&long, "too long"),
            command("help", &"h".repeat(300)),
        ];
        let menu = menu(&commands, 60);
        let names: Vec<&str> = menu
            .iter()
            .filter_map(|entry| entry["command"].as_str())
            .collect();
        assert_eq!(names, ["new", "reload_mcp", "help"]);
        assert_eq!(menu[1]["description"], "reload_mcp");
        assert_eq!(
            menu[2]["description"]
                .as_str()
                .map(|text| text.chars().count()),
            Some(256)
        );
        assert_eq!(super::menu(&commands, 1).len(), 1);
    }
}
