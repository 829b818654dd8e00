//! `process`: looks after what `terminal` started in the background.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::text::{shorten, tail};
use hermes_core::{
    CommandPolicy, Consent, Effect, Exposure, Need, Parallel, Plan, PlanContext, ProcessError,
    ProcessName, ProcessState, ProcessStatus, Processes, Scripts, SessionId, Subagents, Surfaces,
    Tool, ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::typed::{TypedLines, is_interrupt};
use crate::{BuiltIn, ToolPorts, arguments};

const NAME: &str = "process";

/// What `poll` shows of the output.
const POLL_BYTES: usize = 1000;

/// What `wait` and `kill` show of the output.
const END_BYTES: usize = 2000;

/// What `log` reads; its lines are counted from here.
const LOG_BYTES: usize = 200_000;

/// Lines `log` shows unless it is told how many.
const LOG_LINES: usize = 200;

/// Characters of a command and of its output in a list.
const LIST_CHARS: usize = 200;

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("terminal"),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::No,
    for_small_models: None,
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(ProcessTool {
        spec: spec(ports.limits.command_timeout),
        processes: Arc::clone(&ports.processes),
        wait_max: ports.limits.command_timeout,
        commands: Arc::clone(&ports.commands),
        typed: TypedLines::default(),
    })
}

fn spec(wait_max: Duration) -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Look after processes that `terminal` started in the background.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["list", "poll", "log", "wait", "kill", "write", "submit", "close"],
                    "description": "poll: state and last output; log: output by lines; wait: until it ends; write: type \
                                    `data`; submit: type `data` and Enter; close: end its input",
                },
                "session_id": {"type": "string", "description": "Id of the process; not for list"},
                "data": {"type": "string", "description": "What to type"},
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!("Seconds to wait (at most {})", wait_max.as_secs()),
                },
                "offset": {"type": "integer", "minimum": 0, "description": "log: lines to skip; default: show the last"},
                "limit": {"type": "integer", "minimum": 1, "description": "log: lines to show (default 200)"},
            },
            "required": ["action"],
        }),
    }
}

struct ProcessTool {
    spec: ToolSpec,
    processes: Arc<dyn Processes>,
    wait_max: Duration,
    commands: Arc<dyn CommandPolicy>,
    typed: TypedLines,
}

#[derive(Deserialize)]
struct Arguments {
    action: Action,
    session_id: Option<String>,
    data: Option<String>,
    timeout: Option<u64>,
    offset: Option<usize>,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Poll,
    Log,
    Wait,
    Kill,
    Write,
    Submit,
    Close,
}

impl Tool for ProcessTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let arguments = arguments::parse(NAME, arguments);
        let effect = arguments.as_ref().map_or(Effect::Read, Arguments::effect);
        let parallel = match effect {
            Effect::Read => Parallel::Always,
            Effect::Idempotent | Effect::Effect => Parallel::Never,
        };
        let consent = match &arguments {
            Ok(arguments) => self.consent(arguments, cx.session),
            Err(_) => Consent::NotNeeded,
        };
        let plan = Plan::doing(effect, parallel, move |cx| {
            Box::pin(async move { self.act(arguments?, cx).await })
        });
        Plan { consent, ..plan }
    }
}

impl Arguments {
    fn effect(&self) -> Effect {
        match self.action {
            Action::List | Action::Poll | Action::Log | Action::Wait => Effect::Read,
            Action::Kill | Action::Close => Effect::Idempotent,
            Action::Write | Action::Submit => Effect::Effect,
        }
    }
}

impl ProcessTool {
    /// What is typed may be a command to a shell, so it is judged like one, with what was typed before it in the line.
    fn consent(&self, arguments: &Arguments, session: &SessionId) -> Consent {
        let (Action::Write | Action::Submit, Some(data)) = (arguments.action, &arguments.data)
        else {
            return Consent::NotNeeded;
        };
        if is_interrupt(data) {
            return Consent::NotNeeded;
        }
        let id = arguments.session_id.as_deref().unwrap_or_default();
        let process = ProcessName { session, id };
        let line = self.typed.with(process, data);
        let raw = self.typed.raw_with(process, data);
        match self.commands.consent_for_typed(&line, &raw) {
            // The person is shown the whole line, not its last piece, and who would read it.
            Consent::Needed(need) => Consent::Needed(Need {
                what: Some(format!("typed into {id}: {line}")),
                ..need
            }),
            consent => consent,
        }
    }

    async fn act(&self, arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let done = tokio::select! {
            biased;
            // `wait` hears of a stop itself, and says what it saw.
            () = cx.stop.cancelled(), if arguments.action != Action::Wait => {
                return Err(ToolError::Stopped("stopped".to_owned()));
            }
            done = self.answer(&arguments, cx) => done,
        };
        done.map(ToolOutput::text).map_err(ToolError::Answer)
    }

    async fn answer(&self, arguments: &Arguments, cx: &ToolContext) -> Result<String, String> {
        if arguments.action == Action::List {
            let listed = self.processes.list(&cx.session).await;
            return Ok(list(&listed.map_err(|error| error.to_string())?));
        }
        let id = arguments.session_id.as_deref();
        let id = id.ok_or("`session_id` is missing; `list` shows the processes there are")?;
        let process = ProcessName {
            session: &cx.session,
            id,
        };
        let typed = || {
            arguments
                .data
                .clone()
                .ok_or("`data` is missing: what to type")
        };
        let done = match arguments.action {
            Action::List | Action::Poll => self.poll(process).await,
            Action::Log => self.log(process, arguments).await,
            Action::Wait => self.wait(process, arguments.timeout, cx).await,
            Action::Kill => {
                let killed = self.processes.kill(process).await;
                killed.map(|status| shown(&status, END_BYTES))
            }
            Action::Write => self.write(process, typed()?).await,
            Action::Submit => self.write(process, typed()? + "\n").await,
            Action::Close => {
                let closed = self.processes.close(process).await;
                closed.map(|()| format!("[the input of {id} is closed]"))
            }
        };
        done.map_err(|error| error.to_string())
    }

    async fn poll(&self, process: ProcessName<'_>) -> Result<String, ProcessError> {
        let status = self.processes.look(process, POLL_BYTES).await?;
        Ok(shown(&status, POLL_BYTES))
    }

    async fn log(
        &self,
        process: ProcessName<'_>,
        arguments: &Arguments,
    ) -> Result<String, ProcessError> {
        let status = self.processes.look(process, LOG_BYTES).await?;
        let lines: Vec<&str> = status.tail.lines().collect();
        let limit = arguments.limit.unwrap_or(LOG_LINES);
        let first = match arguments.offset.unwrap_or(0) {
            0 => lines.len().saturating_sub(limit),
            offset => offset.min(lines.len()),
        };
        let end = first.saturating_add(limit).min(lines.len());
        let place = if first < end {
            format!("lines {} to {end} of {}", first + 1, lines.len())
        } else {
            format!("no lines there; it has {}", lines.len())
        };
        let note = format!("[{}, {place}]", summary(&status));
        let text = [&lines[first..end], &[note.as_str()]].concat().join("\n");
        Ok(text)
    }

    async fn wait(
        &self,
        process: ProcessName<'_>,
        timeout: Option<u64>,
        cx: &ToolContext,
    ) -> Result<String, ProcessError> {
        let asked = timeout.map_or(self.wait_max, |seconds| Duration::from_secs(seconds.max(1)));
        let waiting = asked.min(self.wait_max);
        let waited = self.processes.wait(process, waiting, cx.stop.clone());
        let status = waited.await?;
        let text = shown(&status, END_BYTES);
        Ok(match status.state {
            ProcessState::Running if cx.stop.is_cancelled() => {
                format!("{text}\n[the wait was interrupted]")
            }
            ProcessState::Running => {
                format!(
                    "{text}\n[still running after {} s of waiting]",
                    waiting.as_secs()
                )
            }
            _ => text,
        })
    }

    async fn write(&self, process: ProcessName<'_>, data: String) -> Result<String, ProcessError> {
        let bytes = data.len();
        // Only lines that a process reads are remembered: made-up names must not push them out.
        self.processes.look(process, 0).await?;
        self.typed.add(process, &data);
        self.processes.write(process, data.into_bytes()).await?;
        Ok(format!("[typed {bytes} bytes into {}]", process.id))
    }
}

fn list(processes: &[ProcessStatus]) -> String {
    if processes.is_empty() {
        return "[no background processes in this session]".to_owned();
    }
    let line = |status: &ProcessStatus| {
        let last = status.tail.lines().last().unwrap_or_default();
        let command = shorten(&status.line, LIST_CHARS);
        format!(
            "{}: `{command}` {}",
            summary(status),
            shorten(last, LIST_CHARS)
        )
    };
    let lines: Vec<String> = processes.iter().map(line).collect();
    lines.join("\n")
}

fn shown(status: &ProcessStatus, bytes: usize) -> String {
    let note = format!("[{}]", summary(status));
    match tail(status.tail.trim_end(), bytes) {
        "" => note,
        output => format!("{output}\n{note}"),
    }
}

fn summary(status: &ProcessStatus) -> String {
    let state = match status.state {
        ProcessState::Running => format!("is running for {} s", status.uptime.as_secs()),
        ProcessState::Exited(code) => format!("ended with exit code {code}"),
        ProcessState::Killed => "was killed".to_owned(),
        ProcessState::Lost => "is gone, and nobody saw how it ended".to_owned(),
    };
    match status.pid {
        Some(pid) => format!("{} {state}, pid {pid}", status.id),
        None => format!("{} {state}", status.id),
    }
}
