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
        /// The code that stands below the question, and in the list at a terminal
        code: String,
        /// Also when the same comes again in its session and folder
        #[arg(long)]
        session: bool,
        /// Also in every session from now on, in its folder
        #[arg(long, conflicts_with = "session")]
        always: bool,
        /// With --session or --always: not only this line, but the pattern with this number of `show`
        #[arg(long, value_name = "N")]
        pattern: Option<usize>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Do not let it run
    Deny {
        /// The code that stands below the question, and in the list at a terminal
        code: String,
        /// What the model is told with it
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
}
