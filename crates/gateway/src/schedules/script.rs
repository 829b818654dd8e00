//! Scripts that run before the agent is asked, or in its place. They lie below one folder, and run where commands run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::redact::redact;
use hermes_core::{
    CancellationToken, CommandExit, Pass, Progress, Run, SessionId, ShellCommand, Terminal,
};
use hermes_os::paths::within;
use serde_json::Value;

/// What a script may print; what is told of it is less.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

pub(crate) struct Scripts {
    pub(crate) terminal: Arc<dyn Terminal>,
    pub(crate) folder: PathBuf,
    pub(crate) time_max: Duration,
}

/// What came of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// It ended well and printed this, perhaps nothing.
    Text(String),
    /// It said itself that there is nothing to do.
    NothingToDo,
    /// What went wrong, and what it had printed by then.
    Failed { error: String, text: String },
    /// The process ends.
    Stopped,
}

impl Scripts {
    pub(crate) async fn run(
        &self,
        script: &str,
        run: &Run,
        cwd: &Path,
        stop: &CancellationToken,
    ) -> Printed {
        let session = SessionId::from(format!("cron_{}_{}_{}", run.job, run.id, run.attempt));
        self.run_with(script, session, Vec::new(), cwd, stop).await
    }

    /// Runs a script that reads this on its input.
    pub(crate) async fn run_with(
        &self,
        script: &str,
        session: SessionId,
        stdin: Vec<u8>,
        cwd: &Path,
        stop: &CancellationToken,
    ) -> Printed {
        let line = match self.line(script) {
            Ok(line) => line,
            Err(error) => return failed(error, ""),
        };
        let command = ShellCommand {
            session: session.clone(),
            line,
            cwd: cwd.to_owned(),
            workdir: None,
            stdin,
            pty: false,
            timeout: self.time_max,
            output_bytes_max: OUTPUT_BYTES_MAX,
            // The home is out of bounds otherwise.
            pass: Pass {
                reads: vec![self.folder.clone()],
                ..Pass::default()
            },
            mark: None,
            stop: stop.clone(),
            progress: Progress::default(),
        };
        let output = self.terminal.run(command).await;
        self.terminal.close_session(&session);
        match output {
            Ok(output) => self.read(script, output.exit, &redact(&output.text)),
            Err(error) => failed(format!("the script `{script}` did not run: {error}"), ""),
        }
    }

    fn read(&self, script: &str, exit: CommandExit, text: &str) -> Printed {
        match exit {
            CommandExit::Code(0) => gated(text),
            CommandExit::Stopped => Printed::Stopped,
            CommandExit::Code(code) => failed(
                format!("the script `{script}` ended with code {code}"),
                text,
            ),
            CommandExit::Signal(signal) => failed(
                format!("the script `{script}` was ended by signal {signal}"),
                text,
            ),
            CommandExit::TimedOut => failed(
                format!(
                    "the script `{script}` took longer than {} s",
                    self.time_max.as_secs()
                ),
                text,
            ),
        }
    }

    /// The line that runs a script. What it says on its error output is shown only when it fails.
    fn line(&self, script: &str) -> Result<String, String> {
        let path = within(&self.folder, script).ok_or_else(|| {
            format!(
                "there is no script `{script}` in `{}`",
                self.folder.display()
            )
        })?;
        let program = match path.extension().and_then(|ending| ending.to_str()) {
            Some("sh" | "bash") => "bash",
            _ => "python3",
        };
        let path = path.to_str().ok_or("its path is no text")?;
        let quoted = format!("'{}'", path.replace('\'', r"'\''"));
        Ok(format!(
            "{{ hermes_said=$({program} {quoted} 2>&1 1>&3 3>&-); hermes_code=$?; }} 3>&1\n\
             [ \"$hermes_code\" = 0 ] || printf '%s\\n' \"$hermes_said\"\n\
             (exit \"$hermes_code\")"
        ))
    }
}

fn failed(error: impl Into<String>, text: &str) -> Printed {
    Printed::Failed {
        error: error.into(),
        text: text.trim().to_owned(),
    }
}

/// A last line such as `{"wakeAgent": false}` says whether there is anything to do.
fn gated(text: &str) -> Printed {
    let text = text.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let gate = serde_json::from_str::<Value>(last.trim()).ok();
    match gate.as_ref().and_then(|gate| gate.get("wakeAgent")) {
        Some(Value::Bool(false)) => Printed::NothingToDo,
        Some(_) => Printed::Text(before.trim_end().to_owned()),
        None => Printed::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_may_say_that_there_is_nothing_to_do() {
        let text = |text: &str| Printed::Text(text.to_owned());
        assert_eq!(gated("a\n{\"wakeAgent\": false}\n"), Printed::NothingToDo);
        assert_eq!(gated("a\nb\n{\"wakeAgent\": true}"), text("a\nb"));
        assert_eq!(
            gated("{\"wakeAgent\": false}\na"),
            text("{\"wakeAgent\": false}\na")
        );
        assert_eq!(gated("{\"other\": 1}"), text("{\"other\": 1}"));
        assert_eq!(gated(""), text(""));
    }
}
