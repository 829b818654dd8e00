//! `hermes model`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    pub command: Option<ModelCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List providers, which of them have a key, and the models of the chosen one
    List {
        /// List the models of this provider
        provider: Option<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Choose the model for all future sessions
    Set {
        /// MODEL or PROVIDER:MODEL
        model: String,
        /// Whose model it is, when its name does not say so
        #[arg(long)]
        provider: Option<String>,
    },
}
