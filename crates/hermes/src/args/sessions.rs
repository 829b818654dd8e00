//! `hermes sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::JsonFlag;

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
        /// Words to look for; where no message has all of them, what comes closest is found
        #[arg(required = true)]
        query: Vec<String>,
        /// How many places to show, at most
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: usize,
        /// Only in this session
        #[arg(long)]
        session: Option<String>,
        /// Have a cheap model say what each conversation says about it
        #[arg(long, conflicts_with = "session")]
        summary: bool,
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
    /// Finish turns that were cut short, and save what can be read of a damaged database
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
