//! `execute_code`: runs a Python script that calls tools, so that many steps cost one.
//!
//! The script runs where commands run, through the [`Terminal`], with what that gives: the folder and variables of the
//! session's shell, no secrets, an end with everything it started. It calls back over a `socket` on this machine, or
//! through `files` on another; either way the `rpc` decides what becomes of a call. `module` writes the Python it imports.

mod files;
mod module;
mod rpc;
mod socket;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    CommandExit, CommandOutput, CommandPolicy, Consent, Effect, Exposure, Parallel, Plan,
    PlanContext, Scripts, ShellCommand, Subagents, Surfaces, Terminal, TerminalError, Tool,
    ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BUILT_IN, BuiltIn, ToolFence, ToolPorts, arguments};
use rpc::ToolRpc;

const NAME: &str = "execute_code";

/// Longer programs belong in files.
const CODE_BYTES_MAX: usize = 256 * 1024;

/// The loop gives up on any call after fifteen minutes.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// How scripts are run: `code_execution.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSettings {
    pub place: CodePlace,
    pub mode: CodeMode,
    /// For the whole script, its calls included; at most ten minutes.
    pub timeout: Duration,
    pub calls_max: usize,
}

/// Where the terminal runs commands, and so how a script reaches us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodePlace {
    /// On this machine, over a socket in this folder.
    Here { sockets: PathBuf },
    /// On another, or in a container: through files there.
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeMode {
    /// In the folder of the session's shell, with the packages of its Python.
    Project,
    /// In an empty folder that is removed afterwards, with the standard library alone.
    Strict,
}

impl CodeSettings {
    pub fn at(place: CodePlace) -> Self {
        Self {
            place,
            mode: CodeMode::Project,
            timeout: Duration::from_secs(300),
            calls_max: 50,
        }
    }
}

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("code_execution"),
    surfaces: Surfaces::Every,
    subagents: Subagents::None,
    scripts: Scripts::No,
    for_small_models: None,
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(ExecuteCode {
        spec: spec(&ports.code),
        terminal: Arc::clone(&ports.terminal),
        settings: ports.code.clone(),
        commands: Arc::clone(&ports.commands),
        output_bytes_max: ports.limits.output_bytes_max,
        fence: ports.fence.clone(),
    })
}

/// The built-in tools a script may call, as far as the session has them.
fn callable() -> Vec<&'static str> {
    let is_callable = |tool: &&BuiltIn| tool.exposure.scripts.withheld().is_some();
    let tools = BUILT_IN.iter().filter(is_callable);
    tools.map(|tool| tool.name).collect()
}

fn spec(settings: &CodeSettings) -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: format!(
            "Run a Python 3 script that calls tools, for work of many steps: loops, filters, decisions between calls. \
             You see only what it prints. `from hermes_tools import {}` (those you have), with the parameters they \
             have here; each returns its result as text (`read_file` without line numbers, `terminal` only the \
             output) and raises ToolError. Also there: json_parse(text), shell_quote(text), retry(fn, max_attempts=3, \
             delay=2). At most {} s and {} calls. For commands call `terminal` rather than subprocess.",
            callable().join(", "),
            settings.timeout.as_secs(),
            settings.calls_max,
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The script; print what you want to know"},
            },
            "required": ["code"],
        }),
    }
}

struct ExecuteCode {
    spec: ToolSpec,
    terminal: Arc<dyn Terminal>,
    settings: CodeSettings,
    commands: Arc<dyn CommandPolicy>,
    output_bytes_max: usize,
    fence: ToolFence,
}

#[derive(Deserialize)]
struct Arguments {
    code: String,
}

impl Tool for ExecuteCode {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let code = arguments::parse(NAME, arguments).and_then(|Arguments { code }| {
            check(&code).map_err(ToolError::Answer)?;
            Ok(code)
        });
        let consent = code
            .as_ref()
            .map_or(Consent::NotNeeded, |code| self.consent(code));
        let changes = self.terminal.folder_here(cx.session, cx.cwd);
        let plan = Plan::doing(Effect::Effect, Parallel::Never, move |cx| {
            Box::pin(async move { self.execute(&code?, cx).await })
        });
        Plan {
            consent,
            changes: changes.into_iter().collect(),
            ..plan
        }
    }
}

impl ExecuteCode {
    fn consent(&self, code: &str) -> Consent {
        match &self.fence {
            // Whatever the script is, it stays inside.
            ToolFence::Held(_) => Consent::NotNeeded,
            ToolFence::Missing { why, .. } => match self.commands.consent_for_script(code) {
                Consent::NotNeeded => {
                    Consent::needed(format!("runs a script, and no fence holds it ({why})"))
                }
                judged => judged,
            },
            ToolFence::Off => self.commands.consent_for_script(code),
        }
    }

    async fn execute(&self, code: &str, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if cx.stop.is_cancelled() {
            return Err(ToolError::Stopped(
                "stopped before the script was started".to_owned(),
            ));
        }
        let rpc = ToolRpc::open(cx.toolbox.clone(), self.settings.calls_max).await?;
        let output = match &self.settings.place {
            CodePlace::Here { sockets } => self.run_here(code, sockets, &rpc, cx).await?,
            CodePlace::Elsewhere => self.run_elsewhere(code, &rpc, cx).await,
        };
        match output {
            Ok(output) => self.present(&output, &rpc),
            Err(error @ TerminalError::Lost { .. }) => {
                Err(ToolError::OutcomeUnknown(error.to_string()))
            }
            Err(error) => Err(ToolError::Answer(error.to_string())),
        }
    }

    async fn run_here(
        &self,
        code: &str,
        sockets: &Path,
        rpc: &ToolRpc,
        cx: &ToolContext,
    ) -> Result<Result<CommandOutput, TerminalError>, ToolError> {
        let socket = socket::Socket::bind(sockets).await;
        let socket = socket.map_err(ToolError::Answer)?;
        let command = self.command(code, json!({"socket": socket.path()}), rpc, cx);
        tokio::select! {
            output = self.terminal.run(command) => Ok(output),
            never = socket.serve(rpc) => match never {},
        }
    }

    async fn run_elsewhere(
        &self,
        code: &str,
        rpc: &ToolRpc,
        cx: &ToolContext,
    ) -> Result<CommandOutput, TerminalError> {
        let folder = files::Folder::named_after(rpc);
        let command = self.command(code, json!({"folder": folder.path()}), rpc, cx);
        tokio::select! {
            output = self.terminal.run(command) => output,
            never = folder.serve(rpc, &*self.terminal, cx) => match never {},
        }
    }

    fn command(
        &self,
        code: &str,
        way_back: Value,
        rpc: &ToolRpc,
        cx: &ToolContext,
    ) -> ShellCommand {
        let run = json!({
            "start": module::START,
            "module": module::text(rpc.tools()),
            "code": code,
            "way_back": way_back,
            "token": rpc.token(),
            "strict": self.settings.mode == CodeMode::Strict,
        });
        ShellCommand {
            session: cx.session.clone(),
            line: module::line(rpc.mark(), self.settings.mode),
            cwd: cx.cwd.clone(),
            workdir: None,
            stdin: run.to_string().into_bytes(),
            pty: false,
            timeout: self.settings.timeout.min(TIMEOUT_MAX),
            output_bytes_max: self.output_bytes_max,
            pass: cx.agreement.pass.clone(),
            mark: None,
            stop: cx.stop.clone(),
            progress: cx.progress.clone(),
        }
    }

    /// Puts what the script printed and how it ended into words.
    fn present(&self, output: &CommandOutput, rpc: &ToolRpc) -> Result<ToolOutput, ToolError> {
        if output.text.lines().any(|line| line == rpc.mark()) {
            return Err(ToolError::Answer(module::PYTHON_MISSING.to_owned()));
        }
        let mut text = output.text.trim_end().to_owned();
        for notice in self.terminal.notices() {
            let _ = write!(text, "\n[{notice}]");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let ended = match output.exit {
            CommandExit::Code(code) => format!("exit code {code}"),
            CommandExit::Signal(signal) => format!("killed by signal {signal}"),
            CommandExit::TimedOut => format!(
                "killed when its {} s were over; it may have done part of its work",
                self.settings.timeout.min(TIMEOUT_MAX).as_secs()
            ),
            CommandExit::Stopped => {
                "stopped by the user and killed; it may have done part of its work".to_owned()
            }
        };
        let (calls, seconds) = (rpc.calls(), output.elapsed.as_secs_f64());
        let s = if calls == 1 { "" } else { "s" };
        // Writing to a string cannot fail.
        let _ = write!(text, "[{ended}; {calls} tool call{s}, {seconds:.1} s]");
        match output.exit {
            CommandExit::Code(0) => Ok(ToolOutput::text(text)),
            CommandExit::Stopped => Err(ToolError::Stopped(text)),
            _ => Err(ToolError::Answer(text)),
        }
    }
}

fn check(code: &str) -> Result<(), String> {
    if code.trim().is_empty() {
        return Err("`code` is empty; write the script to run".to_owned());
    }
    if code.len() > CODE_BYTES_MAX {
        return Err(format!(
            "`code` has {} bytes, more than the {CODE_BYTES_MAX} allowed; put data into files and read them",
            code.len()
        ));
    }
    Ok(())
}
