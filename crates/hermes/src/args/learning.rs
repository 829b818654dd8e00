//! `hermes learning`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct LearningArgs {
    #[command(subcommand)]
    pub command: Option<LearningCommand>,
}

#[derive(Debug, Subcommand)]
pub enum LearningCommand {
    /// List what was learned, the newest first, with who learned it; the default
    Log {
        /// Only what was learned in this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show one change: where it came from, and what it changed
    Show {
        /// The number of the change
        change: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Take a change back
    Undo {
        /// The number of the change
        change: String,
    },
}
