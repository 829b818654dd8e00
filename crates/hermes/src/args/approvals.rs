//! `hermes approvals`.

use clap::{Args, Subcommand};

use super::JsonFlag;

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
