//! Whether commands run where the settings say.

use std::time::Duration;

use hermes_core::{CancellationToken, CommandExit, Progress, ShellCommand};

use super::Check;
use crate::base::Base;
use crate::terminals::Terminals;

const NAME: &str = "commands";

const FIX: &str = "see `terminal` in config.yaml; `hermes config explain terminal.backend` shows who chose the backend";

/// A host that takes longer to answer is of little use.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// Runs `true` on another machine, unless we are to stay offline. This one is checked by its shell.
pub(super) async fn check(base: &Base, offline: bool) -> Check {
    let backend = base.settings.string("terminal.backend");
    let backend = backend.unwrap_or_else(|error| error.to_string());
    let terminals = match Terminals::chosen(base) {
        Ok(terminals) => terminals,
        Err(failure) => {
            let fix = failure.hint.unwrap_or_else(|| FIX.to_owned());
            return Check::broken(NAME, failure.message, fix);
        }
    };
    if backend == "local" {
        return Check::good(NAME, "run on this machine");
    }
    if offline {
        return Check::good(NAME, format!("run over {backend}; not tried, as asked"));
    }
    let command = ShellCommand {
        session: "hermes-doctor".into(),
        line: "true".to_owned(),
        cwd: base.cwd.clone(),
        workdir: None,
        stdin: Vec::new(),
        pty: false,
        timeout: ANSWER_TIME_MAX,
        output_bytes_max: 1000,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    };
    match terminals.terminal.run(command).await {
        Ok(output) if output.exit == CommandExit::Code(0) => {
            let ms = output.elapsed.as_millis();
            Check::good(NAME, format!("run over {backend}, {ms} ms"))
        }
        Ok(output) => Check::broken(
            NAME,
            format!(
                "`true` over {backend} ended with {:?}: {}",
                output.exit,
                output.text.trim()
            ),
            FIX,
        ),
        Err(error) => Check::broken(NAME, format!("over {backend}: {error}"), FIX),
    }
}
