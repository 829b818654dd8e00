//! `skills.inline_shell`: runs the commands that stand in skills. Each is judged as the agent's own are, by the rules for commands
//! and by the fence; what a person would be asked about is not run, and so is what another machine would do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    BoxFuture, CancellationToken, CommandExit, Consent, Pass, PlanContext, Progress, SessionId,
    ShellCommand, Terminal, Tool, redact,
};
use hermes_learning::skills::InlineShell;
use serde_json::json;

/// The shell that they share: what one leaves is there for the next.
const SHELL: &str = "skill-commands";
/// More than is told of it.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct SkillCommands {
    /// The tool that judges commands.
    pub(crate) judge: Arc<dyn Tool>,
    pub(crate) terminal: Arc<dyn Terminal>,
    pub(crate) timeout: Duration,
    /// Whether commands run where skills are.
    pub(crate) is_here: bool,
}

impl InlineShell for SkillCommands {
    fn run<'a>(&'a self, line: &'a str, folder: &'a Path, cwd: &'a Path) -> BoxFuture<'a, String> {
        Box::pin(async move {
            if !self.is_here {
                return format!("[`{line}` was not run: commands run on another machine]");
            }
            match self.allowed(line, folder, cwd) {
                Ok(pass) => self.ran(line, folder, cwd, pass).await,
                Err(why) => format!("[`{line}` was not run: {why}]"),
            }
        })
    }
}

impl SkillCommands {
    /// What a command may do beyond the fence, if nobody would be asked about it.
    fn allowed(&self, line: &str, folder: &Path, cwd: &Path) -> Result<Pass, String> {
        let session = SessionId::from(SHELL);
        let arguments = json!({"command": line, "workdir": folder.display().to_string()});
        let context = PlanContext {
            session: &session,
            cwd,
        };
        let plan = Arc::clone(&self.judge).prepare(&arguments, context);
        match plan.consent {
            Consent::NotNeeded => Ok(Pass::default()),
            Consent::Needed(need) if need.is_allowed => Ok(need.pass),
            Consent::Needed(need) => Err(format!(
                "the user would have to agree, for it {}",
                need.reason
            )),
            Consent::Review(review) => Err(format!(
                "the user would have to agree, for it {}",
                review.reason
            )),
            Consent::Forbidden { reason } => Err(reason),
        }
    }

    async fn ran(&self, line: &str, folder: &Path, cwd: &Path, pass: Pass) -> String {
        let ran = self.terminal.run(ShellCommand {
            session: SessionId::from(SHELL),
            line: line.to_owned(),
            cwd: cwd.to_owned(),
            workdir: Some(folder.to_owned()),
            stdin: Vec::new(),
            pty: false,
            timeout: self.timeout,
            output_bytes_max: OUTPUT_BYTES_MAX,
            pass,
            mark: None,
            stop: CancellationToken::new(),
            progress: Progress::default(),
        });
        let output = match ran.await {
            Ok(output) => output,
            Err(error) => return format!("[`{line}` was not run: {error}]"),
        };
        let text = redact::redact(output.text.trim());
        let end = match output.exit {
            CommandExit::Code(0) => return text,
            CommandExit::Code(code) => format!("ended with code {code}"),
            CommandExit::Signal(signal) => format!("was ended by signal {signal}"),
            CommandExit::TimedOut => {
                format!(
                    "took more than {} s and was stopped",
                    self.timeout.as_secs()
                )
            }
            CommandExit::Stopped => "was stopped".to_owned(),
        };
        format!("{text}\n[`{line}` {end}]").trim_start().to_owned()
    }
}
