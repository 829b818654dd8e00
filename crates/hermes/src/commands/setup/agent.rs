//! How the agent behaves: the few settings people change first.

use hermes_config::set;

use crate::base::Base;
use crate::commands::interview::{Interview, options};
use crate::failure::Outcome;

pub(super) fn interview(base: &Base, interview: &mut Interview) -> Outcome<()> {
    interview.title("Before it runs a dangerous command, it should");
    let mode = interview.choose(options([
        ("manual", "ask"),
        ("off", "not ask: everything runs"),
        ("smart", "let a model judge, and ask when it is not sure"),
    ]))?;
    save(base, "approvals.mode", mode)?;
    interview.title("Before it changes a file, it should");
    let edits = interview.choose(options([
        ("auto", "ask only where a command would have to"),
        ("ask", "show every change, and ask"),
    ]))?;
    save(base, "approvals.edits", edits)?;
    interview.title("What you type while it works should");
    let busy = interview.choose(options([
        ("interrupt", "stop it and come next"),
        ("queue", "wait for the end of the turn"),
        ("steer", "reach it at its next step"),
    ]))?;
    save(base, "display.busy_input_mode", busy)?;
    interview.good("saved");
    Ok(())
}

fn save(base: &Base, key: &str, value: &str) -> Outcome<()> {
    set(&base.home, &base.settings, key, value)?;
    Ok(())
}
