//! What Telegram can be told.

use std::net::IpAddr;

use crate::setting::{asked, known, needed, proxy, secret};
use hermes_core::{
    Chat, ChatKind, PlatformSetting, PlatformSettingError, PlatformSettings, Secret,
};

pub(super) const TOKEN_VARIABLE: &str = "TELEGRAM_BOT_TOKEN";

/// Where Telegram is when names cannot be resolved, or lead nowhere.
const KNOWN_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(149, 154, 167, 220)),
    IpAddr::V4(std::net::Ipv4Addr::new(149, 154, 166, 110)),
];
const OFFICIAL: &str = "https://api.telegram.org";

/// Telegram's own limits, and those of a Bot API server of one's own.
const UPLOAD_BYTES_MAX: u64 = 50_000_000;
const DOWNLOAD_BYTES_MAX: u64 = 20_000_000;
const OWN_SERVER_BYTES_MAX: u64 = 2_000_000_000;

const WEBHOOK_PORT: u16 = 8443;
/// Telegram's menu takes a hundred; nobody reads so many.
const COMMANDS_COUNT: usize = 60;
const COMMANDS_COUNT_MAX: usize = 100;

pub(super) const SETTINGS: &[PlatformSetting] = &[
    secret(needed(
        "token",
        TOKEN_VARIABLE,
        "Bot token (from @BotFather)",
    )),
    asked(
        "allow_from",
        "TELEGRAM_ALLOWED_USERS",
        "Ids of people who may ask, with commas (empty: they pair with a code)",
    ),
    known("allow_all_users", "TELEGRAM_ALLOW_ALL_USERS"),
    known("allow_bots", "TELEGRAM_ALLOW_BOTS"),
    known("home_channel", "TELEGRAM_HOME_CHANNEL"),
    known("home_channel_name", "TELEGRAM_HOME_CHANNEL_NAME"),
    known("home_channel_thread_id", "TELEGRAM_HOME_CHANNEL_THREAD_ID"),
    known("reply_to_mode", "TELEGRAM_REPLY_TO_MODE"),
    known("require_mention", "TELEGRAM_REQUIRE_MENTION"),
    known("mention_patterns", "TELEGRAM_MENTION_PATTERNS"),
    known("exclusive_bot_mentions", "TELEGRAM_EXCLUSIVE_BOT_MENTIONS"),
    known("free_response_channels", "TELEGRAM_FREE_RESPONSE_CHATS"),
    known("allowed_chats", "TELEGRAM_ALLOWED_CHATS"),
    known("allowed_topics", "TELEGRAM_ALLOWED_TOPICS"),
    known("ignored_threads", "TELEGRAM_IGNORED_THREADS"),
    known("group_allow_from", "TELEGRAM_GROUP_ALLOWED_USERS"),
    known("group_allowed_chats", "TELEGRAM_GROUP_ALLOWED_CHATS"),
    known("ignore_root_dm", "TELEGRAM_IGNORE_ROOT_DM"),
    known("reactions", "TELEGRAM_REACTIONS"),
    known("webhook_url", "TELEGRAM_WEBHOOK_URL"),
    known("webhook_port", "TELEGRAM_WEBHOOK_PORT"),
    secret(known("webhook_secret", "TELEGRAM_WEBHOOK_SECRET")),
    secret(known("proxy", "TELEGRAM_PROXY")),
    known("fallback_ips", "TELEGRAM_FALLBACK_IPS"),
    known("base_url", "TELEGRAM_BASE_URL"),
    known("base_file_url", "TELEGRAM_BASE_FILE_URL"),
    known("local_mode", "TELEGRAM_LOCAL_MODE"),
    known("disable_link_previews", "TELEGRAM_DISABLE_LINK_PREVIEWS"),
    known("command_menu_max", "TELEGRAM_COMMAND_MENU_MAX"),
];

/// The settings, checked.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) token: Secret,
    /// The bot's id: the part of the token that stays when the token is renewed.
    pub(super) bot_id: i64,
    pub(super) server: Server,
    pub(super) webhook: Option<Webhook>,
    pub(super) topics: Topics,
    pub(super) has_reactions: bool,
    pub(super) has_link_previews: bool,
    pub(super) commands_count_max: usize,
}

/// Where the Bot API is, and how it is reached.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Without what follows for every bot: `https://api.telegram.org/bot`.
    pub(super) base: String,
    pub(super) file_base: String,
    /// A server of one's own on this machine: files are paths, and may be large.
    pub(super) is_local: bool,
    pub(super) proxy: Option<Secret>,
    /// Tried after what the name resolves to.
    pub(super) fallbacks: Vec<IpAddr>,
}

#[derive(Debug, Clone)]
pub(super) struct Webhook {
    pub(super) url: String,
    pub(super) path: String,
    pub(super) port: u16,
    pub(super) secret: Secret,
}

/// Which topics of groups we listen in. An entry is `TOPIC`, or `CHAT:TOPIC`.
#[derive(Debug, Clone, Default)]
pub(super) struct Topics {
    /// None here means all.
    pub(super) allowed: Vec<String>,
    pub(super) ignored: Vec<String>,
    /// Private chats are listened in only in their topics.
    pub(super) without_root: bool,
}

impl Topics {
    pub(super) fn are_listened_in(&self, chat: &Chat) -> bool {
        if chat.kind == ChatKind::Dm {
            return !self.without_root || chat.thread.is_some();
        }
        let Some(thread) = &chat.thread else {
            return true;
        };
        let is_whole = |entry: &String| {
            let mut ids = chat.ids();
            ids.any(|id| *entry == format!("{id}:{}", thread.id))
        };
        let names = |entry: &String| *entry == thread.id || is_whole(entry);
        let is_allowed = self.allowed.is_empty() || self.allowed.iter().any(names);
        is_allowed && !self.ignored.iter().any(names)
    }
}

impl Server {
    pub(super) fn upload_bytes_max(&self) -> u64 {
        if self.is_local {
            OWN_SERVER_BYTES_MAX
        } else {
            UPLOAD_BYTES_MAX
        }
    }

    pub(super) fn download_bytes_max(&self) -> u64 {
        if self.is_local {
            OWN_SERVER_BYTES_MAX
        } else {
            DOWNLOAD_BYTES_MAX
        }
    }
}

pub(super) fn read(settings: &PlatformSettings) -> Result<Settings, PlatformSettingError> {
    let (token, bot_id) = token(settings)?;
    let count = settings.number("command_menu_max");
    Ok(Settings {
        token,
        bot_id,
        server: server(settings)?,
        webhook: webhook(settings)?,
        topics: Topics {
            allowed: settings.list("allowed_topics"),
            ignored: settings.list("ignored_threads"),
            without_root: settings.switch("ignore_root_dm", false),
        },
        has_reactions: settings.switch("reactions", false),
        has_link_previews: !settings.switch("disable_link_previews", false),
        commands_count_max: count
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(COMMANDS_COUNT)
            .min(COMMANDS_COUNT_MAX),
    })
}

fn token(settings: &PlatformSettings) -> Result<(Secret, i64), PlatformSettingError> {
    let token = settings.text("token").ok_or_else(|| PlatformSettingError {
        key: "token",
        message: "there is no bot token for Telegram".to_owned(),
        hint: format!("set `{TOKEN_VARIABLE}` to the token that @BotFather gave you"),
    })?;
    let is_of_a_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let bot_id = token
        .split_once(':')
        .filter(|(_, rest)| !rest.is_empty() && rest.chars().all(is_of_a_token))
        .and_then(|(id, _)| id.parse().ok());
    match bot_id {
        Some(bot_id) => Ok((Secret::new(token), bot_id)),
        None => Err(PlatformSettingError {
            key: "token",
            message: "the bot token is not one of Telegram's".to_owned(),
            hint: format!(
                "it looks like `123456789:AAF…`; copy it from @BotFather (`/mybots`, API Token) into `{TOKEN_VARIABLE}`"
            ),
        }),
    }
}

fn server(settings: &PlatformSettings) -> Result<Server, PlatformSettingError> {
    let given = settings.text("base_url");
    let root = root(given.as_deref().unwrap_or(OFFICIAL), "/bot");
    check_address("base_url", &root)?;
    let file_base = match settings.text("base_file_url") {
        Some(given) => format!("{}/bot", self::root(&given, "/bot")),
        None => format!("{root}/file/bot"),
    };
    check_address("base_file_url", &file_base)?;
    let fallbacks = match settings.list("fallback_ips") {
        given if !given.is_empty() => addresses(&given)?,
        _ if given.is_none() => KNOWN_ADDRESSES.to_vec(),
        _ => Vec::new(),
    };
    Ok(Server {
        base: format!("{root}/bot"),
        file_base,
        is_local: settings.switch("local_mode", false),
        proxy: proxy(settings, "Telegram")?,
        fallbacks,
    })
}

/// An address without its end, which some write and some do not.
fn root(address: &str, end: &str) -> String {
    let address = address.trim_end_matches('/');
    address.strip_suffix(end).unwrap_or(address).to_owned()
}

fn check_address(key: &'static str, address: &str) -> Result<(), PlatformSettingError> {
    let is_web = address.starts_with("http://") || address.starts_with("https://");
    if is_web && reqwest::Url::parse(address).is_ok() {
        return Ok(());
    }
    Err(PlatformSettingError {
        key,
        message: format!("`{address}` is not the address of a Bot API server"),
        hint: format!("it looks like `{OFFICIAL}` or `http://127.0.0.1:8081`"),
    })
}

fn addresses(given: &[String]) -> Result<Vec<IpAddr>, PlatformSettingError> {
    let address = |text: &String| {
        text.parse().map_err(|_| PlatformSettingError {
            key: "fallback_ips",
            message: format!("`{text}` is not an IP address"),
            hint: "write addresses with commas between them: `149.154.167.220`".to_owned(),
        })
    };
    given.iter().map(address).collect()
}

fn webhook(settings: &PlatformSettings) -> Result<Option<Webhook>, PlatformSettingError> {
    let Some(url) = settings.text("webhook_url") else {
        return Ok(None);
    };
    let parsed = reqwest::Url::parse(&url).map_err(|error| PlatformSettingError {
        key: "webhook_url",
        message: format!("`{url}` is not an address that Telegram can call: {error}"),
        hint: "it looks like `https://bot.example.org/telegram`".to_owned(),
    })?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let secret = settings
        .text("webhook_secret")
        .filter(|secret| secret.len() <= 256 && secret.chars().all(is_word))
        .ok_or_else(|| PlatformSettingError {
            key: "webhook_secret",
            message: "a webhook needs a secret, or anybody could pretend to be Telegram".to_owned(),
            hint: "set `TELEGRAM_WEBHOOK_SECRET` to 1 to 256 letters, digits, `_` and `-`, for example of `openssl rand -hex 32`".to_owned(),
        })?;
    let port = settings.number("webhook_port").map(u16::try_from);
    Ok(Some(Webhook {
        path: parsed.path().to_owned(),
        url,
        port: port.and_then(Result::ok).unwrap_or(WEBHOOK_PORT),
        secret: Secret::new(secret),
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn read_of(values: &[(&str, Value)]) -> Result<Settings, PlatformSettingError> {
        let mut all = BTreeMap::from([("token".to_owned(), json!("42:secret"))]);
        for (key, value) in values {
            all.insert((*key).to_owned(), value.clone());
        }
        read(&PlatformSettings::new(all))
    }

    #[test]
    fn the_account_is_the_part_of_the_token_that_stays() {
        let settings = read_of(&[]).expect("settings");
        assert_eq!(settings.bot_id, 42);
        assert_eq!(settings.server.base, "https://api.telegram.org/bot");
        assert_eq!(
            settings.server.file_base,
            "https://api.telegram.org/file/bot"
        );
        assert_eq!(settings.server.fallbacks.len(), 2);
        assert!(!format!("{settings:?}").contains("secret\""));
    }

    #[test]
    fn tokens_that_are_none_are_refused_with_what_one_looks_like() {
        for token in ["", "42", "42:", "x:secret", "42:a b", "https://x/42:abc"] {
            let error = read_of(&[("token", json!(token))]).expect_err(token);
            assert_eq!(error.key, "token");
            assert!(error.hint.contains("@BotFather"), "{}", error.hint);
        }
    }

    #[test]
    fn a_server_of_ones_own_is_written_with_or_without_its_end() {
        for address in [
            "http://127.0.0.1:8081",
            "http://127.0.0.1:8081/bot",
            "http://127.0.0.1:8081/bot/",
        ] {
            let settings = read_of(&[("base_url", json!(address))]).expect(address);
            assert_eq!(settings.server.base, "http://127.0.0.1:8081/bot");
            assert_eq!(settings.server.file_base, "http://127.0.0.1:8081/file/bot");
            assert!(settings.server.fallbacks.is_empty());
        }
        assert!(read_of(&[("base_url", json!("127.0.0.1"))]).is_err());
        assert!(read_of(&[("fallback_ips", json!("1.2.3"))]).is_err());
        assert!(read_of(&[("proxy", json!("socks5://127.0.0.1:9"))]).is_ok());
        assert!(read_of(&[("proxy", json!("://"))]).is_err());
    }

    #[test]
    fn private_chats_are_listened_in_outside_of_topics_unless_settings_say_otherwise() {
        let root = Chat::direct("7");
        let topic = Chat {
            thread: Some(hermes_core::Thread {
                id: "1".into(),
                title: None,
            }),
            ..root.clone()
        };
        let usual = read_of(&[]).expect("settings").topics;
        assert!(usual.are_listened_in(&root) && usual.are_listened_in(&topic));
        let strict = read_of(&[("ignore_root_dm", json!(true))]).expect("settings");
        assert!(!strict.topics.are_listened_in(&root));
        assert!(strict.topics.are_listened_in(&topic));
    }

    #[test]
    fn a_webhook_without_a_secret_is_refused() {
        let url = ("webhook_url", json!("https://bot.example.org/hook"));
        let error = read_of(std::slice::from_ref(&url)).expect_err("no secret");
        assert_eq!(error.key, "webhook_secret");
        let secret = ("webhook_secret", json!("s3cret"));
        let webhook = read_of(&[url, secret]).expect("settings").webhook;
        let webhook = webhook.expect("a webhook");
        assert_eq!((webhook.path.as_str(), webhook.port), ("/hook", 8443));
    }
}
