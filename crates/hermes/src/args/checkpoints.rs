//! `hermes checkpoints`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::JsonFlag;

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
