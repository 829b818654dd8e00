//! The chat platforms of the gateway, as the settings want them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use hermes_channels::PLATFORMS;
use hermes_config::Settings;
use hermes_core::deliver::{Arrival, Deliver, DeliverError, DeliveryId, Place as DeliveryPlace};
use hermes_core::text::nearest;
use hermes_core::{
    Address, BoxFuture, ChannelPorts, Platform, PlatformSettings, SessionOptions, Timestamp,
};
use hermes_gateway::Shutdown;
use hermes_gateway::chat::access::{GatewayAccess, PlatformAccess, Usual};
use hermes_gateway::chat::files::FilePolicy;
use hermes_gateway::chat::key::KeyRules;
use hermes_gateway::chat::manner::Manner;
use hermes_gateway::chat::owner::NamedPeople;
use hermes_gateway::chat::pairing::Pairing;
use hermes_gateway::chat::{
    Aliases, ChatChannel, ChatGateway, ChatPorts, ChatSettings, Limits, ToChats, WhenBusy,
};
use hermes_gateway::deliver::ToLog;
use hermes_gateway::report::{PlatformReport, PlatformState};
use hermes_runtime::Runtime;
use hermes_runtime::files_out::FilesOut;
use hermes_runtime::schedules::PlatformStanding;
use serde_json::Value;

use super::chat_commands::HomeCommands;
use super::desk::{Desk, this_process};
use super::hooks::ChatHooks;
use super::reset;
use super::settings::sections;
use crate::base::Base;
use crate::demo;
use crate::failure::{Failure, Outcome, code};

/// Between two edits of a reply that is being written.
const PREVIEW_INTERVAL: Duration = Duration::from_millis(800);
/// What waited longer than this is told of instead of answered.
const STALE_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Turns at a time unless settings say otherwise: each has a model and perhaps a terminal.
const TURNS_MAX: usize = 64;
/// More than this no machine does at a time.
const TURNS_BOUND: u64 = 10_000;
const MEDIA_BYTES_MAX: u64 = 128 << 20;
/// A token that is shorter is a placeholder.
const SECRET_CHARS_MIN: usize = 4;

/// What all platforms can be told, besides what is their own.
const SHARED: &[&str] = &[
    "allowed_users",
    "allow_all_users",
    "group_allowed_users",
    "group_allowed_chats",
    "allowed_chats",
    "allow_bots",
    "require_mention",
    "free_response_chats",
    "mention_patterns",
    "exclusive_bot_mentions",
    "home_channel",
    "home_channel_thread_id",
    "reply_to_mode",
    "streaming",
    "tool_progress",
    "typing_indicator",
    "free_response_topics",
    "guest_mode",
    "observe_unmentioned_group_messages",
];

/// A platform that is set up.
#[derive(Clone)]
pub(in crate::commands) struct SetUp {
    platform: &'static Platform,
    settings: PlatformSettings,
}

impl PartialEq for SetUp {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.settings == other.settings
    }
}

impl SetUp {
    pub(in crate::commands) fn name(&self) -> &'static str {
        self.platform.name
    }

    pub(super) fn label(&self) -> String {
        self.platform.label.to_owned()
    }

    /// Who may ask there.
    pub(in crate::commands) fn access(&self) -> PlatformAccess {
        PlatformAccess::read(
            &self.settings,
            Usual {
                ignores_strangers: self.platform.ignores_strangers,
                requires_mention: self.platform.requires_mention,
            },
        )
    }
}

/// Platforms with their channels, and those whose settings cannot be used.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) channels: Vec<ChatChannel>,
    pub(super) known: Vec<SetUp>,
    pub(super) refused: Vec<(SetUp, Failure)>,
}

impl Opened {
    /// Makes the channels of platforms. One that is wrongly set up does not hinder the others.
    pub(super) fn of(desk: &Desk, wanted: Vec<SetUp>) -> Self {
        let mut opened = Self::default();
        for set_up in wanted {
            match channel(desk, &set_up) {
                Ok(channel) => {
                    opened.channels.push(channel);
                    opened.known.push(set_up);
                }
                Err(failure) => opened.refused.push((set_up, failure)),
            }
        }
        opened
    }

    /// How those are that cannot be used.
    pub(super) fn reports(&self, now: Timestamp) -> Vec<PlatformReport> {
        let report = |(set_up, failure): &(SetUp, Failure)| PlatformReport {
            platform: set_up.name().to_owned(),
            account: String::new(),
            state: PlatformState::Refused,
            since: now,
            name: None,
            heard: None,
            error: Some(in_one_line(failure)),
            passed_over: None,
            retry: None,
        };
        self.refused.iter().map(report).collect()
    }
}

fn in_one_line(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}; {hint}", failure.message),
        None => failure.message.clone(),
    }
}

/// Whom the settings of all platforms name that are set up.
pub(in crate::commands) fn named(base: &Base) -> NamedPeople {
    let wanted: Vec<(&'static str, PlatformAccess)> = wanted(base)
        .iter()
        .map(|one| (one.name(), one.access()))
        .collect();
    let platforms = wanted.iter().map(|(name, access)| (*name, access));
    NamedPeople::of(platforms, &gateway_access(base))
}

/// Who may ask on all platforms.
pub(in crate::commands) fn gateway_access(base: &Base) -> GatewayAccess {
    let environment = &base.environment;
    GatewayAccess {
        allow_all: environment.is_on("GATEWAY_ALLOW_ALL_USERS"),
        allowed_users: words(environment.get("GATEWAY_ALLOWED_USERS").unwrap_or_default()),
    }
}

/// The platforms that the settings want.
pub(in crate::commands) fn wanted(base: &Base) -> Vec<SetUp> {
    let known = PLATFORMS.iter().chain([&demo::phone::PLATFORM]);
    known
        .filter_map(|platform| {
            let settings = settings_of(base, platform);
            is_wanted(platform, &settings).then_some(SetUp { platform, settings })
        })
        .collect()
}

/// Lets whoever names a platform be told whether there is one.
pub(crate) fn tell_platforms(runtime: &Runtime) {
    let base = Arc::clone(runtime.base());
    runtime.set_platforms(Arc::new(move || standings(&base)));
}

/// All platforms, and whether the settings want them.
pub(crate) fn standings(base: &Base) -> Vec<PlatformStanding> {
    let wanted = wanted(base);
    let is_set_up = |name: &str| wanted.iter().any(|one| one.name() == name);
    let standing = |name: &str| PlatformStanding {
        name: name.to_owned(),
        is_set_up: is_set_up(name),
    };
    let known = PLATFORMS.iter().map(|platform| platform.name);
    let others = wanted.iter().map(SetUp::name);
    let others = others.filter(|name| PLATFORMS.iter().all(|known| known.name != *name));
    known.chain(others).map(standing).collect()
}

/// Whether results can go there: to the log, or to a platform that is set up.
pub(in crate::commands) fn is_reachable(base: &Base, target: &str) -> bool {
    let platform = target.split(':').next().unwrap_or_default();
    let is_named = |one: &SetUp| one.platform.name.eq_ignore_ascii_case(platform);
    ToLog.check(target).is_ok() || wanted(base).iter().any(is_named)
}

/// The variables that platforms cannot do without.
pub(super) fn needed_variables() -> Vec<&'static str> {
    let settings = PLATFORMS.iter().flat_map(|platform| platform.settings);
    let needed = settings.filter(|setting| setting.is_needed);
    needed.map(|setting| setting.variable).collect()
}

/// A channel of a platform as it is set up.
fn channel(desk: &Desk, set_up: &SetUp) -> Outcome<ChatChannel> {
    let SetUp { platform, settings } = set_up;
    let ports = ChannelPorts {
        clock: Arc::clone(desk.runtime.clock()),
        random: Arc::clone(desk.runtime.random()),
    };
    let channel = (platform.open)(settings, ports).map_err(|error| {
        Failure {
            code: code::SETTINGS,
            ..Failure::new(format!("{}: {error}", platform.label))
        }
        .hint(error.hint)
    })?;
    Ok(ChatChannel {
        channel,
        access: set_up.access(),
        manner: Manner::read(settings, platform.shows_calls),
        home: home(platform, settings),
    })
}

/// Where it is written down which process receives with which account: one place for all homes of a user.
pub(super) fn identity_locks(base: &Base) -> PathBuf {
    let state = base.environment.path("XDG_STATE_HOME").map(Path::to_owned);
    let by_home = || Some(base.environment.user_home()?.join(".local/state"));
    match state.or_else(by_home) {
        Some(state) => state.join("hermes").join("gateway-locks"),
        None => base.home.root().join("locks"),
    }
}

/// Makes the part of the gateway that talks on them.
pub(super) fn gateway(
    base: &Base,
    desk: &Arc<Desk>,
    channels: Vec<ChatChannel>,
    shutdown: Shutdown,
) -> Outcome<ChatGateway> {
    let runtime = &desk.runtime;
    let store = runtime.store();
    let ports = ChatPorts {
        sessions: Arc::clone(runtime) as _,
        archive: Arc::clone(store) as _,
        store: Arc::clone(store) as _,
        inbox: Arc::clone(store) as _,
        outbox: Arc::clone(store) as _,
        leases: Arc::clone(store) as _,
        chats: Arc::clone(store) as _,
        pairings: Arc::clone(store) as _,
        people: Arc::clone(store) as _,
        records: Arc::clone(store) as _,
        pairing: Pairing::new(Arc::clone(store) as _, Arc::clone(runtime.clock())),
        commands: Arc::new(HomeCommands(Arc::clone(desk))),
        files: Arc::new(HomeFiles(FilesOut::chosen(base)?)),
        clock: Arc::clone(runtime.clock()),
        random: Arc::clone(runtime.random()),
        settings: settings(base)?.into(),
    };
    let chats = ChatGateway::new(ports, channels, shutdown);
    Ok(chats
        .with_identity_locks(identity_locks(base), desk.holder.clone())
        .with_hooks(Arc::new(ChatHooks(Arc::clone(&desk.hooks)))))
}

/// The same for a process that only sends.
pub(in crate::commands) fn sender(
    base: &Base,
    runtime: &Arc<Runtime>,
    wanted: Vec<SetUp>,
    shutdown: Shutdown,
) -> Outcome<ChatGateway> {
    let desk = Desk::new(Arc::clone(runtime), this_process(None), shutdown.clone());
    let opened = Opened::of(&desk, wanted);
    for report in opened.reports(desk.holder.started) {
        let (platform, error) = (report.platform, report.error.unwrap_or_default());
        tracing::warn!(platform, error, "the platform cannot be used");
    }
    gateway(base, &Arc::new(desk), opened.channels, shutdown)
}

/// The way to the chats of a home for a process that is no gateway. Platforms are opened when somebody writes to one.
pub(crate) struct HomeChats {
    base: Arc<Base>,
    runtime: Weak<Runtime>,
    opened: OnceLock<Result<ToChats, DeliverError>>,
}

impl HomeChats {
    /// None where no platform is set up.
    pub(crate) fn of(runtime: &Arc<Runtime>) -> Option<Arc<Self>> {
        let base = Arc::clone(runtime.base());
        let is_any = !wanted(&base).is_empty();
        is_any.then(|| {
            Arc::new(Self {
                base,
                runtime: Arc::downgrade(runtime),
                opened: OnceLock::new(),
            })
        })
    }

    fn opened(&self) -> Result<&ToChats, DeliverError> {
        let opened = self.opened.get_or_init(|| {
            let failed = |message: String, hint: Option<String>| DeliverError {
                message,
                hint: hint.unwrap_or_default(),
                is_passing: false,
            };
            let runtime = self.runtime.upgrade();
            let runtime = runtime.ok_or_else(|| failed("the program ends".into(), None))?;
            let wanted = wanted(&self.base);
            let opened = sender(&self.base, &runtime, wanted, Shutdown::default());
            opened
                .map(|gateway| gateway.outbound())
                .map_err(|failure| failed(failure.message, failure.hint))
        });
        opened.as_ref().map_err(Clone::clone)
    }
}

impl Deliver for HomeChats {
    fn check(&self, target: &str) -> Result<(), DeliverError> {
        self.opened()?.check(target)
    }

    fn deliver<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(async move { self.opened()?.deliver(key, target, text).await })
    }

    fn deliver_verbatim<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(async move { self.opened()?.deliver_verbatim(key, target, text).await })
    }

    fn deliver_result<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(async move { self.opened()?.deliver_result(key, target, text).await })
    }

    fn status<'a>(&'a self, id: &'a DeliveryId) -> BoxFuture<'a, Result<Arrival, DeliverError>> {
        Box::pin(async move { self.opened()?.status(id).await })
    }

    fn places(&self) -> BoxFuture<'_, Result<Vec<DeliveryPlace>, DeliverError>> {
        Box::pin(async move { self.opened()?.places().await })
    }
}

/// Files of the home and its projects.
struct HomeFiles(FilesOut);

impl FilePolicy for HomeFiles {
    fn take(&self, path: &Path, guest: Option<&str>, bytes_max: u64) -> Result<PathBuf, String> {
        self.0.take(path, guest, bytes_max)
    }

    fn forget_taken(&self, before: SystemTime, waiting: &[PathBuf]) {
        self.0.forget(before, waiting);
    }

    fn folder(&self, guest: &str) -> PathBuf {
        self.0.folder(guest)
    }
}

pub(super) fn settings(base: &Base) -> Outcome<ChatSettings> {
    let settings = &base.settings;
    let is_on = |key: &str, default: bool| match settings.get(key) {
        Some(Value::Bool(is_on)) => *is_on,
        _ => default,
    };
    let seconds = |key: &str| match settings.get(key) {
        Some(Value::Number(minutes)) => minutes.as_f64(),
        _ => None,
    };
    let transport = settings.get("streaming.transport").and_then(Value::as_str);
    let transport = transport.unwrap_or("edit");
    Ok(ChatSettings {
        keys: KeyRules {
            profile: base.home.profile().unwrap_or("main").to_owned(),
            per_user_in_groups: is_on("group_sessions_per_user", true),
            per_user_in_threads: is_on("thread_sessions_per_user", false),
            joins_private_chats: settings.string("gateway.continuity")? == "shared",
        },
        access: gateway_access(base),
        named: named(base),
        when_busy: match settings
            .get("display.busy_input_mode")
            .and_then(Value::as_str)
        {
            Some("queue") => WhenBusy::Queue,
            Some("steer") => WhenBusy::Steer,
            _ => WhenBusy::Interrupt,
        },
        shows_previews: is_on("streaming.enabled", true) && transport != "off",
        shows_drafts: matches!(transport, "draft" | "auto"),
        preview_interval: seconds("streaming.edit_interval").map_or(PREVIEW_INTERVAL, |seconds| {
            Duration::try_from_secs_f64(seconds).unwrap_or(PREVIEW_INTERVAL)
        }),
        stale_after: STALE_AFTER,
        sign_of_life: Some(settings.seconds("agent.gateway_notify_interval")?)
            .filter(|interval| !interval.is_zero()),
        silence_max: Some(settings.seconds("agent.gateway_timeout")?)
            .filter(|silence| !silence.is_zero()),
        turns_max: turns_max(base),
        media: base.home.cache(),
        media_bytes_max: MEDIA_BYTES_MAX,
        reset: reset::policy(base)?,
        redacts_ids: is_on("privacy.redact_pii", false),
        aliases: aliases(base),
        mirrors_jobs: is_on("cron.mirror_delivery", true),
        limits: limits(base),
        options: SessionOptions::default(),
        // A home has one gateway at a time: its lock sees to that.
        holder: "gateway".to_owned(),
    })
}

/// `channel_aliases.json` of the home: what the owner calls chats, by platform and id.
fn aliases(base: &Base) -> Aliases {
    let path = base.home.directory().join("channel_aliases.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Aliases::new();
    };
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let path = path.display();
        tracing::warn!(%path, %error, "names of chats cannot be read: expected {{PLATFORM: {{ID: NAME}}}}");
        Aliases::new()
    })
}

/// `max_concurrent_sessions`; those who come on top of it wait for their turn.
fn turns_max(base: &Base) -> usize {
    let value = base.settings.get("max_concurrent_sessions");
    let number = value.and_then(Value::as_u64).filter(|turns| *turns > 0);
    number.map_or(TURNS_MAX, |turns| turns.min(TURNS_BOUND) as usize)
}

/// `gateway.limits`: 0 is no limit.
fn limits(base: &Base) -> Limits {
    let number = |name: &str| {
        let value = base.settings.get(&format!("gateway.limits.{name}"));
        value.and_then(Value::as_f64).filter(|number| *number > 0.0)
    };
    Limits {
        turns_per_hour: number("turns_per_hour").map(|turns| turns as u64),
        micro_usd_per_day: number("money_per_day").map(|dollars| (dollars * 1e6) as u64),
    }
}

/// The same for a platform by its name.
pub(super) fn variable_named(name: &str, key: &str) -> String {
    let platform = PLATFORMS.iter().find(|platform| platform.name == name);
    platform.map_or_else(
        || format!("{}_{}", name.to_uppercase(), key.to_uppercase()),
        |platform| variable_of(platform, key),
    )
}

/// The variable that says something of a platform.
pub(super) fn variable_of(platform: &Platform, key: &str) -> String {
    let own = platform.settings.iter().find(|setting| setting.key == key);
    own.map_or_else(
        || format!("{}_{}", platform.name.to_uppercase(), key.to_uppercase()),
        |setting| setting.variable.to_owned(),
    )
}

/// What `display` says of a platform, or of all.
fn shown(base: &Base, platform: &Platform) -> BTreeMap<String, Value> {
    let of_all = |name: &str| match name {
        "tool_progress" => base.settings.get("display.tool_progress"),
        _ => None,
    };
    let said = |name: &str| {
        let own = format!("display.platforms.{}.{name}", platform.name);
        let said = base.settings.get(&own).filter(|value| is_said(value));
        said.or_else(|| of_all(name).filter(|value| is_said(value)))
            .cloned()
    };
    let names = ["streaming", "tool_progress"].into_iter();
    names
        .filter_map(|name| Some((name.to_owned(), said(name)?)))
        .collect()
}

fn is_said(value: &Value) -> bool {
    !value.is_null() && *value != ""
}

/// What files and the environment say of a platform; the environment first.
pub(super) fn settings_of(base: &Base, platform: &Platform) -> PlatformSettings {
    let mut values = shown(base, platform);
    for section in sections(platform.name).iter().rev() {
        if let Some(Value::Object(said)) = base.settings.get(section) {
            let said = said.iter().filter(|(_, value)| !value.is_null());
            values.extend(said.map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    let own = platform.settings.iter();
    let own = own.map(|setting| (setting.key.to_owned(), setting.variable.to_owned()));
    let shared = SHARED.iter();
    let shared = shared.map(|key| ((*key).to_owned(), variable_of(platform, key)));
    for (key, variable) in own.chain(shared) {
        if let Some(value) = base.variable(&variable) {
            values.insert(key, Value::String(value.expose().to_owned()));
        }
    }
    PlatformSettings::new(values)
}

/// Besides [`SHARED`], what files can say of every platform.
const IN_FILES: &[&str] = &[
    "enabled",
    "extra",
    "allow_from",
    "group_allow_from",
    "allowed_channels",
    "allowed_roles",
    "allow_admin_from",
    "group_allow_admin_from",
    "user_allowed_commands",
    "group_user_allowed_commands",
    "free_response_channels",
    "unauthorized_dm_behavior",
    "dm_policy",
    "group_policy",
    "home_channel_name",
    "tool_progress",
    "channel_prompts",
    "channel_overrides",
    "channel_skill_bindings",
];

/// What Hermes Agent can be told of platforms, and what changes nothing here.
const WITHOUT_EFFECT: &[&str] = &[
    "api_key",
    "approval_mentions",
    "cron_continuable_surface",
    "dm_topics",
    "gateway_restart_notification",
    "group_topics",
    "notice_delivery",
    "notifications",
    "reply_in_thread",
    "reply_prefix",
    "rich_drafts",
    "rich_messages",
    "status_indicator",
    "typing_cooldown_seconds",
    "typing_status_text",
];

/// What is wrong with the settings of platforms, and what is set there for nothing; one line each.
#[derive(Default)]
pub(in crate::commands) struct Oddities {
    pub(in crate::commands) problems: Vec<String>,
    pub(in crate::commands) unused: Vec<String>,
}

/// Looks for keys that platforms do not know.
pub(in crate::commands) fn oddities(settings: &Settings) -> Oddities {
    let mut odd = Oddities::default();
    for platform in PLATFORMS {
        let own = platform.settings.iter().map(|setting| setting.key);
        let known: Vec<&str> = own.chain(SHARED.iter().chain(IN_FILES).copied()).collect();
        for section in sections(platform.name) {
            let Some(Value::Object(said)) = settings.get(&section) else {
                continue;
            };
            for name in said.keys().filter(|name| !known.contains(&name.as_str())) {
                let key = format!("{section}.{name}");
                let place = settings.origin(&key);
                let place = place.map_or_else(String::new, |place| format!("{place}: "));
                if WITHOUT_EFFECT.contains(&name.as_str()) {
                    let told = format!("{place}`{key}` has no effect in this version");
                    odd.unused.push(told);
                    continue;
                }
                let near = nearest(name, known.iter().copied());
                let near = near
                    .first()
                    .map(|near| format!(" (did you mean `{near}`?)"));
                let near = near.unwrap_or_default();
                odd.problems
                    .push(format!("{place}unknown setting `{key}`{near}"));
            }
        }
    }
    odd
}

/// `home_channel`: an id, or an object of Hermes Agent's with one in it.
fn home(platform: &Platform, settings: &PlatformSettings) -> Option<Address> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let home = settings.value("home_channel")?;
    let (chat, thread) = match home {
        Value::Object(fields) => (
            text(fields.get("chat_id")?)?,
            fields.get("thread_id").and_then(text),
        ),
        plain => (text(plain)?, settings.text("home_channel_thread_id")),
    };
    (!chat.is_empty()).then(|| Address {
        platform: platform.name.to_owned(),
        chat,
        thread,
    })
}

/// What it needs is there, and nobody switched it off.
fn is_wanted(platform: &Platform, settings: &PlatformSettings) -> bool {
    let needed = platform.settings.iter().filter(|setting| setting.is_needed);
    let has_all = needed.into_iter().all(|setting| {
        let text = settings.text(setting.key).unwrap_or_default();
        text.chars().count()
            >= if setting.is_secret {
                SECRET_CHARS_MIN
            } else {
                1
            }
    });
    has_all && settings.switch("enabled", true)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}
