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
    command.mut_args(with_value).mut_subcommands(with_values)
}

/// Providers are offered by name. Where nothing is known, nothing is: shells would offer files.
fn with_value(argument: Arg) -> Arg {
    let is_provider = ["provider", "provider_flag"].contains(&argument.get_id().as_str());
    if is_provider {
        let ids = PROVIDERS.iter().map(|provider| provider.id);
        return argument.value_parser(PossibleValuesParser::new(ids));
    }
    let takes_value = argument.get_action().takes_values();
    match takes_value && argument.get_value_hint() == ValueHint::Unknown {
        true => argument.value_hint(ValueHint::Other),
        false => argument,
    }
}
