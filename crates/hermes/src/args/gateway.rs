//! `hermes gateway`.

use clap::{Args, Subcommand, ValueEnum};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct GatewayArgs {
    #[command(subcommand)]
    pub command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Serve until somebody ends it: chat platforms, schedules, HTTP API and webhooks, as the settings want
    Run(GatewayRunArgs),
    /// From a token to a first chat: asks what a platform needs, tries it, and lets you in
    Setup,
    /// Start it in the background, or the service that was installed
    Start,
    /// End it, once what runs has ended
    Stop,
    /// End it once what runs has ended, and start it again
    Restart,
    /// Show what is connected, since when, and what waits
    Status(JsonFlag),
    /// Show the gateways of all profiles
    List(JsonFlag),
    /// Have the system start it, and start it again
    Install(GatewayInstallArgs),
    /// Take back what `install` did
    Uninstall(GatewayUninstallArgs),
}

#[derive(Debug, Default, Args)]
pub struct GatewayRunArgs {
    /// Take the place of one that runs, once what runs there has ended
    #[arg(long)]
    pub replace: bool,
    /// Leave the terminal it was started from
    #[arg(long, hide = true)]
    pub detached: bool,
    /// The service manager that starts it again
    #[arg(long, hide = true, value_name = "NAME")]
    pub service: Option<String>,
}

#[derive(Debug, Args)]
pub struct GatewayInstallArgs {
    /// Only show what would be written
    #[arg(long)]
    pub print: bool,
    /// For the whole machine, started without anybody logged in; needs to be run as root
    #[arg(long)]
    pub system: bool,
    /// With --system: the user it runs as
    #[arg(long, value_name = "USER", requires = "system")]
    pub run_as: Option<String>,
    /// For this service manager, instead of the one that is found
    #[arg(long, value_enum, value_name = "NAME")]
    pub manager: Option<ServiceKind>,
}

#[derive(Debug, Args)]
pub struct GatewayUninstallArgs {
    /// The one for the whole machine
    #[arg(long)]
    pub system: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServiceKind {
    Systemd,
    Launchd,
    Termux,
}
