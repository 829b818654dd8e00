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
    /// Let the agent look after a skill again, also one of its own that you have edited
    Unpin {
        /// Its name
        name: String,
    },
    /// Mark skills of the agent's that nobody uses as stale, archive the oldest, and propose merges of those that say nearly the same
    Curate {
        /// Only show what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Move a skill into the archive; nothing is deleted
    Archive {
        /// Its name
        name: String,
    },
    /// Bring an archived skill back to where it was
    Restore {
        /// Its name
        name: String,
    },
    /// Let commands have an environment variable or a file that a skill asks for; lists what was allowed without a name
    Allow {
        /// The name of the skill
        #[arg(requires = "what")]
        name: Option<String>,
        /// The variable, or the file below the home
        what: Option<String>,
        /// Agree without being asked
        #[arg(short, long)]
        yes: bool,
    },
    /// Take back what a skill was allowed, or one thing of it
    Disallow {
        /// The name of the skill
        name: String,
        /// The variable, or the file below the home
        what: Option<String>,
    },
    /// List the skills of the repositories and sites that are searched
    Browse {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Look for skills elsewhere: in taps, at skills.sh and ClawHub
    Search {
        /// What they should be about
        #[arg(required = true)]
        words: Vec<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show a skill from elsewhere and what a scan found in it, without installing it
    Inspect {
        /// owner/repository/skill, clawhub:NAME, or an https address
        identifier: String,
    },
    /// Install a skill from elsewhere, after it was scanned and you agreed
    Install(InstallArgs),
    /// Ask for newer versions of installed skills
    Update {
        /// Only this one
        name: Option<String>,
        /// Replace what was changed by hand, and install what should be looked at first
        #[arg(long)]
        force: bool,
        /// Agree without being asked
        #[arg(short, long)]
        yes: bool,
    },
    /// Take an installed skill away; its files are archived
    Uninstall {
        /// Its name
        name: String,
    },
    /// Look at installed skills again: whether they were changed, and what is in them
    Audit {
        /// Only this one
        name: Option<String>,
    },
    /// Publish a skill: into the folder of a web site, or on a branch of a git repository
    Publish(PublishArgs),
    /// List, add and remove the repositories and sites that are searched
    Tap {
        #[command(subcommand)]
        command: Option<TapCommand>,
    },
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// owner/repository/skill, clawhub:NAME, or an https address
    pub identifier: String,
    /// Install what should be looked at first; never what is dangerous
    #[arg(long)]
    pub force: bool,
    /// Agree without being asked
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct PublishArgs {
    /// Its name
    pub name: String,
    /// A folder to be served, owner/repository at GitHub, or what git clones
    #[arg(long, value_name = "PLACE")]
    pub to: String,
    /// Publish what others would have to look at first; never what is dangerous
    #[arg(long)]
    pub force: bool,
    /// Agree without being asked
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Debug, Subcommand)]
pub enum TapCommand {
    /// List them; the default
    List,
    /// Add a repository at GitHub, or a site that lists its skills
    Add {
        /// owner/repository, or an https address
        place: String,
    },
    /// Remove one that you added
    Remove {
        /// As it is listed
        place: String,
    },
}
