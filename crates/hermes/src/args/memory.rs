//! `hermes memory`.

use clap::{Args, Subcommand, ValueEnum};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Whose notes, where chats with several people are remembered [default: those of the terminal]
    #[arg(long, global = true, value_name = "NAME")]
    pub person: Option<String>,

    #[command(subcommand)]
    pub command: Option<MemoryCommand>,
}

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Show the notes and how full they are; the default
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// List the changes of the notes, the newest first, with who made them
    History {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Take a change back: what it added goes, what it removed comes back
    Undo {
        /// The number of the change
        change: String,
    },
    /// List the changes that wait for your consent (`memory.write_approval`)
    Pending {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Make a change that waits
    Approve {
        /// Its number
        number: String,
    },
    /// Drop a change that waits
    Reject {
        /// Its number
        number: String,
    },
    /// Edit notes in your editor
    Edit {
        /// Which notes
        #[arg(default_value = "memory")]
        file: NotesArg,
    },
    /// Find notes, also archived ones, that have all of these words
    Search {
        /// All of them must be in the note
        #[arg(required = true)]
        words: Vec<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Print everything that is kept as JSON: notes, archive and history
    Export,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NotesArg {
    /// MEMORY.md: what it keeps for itself
    Memory,
    /// USER.md: what it knows of you
    User,
}
