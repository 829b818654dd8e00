//! `hermes tools`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(subcommand)]
    pub command: Option<ToolsCommand>,

    /// Say in one line what is on
    #[arg(long)]
    pub summary: bool,

    #[command(flatten)]
    pub platform: PlatformFlag,
}

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the toolsets, and which of them are on
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        platform: PlatformFlag,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Offer toolsets, or single tools of MCP servers (`server:tool`)
    Enable {
        /// `hermes tools list` shows the names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        platform: PlatformFlag,
    },
    /// Offer them no more
    Disable {
        /// `hermes tools list` shows the names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        platform: PlatformFlag,
    },
}

#[derive(Debug, Args)]
pub struct PlatformFlag {
    /// Where: `cli` is the terminal
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub platform: String,
}
