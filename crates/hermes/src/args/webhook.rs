//! `hermes webhook`.

use clap::{Args, Subcommand};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct WebhookArgs {
    #[command(subcommand)]
    pub command: WebhookCommand,
}

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Add an address for events, or change one; prints the address and its secret
    Subscribe(SubscribeArgs),
    /// List the addresses there are
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Remove an address
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name
        name: String,
    },
    /// Send a signed event to an address of the gateway that runs
    Test {
        /// Its name
        name: String,
        /// What the event says
        #[arg(
            long,
            value_name = "JSON",
            default_value = r#"{"event_type": "test", "message": "Hello from hermes webhook test"}"#
        )]
        payload: String,
    },
}

#[derive(Debug, Args)]
pub struct SubscribeArgs {
    /// Lower-case letters, digits, `-` and `_`
    pub name: String,
    /// What the agent is told; `{a.b}` stands for what the event says there, `{__raw__}` for all of it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prompt: String,
    /// Only these events
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Only events with this value in this field; may be given several times
    #[arg(long = "filter", value_name = "FIELD=VALUE")]
    pub filters: Vec<String>,
    /// A file in `scripts/` of the home that reads the event first, and may drop or change it
    #[arg(long, value_name = "FILE")]
    pub script: Option<String>,
    #[arg(long, value_name = "TEXT", default_value = "", help = "What it is for")]
    pub description: String,
    /// Skills that the agent goes by
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub skills: Vec<String>,
    /// Where the answer goes
    #[arg(long, value_name = "TARGET", default_value = "log")]
    pub deliver: String,
    /// The chat it goes to, where the target is a platform
    #[arg(long, value_name = "ID")]
    pub deliver_chat_id: Option<String>,
    /// Deliver the prompt as it is, without asking a model
    #[arg(long)]
    pub deliver_only: bool,
    /// What events are signed with [default: a new random one]
    #[arg(long, value_name = "TEXT")]
    pub secret: Option<String>,
}
