//! The command line: what can be written, and the help for it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

const AFTER_HELP: &str = "\
Examples:
  hermes                          chat in this folder
  hermes -z \"what changed here?\"  one question; only the answer is printed
  hermes -c                       go on where you stopped
  hermes -m openai:gpt-5.1        choose provider and model for this run
  hermes demo                     watch it work, without a key or a network

`hermes COMMAND --help` says more about a command; /help in a conversation
lists what can be done there. Settings are in ~/.hermes/config.yaml, keys in
~/.hermes/.env; `hermes config path` shows where.";

const AUTH_HELP: &str = "\
Examples:
  hermes auth add openrouter               asks for the key and does not show it
  hermes auth add openrouter < key.txt     takes it from a file
  hermes auth add openrouter --label work  gives it a name
  hermes login nous                        logs in with a browser
  hermes auth                              shows all keys and logins, masked

A key that is refused rests for a while, and another takes its turn: for five
minutes when it was not accepted, for an hour or as long as the provider says
when it is used up. A login renews itself. Keys and logins are in
~/.hermes/auth.json, which only you can read.";

const COMPLETION_HELP: &str = "\
In bash:
  hermes completion bash > ~/.local/share/bash-completion/completions/hermes
In zsh, with `fpath+=~/.zfunc` before compinit in ~/.zshrc:
  hermes completion zsh > ~/.zfunc/_hermes
In fish:
  hermes completion fish > ~/.config/fish/completions/hermes.fish";

const SERVE_HELP: &str = "\
An MCP client starts `hermes mcp serve` itself and talks to it over standard
input and output.
With --http it waits at http://HOST:PORT/mcp. Beyond this machine it needs a
token: `hermes config set HERMES_MCP_SERVE_TOKEN TOKEN`, which clients send as
`Authorization: Bearer TOKEN`.
Whoever can reach it can read every conversation of this home.";

#[derive(Debug, Parser)]
#[command(
    name = "hermes",
    version,
    about = "An agent that works in your terminal: it reads, writes, runs commands and remembers",
    after_help = AFTER_HELP,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = false,
)]
pub struct Cli {
    #[command(flatten)]
    pub run: RunFlags,

    /// Answer one prompt and exit: only the answer on standard output, nothing asked [`-` reads the prompt from
    /// standard input]
    #[arg(short = 'z', long = "oneshot", value_name = "PROMPT")]
    pub oneshot: Option<String>,

    /// Use this profile: settings, keys and conversations of its own
    #[arg(short = 'p', long, value_name = "NAME")]
    pub profile: Option<String>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of everything that talks to a model.
#[derive(Debug, Clone, Default, Args)]
pub struct RunFlags {
    /// Use this model, as MODEL or PROVIDER:MODEL
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Ask this provider; `hermes model list` shows the names
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Option<String>,

    /// Offer only these toolsets, separated by commas (`none` for no tools)
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    pub toolsets: Vec<String>,

    /// Resume a session by its id, a beginning of it, or its title
    #[arg(short, long, value_name = "ID|TITLE", conflicts_with = "continue_last")]
    pub resume: Option<String>,

    /// Continue the latest session, or the one with this id or title
    #[arg(short = 'c', long = "continue", value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub continue_last: Option<String>,

    /// Stay in this folder instead of going to the resumed session's own
    #[arg(long)]
    pub no_restore_cwd: bool,

    /// Work in a new git worktree of this repository
    #[arg(short, long)]
    pub worktree: bool,

    /// Keep a checkpoint of the project before the first change of each turn, for /rollback
    #[arg(long)]
    pub checkpoints: bool,

    /// Run dangerous commands without asking
    #[arg(long)]
    pub yolo: bool,

    /// Ignore config.yaml: built-in settings only
    #[arg(long)]
    pub ignore_user_config: bool,

    /// Ignore SOUL.md and the project's context files
    #[arg(long)]
    pub ignore_rules: bool,

    /// Ignore config.yaml, SOUL.md and context files: for finding out what is wrong
    #[arg(long)]
    pub safe_mode: bool,

    /// Model requests per turn, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_turns: Option<u32>,

    /// Write a JSON report of tokens and cost to this file, also when the run fails
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub usage_file: Option<PathBuf>,

    /// Print every event as a line of JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Talk in plain lines, without a screen that is redrawn: for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
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
    /// Show requests, tokens, cost and tools, by day and hour
    Insights(InsightsArgs),
    /// List what files were like before changes, and bring it back
    Checkpoints(CheckpointsArgs),
    /// Browse settings, or read and change one
    Config(ConfigArgs),
    /// Choose which tools models are offered, from a list or by name
    Tools(ToolsArgs),
    /// Add, remove and try MCP servers
    Mcp(McpArgs),
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

#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub run: RunFlags,

    /// Answer this and exit
    #[arg(short, long, value_name = "TEXT")]
    pub query: Option<String>,

    /// With -q: only the answer on standard output, the session id on standard error
    #[arg(short = 'Q', long, requires = "query")]
    pub quiet: bool,

    /// Attach an image to the first message
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Vec<PathBuf>,

    /// A word for where this session comes from; `tool` hides it from lists
    #[arg(long, value_name = "TAG", default_value = "cli")]
    pub source: String,
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
}

#[derive(Debug, Args)]
pub struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Ask only about this
    #[arg(value_enum)]
    pub section: Option<SetupSection>,
    /// Take what is found, without a question
    #[arg(long)]
    pub non_interactive: bool,
    /// Ask only what is needed for a first answer
    #[arg(long)]
    pub quick: bool,
    /// Put the settings aside and begin anew; keys and conversations stay
    #[arg(long)]
    pub reset: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SetupSection {
    /// Which model answers
    Model,
    /// Where commands run: here, in a container, on another machine
    Terminal,
    /// Which tools models are offered
    Tools,
    /// How the agent behaves
    Agent,
}

#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    pub command: Option<ModelCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List providers, which of them have a key, and the models of the chosen one
    List {
        /// List the models of this provider
        provider: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Choose the model for all future sessions
    Set {
        /// MODEL or PROVIDER:MODEL
        model: String,
        /// Whose model it is, when its name does not say so
        #[arg(long)]
        provider: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = AUTH_HELP)]
pub struct AuthArgs {
    #[command(subcommand)]
    pub command: Option<AuthCommand>,
}

#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Add a key, typed unseen or read from standard input and tried with a real request; or log in
    Add(AuthAddArgs),
    /// Show every key and login, masked, where it comes from, and whether it rests; the default
    #[command(visible_alias = "ls")]
    List {
        /// Only the keys of this provider
        provider: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Forget a stored key
    #[command(visible_alias = "rm")]
    Remove {
        /// Whose key it is
        provider: String,
        /// Its label, its id, or its number in the list
        key: String,
    },
    /// Use what was refused again at once: keys before their rest is over, a login that was given up
    Reset {
        /// Who refused it
        provider: String,
    },
    /// Say how one gets in at a provider: with which keys, and how the login stands
    Status {
        /// Only this one; exits with 1 when there is neither a key nor a login that works
        provider: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Forget a login, and end it at the provider where that is possible
    Logout(LoginPlace),
}

#[derive(Debug, Args)]
pub struct LoginArgs {
    #[command(flatten)]
    pub place: LoginPlace,
    /// Only show the address, instead of opening it
    #[arg(long)]
    pub no_browser: bool,
}

/// Where one logs in or out.
#[derive(Debug, Args)]
pub struct LoginPlace {
    /// Where; left out, it is the only place there is, or you choose
    provider: Option<String>,
    /// The same, as older scripts write it
    #[arg(
        long = "provider",
        value_name = "PROVIDER",
        hide = true,
        conflicts_with = "provider"
    )]
    provider_flag: Option<String>,
}

impl LoginPlace {
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref().or(self.provider_flag.as_deref())
    }
}

#[derive(Debug, Default, Args)]
pub struct AuthAddArgs {
    /// Whose key or login it is; `hermes model list` shows the names
    pub provider: String,
    /// A login in a browser or an API key, where a provider has both
    #[arg(long = "type", value_name = "KIND")]
    pub kind: Option<AuthKind>,
    /// Only show the address of a login, instead of opening it
    #[arg(long)]
    pub no_browser: bool,
    /// A name to know the key by
    #[arg(long)]
    pub label: Option<String>,
    /// Keep the key without trying it
    #[arg(long)]
    pub no_check: bool,
    /// The key itself. Others on this machine may see it, and your shell remembers it: better leave it out
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
}

/// What lets one in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthKind {
    Oauth,
    ApiKey,
}

#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(subcommand)]
    pub command: Option<ToolsCommand>,

    /// Say in one line what is on
    #[arg(long)]
    pub summary: bool,

    #[command(flatten)]
    pub platform: PlatformFlag,
}

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the toolsets, and which of them are on
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        platform: PlatformFlag,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Offer toolsets, or single tools of MCP servers (`server:tool`)
    Enable {
        /// `hermes tools list` shows the names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        platform: PlatformFlag,
    },
    /// Offer them no more
    Disable {
        /// `hermes tools list` shows the names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        platform: PlatformFlag,
    },
}

#[derive(Debug, Args)]
pub struct PlatformFlag {
    /// Where: `cli` is the terminal
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub platform: String,
}

#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the servers of the settings; the default
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Connect to all servers and show how they are
    Status {
        /// Stay connected and show every change, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        wait: WaitFlag,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Connect to one server, or all, and show what they offer
    Test {
        /// A server; all of them without one
        server: Option<String>,
        #[command(flatten)]
        wait: WaitFlag,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Connect anew and say what came of it. A running chat has connections of its own: use `/mcp reconnect` there
    Reconnect {
        /// `hermes mcp list` shows the names
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        server: Option<String>,
        /// All servers
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        wait: WaitFlag,
    },
    /// Find out why a server does not work: every step on the way to it, and what to do about the one that fails
    Doctor {
        /// `hermes mcp list` shows the names
        server: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Choose which tools of a server models see: in a list, or by flags
    #[command(visible_alias = "config")]
    Configure {
        /// `hermes mcp list` shows the names
        server: String,
        /// Only these tools, separated by commas
        #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with_all = ["exclude", "all"])]
        include: Vec<String>,
        /// All tools but these, separated by commas
        #[arg(
            long,
            value_name = "A,B",
            value_delimiter = ',',
            conflicts_with = "all"
        )]
        exclude: Vec<String>,
        /// All tools
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        wait: WaitFlag,
    },
    /// Add a server to the settings: by --url, or by --command with its arguments behind `--`
    Add {
        /// What you call it
        name: String,
        /// Where it answers, over HTTP
        #[arg(long, conflicts_with = "command", required_unless_present = "command")]
        url: Option<String>,
        /// The program to start and talk to over its standard input and output
        #[arg(long)]
        command: Option<String>,
        /// A variable the server gets, as NAME=VALUE
        #[arg(long, value_name = "NAME=VALUE", requires = "command")]
        env: Vec<String>,
        /// How the server knows us: `oauth` for a login in the browser, see `hermes mcp login`
        #[arg(long, value_name = "KIND", requires = "url", value_parser = ["oauth"])]
        auth: Option<String>,
        /// A header of every request, as NAME=VALUE
        #[arg(long, value_name = "NAME=VALUE", requires = "url")]
        header: Vec<String>,
        /// The command's arguments
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Remove a server from the settings
    #[command(visible_alias = "rm")]
    Remove {
        /// `hermes mcp list` shows the names
        name: String,
    },
    /// Log in at a server with `auth: oauth`, in a browser
    Login(McpLoginArgs),
    /// Forget the login at a server, and log in anew
    Reauth(McpLoginArgs),
    /// Be an MCP server: other programs look at the conversations of this home and follow them
    #[command(after_help = SERVE_HELP)]
    Serve {
        /// Listen on this address instead of standard input and output [127.0.0.1:8765 when left out]
        #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8765")]
        http: Option<String>,
    },
    /// Use everything that a server of the conformance suite offers
    #[command(hide = true)]
    ConformanceClient { url: String },
}

#[derive(Debug, Clone, Copy, Args)]
pub struct WaitFlag {
    /// Wait this many seconds for an answer, at most
    #[arg(long = "wait", value_name = "SECONDS", default_value_t = 15)]
    pub seconds: u64,
}

#[derive(Debug, Args)]
pub struct McpLoginArgs {
    /// `hermes mcp list` shows the names
    pub name: String,
    /// Ask for this right too, beside those granted before; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// Only print the address; do not open a browser
    #[arg(long)]
    pub no_browser: bool,
}

#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List the questions that wait for an answer, oldest first; the default
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show one question whole, and how it ended
    Show {
        /// The id, or a beginning of it
        id: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Let it run
    Allow {
        /// The id, or a beginning of it
        id: String,
        /// Also when the same comes again in its session
        #[arg(long)]
        session: bool,
        /// Also in every session from now on
        #[arg(long, conflicts_with = "session")]
        always: bool,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Do not let it run
    Deny {
        /// The id, or a beginning of it
        id: String,
        #[command(flatten)]
        json: JsonFlag,
    },
}

#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, newest first; the default
    #[command(visible_alias = "ls")]
    List {
        /// Only sessions that come from here: cli, oneshot, …
        #[arg(long)]
        source: Option<String>,
        /// Only sessions of this folder
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        workspace: Option<PathBuf>,
        /// How many, at most; 0 for all
        #[arg(short = 'n', long, default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Print a session's conversation
    Show {
        /// Its id, a beginning of it, or its title
        session: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Search all conversations
    Search {
        /// Words to look for; a message has to have all of them
        #[arg(required = true)]
        query: Vec<String>,
        /// How many places to show, at most
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: usize,
        /// Only in this session
        #[arg(long)]
        session: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Write sessions to standard output or a file
    Export {
        /// A session; all of them without one
        session: Option<String>,
        /// For programs or for people
        #[arg(long, default_value = "jsonl", value_parser = ["jsonl", "md"])]
        format: String,
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// Replace what looks like a secret by ***
        #[arg(long)]
        redact: bool,
    },
    /// Give a session a title
    Rename {
        /// Its id, a beginning of it, or its title
        session: String,
        /// What it is called from now on
        title: String,
    },
    /// Delete a session and everything said in it
    #[command(visible_alias = "rm")]
    Delete {
        /// Its id, a beginning of it, or its title
        session: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Finish turns that a crash or a kill cut short
    Recover {
        /// A session; all unfinished ones without it
        session: Option<String>,
    },
    /// Count sessions, messages, tokens and bytes
    Stats {
        #[command(flatten)]
        json: JsonFlag,
    },
}

#[derive(Debug, Args)]
pub struct CheckpointsArgs {
    #[command(subcommand)]
    pub command: Option<CheckpointsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointsCommand {
    /// List the checkpoints of this folder's project, newest first; the default
    #[command(visible_alias = "ls")]
    List {
        /// Count those of all projects
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show what changed since a checkpoint
    Diff {
        /// Its number in the list, or its id
        #[arg(value_name = "N|ID")]
        checkpoint: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Bring the project back to a checkpoint; what is there now is kept first
    Restore {
        /// Its number in the list, or its id
        #[arg(value_name = "N|ID")]
        checkpoint: String,
        /// Only this file or folder
        #[arg(value_hint = ValueHint::AnyPath)]
        file: Option<PathBuf>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Drop checkpoints that are too old or too many, or whose project is gone
    Prune {
        #[command(flatten)]
        json: JsonFlag,
    },
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
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print all settings in effect, secrets masked
    Show,
    /// Print one setting
    Get {
        /// The setting, such as `model.default`; a section works too
        key: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Change one setting; comments and order stay
    Set {
        /// The setting, such as `model.default`; a NAME_API_KEY goes to .env
        key: String,
        /// Its new value; lists and sections as JSON
        value: String,
        /// Accepted for the sake of older scripts; unknown keys are saved with a warning anyway
        #[arg(long, hide = true)]
        force: bool,
    },
    /// Remove one setting, so that the built-in value counts again
    Unset {
        /// The setting, such as `model.default`
        key: String,
    },
    /// Open config.yaml in $EDITOR, and check it afterwards
    Edit,
    /// Print where config.yaml is
    Path,
    /// Print where .env is
    EnvPath,
    /// Check the files for mistakes
    Check,
    /// Show what every layer says about a setting, and which one counts
    Explain {
        /// The setting, such as `model.default`
        key: String,
    },
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
    /// Lines from the end
    #[arg(short = 'n', long, default_value_t = 50)]
    pub lines: usize,
    /// Go on printing as lines come
    #[arg(short, long)]
    pub follow: bool,
    /// Only this level and worse
    #[arg(long, value_parser = ["error", "warn", "info", "debug"])]
    pub level: Option<String>,
    /// Only lines of this session
    #[arg(long)]
    pub session: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = COMPLETION_HELP)]
pub struct CompletionArgs {
    /// The one you type commands into
    pub shell: clap_complete::Shell,
}

impl RunFlags {
    /// Joins the flags before and after `chat`; the later ones win.
    pub fn over(self, earlier: Self) -> Self {
        Self {
            model: self.model.or(earlier.model),
            provider: self.provider.or(earlier.provider),
            toolsets: if self.toolsets.is_empty() {
                earlier.toolsets
            } else {
                self.toolsets
            },
            resume: self.resume.or(earlier.resume),
            continue_last: self.continue_last.or(earlier.continue_last),
            no_restore_cwd: self.no_restore_cwd || earlier.no_restore_cwd,
            worktree: self.worktree || earlier.worktree,
            checkpoints: self.checkpoints || earlier.checkpoints,
            yolo: self.yolo || earlier.yolo,
            ignore_user_config: self.ignore_user_config || earlier.ignore_user_config,
            ignore_rules: self.ignore_rules || earlier.ignore_rules,
            safe_mode: self.safe_mode || earlier.safe_mode,
            max_turns: self.max_turns.or(earlier.max_turns),
            usage_file: self.usage_file.or(earlier.usage_file),
            json: self.json || earlier.json,
            plain: self.plain || earlier.plain,
        }
    }

    pub fn ignores_user_config(&self) -> bool {
        self.ignore_user_config || self.safe_mode
    }

    pub fn ignores_rules(&self) -> bool {
        self.ignore_rules || self.safe_mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

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

    #[test]
    fn flags_may_stand_before_and_after_chat() {
        let cli =
            Cli::try_parse_from(["hermes", "-m", "a", "--yolo", "chat", "-q", "hi", "-m", "b"])
                .unwrap();
        let Some(Command::Chat(chat)) = cli.command else {
            panic!("chat")
        };
        let run = chat.run.over(cli.run);
        assert_eq!((run.model.as_deref(), run.yolo), (Some("b"), true));
    }

    #[test]
    fn continue_takes_a_name_or_none() {
        let name = |args: &[&str]| Cli::try_parse_from(args).unwrap().run.continue_last;
        assert_eq!(name(&["hermes", "-c"]).as_deref(), Some(""));
        assert_eq!(name(&["hermes", "-c", "notes"]).as_deref(), Some("notes"));
        assert_eq!(name(&["hermes"]), None);
    }
}
