//! `hermes completion SHELL`: a script that teaches the shell our command line.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionArgs};
use crate::failure::Outcome;
use crate::output::print;

pub(crate) fn run(args: &CompletionArgs) -> Outcome<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hermes", &mut script);
    print(&String::from_utf8_lossy(&script))
}
