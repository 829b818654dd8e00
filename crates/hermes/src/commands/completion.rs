//! `hermes completion SHELL`: a script that teaches the shell our command line.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _, ValueHint};
use hermes_llm::PROVIDERS;

use crate::args::{Cli, CompletionArgs};
use crate::failure::Outcome;
use crate::output::print;

pub(crate) fn run(args: &CompletionArgs) -> Outcome<()> {
    let mut script = Vec::new();
    let mut command = with_values(Cli::command());
    clap_complete::generate(args.shell, &mut command, "hermes", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// The command line as shells complete it: what is offered for a value need not be all that is taken.
fn with_values(command: Command) -> Command {
    let is_about_logins = ["login", "logout"].contains(&command.get_name());
    let providers = PROVIDERS
        .iter()
        .filter(move |provider| !is_about_logins || provider.login.is_some());
    let ids: Vec<&str> = providers.map(|provider| provider.id).collect();
    command
        .mut_args(|argument| with_value(argument, &ids))
        .mut_subcommands(with_values)
}

/// Providers are offered by name. Where nothing is known, nothing is: shells would offer files.
fn with_value(argument: Arg, providers: &[&'static str]) -> Arg {
    let is_provider = ["provider", "provider_flag"].contains(&argument.get_id().as_str());
    if is_provider {
        return argument.value_parser(PossibleValuesParser::new(providers));
    }
    let takes_value = argument.get_action().takes_values();
    if takes_value && argument.get_value_hint() == ValueHint::Unknown {
        argument.value_hint(ValueHint::Other)
    } else {
        argument
    }
}
