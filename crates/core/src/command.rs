//! Slash commands: one table for every surface. What a command does is the surface's business; what it is called, where
//! it may be used and what help says about it is here.

mod absent;
mod argument;

pub use absent::instead_of;
use argument::word;
pub use argument::{Argument, List, Typed, Word, argument};

use crate::skill::SkillNames;
use crate::text::nearest;

/// Skills that one line may name: more would crowd out what is to be done with them.
const SKILLS_MAX: usize = 5;

/// What a person can ask for with a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    New,
    Resume,
    Sessions,
    History,
    Copy,
    Title,
    Branch,
    Retry,
    Undo,
    Rewind,
    Rollback,
    Diff,
    Init,
    Compress,
    Stop,
    Steer,
    Queue,
    Background,
    Decline,
    Approve,
    Deny,
    Model,
    Personality,
    Reasoning,
    Yolo,
    Busy,
    Tools,
    Toolsets,
    Mcp,
    ReloadMcp,
    Skills,
    Memory,
    Learned,
    Whoami,
    Cron,
    Image,
    Paste,
    Status,
    Usage,
    Insights,
    Config,
    Profile,
    Platforms,
    Restart,
    SetHome,
    Link,
    Pairing,
    Handoff,
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
    /// What is known of the arguments beforehand.
    pub argument: Argument,
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
    Chats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    Terminal,
    Chat,
}

/// What a line that a person sent means.
#[derive(Debug)]
pub enum ParsedLine<'a> {
    /// For the model.
    Words(&'a str),
    Command {
        command: &'static Command,
        arguments: &'a str,
    },
    /// For the model, with skills beside it.
    Skills {
        names: Vec<&'a str>,
        /// The whole line, names and all.
        words: &'a str,
    },
    Unknown {
        name: &'a str,
        /// Names that look like it, the likeliest first.
        near: Vec<&'a str>,
    },
    /// The beginning of several names.
    Ambiguous { name: &'a str, names: Vec<&'a str> },
}

/// Reads a line. Only a first word with a single slash, at its start, is a command: paths are words.
///
/// The names of commands go before those of skills, so that no skill takes one away.
pub fn read<'a>(line: &'a str, surface: Surface, skills: &'a SkillNames) -> ParsedLine<'a> {
    let line = line.trim();
    let first = line.split_whitespace().next().unwrap_or_default();
    let Some(name) = slashed(first) else {
        return ParsedLine::Words(line);
    };
    let arguments = line[first.len()..].trim();
    match find(&name.to_lowercase(), surface, skills) {
        Found::Command(command) => ParsedLine::Command { command, arguments },
        Found::Skill(skill) => ParsedLine::Skills {
            names: with_others(skill, arguments, skills),
            words: line,
        },
        Found::Several(names) => ParsedLine::Ambiguous { name, names },
        Found::None => {
            let skills = skills.iter().map(|(name, _)| name);
            let all: Vec<&str> = names(surface).chain(skills).collect();
            let near = nearest(&name.to_lowercase(), all);
            ParsedLine::Unknown { name, near }
        }
    }
}

fn slashed(word: &str) -> Option<&str> {
    let name = word.strip_prefix('/')?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// Several skills may be named one after the other, the others in full.
fn with_others<'a>(first: &'a str, arguments: &str, skills: &'a SkillNames) -> Vec<&'a str> {
    let words = arguments.split_whitespace();
    let others = words.map_while(|word| skills.find(&slashed(word)?.to_lowercase()));
    let mut names = vec![first];
    for other in others {
        if names.len() < SKILLS_MAX && !names.contains(&other) {
            names.push(other);
        }
    }
    names
}

/// Whether a command is called exactly this.
pub fn is_name(name: &str, surface: Surface) -> bool {
    called(name, surface).is_some()
}

/// The command that is called exactly this.
fn called(name: &str, surface: Surface) -> Option<&'static Command> {
    let name = name.to_lowercase();
    of(surface).find(|command| command.answers_to(&name))
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
            Surfaces::Chats => surface == Surface::Chat,
        }
    }

    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

enum Found<'a> {
    Command(&'static Command),
    Skill(&'a str),
    Several(Vec<&'a str>),
    None,
}

/// Exact names first, then beginnings: of a command, or else of a skill.
fn find<'a>(name: &str, surface: Surface, skills: &'a SkillNames) -> Found<'a> {
    if let Some(command) = called(name, surface) {
        return Found::Command(command);
    }
    if let Some(skill) = skills.find(name) {
        return Found::Skill(skill);
    }
    let commands = of(surface).map(|command| (command.name, Found::Command(command)));
    match begun(name, commands) {
        Found::None => begun(
            name,
            skills.iter().map(|(skill, _)| (skill, Found::Skill(skill))),
        ),
        found => found,
    }
}

/// The only one whose name begins so. Of several the single shortest wins.
fn begun<'a>(name: &str, named: impl Iterator<Item = (&'a str, Found<'a>)>) -> Found<'a> {
    let mut fitting: Vec<_> = named.filter(|(full, _)| full.starts_with(name)).collect();
    fitting.sort_by_key(|(full, _)| full.len());
    let is_clear = match fitting.as_slice() {
        [(shortest, _), (next, _), ..] => shortest.len() < next.len(),
        _ => true,
    };
    if is_clear {
        fitting
            .into_iter()
            .next()
            .map_or(Found::None, |(_, one)| one)
    } else {
        Found::Several(fitting.into_iter().map(|(full, _)| full).collect())
    }
}

fn names<'a>(surface: Surface) -> impl Iterator<Item = &'a str> {
    of(surface)
        .flat_map(|command| std::iter::once(command.name).chain(command.aliases.iter().copied()))
}

const fn command(verb: Verb, name: &'static str, group: Group, help: &'static str) -> Command {
    Command {
        verb,
        name,
        aliases: &[],
        arguments: "",
        argument: Argument::Free,
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

    const fn known(mut self, argument: Argument) -> Self {
        self.argument = argument;
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

    const fn in_chats(mut self) -> Self {
        self.surfaces = Surfaces::Chats;
        self
    }
}

use Group::{Conversation, Information, Settings, Tools, Turn};

const REASONING: Argument = Argument::Words(&[
    word("show", "show it while the model thinks"),
    word("hide", "show only the answer"),
    word("none", "do not think"),
    word("low", "think little"),
    word("medium", "think as usual"),
    word("high", "think much"),
    word("max", "think as much as possible"),
]);
const SWITCH: Argument = Argument::Words(&[
    word("on", "run everything without asking"),
    word("off", "ask before anything dangerous"),
]);
const WHEN_BUSY: Argument = Argument::Words(&[
    word("queue", "it waits until the turn has ended"),
    word("steer", "it is told to the running turn"),
    word("interrupt", "it stops the turn and is the next one"),
]);
const SWITCHED_TOOLSETS: Argument = Argument::Words(&[
    word("enable", "offer a toolset from the next conversation on")
        .then(Argument::Of(List::Toolsets)),
    word("disable", "offer it no more").then(Argument::Of(List::Toolsets)),
]);
const RECONNECTED: Argument =
    Argument::Words(&[
        word("reconnect", "connect a server anew, or all").then(Argument::Of(List::Servers))
    ]);

const CRON: Argument = Argument::Words(&[
    word("add", "make a job: a schedule and what is to be done then"),
    word("show", "all of a job"),
    word("pause", "stop a job for now"),
    word("resume", "let a job go on"),
    word("run", "run a job as soon as may be"),
    word("remove", "remove a job"),
    word("history", "what ran, and how it went"),
    word("next", "what a schedule means"),
]);
const MEMORY: Argument = Argument::Words(&[
    word("search", "find notes, also archived ones, by words"),
    word("history", "list the changes of the notes"),
    word("undo", "take a change back, by its number"),
]);

#[rustfmt::skip]
pub const COMMANDS: &[Command] = &[
    command(Verb::New, "new", Conversation, "start a new conversation").also(&["reset", "clear"]).takes("[TITLE]").any_time(),
    command(Verb::Resume, "resume", Conversation, "go on with an earlier conversation").takes("[ID|TITLE|--all]").known(Argument::Of(List::Sessions)),
    command(Verb::Sessions, "sessions", Conversation, "list earlier conversations").takes("[WORDS]").any_time(),
    command(Verb::History, "history", Conversation, "show what was said so far").in_terminals().any_time(),
    command(Verb::Copy, "copy", Conversation, "copy the last answer, or the Nth from the end, to the clipboard").takes("[N]").in_terminals().any_time(),
    command(Verb::Title, "title", Conversation, "show or set the title of this conversation").takes("[TITLE]").any_time(),
    command(Verb::Branch, "branch", Conversation, "go on in a copy of this conversation").also(&["fork"]).takes("[TITLE]"),
    command(Verb::Retry, "retry", Conversation, "take back the last answer and ask again"),
    command(Verb::Undo, "undo", Conversation, "take back your last message, or the last N").takes("[N]"),
    command(Verb::Rewind, "rewind", Conversation, "choose an earlier message of yours to go back to").takes("[N]"),
    command(Verb::Rollback, "rollback", Conversation, "bring files back to a checkpoint, or list them").takes("[N [FILE]|diff N]"),
    command(Verb::Diff, "diff", Conversation, "show what is changed in this folder and not committed").any_time(),
    command(Verb::Init, "init", Conversation, "let it look around and write AGENTS.md, which every conversation here begins with").takes("[WORDS]"),
    command(Verb::Handoff, "handoff", Conversation, "let the home chat of a platform go on with this conversation; in a chat: a terminal").takes("PLATFORM"),
    command(Verb::Compress, "compress", Conversation, "make room when the conversation gets long").also(&["compact"]).takes("[TOPIC]"),

    command(Verb::Stop, "stop", Turn, "stop it, and forget what waits").any_time(),
    command(Verb::Steer, "steer", Turn, "tell it something while it works").takes("WORDS").any_time(),
    command(Verb::Queue, "queue", Turn, "say something when it has ended").also(&["q"]).takes("WORDS").any_time(),
    command(Verb::Background, "background", Turn, "have something done beside this conversation, and hear of it here when it is done").also(&["bg", "btw"]).takes("WORDS").in_chats().any_time(),
    command(Verb::Decline, "decline", Turn, "do not answer what it asks").any_time(),
    command(Verb::Approve, "approve", Turn, "let it do what it asks for: once, in this conversation, or always; with its code from any chat").takes("[all] [session|always] [CODE]").in_chats().any_time(),
    command(Verb::Deny, "deny", Turn, "do not let it do what it asks for, and say why").takes("[all|CODE] [REASON]").in_chats().any_time(),

    command(Verb::Model, "model", Settings, "show or change the model").takes("[[PROVIDER:]MODEL] [--global]").known(Argument::Of(List::Models)),
    command(Verb::Personality, "personality", Settings, "show or choose how new conversations sound").takes("[NAME|none]").known(Argument::Of(List::Personalities)),
    command(Verb::Reasoning, "reasoning", Settings, "show or hide what the model thinks, or say how much it thinks").takes("[show|hide|none|low|medium|high|max]").known(REASONING).any_time(),
    command(Verb::Yolo, "yolo", Settings, "run everything without asking, or ask again").takes("[on|off]").known(SWITCH),
    command(Verb::SetHome, "sethome", Settings, "make this chat the one for what has no other place, such as results of jobs").in_chats().any_time(),
    command(Verb::Link, "link", Settings, "show a code for your account on another platform, or enter the one it shows: both are you then").takes("[CODE|off]").in_chats().any_time(),
    command(Verb::Pairing, "pairing", Settings, "see who asks to be let in and who was; let somebody in, or send them away").takes("[list|approve [PLATFORM] CODE|revoke [PLATFORM] ID]").in_chats().any_time(),
    command(Verb::Busy, "busy", Settings, "what a line does that you send while it works").takes("[queue|steer|interrupt]").known(WHEN_BUSY).any_time(),

    command(Verb::Tools, "tools", Tools, "list the tools of this conversation, or switch toolsets for the next").takes("[enable|disable NAME]").known(SWITCHED_TOOLSETS).any_time(),
    command(Verb::Toolsets, "toolsets", Tools, "list the toolsets, and which of them are on").any_time(),
    command(Verb::Mcp, "mcp", Tools, "show the MCP servers and how they are, or connect one anew").takes("[reconnect NAME|all]").known(RECONNECTED).any_time(),
    command(Verb::ReloadMcp, "reload-mcp", Tools, "read the MCP servers of the settings again").any_time(),
    command(Verb::Skills, "skills", Tools, "list the skills, or those with these words; /NAME [TEXT] uses one; proposals, diff, accept and reject N").also(&["reload-skills"]).takes("[WORDS]").known(Argument::Of(List::Skills)).any_time(),
    command(Verb::Memory, "memory", Tools, "show what it remembers, or search, list changes and take one back").takes("[search WORDS|history|undo N]").known(MEMORY).any_time(),
    command(Verb::Learned, "learned", Tools, "list what it learned, show one change, or take it back").takes("[N|undo N]").any_time(),
    command(Verb::Whoami, "whoami", Tools, "show what it knows of you, or ask; forget takes facts away").takes("[QUESTION|forget FACTS]").any_time(),
    command(Verb::Cron, "cron", Tools, "list jobs that run by themselves, make one, or pause, resume, run and remove it").takes("[add SCHEDULE PROMPT|show|pause|resume|run|remove JOB|history [JOB]|next SCHEDULE]").known(CRON).any_time(),
    command(Verb::Image, "image", Tools, "attach an image").takes("PATH [TEXT]").in_terminals().any_time(),
    command(Verb::Paste, "paste", Tools, "attach the image in the clipboard").in_terminals().any_time(),

    command(Verb::Status, "status", Information, "show this conversation, its model and its folder").any_time(),
    command(Verb::Usage, "usage", Information, "show the tokens and the cost so far").any_time(),
    command(Verb::Insights, "insights", Information, "show what was used in the last days").takes("[--days N]").any_time(),
    command(Verb::Config, "config", Information, "show where the settings are").in_terminals().any_time(),
    command(Verb::Profile, "profile", Information, "show the profile and its home").any_time(),
    command(Verb::Platforms, "platforms", Information, "show the gateway: what is connected, since when, and what waits").also(&["gateway"]).any_time(),
    command(Verb::Restart, "restart", Information, "end what runs and start the gateway again").in_chats().any_time(),
    command(Verb::Version, "version", Information, "show the version").also(&["v"]).any_time(),
    command(Verb::Help, "help", Information, "show this list").also(&["commands"]).any_time(),
    command(Verb::Quit, "quit", Information, "leave").also(&["exit"]).in_terminals().any_time(),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn line(text: &str) -> ParsedLine<'_> {
        static NONE: SkillNames = SkillNames::NONE;
        read(text, Surface::Terminal, &NONE)
    }

    fn verb(text: &str) -> Option<(Verb, &str)> {
        match line(text) {
            ParsedLine::Command { command, arguments } => Some((command.verb, arguments)),
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
        let ParsedLine::Ambiguous { names, .. } = line("/t") else {
            panic!("/t was guessed");
        };
        assert_eq!(names, ["title", "tools", "toolsets"]);
    }

    #[test]
    fn paths_and_words_are_words() {
        for words in ["/etc/hosts has what?", "hello /new", "", "/", "//"] {
            assert!(matches!(line(words), ParsedLine::Words(said) if said == words));
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let ParsedLine::Unknown { name, near } = line("/hlep me") else {
            panic!("/hlep is known");
        };
        assert_eq!((name, near), ("hlep", vec!["help"]));
    }

    #[test]
    fn a_chat_has_no_commands_of_the_terminal() {
        let none = SkillNames::default();
        let in_chat = |line| read(line, Surface::Chat, &none);
        assert!(matches!(in_chat("/quit"), ParsedLine::Unknown { .. }));
        assert!(matches!(in_chat("/new"), ParsedLine::Command { .. }));
    }

    #[test]
    fn no_two_commands_share_a_name_or_a_verb() {
        let mut known = HashSet::new();
        assert!(names(Surface::Terminal).all(|name| known.insert(name)));
        let mut verbs = HashSet::new();
        assert!(COMMANDS.iter().all(|command| verbs.insert(command.verb)));
    }

    fn with_skills<'a>(line: &'a str, skills: &'a SkillNames) -> ParsedLine<'a> {
        read(line, Surface::Terminal, skills)
    }

    fn skills() -> SkillNames {
        let names = [
            "review",
            "release",
            "releases",
            "model",
            "modest",
            "reviews-all",
        ];
        SkillNames::new(names.map(|name| (name.to_owned(), String::new())))
    }

    fn skills_in(line: &str) -> Vec<String> {
        let skills = skills();
        match with_skills(line, &skills) {
            ParsedLine::Skills { names, words } => {
                assert_eq!(words, line.trim());
                names.into_iter().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_skill_is_named_in_full_or_by_its_beginning() {
        assert_eq!(skills_in(" /review the last commit "), ["review"]);
        assert_eq!(skills_in("/Review"), ["review"]);
        assert_eq!(skills_in("/rele now"), ["release"]);
        assert_eq!(skills_in("/revi"), ["review"]);
        assert!(skills_in("review it").is_empty());
    }

    #[test]
    fn no_skill_takes_the_name_of_a_command_or_its_beginning_away() {
        let skills = skills();
        for line in ["/model x", "/mod x", "/re"] {
            let read = with_skills(line, &skills);
            assert!(
                !matches!(read, ParsedLine::Skills { .. }),
                "{line}: {read:?}"
            );
        }
        assert_eq!(skills_in("/modest"), ["modest"]);
    }

    #[test]
    fn several_skills_can_be_named_one_after_the_other() {
        assert_eq!(skills_in("/review /release it"), ["review", "release"]);
        assert_eq!(skills_in("/review /review"), ["review"]);
        assert_eq!(skills_in("/review and /release"), ["review"]);
        assert_eq!(skills_in("/review /etc/hosts"), ["review"]);
        let many: Vec<String> = (0..9).map(|n| format!("s{n}")).collect();
        let skills = SkillNames::new(many.iter().map(|name| (name.clone(), String::new())));
        let line = format!("/{}", many.join(" /"));
        let ParsedLine::Skills { names, .. } = with_skills(&line, &skills) else {
            panic!("{line}");
        };
        assert_eq!(names.len(), SKILLS_MAX);
    }

    #[test]
    fn skills_are_among_the_nearest_names() {
        let skills = skills();
        let ParsedLine::Unknown { near, .. } = with_skills("/reveiw", &skills) else {
            panic!("/reveiw is known");
        };
        assert_eq!(near, ["review"]);
    }
}
