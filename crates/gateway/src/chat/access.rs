//! Who may ask. One function decides, for messages, edits, buttons and commands alike: [`Access::of`].
//!
//! Closed by default. Names decide nothing; ids do.

use regex::{Regex, RegexBuilder};

use hermes_core::{Chat, ChatKind, Mentions, PlatformSettings, Sender};

/// Of a compiled pattern: a person's own, but a slip of the keyboard costs no memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// What the settings of one platform say about who may ask, and about what.
#[derive(Debug, Clone, Default)]
pub struct PlatformAccess {
    pub allow_all: bool,
    /// Ids; `*` is everybody.
    pub allowed_users: Vec<String>,
    /// These may ask in groups, too.
    pub group_allowed_users: Vec<String>,
    /// In these chats everybody may ask.
    pub group_allowed_chats: Vec<String>,
    /// Only in these chats are groups answered at all; all of them when empty.
    pub allowed_chats: Vec<String>,
    pub allowed_roles: Vec<String>,
    pub allow_bots: AllowBots,
    /// In groups, only what names us or replies to us is for us.
    pub require_mention: bool,
    /// In these chats, everything is for us.
    pub free_chats: Vec<String>,
    /// The same for topics: `TOPIC`, or `CHAT:TOPIC`.
    pub free_topics: Vec<String>,
    /// Patterns that mean us.
    pub mention_patterns: Vec<Regex>,
    /// Who names us is answered also in chats that are not among [`Self::allowed_chats`].
    pub guest_mode: bool,
    /// What is said in groups and not to us is heard all the same, as context.
    pub observes_groups: bool,
    /// What another bot is named in is not for us.
    pub exclusive_mentions: bool,
    pub strangers: Strangers,
    /// Who may ask in private chats at all, and in groups.
    pub dm_policy: Policy,
    pub group_policy: Policy,
    /// In private chats. Their admins are owners of the home.
    pub alone: CommandAccess,
    /// In groups, where the admins of private chats are admins too.
    pub in_groups: CommandAccess,
}

/// Who may use which commands.
#[derive(Debug, Clone, Default)]
pub struct CommandAccess {
    /// Who may use all of them; everybody who may ask, when empty.
    pub admins: Vec<String>,
    /// Those that others may use, where there are admins.
    pub user_commands: Vec<String>,
}

/// Who may ask in one kind of chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// Those who are named, and those who were paired.
    #[default]
    Usual,
    /// Those who are named.
    Allowlist,
    Nobody,
}

impl Policy {
    /// `open` opens nothing: that takes `allow_all_users`. A word that nobody knows lets fewer in, not more.
    fn read(settings: &PlatformSettings, key: &str) -> Self {
        match settings.text(key).as_deref().map(str::trim) {
            None | Some("" | "open" | "pairing") => Self::Usual,
            Some("disabled" | "off" | "false") => Self::Nobody,
            Some(_) => Self::Allowlist,
        }
    }
}

/// Messages of other bots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AllowBots {
    #[default]
    None,
    /// Those that name us.
    Mentions,
    All,
}

/// What a stranger gets who writes to us alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strangers {
    /// A code for our owner, while no list says who may ask: one means that others need not try.
    #[default]
    PairWithoutList,
    /// A code for our owner.
    Pair,
    /// Nothing.
    Ignore,
}

/// How a platform is where its settings say nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usual {
    pub ignores_strangers: bool,
    pub requires_mention: bool,
}

/// What is said for the whole gateway.
#[derive(Debug, Clone, Default)]
pub struct GatewayAccess {
    pub allow_all: bool,
    pub allowed_users: Vec<String>,
}

/// Whether somebody may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// Only if they were paired: nothing else lets them in.
    IfPaired,
    Denied,
}

impl Access {
    /// Decides from the settings alone.
    pub fn of(
        platform: &PlatformAccess,
        gateway: &GatewayAccess,
        chat: &Chat,
        sender: &Sender,
        mentions: Mentions,
    ) -> Self {
        let is_group = chat.kind != ChatKind::Dm;
        if platform.policy(chat) == Policy::Nobody {
            return Self::Denied;
        }
        if is_group && names_chat(&platform.group_allowed_chats, chat) {
            return Self::Granted;
        }
        if sender.is_bot {
            return match platform.allow_bots {
                AllowBots::All => Self::Granted,
                AllowBots::Mentions if mentions.us => Self::Granted,
                _ => Self::Denied,
            };
        }
        if sender.id.is_empty() {
            return Self::Denied;
        }
        let in_group = if is_group {
            platform.group_allowed_users.as_slice()
        } else {
            &[]
        };
        let lists = [&platform.allowed_users, in_group, &gateway.allowed_users];
        let has_role = sender
            .roles
            .iter()
            .any(|role| platform.allowed_roles.contains(role));
        let is_named = lists.iter().any(|list| names(list, sender));
        if platform.allow_all || gateway.allow_all || has_role || is_named {
            return Self::Granted;
        }
        match platform.policy(chat) {
            Policy::Usual => Self::IfPaired,
            Policy::Allowlist | Policy::Nobody => Self::Denied,
        }
    }
}

impl PlatformAccess {
    /// Whether a message in a group is meant for us at all. What is said to us alone always is.
    pub fn is_for_us(
        &self,
        chat: &Chat,
        text: &str,
        mentions: Mentions,
        replies_to_us: bool,
    ) -> bool {
        if chat.kind == ChatKind::Dm {
            return true;
        }
        if self.exclusive_mentions && mentions.other_bots && !mentions.us {
            return false;
        }
        if self.guest_mode && mentions.us {
            return true;
        }
        if !self.is_listened_in(chat) {
            return false;
        }
        let is_free = names_chat(&self.free_chats, chat) || names_topic(&self.free_topics, chat);
        if !self.require_mention || is_free {
            return true;
        }
        mentions.us || mentions.in_our_thread || replies_to_us || self.is_called(text)
    }

    /// Whether what is said in a chat and not to us is heard as context.
    pub fn observes(&self, chat: &Chat) -> bool {
        self.observes_groups && chat.kind != ChatKind::Dm && self.is_listened_in(chat)
    }

    fn is_listened_in(&self, chat: &Chat) -> bool {
        self.group_policy != Policy::Nobody && self.is_allowed_chat(chat)
    }

    fn is_allowed_chat(&self, chat: &Chat) -> bool {
        self.allowed_chats.is_empty() || names_chat(&self.allowed_chats, chat)
    }

    fn is_called(&self, text: &str) -> bool {
        let mut patterns = self.mention_patterns.iter();
        patterns.any(|pattern| pattern.is_match(text))
    }

    /// Whether somebody who may ask may use a command in a chat.
    pub fn may_use(&self, chat: &Chat, sender: &Sender, command: &str) -> bool {
        const ALWAYS: [&str; 2] = ["help", "whoami"];
        let mut user_commands = self.commands_in(chat).user_commands.iter();
        self.is_admin(chat, sender)
            || ALWAYS.contains(&command)
            || user_commands.any(|name| name.trim_start_matches('/') == command)
    }

    fn policy(&self, chat: &Chat) -> Policy {
        match chat.kind {
            ChatKind::Dm => self.dm_policy,
            _ => self.group_policy,
        }
    }

    /// Whether a stranger who writes to us alone gets a code. Where none would let them in they get none.
    pub fn invites(&self, gateway: &GatewayAccess) -> bool {
        if self.dm_policy != Policy::Usual {
            return false;
        }
        let has_list = !self.allowed_users.is_empty() || !gateway.allowed_users.is_empty();
        match self.strangers {
            Strangers::Pair => true,
            Strangers::Ignore => false,
            Strangers::PairWithoutList => !has_list,
        }
    }

    /// Without a list, everybody who may ask is one.
    pub fn is_admin(&self, chat: &Chat, sender: &Sender) -> bool {
        self.commands_in(chat).admins.is_empty() || self.is_named_admin(chat, sender)
    }

    /// Whether the list of admins for a chat names somebody.
    pub fn is_named_admin(&self, chat: &Chat, sender: &Sender) -> bool {
        names(&self.commands_in(chat).admins, sender)
    }

    /// Whether somebody is an admin wherever they write.
    pub fn is_admin_everywhere(&self, sender: &Sender) -> bool {
        names(&self.alone.admins, sender)
    }

    fn commands_in(&self, chat: &Chat) -> &CommandAccess {
        match chat.kind {
            ChatKind::Dm => &self.alone,
            _ => &self.in_groups,
        }
    }

    /// The settings that call a chat by the id that it had before it moved, and not by the one that it has.
    pub fn outdated_for(&self, chat: &Chat) -> Vec<&'static str> {
        let Some(former) = &chat.former else {
            return Vec::new();
        };
        let is_of = |entry: &str, id: &str| {
            let rest = entry.strip_prefix(id);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let names = |list: &[String], id: &str| list.iter().any(|entry| is_of(entry, id));
        let lists = [
            ("group_allowed_chats", &self.group_allowed_chats),
            ("allowed_chats", &self.allowed_chats),
            ("free_response_chats", &self.free_chats),
            ("free_response_topics", &self.free_topics),
        ];
        let outdated = lists
            .into_iter()
            .filter(|(_, list)| names(list, former) && !names(list, &chat.id));
        outdated.map(|(setting, _)| setting).collect()
    }

    /// Reads what a platform's settings say, under the names that all platforms share.
    pub fn read(settings: &PlatformSettings, usual: Usual) -> Self {
        let lists = |keys: &[&str]| -> Vec<String> {
            keys.iter().flat_map(|key| settings.list(key)).collect()
        };
        let allowed_users = lists(&["allowed_users", "allow_from"]);
        // Where a list is for one kind of chat only, it counts for the other, too.
        let commands = |own: &str, other: &str| match lists(&[own]) {
            own if own.is_empty() => lists(&[other]),
            own => own,
        };
        const ALONE: &str = "user_allowed_commands";
        const IN_GROUPS: &str = "group_user_allowed_commands";
        Self {
            allow_all: settings.switch("allow_all_users", false),
            group_allowed_users: lists(&["group_allowed_users", "group_allow_from"]),
            group_allowed_chats: lists(&["group_allowed_chats"]),
            allowed_chats: lists(&["allowed_chats", "allowed_channels"]),
            allowed_roles: lists(&["allowed_roles"]),
            allow_bots: match settings.text("allow_bots").as_deref() {
                Some("all" | "true") => AllowBots::All,
                Some("mentions") => AllowBots::Mentions,
                _ => AllowBots::None,
            },
            require_mention: settings.switch("require_mention", usual.requires_mention),
            free_chats: lists(&["free_response_chats", "free_response_channels"]),
            free_topics: lists(&["free_response_topics"]),
            mention_patterns: patterns(settings),
            guest_mode: settings.switch("guest_mode", false),
            observes_groups: settings.switch("observe_unmentioned_group_messages", false),
            exclusive_mentions: settings.switch("exclusive_bot_mentions", true),
            strangers: match usual.ignores_strangers {
                true => Strangers::Ignore,
                false => strangers(settings),
            },
            dm_policy: Policy::read(settings, "dm_policy"),
            group_policy: Policy::read(settings, "group_policy"),
            alone: CommandAccess {
                admins: lists(&["allow_admin_from"]),
                user_commands: commands(ALONE, IN_GROUPS),
            },
            in_groups: CommandAccess {
                admins: lists(&["allow_admin_from", "group_allow_admin_from"]),
                user_commands: commands(IN_GROUPS, ALONE),
            },
            allowed_users,
        }
    }
}

/// Patterns are regular expressions, without regard to case. One that is none means itself.
fn patterns(settings: &PlatformSettings) -> Vec<Regex> {
    let compile = |text: &str| {
        let build = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.case_insensitive(true).size_limit(PATTERN_BYTES_MAX);
            builder.build()
        };
        build(text).or_else(|_| build(&regex::escape(text))).ok()
    };
    let list = settings.list("mention_patterns");
    list.iter().filter_map(|text| compile(text)).collect()
}

fn strangers(settings: &PlatformSettings) -> Strangers {
    match settings.text("unauthorized_dm_behavior").as_deref() {
        Some("pair") => Strangers::Pair,
        Some("ignore") => Strangers::Ignore,
        _ if settings.text("dm_policy").as_deref() == Some("pairing") => Strangers::Pair,
        _ => Strangers::PairWithoutList,
    }
}

/// A list has whole ids. Where a platform writes one person's id in several ways, its channel says the other one
/// ([`Sender::other_id`]): a part of an id is nobody's.
fn names(list: &[String], sender: &Sender) -> bool {
    let is_id = |entry: &str, id: &str| !id.is_empty() && entry.eq_ignore_ascii_case(id);
    let other = sender.other_id.as_deref().unwrap_or_default();
    list.iter()
        .any(|entry| entry == "*" || is_id(entry, &sender.id) || is_id(entry, other))
}

/// Entries are `TOPIC`, or `CHAT:TOPIC`.
fn names_topic(list: &[String], chat: &Chat) -> bool {
    let Some(thread) = &chat.thread else {
        return false;
    };
    let is_whole = |entry: &str| {
        let mut ids = chat.ids();
        ids.any(|id| entry == format!("{id}:{}", thread.id))
    };
    list.iter()
        .any(|entry| *entry == thread.id || is_whole(entry))
}

fn names_chat(list: &[String], chat: &Chat) -> bool {
    let is_id = |entry: &str| {
        chat.ids()
            .chain(chat.parent.as_deref())
            .any(|id| id == entry)
    };
    list.iter().any(|entry| entry == "*" || is_id(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(id: &str) -> Sender {
        Sender {
            id: id.into(),
            ..Sender::default()
        }
    }

    fn group() -> Chat {
        Chat {
            kind: ChatKind::Group,
            ..Chat::direct("-1")
        }
    }

    fn of(platform: &PlatformAccess, chat: &Chat, sender: &Sender) -> Access {
        let gateway = GatewayAccess::default();
        Access::of(platform, &gateway, chat, sender, Mentions::default())
    }

    #[test]
    fn nobody_gets_in_who_was_not_let_in() {
        // Complaint 11: access control that failed open.
        let closed = PlatformAccess::default();
        let dm = Chat::direct("7");
        assert_eq!(of(&closed, &dm, &sender("7")), Access::IfPaired);
        assert_eq!(of(&closed, &group(), &sender("7")), Access::IfPaired);
        assert_eq!(of(&closed, &dm, &sender("")), Access::Denied);
        let bot = Sender {
            is_bot: true,
            ..sender("7")
        };
        assert_eq!(of(&closed, &dm, &bot), Access::Denied);
    }

    #[test]
    fn a_group_that_moved_is_no_stranger_and_its_settings_are_told() {
        let list = || vec!["-1".to_owned()];
        let access = PlatformAccess {
            group_allowed_chats: list(),
            allowed_chats: vec!["-1".into(), "-100".into()],
            free_chats: list(),
            free_topics: vec!["-1:7".into()],
            require_mention: true,
            ..PlatformAccess::default()
        };
        let moved = Chat {
            former: Some("-1".into()),
            id: "-100".into(),
            ..group()
        };
        assert_eq!(of(&access, &moved, &sender("7")), Access::Granted);
        assert!(access.is_for_us(&moved, "hi", Mentions::default(), false));
        assert_eq!(
            access.outdated_for(&moved),
            [
                "group_allowed_chats",
                "free_response_chats",
                "free_response_topics"
            ]
        );
        assert!(access.outdated_for(&group()).is_empty());
        let other = Chat {
            id: "-100".into(),
            ..group()
        };
        assert_eq!(of(&access, &other, &sender("7")), Access::IfPaired);
    }

    #[test]
    fn ids_let_in_and_names_do_not() {
        let list = PlatformAccess {
            allowed_users: vec!["7".into()],
            ..PlatformAccess::default()
        };
        let dm = Chat::direct("7");
        assert_eq!(of(&list, &dm, &sender("7")), Access::Granted);
        let named = Sender {
            name: Some("7".into()),
            username: Some("7".into()),
            ..sender("8")
        };
        assert_eq!(of(&list, &dm, &named), Access::IfPaired);
        // Complaint 12: one person, two ids.
        let other = Sender {
            other_id: Some("7".into()),
            ..sender("uuid")
        };
        assert_eq!(of(&list, &dm, &other), Access::Granted);
    }

    #[test]
    fn a_part_of_an_id_lets_nobody_in() {
        // A number on one platform is not the name before the `@` on another.
        let gateway = GatewayAccess {
            allowed_users: vec!["12345".into()],
            ..GatewayAccess::default()
        };
        let list = PlatformAccess {
            allowed_users: vec!["12345".into()],
            ..PlatformAccess::default()
        };
        let dm = Chat::direct("12345@evil.example");
        let stranger = sender("12345@evil.example");
        let of = |platform: &PlatformAccess| {
            Access::of(platform, &gateway, &dm, &stranger, Mentions::default())
        };
        assert_eq!(of(&list), Access::IfPaired);
        assert_eq!(of(&PlatformAccess::default()), Access::IfPaired);
    }

    #[test]
    fn a_list_of_any_kind_means_that_strangers_get_no_code() {
        let named = GatewayAccess {
            allowed_users: vec!["7".into()],
            ..GatewayAccess::default()
        };
        let nobody = GatewayAccess::default();
        let read = |values: &[(&str, &str)]| {
            let settings = values
                .iter()
                .fold(PlatformSettings::default(), |settings, (key, value)| {
                    settings.with(key, *value)
                });
            PlatformAccess::read(&settings, Usual::default())
        };
        let of_platform = read(&[("allowed_users", "7")]);
        let asked_for = read(&[("unauthorized_dm_behavior", "pair")]);
        assert!(read(&[]).invites(&nobody));
        assert!(!read(&[]).invites(&named));
        assert!(!of_platform.invites(&nobody));
        assert!(asked_for.invites(&named));
        let silent = Usual {
            ignores_strangers: true,
            ..Usual::default()
        };
        assert!(!PlatformAccess::read(&PlatformSettings::default(), silent).invites(&nobody));
    }

    #[test]
    fn a_policy_closes_one_kind_of_chat_and_opens_none() {
        let read = |key: &str, value: &str| {
            let settings = PlatformSettings::default()
                .with("allowed_users", serde_json::json!(["7"]))
                .with("group_allowed_chats", serde_json::json!(["-1"]))
                .with(key, value);
            PlatformAccess::read(&settings, Usual::default())
        };
        let dm = Chat::direct("7");
        for (key, value, alone, stranger, in_group) in [
            (
                "dm_policy",
                "disabled",
                Access::Denied,
                Access::Denied,
                Access::Granted,
            ),
            (
                "dm_policy",
                "allowlist",
                Access::Granted,
                Access::Denied,
                Access::Granted,
            ),
            (
                "dm_policy",
                "alowlist",
                Access::Granted,
                Access::Denied,
                Access::Granted,
            ),
            (
                "dm_policy",
                "open",
                Access::Granted,
                Access::IfPaired,
                Access::Granted,
            ),
            (
                "dm_policy",
                "pairing",
                Access::Granted,
                Access::IfPaired,
                Access::Granted,
            ),
            (
                "group_policy",
                "disabled",
                Access::Granted,
                Access::IfPaired,
                Access::Denied,
            ),
        ] {
            let access = read(key, value);
            assert_eq!(of(&access, &dm, &sender("7")), alone, "{key} {value}");
            assert_eq!(of(&access, &dm, &sender("8")), stranger, "{key} {value}");
            assert_eq!(
                of(&access, &group(), &sender("7")),
                in_group,
                "{key} {value}"
            );
        }
        let nobody = GatewayAccess::default();
        assert!(read("dm_policy", "pairing").invites(&nobody));
        assert!(!read("dm_policy", "allowlist").invites(&nobody));
        let closed = read("group_policy", "disabled");
        assert!(!closed.is_for_us(&group(), "hi", Mentions::default(), true));
    }

    #[test]
    fn lists_for_groups_let_nobody_in_alone() {
        let list = PlatformAccess {
            group_allowed_users: vec!["7".into()],
            ..PlatformAccess::default()
        };
        assert_eq!(of(&list, &group(), &sender("7")), Access::Granted);
        assert_eq!(
            of(&list, &Chat::direct("7"), &sender("7")),
            Access::IfPaired
        );
    }

    #[test]
    fn in_groups_only_what_is_meant_for_us_is_answered() {
        let wants_mention = PlatformAccess {
            require_mention: true,
            exclusive_mentions: true,
            free_chats: vec!["-2".into()],
            mention_patterns: vec![Regex::new("(?i)^(hey )?hermes\\b").unwrap()],
            free_topics: vec!["-1:7".into()],
            ..PlatformAccess::default()
        };
        let us = Mentions {
            us: true,
            ..Mentions::default()
        };
        let other = Mentions {
            other_bots: true,
            ..Mentions::default()
        };
        let in_our_thread = Mentions {
            in_our_thread: true,
            ..Mentions::default()
        };
        let none = Mentions::default();
        let free = Chat {
            id: "-2".into(),
            ..group()
        };
        let is_for_us = |chat: &Chat, text, mentions, replies| {
            wants_mention.is_for_us(chat, text, mentions, replies)
        };
        assert!(!is_for_us(&group(), "hi all", none, false));
        assert!(is_for_us(&group(), "hi all", us, false));
        assert!(is_for_us(&group(), "hi all", none, true));
        assert!(is_for_us(&group(), "hi all", in_our_thread, false));
        assert!(is_for_us(&group(), "hermes, hi", none, false));
        assert!(!is_for_us(&group(), "hermesian", none, false));
        assert!(is_for_us(&group(), "Hey Hermes: hi", none, false));
        assert!(is_for_us(&free, "hi all", none, false));
        let topic = Chat {
            thread: Some(hermes_core::Thread {
                id: "7".into(),
                title: None,
            }),
            ..group()
        };
        assert!(is_for_us(&topic, "hi all", none, false));
        assert!(!is_for_us(&free, "@other_bot hi", other, false));
        assert!(is_for_us(&Chat::direct("7"), "hi", none, false));
    }

    #[test]
    fn patterns_are_read_as_regular_expressions_and_a_platform_has_its_usual_way() {
        let settings = PlatformSettings::default().with(
            "mention_patterns",
            serde_json::json!(["^(jarvis|computer)[,!]", "(:"]),
        );
        let needs_name = Usual {
            requires_mention: true,
            ..Usual::default()
        };
        let access = PlatformAccess::read(&settings, needs_name);
        let is_for_us = |text| access.is_for_us(&group(), text, Mentions::default(), false);
        assert!(is_for_us("Computer, hello"));
        assert!(!is_for_us("a computer, hello"));
        assert!(is_for_us("what is it (:"));
        let free = PlatformAccess::read(&settings, Usual::default());
        assert!(free.is_for_us(&group(), "hi all", Mentions::default(), false));
    }

    #[test]
    fn who_names_us_is_a_guest_where_that_is_wanted() {
        let mut closed = PlatformAccess {
            allowed_chats: vec!["-9".into()],
            ..PlatformAccess::default()
        };
        let us = Mentions {
            us: true,
            ..Mentions::default()
        };
        assert!(!closed.is_for_us(&group(), "hi", us, false));
        closed.guest_mode = true;
        assert!(closed.is_for_us(&group(), "hi", us, false));
        assert!(!closed.is_for_us(&group(), "hi", Mentions::default(), true));
    }

    #[test]
    fn where_there_are_admins_others_have_few_commands() {
        let dm = Chat::direct("7");
        let open = PlatformAccess::default();
        assert!(open.may_use(&dm, &sender("7"), "model"));
        let gated = PlatformAccess {
            alone: CommandAccess {
                admins: vec!["1".into()],
                user_commands: vec!["/new".into()],
            },
            ..PlatformAccess::default()
        };
        assert!(gated.may_use(&dm, &sender("1"), "model"));
        assert!(!gated.may_use(&dm, &sender("7"), "model"));
        assert!(gated.may_use(&dm, &sender("7"), "new"));
        assert!(gated.may_use(&dm, &sender("7"), "help"));
    }

    #[test]
    fn an_admin_of_groups_is_one_in_groups_and_nowhere_else() {
        let list = |value: &str| serde_json::json!([value]);
        let settings = PlatformSettings::default()
            .with("allow_admin_from", list("1"))
            .with("group_allow_admin_from", list("2"))
            .with("user_allowed_commands", list("new"))
            .with("group_user_allowed_commands", list("stop"));
        let access = PlatformAccess::read(&settings, Usual::default());
        let dm = Chat::direct("2");
        for (who, chat, command, may) in [
            ("1", &dm, "model", true),
            ("1", &group(), "model", true),
            ("2", &dm, "model", false),
            ("2", &group(), "model", true),
            ("7", &dm, "new", true),
            ("7", &dm, "stop", false),
            ("7", &group(), "stop", true),
            ("7", &group(), "new", false),
        ] {
            let may_use = access.may_use(chat, &sender(who), command);
            assert_eq!(may_use, may, "{who} {:?} {command}", chat.kind);
        }
        assert!(access.is_admin_everywhere(&sender("1")));
        assert!(!access.is_admin_everywhere(&sender("2")));
        // A list of commands for one kind of chat counts for the other, where that has none.
        let settings = PlatformSettings::default()
            .with("allow_admin_from", list("1"))
            .with("group_user_allowed_commands", list("stop"));
        let access = PlatformAccess::read(&settings, Usual::default());
        assert!(access.may_use(&dm, &sender("7"), "stop"));
    }
}
