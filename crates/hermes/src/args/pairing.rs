//! `hermes pairing`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct PairingArgs {
    #[command(subcommand)]
    pub command: Option<PairingCommand>,
}

#[derive(Debug, Subcommand)]
pub enum PairingCommand {
    /// List who was let in, and who asks to be; the default
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Let in whoever was given this code
    Approve {
        /// The platform, as `hermes pairing list` writes it
        platform: String,
        /// The code that was shown in the chat
        code: String,
    },
    /// Send somebody away again
    Revoke {
        /// The platform
        platform: String,
        /// Their id there, as `hermes pairing list` shows it
        user: String,
    },
    /// Show who the owner of this Hermes is, or make somebody the owner
    Owner {
        /// Somebody who may ask, as PLATFORM:ID
        account: Option<String>,
    },
    /// Forget everybody who asks
    ClearPending,
}
