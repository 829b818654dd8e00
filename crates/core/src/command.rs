//! Slash commands: one table for every surface. What a command does is the surface's business; what it is called, where
//! it may be used and what help says about it is here.

use crate::text::nearest;

/// What a person can ask for with a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    New,
    Resume,
    Sessions,
    History,
    Title,
    Branch,
    Retry,
    Undo,
    Rollback,
    Compress,
    Stop,
    Steer,
    Queue,
    Decline,
    Model,
    Personality,
    Reasoning,
    Yolo,
    Busy,
    Tools,
    Toolsets,
    Mcp,
    ReloadMcp,
    Status,
    Usage,
    Insights,
    Config,
    Profile,
    Version,
    Help,
    Quit,
}

#[derive(Debug)]
pub struct Command {
    pub verb: Verb,
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// What may follow the name, as help shows it.
    pub arguments: &'static str,
    pub help: &'static str,
    pub group: Group,
    pub surfaces: Surfaces,
    /// May be used while a turn runs.
    pub during_turn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Conversation,
    Turn,
    Settings,
    Tools,
    Information,
}

impl Group {
    pub const ALL: [Self; 5] = [
        Self::Conversation,
        Self::Turn,
        Self::Settings,
        Self::Tools,
        Self::Information,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Conversation => "Conversation",
            Self::Turn => "The running turn",
            Self::Settings => "Settings",
            Self::Tools => "Tools",
            Self::Information => "Information",
        }
    }
}

/// Where a command may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surfaces {
    Everywhere,
    Terminal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    Terminal,
    Chat,
}

/// What a line that a person sent means.
#[derive(Debug)]
pub enum Line<'a> {
    /// For the model.
    Words(&'a str),
    Command {
        command: &'static Command,
        arguments: &'a str,
    },
    Unknown {
        name: &'a str,
        /// Names that look like it, the likeliest first.
        near: Vec<&'static str>,
    },
    /// The beginning of several names.
    Ambiguous {
        name: &'a str,
        names: Vec<&'static str>,
    },
}

/// Reads a line. Only a first word with a single slash, at its start, is a command: paths are words.
pub fn read(line: &str, surface: Surface) -> Line<'_> {
    let line = line.trim();
    let first = line.split_whitespace().next().unwrap_or_default();
    let Some(name) = first
        .strip_prefix('/')
        .filter(|name| !name.is_empty() && !name.contains('/'))
    else {
        return Line::Words(line);
    };
    let arguments = line[first.len()..].trim();
    let lower = name.to_lowercase();
    match find(&lower, surface) {
        Found::One(command) => Line::Command { command, arguments },
        Found::Several(names) => Line::Ambiguous { name, names },
        Found::None => Line::Unknown {
            name,
            near: nearest(&lower, names(surface)),
        },
    }
}

/// Whether a command is called exactly this.
pub fn is_name(name: &str, surface: Surface) -> bool {
    of(surface).any(|command| command.answers_to(&name.to_lowercase()))
}

/// The commands of a surface, in the order help shows them.
pub fn of(surface: Surface) -> impl Iterator<Item = &'static Command> {
    COMMANDS
        .iter()
        .filter(move |command| command.is_on(surface))
}

impl Command {
    pub fn is_on(&self, surface: Surface) -> bool {
        match self.surfaces {
            Surfaces::Everywhere => true,
            Surfaces::Terminal => surface == Surface::Terminal,
        }
    }

    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

enum Found {
    One(&'static Command),
    Several(Vec<&'static str>),
    None,
}

/// An exact name or alias first; then the beginning of one name. Of several the single shortest wins.
fn find(name: &str, surface: Surface) -> Found {
    if let Some(command) = of(surface).find(|command| command.answers_to(name)) {
        return Found::One(command);
    }
    let mut fitting: Vec<_> = of(surface)
        .filter(|command| command.name.starts_with(name))
        .collect();
    fitting.sort_by_key(|command| command.name.len());
    match fitting.as_slice() {
        [] => Found::None,
        [one] => Found::One(one),
        [shortest, next, ..] if shortest.name.len() < next.name.len() => Found::One(shortest),
        several => Found::Several(several.iter().map(|command| command.name).collect()),
    }
}

fn names(surface: Surface) -> impl Iterator<Item = &'static str> {
    of(surface)
        .flat_map(|command| std::iter::once(command.name).chain(command.aliases.iter().copied()))
}

const fn command(verb: Verb, name: &'static str, group: Group, help: &'static str) -> Command {
    Command {
        verb,
        name,
        aliases: &[],
        arguments: "",
        help,
        group,
        surfaces: Surfaces::Everywhere,
        during_turn: false,
    }
}

impl Command {
    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn takes(mut self, arguments: &'static str) -> Self {
        self.arguments = arguments;
        self
    }

    const fn any_time(mut self) -> Self {
        self.during_turn = true;
        self
    }

    const fn in_terminals(mut self) -> Self {
        self.surfaces = Surfaces::Terminal;
        self
    }
}

use Group::{Conversation, Information, Settings, Tools, Turn};

#[rustfmt::skip]
pub const COMMANDS: &[Command] = &[
    command(Verb::New, "new", Conversation, "start a new conversation").also(&["reset", "clear"]).takes("[TITLE]").any_time(),
    command(Verb::Resume, "resume", Conversation, "go on with an earlier conversation").takes("[ID|TITLE]"),
    command(Verb::Sessions, "sessions", Conversation, "list earlier conversations").takes("[WORDS]").any_time(),
    command(Verb::History, "history", Conversation, "show what was said so far").in_terminals().any_time(),
    command(Verb::Title, "title", Conversation, "show or set the title of this conversation").takes("[TITLE]").any_time(),
    command(Verb::Branch, "branch", Conversation, "go on in a copy of this conversation").also(&["fork"]).takes("[TITLE]"),
    command(Verb::Retry, "retry", Conversation, "take back the last answer and ask again"),
    command(Verb::Undo, "undo", Conversation, "take back your last message, or the last N").takes("[N]"),
    command(Verb::Rollback, "rollback", Conversation, "bring files back to a checkpoint, or list them").takes("[N [FILE]|diff N]"),
    command(Verb::Compress, "compress", Conversation, "make room when the conversation gets long").also(&["compact"]).takes("[TOPIC]"),

    command(Verb::Stop, "stop", Turn, "stop it, and forget what waits").any_time(),
    command(Verb::Steer, "steer", Turn, "tell it something while it works").takes("WORDS").any_time(),
    command(Verb::Queue, "queue", Turn, "say something when it has ended").also(&["q"]).takes("WORDS").any_time(),
    command(Verb::Decline, "decline", Turn, "do not answer what it asks").any_time(),

    command(Verb::Model, "model", Settings, "show or change the model").takes("[[PROVIDER:]MODEL] [--global]"),
    command(Verb::Personality, "personality", Settings, "show or choose how new conversations sound").takes("[NAME|none]"),
    command(Verb::Reasoning, "reasoning", Settings, "show or hide what the model thinks").takes("[show|hide]").any_time(),
    command(Verb::Yolo, "yolo", Settings, "run everything without asking, or ask again").takes("[on|off]"),
    command(Verb::Busy, "busy", Settings, "what a line does that you send while it works").takes("[queue|steer|interrupt]").in_terminals().any_time(),

    command(Verb::Tools, "tools", Tools, "list the tools of this conversation, or switch toolsets for the next").takes("[enable|disable NAME]").any_time(),
    command(Verb::Toolsets, "toolsets", Tools, "list the toolsets, and which of them are on").any_time(),
    command(Verb::Mcp, "mcp", Tools, "show the MCP servers and how they are, or connect one anew").takes("[reconnect NAME|all]").any_time(),
    command(Verb::ReloadMcp, "reload-mcp", Tools, "read the MCP servers of the settings again").any_time(),

    command(Verb::Status, "status", Information, "show this conversation, its model and its folder").any_time(),
    command(Verb::Usage, "usage", Information, "show the tokens and the cost so far").any_time(),
    command(Verb::Insights, "insights", Information, "show what was used in the last days").takes("[--days N]").any_time(),
    command(Verb::Config, "config", Information, "show where the settings are").in_terminals().any_time(),
    command(Verb::Profile, "profile", Information, "show the profile and its home").any_time(),
    command(Verb::Version, "version", Information, "show the version").also(&["v"]).any_time(),
    command(Verb::Help, "help", Information, "show this list").also(&["commands"]).any_time(),
    command(Verb::Quit, "quit", Information, "leave").also(&["exit"]).in_terminals().any_time(),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn verb(line: &str) -> Option<(Verb, &str)> {
        match read(line, Surface::Terminal) {
            Line::Command { command, arguments } => Some((command.verb, arguments)),
            _ => None,
        }
    }

    #[test]
    fn a_name_an_alias_or_the_only_beginning_is_a_command() {
        assert_eq!(verb(" /new  a  title "), Some((Verb::New, "a  title")));
        assert_eq!(verb("/Reset"), Some((Verb::New, "")));
        assert_eq!(verb("/mod gpt"), Some((Verb::Model, "gpt")));
        assert_eq!(verb("/q later"), Some((Verb::Queue, "later")));
        assert_eq!(verb("/st"), Some((Verb::Stop, "")));
    }

    #[test]
    fn the_beginning_of_names_of_one_length_is_not_guessed() {
        let Line::Ambiguous { names, .. } = read("/t", Surface::Terminal) else {
            panic!("/t was guessed");
        };
        assert_eq!(names, ["title", "tools", "toolsets"]);
    }

    #[test]
    fn paths_and_words_are_words() {
        for words in ["/etc/hosts has what?", "hello /new", "", "/", "//"] {
            assert!(matches!(read(words, Surface::Terminal), Line::Words(said) if said == words));
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let Line::Unknown { name, near } = read("/hlep me", Surface::Terminal) else {
            panic!("/hlep is known");
        };
        assert_eq!((name, near), ("hlep", vec!["help"]));
    }

    #[test]
    fn a_chat_has_no_commands_of_the_terminal() {
        assert!(matches!(read("/quit", Surface::Chat), Line::Unknown { .. }));
        assert!(matches!(read("/new", Surface::Chat), Line::Command { .. }));
    }

    #[test]
    fn no_two_commands_share_a_name_or_a_verb() {
        let mut known = HashSet::new();
        assert!(names(Surface::Terminal).all(|name| known.insert(name)));
        let mut verbs = HashSet::new();
        assert!(COMMANDS.iter().all(|command| verbs.insert(command.verb)));
    }
}
