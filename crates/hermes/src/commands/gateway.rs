//! `hermes gateway`: the process that serves everybody who is not at a terminal, and how it is started and ended.

mod chat_commands;
mod chat_pairing;
pub(crate) mod chats;
mod desk;
mod hooks;
mod inventory;
mod lifecycle;
mod reload;
mod reset;
mod restart_note;
pub(crate) mod serve;
mod service;
pub(crate) mod settings;
pub(super) mod setup;
mod signals;
pub(crate) mod standing;

use std::sync::Arc;

use crate::args::{GatewayArgs, GatewayCommand};
use crate::base::Base;
use crate::failure::Outcome;

pub async fn run(base: Arc<Base>, args: GatewayArgs) -> Outcome<()> {
    match args.command {
        GatewayCommand::Run(args) => serve::serve(base, args).await,
        GatewayCommand::Setup => setup::run(&base).await,
        GatewayCommand::Start => lifecycle::start(&base).await,
        GatewayCommand::Stop => lifecycle::stop(&base).await,
        GatewayCommand::Restart => lifecycle::restart(&base).await,
        GatewayCommand::Status(json) => standing::status(&base, &json).await,
        GatewayCommand::List(json) => standing::list(&base, &json).await,
        GatewayCommand::Install(args) => service::install(&base, &args).await,
        GatewayCommand::Uninstall(args) => service::uninstall(&base, &args).await,
    }
}
