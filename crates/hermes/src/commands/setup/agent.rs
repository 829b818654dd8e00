//! How the agent behaves: the few settings people change first. What holds now is what Enter alone keeps.

use hermes_config::set;

use crate::base::Base;
use crate::commands::interview::{Interview, options};
use crate::failure::Outcome;

pub(super) fn interview(base: &Base, interview: &mut Interview) -> Outcome<()> {
    interview.title("Before it runs a dangerous command, it should");
    let modes = [
        ("manual", "ask"),
        ("off", "not ask: everything runs"),
        ("smart", "let a model judge, and ask when it is not sure"),
    ];
    ask(base, interview, "approvals.mode", modes)?;
    interview.title("Before it changes a file, it should");
    let edits = [
        ("auto", "ask only where a command would have to"),
        ("ask", "show every change, and ask"),
    ];
    ask(base, interview, "approvals.edits", edits)?;
    interview.title("What you type while it works should");
    let busy = [
        ("interrupt", "stop it and come next"),
        ("queue", "wait for the end of the turn"),
        ("steer", "reach it at its next step"),
    ];
    ask(base, interview, "display.busy_input_mode", busy)?;
    interview.good("saved");
    Ok(())
}

/// Asks for a setting, and saves it unless it is so already.
fn ask<const N: usize>(
    base: &Base,
    interview: &mut Interview,
    key: &str,
    values: [(&str, &str); N],
) -> Outcome<()> {
    let now = base.settings.string(key)?;
    let usual = values.iter().position(|(value, _)| *value == now);
    let value = interview.choose_or_keep(options(values), usual.unwrap_or(0))?;
    if value != now {
        set(&base.home, &base.settings, key, value)?;
    }
    Ok(())
}
