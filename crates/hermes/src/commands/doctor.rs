//! `hermes doctor`: everything that could be wrong, with the fix for each. What is looked at is in `hermes_runtime::doctor`.

mod terminal;

use std::io;

use hermes_config::Environment;
use hermes_runtime::doctor::{Check, Examination, Repair, State};
use serde_json::{Value, json};

use super::already_told;
use super::layout::{count, print_json};
use crate::args::{DoctorArgs, RunFlags};
use crate::failure::{Failure, Outcome};
use crate::output::println;
use crate::style::Style;

pub(crate) async fn run(profile: Option<&str>, flags: &RunFlags, args: &DoctorArgs) -> Outcome<()> {
    let examination = Examination {
        profile,
        options: &flags.options(),
        repair: if args.fix {
            Repair::Safe
        } else {
            Repair::Nothing
        },
        is_offline: args.offline,
        terminal: terminal::check,
    };
    let examined = examination.run().await?;
    report(&examined.checks, args, &examined.environment)
}

fn report(checks: &[Check], args: &DoctorArgs, environment: &Environment) -> Outcome<()> {
    let broken = checks
        .iter()
        .filter(|check| check.state == State::Broken)
        .count();
    if args.json.json {
        print_json(&checks.iter().map(to_json).collect())?;
    } else {
        let style = Style::of(&io::stdout(), environment);
        checks
            .iter()
            .try_for_each(|check| println(&shown(check, style)))?;
    }
    match broken {
        0 => Ok(()),
        _ if args.json.json => Err(already_told()),
        broken => Err(
            Failure::new(format!("{} found", count(broken as u64, "problem")))
                .hint("each line with ✗ says what to do"),
        ),
    }
}

fn shown(check: &Check, style: Style) -> String {
    let mark = match check.state {
        State::Good => style.green("✓"),
        State::Doubtful => style.yellow("!"),
        State::Broken => style.red("✗"),
    };
    let line = format!("{mark} {}: {}", check.name, check.text);
    match &check.fix {
        Some(fix) => format!("{line}\n    fix: {fix}"),
        None => line,
    }
}

fn to_json(check: &Check) -> Value {
    let state = match check.state {
        State::Good => "ok",
        State::Doubtful => "warning",
        State::Broken => "error",
    };
    json!({"check": check.name, "state": state, "text": check.text, "fix": check.fix})
}
