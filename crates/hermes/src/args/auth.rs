//! `hermes auth`, `hermes login` and `hermes logout`: keys and logins.

use clap::{Args, Subcommand, ValueEnum};

use super::JsonFlag;

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
