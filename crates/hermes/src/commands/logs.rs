//! `hermes logs`: the end of the log, and what comes.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crate::args::LogsArgs;
use crate::base::Base;
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::logging::reader::{Filter, Log, painted};

/// Short enough to feel immediate, long enough to cost nothing.
const POLL: Duration = Duration::from_millis(250);
pub(crate) async fn run(base: &Base, args: &LogsArgs) -> Outcome<()> {
    let style = Style::of(&io::stdout(), &base.environment);
    let mut log = Log::new(base.home.logs().join("agent.log"));
    let mut filter = Filter::new(level(args), args.session.clone());
    let mut lines = VecDeque::new();
    log.read_new(|line| {
        if filter.takes(&line) {
            lines.push_back(line);
            lines.drain(..lines.len().saturating_sub(args.lines));
        }
    })?;
    let print = |line: &String| println(&painted(line, style));
    lines.iter().try_for_each(print)?;
    if !args.follow {
        return if lines.is_empty() {
            println(&format!("nothing to show in `{}`", log.path().display()))
        } else {
            Ok(())
        };
    }
    loop {
        tokio::time::sleep(POLL).await;
        let mut fresh = Vec::new();
        log.read_new(|line| fresh.push(line))?;
        let mut wanted = fresh.iter().filter(|line| filter.takes(line));
        wanted.try_for_each(print)?;
    }
}

/// The mildest level that is wanted. There is one log, and what went wrong is in it: warnings and worse.
fn level(args: &LogsArgs) -> &str {
    let usual = match args.log.as_str() {
        "errors" => "warn",
        _ => "trace",
    };
    args.level.as_deref().unwrap_or(usual)
}
