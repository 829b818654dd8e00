//! The command line: what can be written, and the help for it. Here stand the words that every line begins with and the
//! commands of few words; a command with subcommands of its own has its file, and so do the flags of a conversation
//! (`run.rs`). What commands do is in `commands/`.

mod absent;
mod approvals;
mod auth;
mod checkpoints;
mod config;
mod cron;
mod gateway;
mod learning;
mod mcp;
mod memory;
mod model;
mod pairing;
mod run;
mod send;
mod sessions;
mod setup;
mod skills;
mod tools;
mod user;
mod webhook;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueHint};

use crate::failure::Failure;

pub use absent::told as told_absent;
pub use approvals::{ApprovalsArgs, ApprovalsCommand};
pub use auth::{AuthAddArgs, AuthArgs, AuthCommand, AuthKind, LoginArgs, LoginPlace};
pub use checkpoints::{CheckpointsArgs, CheckpointsCommand};
pub use config::{ConfigArgs, ConfigCommand};
pub use cron::{CronArgs, CronCommand, JobOptions, MisfireName};
pub use gateway::{
    GatewayArgs, GatewayCommand, GatewayInstallArgs, GatewayRunArgs, GatewayUninstallArgs,
    ServiceKind,
};
pub use learning::{LearningArgs, LearningCommand};
pub use mcp::{McpArgs, McpCommand, McpLoginArgs, McpReauthArgs, WaitFlag};
pub use memory::{MemoryArgs, MemoryCommand, NotesArg};
pub use model::{ModelArgs, ModelCommand};
pub use pairing::{PairingArgs, PairingCommand};
pub use run::{ChatArgs, RunFlags};
pub use send::SendArgs;
pub use sessions::{SessionsArgs, SessionsCommand};
pub use setup::{SetupArgs, SetupSection};
pub use skills::{InstallArgs, PublishArgs, SkillsArgs, SkillsCommand, TapCommand};
pub use tools::{ToolsArgs, ToolsCommand};
pub use user::{UserArgs, UserCommand};
pub use webhook::{SubscribeArgs, WebhookArgs, WebhookCommand};

const AFTER_HELP: &str = "\
Examples:
  hermes                          chat in this folder
  hermes \"what is this?\"           chat, beginning with a question
  hermes -z \"what changed here?\"  one question; only the answer is printed
  hermes -c                       go on where you stopped
  hermes -m openai:gpt-5.1        choose provider and model for this run
  hermes demo                     watch it work, without a key or a network

`hermes COMMAND --help` says more about a command; /help in a conversation
lists what can be done there. Settings are in ~/.hermes/config.yaml, keys in
~/.hermes/.env; `hermes config path` shows where.";

const COMPLETION_HELP: &str = "\
In bash:
  hermes completion bash > ~/.local/share/bash-completion/completions/hermes
In zsh, with `fpath+=~/.zfunc` before compinit in ~/.zshrc:
  hermes completion zsh > ~/.zfunc/_hermes
In fish:
  hermes completion fish > ~/.config/fish/completions/hermes.fish";

#[derive(Debug, Parser)]
#[command(
    name = "hermes",
    version,
    about = "An agent that works for you in the terminal, in chats and on a schedule, and remembers",
    after_help = AFTER_HELP,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = false,
)]
pub struct Cli {
    #[command(flatten)]
    pub run: RunFlags,

    /// Answer one prompt and exit: only the answer on standard output; what is piped in belongs to the prompt. Nobody is
    /// asked, so what needs consent is refused; --yolo or `approvals.headless: allow` lets it run [`-` reads the prompt
    /// itself from standard input]
    #[arg(short = 'z', long = "oneshot", value_name = "PROMPT")]
    pub oneshot: Option<String>,

    /// Use this profile: settings, keys and conversations of its own
    #[arg(short = 'p', long, value_name = "NAME")]
    pub profile: Option<String>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The word that a line is refused for because nothing knows it.
pub fn unknown_word(error: &clap::Error) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidValue => ContextKind::InvalidValue,
        _ => return None,
    };
    match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        _ => None,
    }
}

/// The question that a conversation is to begin with: `hermes "what is this?"`. A word that looks like a command is a slip
/// of the pen and no question.
pub fn question(arguments: &[OsString], error: &clap::Error) -> Option<(String, Cli)> {
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let is_near = error.get(ContextKind::SuggestedSubcommand).is_some();
    let word = unknown_word(error).filter(|_| is_unknown)?;
    if is_near && !word.contains(char::is_whitespace) {
        return None;
    }
    let at = arguments.iter().rposition(|argument| *argument == *word)?;
    let mut others = arguments.to_vec();
    others.remove(at);
    let cli = Cli::try_parse_from(others).ok()?;
    (cli.command.is_none() && cli.oneshot.is_none()).then_some((word, cli))
}

/// What to say of a first word that is neither a command nor, alone as it stands, a question.
pub fn no_command(arguments: &[OsString], error: &clap::Error) -> Option<Failure> {
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let word = unknown_word(error).filter(|_| is_unknown)?;
    let at = arguments.iter().position(|argument| *argument == *word)?;
    let cli = Cli::command();
    let is_command = |argument: &OsString| cli.find_subcommand(argument).is_some();
    if arguments[..at].iter().any(is_command) {
        return None;
    }
    let words: Vec<_> = arguments[at..]
        .iter()
        .map(|argument| argument.to_string_lossy())
        .collect();
    let ask = match words.as_slice() {
        [word] => format!("to ask: hermes -z \"{word}\""),
        words => format!("put a question in quotes: hermes \"{}\"", words.join(" ")),
    };
    let near = match error.get(ContextKind::SuggestedSubcommand) {
        // The nearest is the last.
        Some(ContextValue::Strings(near)) => near.last().cloned(),
        Some(ContextValue::String(near)) => Some(near.clone()),
        _ => None,
    };
    let hint = match near {
        Some(near) => format!("did you mean `hermes {near}`? {ask}"),
        None => format!("`hermes --help` lists the commands; {ask}"),
    };
    Some(Failure::usage(format!("`{word}` is no command")).hint(hint))
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat; the default. With -q, answer one question and exit
    Chat(ChatArgs),
    /// Watch it work: no key, no network, nothing of yours touched
    Demo(DemoArgs),
    /// Choose a model, where commands run, and tools; each is tried
    Setup(SetupArgs),
    /// Show which model answers, or choose another
    Model(ModelArgs),
    /// Add, list and remove keys of providers, and logins
    Auth(AuthArgs),
    /// Log in at a provider with a browser, instead of giving it a key
    Login(LoginArgs),
    /// Forget a login, and end it at the provider where that is possible
    Logout(LoginPlace),
    /// List, read, search, export and delete past conversations
    Sessions(SessionsArgs),
    /// See and answer what waits for permission to run
    Approvals(ApprovalsArgs),
    /// Show, search, edit and undo what it remembers
    Memory(MemoryArgs),
    /// Show, ask, edit and forget what it knows of you
    User(UserArgs),
    /// Show what it learned by itself, and take it back
    Learning(LearningArgs),
    /// Make jobs that run by themselves at set times, and see how they went
    Cron(CronArgs),
    /// Show requests, tokens, cost and tools, by day and hour
    Insights(InsightsArgs),
    /// List what files were like before changes, and bring it back
    Checkpoints(CheckpointsArgs),
    /// Browse settings, or read and change one
    Config(ConfigArgs),
    /// Choose which tools models are offered, from a list or by name
    Tools(ToolsArgs),
    /// List, install and audit skills; see and take back what was changed in them
    Skills(SkillsArgs),
    /// Add, remove and try MCP servers
    Mcp(McpArgs),
    /// Serve chats and programs for as long as it runs
    Gateway(GatewayArgs),
    /// Send words or files to a chat, without a model
    Send(SendArgs),
    /// See and change who may talk to the gateway
    Pairing(PairingArgs),
    /// Add and list addresses that other programs send events to
    Webhook(WebhookArgs),
    /// Show what is configured and what is going on
    Status(JsonFlag),
    /// Check everything that could go wrong, with the fix for each
    Doctor(DoctorArgs),
    /// Show what every request begins with, and how large it is
    PromptSize(PromptSizeArgs),
    /// Show the log
    Logs(LogsArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print the version
    Version,
}

#[derive(Debug, Default, Args)]
pub struct DemoArgs {
    /// Keep the demo's home, to look around in it
    #[arg(long)]
    pub keep: bool,

    /// Do not type at a human pace
    #[arg(long)]
    pub fast: bool,

    /// The part of the demo that is killed, in the home of the one that kills it
    #[arg(long, hide = true, value_name = "HOME")]
    pub child: Option<PathBuf>,

    /// The gateway of the demo, in the home that HERMES_HOME names
    #[arg(long, hide = true)]
    pub serve: bool,
}

#[derive(Debug, Args)]
pub struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InsightsArgs {
    /// Look back this many days
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: u32,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonFlag,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Repair what can be repaired safely
    #[arg(long)]
    pub fix: bool,
    /// Do not ask the model anything
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub json: JsonFlag,
}

#[derive(Debug, Args)]
pub struct PromptSizeArgs {
    /// Print the prompt itself
    #[arg(long)]
    pub text: bool,
    #[command(flatten)]
    pub json: JsonFlag,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// `agent` for the whole log, `errors` for what went wrong
    #[arg(value_name = "LOG", value_parser = ["agent", "errors"], default_value = "agent", hide_default_value = true)]
    pub log: String,
    /// Lines from the end
    #[arg(short = 'n', long, default_value_t = 50)]
    pub lines: usize,
    /// Go on printing as lines come
    #[arg(short, long)]
    pub follow: bool,
    /// Only this level and worse
    #[arg(long, ignore_case = true, value_parser = level())]
    pub level: Option<String>,
    /// Only lines of this session
    #[arg(long)]
    pub session: Option<String>,
}

/// The levels of the log. Other programs call a warning by its whole name.
fn level() -> PossibleValuesParser {
    let warn = PossibleValue::new("warn").alias("warning");
    let error = PossibleValue::new("error").alias("critical");
    PossibleValuesParser::new([error, warn, "info".into(), "debug".into()])
}

#[derive(Debug, Args)]
#[command(after_help = COMPLETION_HELP)]
pub struct CompletionArgs {
    /// The one you type commands into
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_and_like_none_is_a_question() {
        let question = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let error = Cli::try_parse_from(&words).err()?;
            let (question, cli) = super::question(&words, &error)?;
            Some((question, cli.run.model))
        };
        let asked = |words: &str| Some((words.to_owned(), None));
        assert_eq!(
            question(&["hermes", "what is this?"]),
            asked("what is this?")
        );
        assert_eq!(question(&["hermes", "warum?"]), asked("warum?"));
        let with_model = Some(("a b".to_owned(), Some("m".to_owned())));
        assert_eq!(question(&["hermes", "-m", "m", "a b"]), with_model);
        assert_eq!(question(&["hermes", "a b", "-m", "m"]), with_model);
        for wrong in [
            &["hermes", "sesions"][..],
            &["hermes", "a b", "c"],
            &["hermes", "mcp", "x y"],
        ] {
            assert_eq!(question(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every command there is help for.
    fn shown(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().filter(|one| !one.is_hide_set());
        let below = below.flat_map(shown);
        std::iter::once(command).chain(below).collect()
    }

    #[test]
    fn help_says_what_every_command_and_every_argument_is() {
        let cli = Cli::command();
        for command in shown(&cli) {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            let below = command.get_after_help().map(ToString::to_string);
            let is_narrow = |line: &str| line.chars().count() <= 80;
            assert!(
                below.is_none_or(|text| text.lines().all(is_narrow)),
                "{name}"
            );
            for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
                let id = argument.get_id();
                assert!(argument.get_help().is_some(), "{name}: {id}");
            }
        }
    }
}
