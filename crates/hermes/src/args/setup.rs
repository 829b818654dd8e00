//! `hermes setup`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Ask only about this
    #[arg(value_enum)]
    pub section: Option<SetupSection>,
    /// Take what is found, without a question
    #[arg(long)]
    pub non_interactive: bool,
    /// Ask only what is needed for a first answer
    #[arg(long)]
    pub quick: bool,
    /// Put the settings aside and begin anew; keys and conversations stay
    #[arg(long)]
    pub reset: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SetupSection {
    /// Which model answers
    Model,
    /// Where commands run: here, in a container, on another machine
    Terminal,
    /// Which tools models are offered
    Tools,
    /// How the agent behaves
    Agent,
    /// Where people talk to it: a chat platform
    Gateway,
}
