//! `hermes mcp`: the servers of others, and being one.

use clap::{Args, Subcommand};

use super::JsonFlag;

const SERVE_HELP: &str = "\
An MCP client starts `hermes mcp serve` itself and talks to it over standard
input and output.
With --http it waits at http://HOST:PORT/mcp. Beyond this machine it needs a
token: `hermes config set HERMES_MCP_SERVE_TOKEN TOKEN`, which clients send as
`Authorization: Bearer TOKEN`.
Whoever can reach it can read every conversation of this home.";

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
        /// `hermes mcp list` shows the names; all of them if none is given
        server: Option<String>,
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
    /// Add a server to the settings: by --url, or by the command to start behind `--`
    Add {
        /// What you call it
        name: String,
        /// Where it answers, over HTTP
        #[arg(long, conflicts_with = "command")]
        url: Option<String>,
        /// The program to start and talk to over its standard input and output
        #[arg(long)]
        command: Option<String>,
        /// Variables the server gets, each as NAME=VALUE
        #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url", num_args = 1..)]
        env: Vec<String>,
        /// How the server knows us: `oauth` for a login in the browser, see `hermes mcp login`
        #[arg(long, value_name = "KIND", requires = "url", value_parser = ["oauth"])]
        auth: Option<String>,
        /// A header of every request, as NAME=VALUE
        #[arg(long, value_name = "NAME=VALUE", requires = "url")]
        header: Vec<String>,
        /// The program to start and its arguments; with --command, its arguments
        #[arg(last = true, value_name = "COMMAND")]
        args: Vec<String>,
        /// The command's arguments, as the last words of the line
        #[arg(
            long = "args",
            value_name = "ARGS",
            num_args = 1..,
            allow_hyphen_values = true,
            requires = "command",
            conflicts_with = "args",
            hide = true
        )]
        last_words: Vec<String>,
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
    Reauth(McpReauthArgs),
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
pub struct McpReauthArgs {
    /// `hermes mcp list` shows the names
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub name: Option<String>,
    /// All servers that one logs in at, one after the other
    #[arg(long)]
    pub all: bool,
    /// Ask for this right too, beside those granted before; may be repeated
    #[arg(long, value_name = "SCOPE", conflicts_with = "all")]
    pub scope: Vec<String>,
    /// Only print the address; do not open a browser
    #[arg(long)]
    pub no_browser: bool,
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
