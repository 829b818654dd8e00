//! `hermes send`.

use std::path::PathBuf;

use clap::Args;

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct SendArgs {
    /// Where to: PLATFORM for its home chat, PLATFORM:CHAT[:THREAD], PLATFORM:NAME, or `all` for every home chat
    #[arg(short = 't', long = "to", value_name = "TARGET")]
    pub to: Option<String>,
    /// The target, unless `-t` names it, and the words
    #[arg(value_name = "TARGET] [MESSAGE")]
    pub words: Vec<String>,
    /// Read the message from this file; `-` is standard input
    #[arg(short, long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// Attach a file; may be given several times
    #[arg(short, long, value_name = "PATH")]
    pub attach: Vec<PathBuf>,
    /// A line to stand above the message
    #[arg(short, long, value_name = "LINE")]
    pub subject: Option<String>,
    /// List the chats there are
    #[arg(short, long)]
    pub list: bool,
    /// Print nothing when it went well
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub json: JsonFlag,
}
