//! `hermes skills`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct SkillsArgs {
    #[command(subcommand)]
    pub command: Option<SkillsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// List the skills there are, or those with all of these words; the default
    #[command(visible_alias = "ls")]
    List {
        /// Words that stand in names, descriptions or texts
        #[arg(value_name = "WORD")]
        words: Vec<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show a skill: what it says, its files, who wrote it and how often it was used
    #[command(alias = "view")]
    Show {
        /// Its name, or category/name
        name: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// List changes of skills that wait for your consent
    #[command(visible_alias = "pending")]
    Proposals {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Make a proposed change
    #[command(alias = "approve")]
    Accept {
        /// Its number in the list of proposals
        number: u64,
    },
    /// Drop a proposed change
    Reject {
        /// Its number in the list of proposals
        number: u64,
    },
    /// List what was changed, of one skill or of all, newest first
    History {
        /// Of this skill only
        name: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show a proposed change by its number, or the last change of a skill
    Diff {
        /// The number of a proposal, the name of a skill, or #N for a change of the history
        #[arg(value_name = "NUMBER|NAME|#N")]
        what: String,
    },
    /// Take back the last change of a skill, or one by its number
    Undo {
        /// The name of a skill, or #N for a change of the history
        #[arg(value_name = "NAME|#N")]
        what: String,
    },
    /// Keep a skill from being changed, archived or curated by the agent
    Pin {
        /// Its name
        name: String,
    },
    /// Let the agent look after a skill again
    Unpin {
        /// Its name
        name: String,
    },
}
