//! `!COMMAND`: a command of the person's own. It is theirs, so nobody is asked and nothing fences it; what it printed is
//! shown, and goes along with their next message.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hermes_core::reference::ATTACHED;
use hermes_core::text::{self, escaped};
use hermes_core::{Op, Part, redact};

use super::Host;

/// Who waits longer has another terminal.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Of what it printed, for the model: the rest is on the screen, or in a file if it is wanted.
const TOLD_BYTES_MAX: usize = 30_000;
/// Outputs that may wait for the next message.
const HEARD_MAX: usize = 10;

/// Shells that read a line as we write it.
const SHELLS: [&str; 5] = ["bash", "zsh", "ksh", "dash", "sh"];

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Heard {
    pub line: String,
    /// What it printed, and how it ended if not well.
    pub text: String,
}

impl Heard {
    /// What the person sees of it.
    pub fn shown(&self) -> String {
        if self.text.is_empty() {
            "done".to_owned()
        } else {
            self.text.clone()
        }
    }
}

impl Host {
    /// Runs a line of the person's own. The future stands alone.
    pub fn own(&self, line: &str) -> impl Future<Output = Heard> + Send + use<> {
        let variables = self.base.environment.iter();
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = hermes_exec::child_environment(variables, &[]);
        let shell = self.base.environment.get("SHELL").unwrap_or_default();
        let name = shell.rsplit('/').next().unwrap_or_default();
        let shell = if SHELLS.contains(&name) {
            shell
        } else {
            "/bin/sh"
        };
        let folder = self.prepared.wired.settings.cwd.clone();
        run(shell.to_owned(), line.to_owned(), environment, folder)
    }

    /// Keeps what a command printed for the next message.
    pub fn hear(&mut self, heard: Heard) {
        self.heard.push(heard);
        let more = self.heard.len().saturating_sub(HEARD_MAX);
        self.heard.drain(..more);
    }

    /// Puts what was heard behind the words of a message.
    pub fn with_heard(&mut self, mut op: Op) -> Op {
        let (Op::Say(message) | Op::Steer(message)) = &mut op else {
            return op;
        };
        if self.heard.is_empty() {
            return op;
        }
        let blocks: Vec<String> = self.heard.drain(..).map(|heard| block(&heard)).collect();
        let text = format!("\n\n{ATTACHED}\n\n{}", blocks.join("\n\n"));
        let text = self.prepared.wired.ports.safety.hide_keys(text);
        message.parts.push(Part::text(text));
        op
    }
}

fn block(heard: &Heard) -> String {
    let shown = text::tail(&heard.text, TOLD_BYTES_MAX);
    let cut = if shown.len() < heard.text.len() {
        "[… only the end of it]\n"
    } else {
        ""
    };
    format!(
        "The user ran `{}` in a shell of their own:\n```\n{cut}{shown}\n```",
        heard.line
    )
}

async fn run(
    shell: String,
    line: String,
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
) -> Heard {
    let both = format!("{{ {line}\n}} 2>&1");
    let ran = hermes_exec::output(&shell, ["-c", &both], &environment, &folder, TIMEOUT).await;
    let text = match ran {
        Err(error) => error.to_string(),
        Ok(output) => {
            let printed = redact::redact(output.stdout.trim_end());
            let end = if output.status.success() {
                String::new()
            } else {
                format!("[{}]", output.status)
            };
            let lines = [printed.to_string(), output.stderr, end];
            let lines = lines.iter().map(|line| line.trim_end());
            lines
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
    };
    Heard {
        line: escaped(&line).to_string(),
        text,
    }
}
