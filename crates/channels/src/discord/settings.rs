//! What Discord can be told.

use crate::setting::{asked, known, needed, proxy, secret};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermes_core::{
    Chat, ChatKind, PlatformSetting, PlatformSettingError, PlatformSettings, Secret,
};

pub(super) const TOKEN_VARIABLE: &str = "DISCORD_BOT_TOKEN";

const OFFICIAL: &str = "https://discord.com/api/v10";
/// The version of the API that is spoken here.
const VERSION: &str = "v10";
const ATTACHMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

pub(super) const SETTINGS: &[PlatformSetting] = &[
    secret(needed(
        "token",
        TOKEN_VARIABLE,
        "Bot token (from the Developer Portal, Bot, Reset Token)",
    )),
    asked(
        "allow_from",
        "DISCORD_ALLOWED_USERS",
        "Ids of people who may ask, with commas (empty: they pair with a code)",
    ),
    known("allowed_roles", "DISCORD_ALLOWED_ROLES"),
    known("allow_all_users", "DISCORD_ALLOW_ALL_USERS"),
    known("allow_bots", "DISCORD_ALLOW_BOTS"),
    known(
        "bots_require_inline_mention",
        "DISCORD_BOTS_REQUIRE_INLINE_MENTION",
    ),
    known("allowed_channels", "DISCORD_ALLOWED_CHANNELS"),
    known("ignored_channels", "DISCORD_IGNORED_CHANNELS"),
    known("no_thread_channels", "DISCORD_NO_THREAD_CHANNELS"),
    known("free_response_channels", "DISCORD_FREE_RESPONSE_CHANNELS"),
    known("require_mention", "DISCORD_REQUIRE_MENTION"),
    known("thread_require_mention", "DISCORD_THREAD_REQUIRE_MENTION"),
    known("ignore_no_mention", "DISCORD_IGNORE_NO_MENTION"),
    known("auto_thread", "DISCORD_AUTO_THREAD"),
    known("reactions", "DISCORD_REACTIONS"),
    known("reply_to_mode", "DISCORD_REPLY_TO_MODE"),
    known("history_backfill", "DISCORD_HISTORY_BACKFILL"),
    known("missed_message_backfill", "DISCORD_MISSED_MESSAGE_BACKFILL"),
    known("command_sync_policy", "DISCORD_COMMAND_SYNC_POLICY"),
    known("hide_slash_commands", "DISCORD_HIDE_SLASH_COMMANDS"),
    known("max_attachment_bytes", "DISCORD_MAX_ATTACHMENT_BYTES"),
    secret(known("proxy", "DISCORD_PROXY")),
    known("home_channel", "DISCORD_HOME_CHANNEL"),
    known("home_channel_name", "DISCORD_HOME_CHANNEL_NAME"),
    known("home_channel_thread_id", "DISCORD_HOME_CHANNEL_THREAD_ID"),
    known("api_base_url", "DISCORD_API_BASE_URL"),
    known("gateway_url", "DISCORD_GATEWAY_URL"),
];

/// The settings, checked.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) token: Secret,
    /// The bot's id: the part of the token that stays when the token is renewed.
    pub(super) account: String,
    pub(super) server: Server,
    pub(super) listening: Listening,
    pub(super) threads: Threads,
    pub(super) has_reactions: bool,
    pub(super) has_replies: bool,
    /// What was said while the session was lost is asked for.
    pub(super) catches_up: bool,
    /// What was said before somebody named us is told, too.
    pub(super) looks_back: bool,
    pub(super) sync: Sync,
    pub(super) hides_commands: bool,
    pub(super) attachment_bytes_max: u64,
}

/// Where Discord is, and how it is reached.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) base: String,
    /// Where the socket is, if settings say; otherwise Discord does.
    pub(super) gateway: Option<String>,
    pub(super) proxy: Option<Secret>,
}

/// Which messages we hear at all.
#[derive(Debug, Clone, Default)]
pub(super) struct Listening {
    pub(super) ignored_channels: Vec<String>,
    /// In a thread that we talk in, we have to be named too.
    pub(super) needs_mention_in_threads: bool,
    /// What names people, and not us, is for them.
    pub(super) leaves_others_alone: bool,
    /// A bot has to name us in its text: a reply to us is not enough.
    pub(super) bots_need_inline_mention: bool,
}

/// Which conversations get a thread of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads {
    pub(super) are_opened: bool,
    without: Vec<String>,
}

/// How commands are made known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// When they are others than those that are there.
    Safe,
    Always,
    Never,
}

impl Listening {
    pub(super) fn is_in(&self, chat: &Chat) -> bool {
        !is_listed(&self.ignored_channels, chat)
    }
}

impl Threads {
    pub(super) fn are_opened_in(&self, chat: &Chat) -> bool {
        self.are_opened && chat.kind == ChatKind::Group && !is_listed(&self.without, chat)
    }
}

fn is_listed(list: &[String], chat: &Chat) -> bool {
    let names = |entry: &String| *entry == chat.id || Some(entry) == chat.parent.as_ref();
    list.iter().any(|entry| entry == "*" || names(entry))
}

pub(super) fn read(settings: &PlatformSettings) -> Result<Settings, PlatformSettingError> {
    let server = server(settings)?;
    let (token, account) = token(settings, server.base == OFFICIAL)?;
    let mut without = settings.list("no_thread_channels");
    // Where everything is for us, a thread for each word would be too much.
    without.extend(settings.list("free_response_channels"));
    without.extend(settings.list("free_response_chats"));
    Ok(Settings {
        token,
        account,
        server,
        listening: Listening {
            ignored_channels: settings.list("ignored_channels"),
            needs_mention_in_threads: settings.switch("thread_require_mention", false),
            leaves_others_alone: settings.switch("ignore_no_mention", true),
            bots_need_inline_mention: settings.switch("bots_require_inline_mention", false),
        },
        threads: Threads {
            are_opened: settings.switch("auto_thread", true),
            without,
        },
        has_reactions: settings.switch("reactions", true),
        has_replies: settings.text("reply_to_mode").as_deref() != Some("off"),
        looks_back: settings.switch("history_backfill", true),
        catches_up: settings.switch("missed_message_backfill", true),
        sync: match settings.text("command_sync_policy").as_deref() {
            Some("bulk") => Sync::Always,
            Some("off" | "false") => Sync::Never,
            _ => Sync::Safe,
        },
        hides_commands: settings.switch("hide_slash_commands", false),
        attachment_bytes_max: settings
            .number("max_attachment_bytes")
            .unwrap_or(ATTACHMENT_BYTES_MAX),
    })
}

fn token(
    settings: &PlatformSettings,
    is_official: bool,
) -> Result<(Secret, String), PlatformSettingError> {
    let token = settings.text("token").ok_or_else(|| PlatformSettingError {
        key: "token",
        message: "there is no bot token for Discord".to_owned(),
        hint: format!(
            "set `{TOKEN_VARIABLE}` to the token of your bot: https://discord.com/developers/applications, Bot, Reset Token"
        ),
    })?;
    let token = token.strip_prefix("Bot ").unwrap_or(&token).to_owned();
    let account = match account(&token) {
        Some(account) => account,
        // Servers that only play Discord have tokens of their own.
        None if !is_official && token.chars().all(|c| c.is_ascii_graphic()) => "bot".to_owned(),
        None => {
            return Err(PlatformSettingError {
                key: "token",
                message: "the bot token is not one of Discord's".to_owned(),
                hint: format!(
                    "it looks like `MTIz….G4hJ1k.…`, not like an application's id or public key; copy it from https://discord.com/developers/applications, Bot, Reset Token, into `{TOKEN_VARIABLE}`"
                ),
            });
        }
    };
    Ok((Secret::new(token), account))
}

/// A token begins with the bot's id.
fn account(token: &str) -> Option<String> {
    let parts: Vec<&str> = token.split('.').collect();
    let [id, _, signature] = parts.as_slice() else {
        return None;
    };
    let id = URL_SAFE_NO_PAD.decode(id.trim_end_matches('=')).ok()?;
    let id = String::from_utf8(id).ok()?;
    let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_digit());
    (is_id && !signature.is_empty()).then_some(id)
}

fn server(settings: &PlatformSettings) -> Result<Server, PlatformSettingError> {
    let base = match settings.text("api_base_url") {
        Some(given) => base(&given)?,
        None => OFFICIAL.to_owned(),
    };
    let gateway = settings.text("gateway_url").map(|given| gateway(&given));
    Ok(Server {
        base,
        gateway: gateway.transpose()?,
        proxy: proxy(settings, "Discord")?,
    })
}

/// The address of the API with its version, which some write and some do not.
fn base(given: &str) -> Result<String, PlatformSettingError> {
    let address = given.trim_end_matches('/');
    let unusable = || PlatformSettingError {
        key: "api_base_url",
        message: format!("`{given}` is not the address of Discord's API"),
        hint: format!("it looks like `{OFFICIAL}` or `http://127.0.0.1:8080/api/{VERSION}`"),
    };
    let parsed = reqwest::Url::parse(address).map_err(|_| unusable())?;
    match (parsed.scheme(), parsed.path()) {
        ("http" | "https", "/" | "") => Ok(format!("{address}/api/{VERSION}")),
        ("http" | "https", path) if path.ends_with("/api") => Ok(format!("{address}/{VERSION}")),
        ("http" | "https", _) => Ok(address.to_owned()),
        _ => Err(unusable()),
    }
}

fn gateway(given: &str) -> Result<String, PlatformSettingError> {
    let is_socket = given.starts_with("ws://") || given.starts_with("wss://");
    if is_socket && reqwest::Url::parse(given).is_ok() {
        return Ok(given.to_owned());
    }
    Err(PlatformSettingError {
        key: "gateway_url",
        message: format!("`{given}` is not the address of a socket"),
        hint: "it looks like `wss://gateway.discord.gg` or `ws://127.0.0.1:8080`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    /// The id 42, as tokens write it.
    const TOKEN: &str = "NDI.Gabcde.signature";

    fn read_of(values: &[(&str, Value)]) -> Result<Settings, PlatformSettingError> {
        let mut all = BTreeMap::from([("token".to_owned(), json!(TOKEN))]);
        for (key, value) in values {
            all.insert((*key).to_owned(), value.clone());
        }
        super::read(&PlatformSettings::new(all))
    }

    #[test]
    fn the_account_is_the_part_of_the_token_that_stays() {
        let settings = read_of(&[]).expect("settings");
        assert_eq!(settings.account, "42");
        assert_eq!(settings.server.base, OFFICIAL);
        assert!(!format!("{settings:?}").contains("signature"));
        let pasted = read_of(&[("token", json!(format!("Bot {TOKEN}")))]).expect("settings");
        assert_eq!(pasted.token.expose(), TOKEN);
    }

    #[test]
    fn tokens_that_are_none_are_refused_with_where_to_find_one() {
        for token in ["", "42", "NDI.Gabcde", "NDI.Gabcde.", "xx.y.z", "a.b.c.d"] {
            let error = read_of(&[("token", json!(token))]).expect_err(token);
            assert_eq!(error.key, "token");
            assert!(error.hint.contains("Reset Token"), "{}", error.hint);
        }
        let elsewhere = ("api_base_url", json!("http://127.0.0.1:9"));
        let settings = read_of(&[("token", json!("made-up")), elsewhere]).expect("settings");
        assert_eq!(settings.account, "bot");
    }

    #[test]
    fn addresses_are_written_with_or_without_their_version() {
        for address in [
            "http://127.0.0.1:9",
            "http://127.0.0.1:9/api/",
            "http://127.0.0.1:9/api/v10",
        ] {
            let settings = read_of(&[("api_base_url", json!(address))]).expect(address);
            assert_eq!(settings.server.base, "http://127.0.0.1:9/api/v10");
        }
        assert!(read_of(&[("api_base_url", json!("127.0.0.1"))]).is_err());
        assert!(read_of(&[("gateway_url", json!("http://127.0.0.1"))]).is_err());
        assert!(read_of(&[("gateway_url", json!("ws://127.0.0.1:1/x"))]).is_ok());
        assert!(read_of(&[("proxy", json!("://"))]).is_err());
    }

    #[test]
    fn where_everything_is_for_us_no_threads_are_opened() {
        // Complaint 19: free-response channels that opened a thread for every word.
        let free = ("free_response_channels", json!("7"));
        let settings = read_of(&[free]).expect("settings");
        let channel = |id: &str| Chat {
            kind: ChatKind::Group,
            ..Chat::direct(id)
        };
        assert!(!settings.threads.are_opened_in(&channel("7")));
        assert!(settings.threads.are_opened_in(&channel("8")));
        assert!(!settings.threads.are_opened_in(&Chat::direct("8")));
    }
}
