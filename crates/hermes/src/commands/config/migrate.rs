//! `hermes config migrate`: what of a home of Hermes Agent is used as it is, and what is not. Changes nothing, since nothing has
//! to be changed.

use hermes_config::{Environment, Home};

use super::check;
use crate::failure::Outcome;
use crate::former_home;
use crate::output::println;

pub(super) fn run(home: &Home, process: &Environment) -> Outcome<()> {
    println(
        "nothing has to be migrated, and nothing was changed: files of Hermes Agent are read as they are",
    )?;
    listed("used", &former_home::used(home))?;
    let idle: Vec<_> = former_home::idle(home)
        .into_iter()
        .map(|idle| idle.text)
        .collect();
    listed("there, and not used in this version", &idle)?;
    listed(
        "settings without effect in this version",
        &check::unused(home, process),
    )
}

fn listed(title: &str, lines: &[String]) -> Outcome<()> {
    if lines.is_empty() {
        return Ok(());
    }
    println(&format!("\n{title}:"))?;
    lines
        .iter()
        .try_for_each(|line| println(&format!("  {line}")))
}
