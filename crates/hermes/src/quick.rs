//! `quick_commands` of the settings: slash commands of the user's own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::quick::{Quick, QuickCommands};
use hermes_core::{
    CancellationToken, CommandExit, Pass, Progress, SessionId, ShellCommand, Terminal, redact,
};
use serde_json::Value;

use crate::base::Base;

/// A quick command is quick.
const TIMEOUT: Duration = Duration::from_secs(30);
/// As much as anybody reads.
const OUTPUT_BYTES_MAX: usize = 50_000;
/// Their shell is not that of a conversation, which they must not change.
const SHELL: &str = "quick-commands";

/// The commands that the settings name. What is neither `exec` nor `alias` is left out.
pub fn commands(base: &Base) -> QuickCommands {
    let Some(Value::Object(sections)) = base.settings.get("quick_commands") else {
        return QuickCommands::default();
    };
    let text = |section: &Value, key: &str| section.get(key)?.as_str().map(str::to_owned);
    let quick = |section: &Value| match section.get("type")?.as_str()? {
        "exec" => text(section, "command").map(Quick::Exec),
        "alias" => text(section, "target").map(Quick::Alias),
        _ => None,
    };
    QuickCommands::new(
        sections
            .iter()
            .filter_map(|(name, section)| Some((name.clone(), quick(section)?))),
    )
}

/// Runs a line in a shell and returns what is to be shown of it.
pub async fn run(terminal: Arc<dyn Terminal>, line: String, cwd: PathBuf) -> String {
    let ran = terminal.run(ShellCommand {
        session: SessionId::from(SHELL),
        line,
        workdir: Some(cwd.clone()),
        cwd,
        stdin: Vec::new(),
        pty: false,
        timeout: TIMEOUT,
        output_bytes_max: OUTPUT_BYTES_MAX,
        // The person's own command, in their own settings.
        pass: Pass::outside(),
        mark: None,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    });
    let output = match ran.await {
        Ok(output) => output,
        Err(error) => return error.to_string(),
    };
    let end = match output.exit {
        CommandExit::Code(0) => None,
        CommandExit::Code(code) => Some(format!("it ended with code {code}")),
        CommandExit::Signal(signal) => Some(format!("signal {signal} ended it")),
        CommandExit::TimedOut => Some(format!(
            "it took more than {} s and was stopped",
            TIMEOUT.as_secs()
        )),
        CommandExit::Stopped => Some("it was stopped".to_owned()),
    };
    let text = redact::redact(output.text.trim_end());
    match (text.is_empty(), end) {
        (true, None) => "done".to_owned(),
        (true, Some(end)) => end,
        (false, None) => text.to_string(),
        (false, Some(end)) => format!("{text}\n{end}"),
    }
}
