//! `hermes config`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print all settings in effect, secrets masked
    Show,
    /// Print one setting
    Get {
        /// The setting, such as `model.default`; a section works too
        key: String,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Change one setting; comments and order stay
    Set {
        /// The setting, such as `model.default`; a NAME_API_KEY goes to .env
        key: String,
        /// Its new value; lists and sections as JSON
        value: String,
        /// Accepted for the sake of older scripts; unknown keys are saved with a warning anyway
        #[arg(long, hide = true)]
        force: bool,
    },
    /// Remove one setting, so that the built-in value counts again
    Unset {
        /// The setting, such as `model.default`
        key: String,
    },
    /// Open config.yaml in $EDITOR, and check it afterwards
    Edit,
    /// Print where config.yaml is
    Path,
    /// Print where .env is
    EnvPath,
    /// Check the files for mistakes
    Check,
    /// Say what of Hermes Agent's home is used, and what is not; nothing is changed
    Migrate,
    /// Show what every layer says about a setting, and which one counts
    Explain {
        /// The setting, such as `model.default`
        key: String,
    },
}
