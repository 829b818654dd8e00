//! `hermes user`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct UserArgs {
    /// Whose model, where chats with several people are heard [default: that of the terminal]
    #[arg(long, global = true, value_name = "NAME")]
    pub person: Option<String>,

    #[command(subcommand)]
    pub command: Option<UserCommand>,
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Show what is known of you and what it goes by; the default
    Show {
        /// Also what was believed before
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Ask something about you, and see what the answer goes by
    Ask {
        /// The question
        #[arg(required = true)]
        question: Vec<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Forget facts, and what was concluded from them
    Forget {
        /// Their names, such as p3
        #[arg(
            required_unless_present = "all",
            conflicts_with = "all",
            value_name = "FACT"
        )]
        facts: Vec<String>,
        /// Everything
        #[arg(long)]
        all: bool,
    },
    /// Edit what is known of you in your editor, or give one fact other words
    Edit {
        /// The name of a fact, such as p3
        #[arg(value_name = "FACT", requires = "words")]
        fact: Option<String>,
        /// What it is to say
        words: Vec<String>,
    },
}
