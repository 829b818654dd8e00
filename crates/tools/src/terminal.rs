//! `terminal`: runs a shell command and waits for it, or starts it in the background.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::command_policy::LINE_BYTES_MAX;
use hermes_core::{
    Action, BeyondFence, BoxFuture, Brief, Checkout, CommandExit, CommandOutput, CommandPlace,
    CommandPolicy, Consent, Effect, Example, Exposure, FenceArea, FenceSetting, Found,
    JudgedCommand, Need, NotifyOn, Parallel, Pass, Plan, PlanContext, Processes, Reader, Scripts,
    SessionId, ShellCommand, Subagents, Surfaces, Terminal, Tool, ToolContext, ToolError,
    ToolGroup, ToolOutput, ToolSpec,
};
use hermes_os::paths;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BuiltIn, ToolFence, ToolLimits, ToolPorts, arguments};

const NAME: &str = "terminal";

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("terminal"),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::Without(&["background", "pty", "notify_on_complete", "watch_patterns"]),
    for_small_models: Some(Brief {
        description: "Run a bash command and see its output.",
        parameters: &["command"],
        example: Some(Example {
            question: "How many files are here?",
            arguments: r#"{"command": "ls | wc -l"}"#,
            result: "5",
            answer: "There are 5 files here.",
        }),
    }),
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(TerminalTool {
        spec: spec(&ports.limits, &ports.fence),
        terminal: Arc::clone(&ports.terminal),
        processes: Arc::clone(&ports.processes),
        limits: ports.limits.clone(),
        home: ports.home.clone(),
        is_here: ports.file_place.is_here(),
        commands: Arc::clone(&ports.commands),
        fence: ports.fence.clone(),
    })
}

fn spec(limits: &ToolLimits, fence: &ToolFence) -> ToolSpec {
    let mut spec = spec_without_fence(limits);
    if matches!(fence, ToolFence::Held(_)) {
        spec.parameters["properties"]["outside_fence"] = json!({
            "type": "boolean",
            "description": "Run it outside the fence around the project, in a new shell: the user is asked first; say why",
        });
    }
    spec
}

fn spec_without_fence(limits: &ToolLimits) -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Run a bash command and wait for it to end. Returns its output, errors included, and its exit \
                      code. Folder, variables, functions and aliases carry over to the next call. There is no keyboard: \
                      use flags such as `-y`. Very long output loses its middle."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "What to run"},
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!(
                        "Seconds after which it is killed (default {}, at most {})",
                        limits.command_timeout.as_secs(),
                        limits.command_timeout_max.as_secs()
                    ),
                },
                "workdir": {"type": "string", "description": "Folder to run in, for this call only"},
                "pty": {"type": "boolean", "description": "Give it a terminal of its own"},
                "background": {
                    "type": "boolean",
                    "description": "Start it and return at once with an id for `process`: servers, long builds",
                },
                "notify_on_complete": {
                    "type": "boolean",
                    "description": "In the background: be told when it ends",
                },
                "watch_patterns": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "In the background: be told of lines that contain one of these",
                },
            },
            "required": ["command"],
        }),
    }
}

struct TerminalTool {
    spec: ToolSpec,
    terminal: Arc<dyn Terminal>,
    processes: Arc<dyn Processes>,
    limits: ToolLimits,
    home: Option<PathBuf>,
    /// Whether commands run on this machine, whose home and folder we know.
    is_here: bool,
    commands: Arc<dyn CommandPolicy>,
    fence: ToolFence,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
    workdir: Option<String>,
    #[serde(default)]
    pty: bool,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    notify_on_complete: bool,
    #[serde(default)]
    watch_patterns: Vec<String>,
    /// `outside_fence`, which only models know that are told of it.
    #[serde(skip)]
    leaves_fence: bool,
}

impl Tool for TerminalTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let read = match self.read(arguments) {
            Ok(read) => read,
            // What cannot run changes nothing, and says why.
            Err(error) => {
                return Plan::doing(Effect::Read, Parallel::Never, |_| {
                    Box::pin(async { Err(error) })
                });
            }
        };
        let place = Place::of(&self, &read, cx);
        let judged = self.judge(&read, &place, cx);
        let (effect, parallel) = if judged.is_read_only && !read.background {
            // A command may look anywhere, so no file may change meanwhile.
            (Effect::Read, Parallel::Reads(vec![PathBuf::from("/")]))
        } else {
            (Effect::Effect, Parallel::Never)
        };
        let touched = read.workdir.as_deref();
        let touched = touched.map(|folder| paths::absolute(folder, cx.cwd, self.home.as_deref()));
        let touched: Vec<PathBuf> = touched.into_iter().collect();
        // Whatever is not known to change nothing may change what is around it. Other machines are out of reach.
        let changed = place.here.filter(|_| effect != Effect::Read);
        let changes = changed.map(|folder| touched.first().cloned().unwrap_or(folder));
        let call = CommandCall {
            tool: Arc::clone(&self),
            arguments: read,
            last_program: judged.last_program,
            checkout: judged.checkout,
        };
        Plan {
            consent: judged.consent,
            touched,
            changes: changes.into_iter().collect(),
            ..Plan::new(effect, parallel, call)
        }
    }

    fn close_session(&self, session: &SessionId) {
        self.terminal.close_session(session);
    }
}

/// Where a command would run.
struct Place {
    /// The folder of the session's shell, where that is on this machine.
    here: Option<PathBuf>,
    /// The folder of this command, where that is known: the home as `~`.
    shown: Option<String>,
    /// The same as a path, if the command runs on this machine.
    path: PathBuf,
}

impl Place {
    fn of(tool: &TerminalTool, arguments: &Arguments, cx: PlanContext<'_>) -> Self {
        let home = tool.home.as_deref();
        let here = tool.terminal.folder_here(cx.session, cx.cwd);
        let workdir = arguments.workdir.as_deref();
        let folder = match workdir {
            Some(workdir) => Some(paths::absolute(workdir, cx.cwd, home)),
            None => here.clone(),
        };
        let shown = if tool.is_here {
            folder.as_ref().map(|folder| {
                let in_home = home.and_then(|home| folder.strip_prefix(home).ok());
                let in_home = in_home.map(|inside| Path::new("~").join(inside));
                let shown = in_home.as_ref().unwrap_or(folder);
                shown.to_string_lossy().into_owned()
            })
        } else {
            workdir.map(str::to_owned)
        };
        Self {
            here,
            shown,
            path: folder.unwrap_or_else(|| cx.cwd.to_owned()),
        }
    }
}

/// What was found out about a command before it runs.
struct Judged {
    consent: Consent,
    is_read_only: bool,
    last_program: Option<String>,
    checkout: Checkout,
}

/// One call: its arguments, and what the reading of its line found.
struct CommandCall {
    tool: Arc<TerminalTool>,
    arguments: Arguments,
    /// Whose exit code the line returns.
    last_program: Option<String>,
    /// Which guarded files git may change by itself.
    checkout: Checkout,
}

impl Action for CommandCall {
    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.tool.run_command(&self, cx).await })
    }
}

impl TerminalTool {
    /// Reads the arguments of a command that could run.
    fn read(&self, arguments: &Value) -> Result<Arguments, ToolError> {
        let mut read: Arguments = arguments::parse(NAME, arguments)?;
        read.leaves_fence = arguments["outside_fence"] == true;
        let longest = self.limits.command_timeout_max;
        check(&read, longest).map_err(ToolError::Answer)?;
        Ok(read)
    }

    /// Where a line runs decides what `rm -rf *` is.
    fn judge(&self, arguments: &Arguments, place: &Place, cx: PlanContext<'_>) -> Judged {
        let PlanContext { session, cwd, .. } = cx;
        let area = match &self.fence {
            ToolFence::Held(fencing) | ToolFence::Missing { rules: fencing, .. } => {
                Some(fencing.area(cwd))
            }
            ToolFence::Off => None,
        };
        let fence = area.as_ref().map(|area| FenceSetting {
            area,
            home: self.home.as_deref(),
            folder: &place.path,
        });
        let shown = place.shown.as_deref();
        let named = shown.filter(|folder| folder.starts_with('/'));
        let named = named
            .map(Path::new)
            .or(area.as_ref().map(|_| place.path.as_path()));
        let workdir = arguments.workdir.as_deref();
        let beside = workdir.map_or_else(|| cwd.to_owned(), |workdir| cwd.join(workdir));
        let JudgedCommand {
            consent,
            is_read_only,
            programs,
            depends_on_words,
            is_allowed,
            mut beyond,
            last_program,
        } = self.commands.judge(
            &arguments.command,
            CommandPlace {
                folder: shown,
                allowed_in: named.unwrap_or(&beside),
                fence,
            },
        );
        let area = area.unwrap_or_default();
        // What surely changes nothing does so only when its programs are what they are called.
        let is_read_only = is_read_only
            && programs.is_some_and(|programs| self.are_themselves(&programs, session, &area));
        let mut checkout = Checkout::Nothing;
        let mut consent = match &self.fence {
            ToolFence::Off => consent,
            ToolFence::Missing { why, .. } => {
                if depends_on_words {
                    // With other words it destroys, or shows what it should not.
                    beyond.patterns.truncate(1);
                }
                let is_free = beyond.only_looks && is_read_only && !arguments.background;
                asked_without_fence(consent, is_free, beyond.patterns, &place.path, why)
            }
            ToolFence::Held(_) => {
                checkout = beyond.checkout;
                if arguments.leaves_fence {
                    beyond.leave("runs outside the fence");
                }
                asked_to_leave(consent, beyond, &place.path)
            }
        };
        if let Consent::Needed(need) = &mut consent {
            need.is_allowed = is_allowed;
        }
        Judged {
            consent,
            is_read_only,
            last_program,
            checkout,
        }
    }

    /// Returns whether programs are those of the system: no function or alias of the session's shell has their name, and
    /// they lie where no command writes.
    fn are_themselves(&self, programs: &[String], session: &SessionId, area: &FenceArea) -> bool {
        programs.iter().all(|program| {
            let found = self.terminal.finds(session, program);
            found.is_none_or(|found| match found {
                Found::Shadowed => false,
                Found::Nothing => true,
                Found::File(path) => {
                    let target = path.canonicalize().unwrap_or_else(|_| path.clone());
                    path.is_absolute() && ![path, target].iter().any(|path| area.may_write(path))
                }
            })
        })
    }

    /// Says that the fence may be why a command failed, and what to do.
    fn fence_hint(&self, output: &CommandOutput, pass: &Pass, cwd: &Path) -> Option<String> {
        let ToolFence::Held(fencing) = &self.fence else {
            return None;
        };
        let has_failed = !matches!(output.exit, CommandExit::Code(0)) && !pass.outside;
        let is_refused = |text: &str| REFUSALS.iter().any(|words| text.contains(words));
        if !has_failed || !is_refused(&output.text) {
            return None;
        }
        let area = fencing.area(cwd);
        let writable = if area.is_project_writable() {
            format!("`{}`, temporary folders", area.project.display())
        } else {
            "temporary folders".to_owned()
        };
        Some(format!(
            "[the fence may be why: commands write in {writable} and caches of tools, and read no keys or logins. If it has \
             to go beyond, run it again with `outside_fence: true`: the user is asked]"
        ))
    }

    async fn run_command(
        &self,
        call: &CommandCall,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let command = self.command(call, cx);
        let (timeout, pass) = (command.timeout, command.pass.clone());
        if cx.stop.is_cancelled() {
            return Err(ToolError::Stopped(
                "stopped before the command was started".to_owned(),
            ));
        }
        if call.arguments.background {
            return self.start(command, &call.arguments).await;
        }
        match self.terminal.run(command).await {
            Ok(output) if cx.reader == Reader::Program && output.exit == CommandExit::Code(0) => {
                Ok(ToolOutput::text(output.text))
            }
            Ok(mut output) => {
                output.text = with_notices(&output.text, &self.terminal.notices());
                if let Some(hint) = self.fence_hint(&output, &pass, &cx.cwd) {
                    output.text = format!("{}\n{hint}", output.text.trim_end());
                }
                present(call.last_program.as_deref(), timeout, &output)
            }
            Err(error) => Err(ToolError::Answer(error.to_string())),
        }
    }

    async fn start(
        &self,
        command: ShellCommand,
        arguments: &Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let notify_on = NotifyOn {
            tell_end: arguments.notify_on_complete,
            watch_for: arguments.watch_patterns.clone(),
        };
        let started = self.processes.start(command, notify_on).await;
        let status = started.map_err(|error| ToolError::Answer(error.to_string()))?;
        Ok(ToolOutput::text(format!(
            "[started in the background as {}; `process` looks at it, waits for it, types into it and ends it. It ends \
             with this session]",
            status.id
        )))
    }

    fn command(&self, call: &CommandCall, cx: &ToolContext) -> ShellCommand {
        let arguments = &call.arguments;
        let workdir = arguments.workdir.as_deref();
        let usual = self.limits.command_timeout;
        // What was agreed to, and what git checks out by itself.
        let mut pass = cx.agreement.pass.clone();
        pass.checkout = call.checkout;
        ShellCommand {
            session: cx.session.clone(),
            line: arguments.command.clone(),
            cwd: cx.cwd.clone(),
            workdir: workdir.map(|folder| {
                if self.is_here {
                    paths::joined(folder, &cx.cwd, self.home.as_deref())
                } else {
                    PathBuf::from(folder)
                }
            }),
            stdin: Vec::new(),
            pty: arguments.pty,
            timeout: arguments
                .timeout()
                .unwrap_or(usual.min(self.limits.command_timeout_max)),
            output_bytes_max: self.limits.output_bytes_max,
            pass,
            mark: None,
            stop: cx.stop.clone(),
            progress: cx.progress.clone(),
        }
    }
}

impl Arguments {
    fn timeout(&self) -> Option<Duration> {
        let seconds = self.timeout?;
        Some(Duration::from_secs(seconds.max(1)))
    }
}

fn check(arguments: &Arguments, longest: Duration) -> Result<(), String> {
    let line = &arguments.command;
    if line.trim().is_empty() {
        return Err("`command` is empty; say what to run".to_owned());
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(format!(
            "`command` has {} bytes, more than the {LINE_BYTES_MAX} allowed; write a script with `write_file` and run that",
            line.len()
        ));
    }
    if line.contains('\0') {
        return Err("`command` contains a NUL character, which no shell accepts".to_owned());
    }
    if arguments.timeout().is_some_and(|timeout| timeout > longest) {
        return Err(format!(
            "`timeout` is at most {} seconds; start longer work with `background: true`",
            longest.as_secs()
        ));
    }
    Ok(())
}

/// Where nothing fences commands in, whatever is not known to look only is asked about.
fn asked_without_fence(
    judged: Consent,
    is_free: bool,
    patterns: Vec<String>,
    folder: &Path,
    why: &str,
) -> Consent {
    let mut need = match judged {
        Consent::NotNeeded if !is_free => Need {
            patterns,
            ..Need::because(format!(
                "may change something or show what is kept from commands, and no fence holds it ({why})"
            ))
        },
        Consent::Needed(need) => need,
        decided => return decided,
    };
    need.folder = need.folder.or_else(|| Some(folder.to_owned()));
    Consent::Needed(need)
}

/// How programs say that they were not allowed something.
const REFUSALS: &[&str] = &[
    "Permission denied",
    "permission denied",
    "Operation not permitted",
    "operation not permitted",
    "Read-only file system",
    "EACCES",
    "EPERM",
    "EROFS",
    "PermissionError",
    "outside-the-fence",
];

/// Leaving the fence is asked about together with what the line does.
fn asked_to_leave(judged: Consent, beyond: BeyondFence, folder: &Path) -> Consent {
    let mut need = match judged {
        Consent::NotNeeded => Need::default(),
        Consent::Needed(need) => need,
        decided @ (Consent::Review(_) | Consent::Forbidden { .. }) => return decided,
    };
    if beyond.is_empty() && need.reason.is_empty() {
        return Consent::NotNeeded;
    }
    let reasons = [need.reason].into_iter().chain(beyond.reasons);
    let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    need.reason = reasons.join(", and ");
    if need.patterns.is_empty() && !beyond.pass.is_inside() {
        need.patterns = beyond.patterns;
    }
    need.folder = need.folder.or_else(|| Some(folder.to_owned()));
    need.pass = beyond.pass;
    Consent::Needed(need)
}

/// Puts what the command printed and how it ended into words. `program` is the one whose exit code it is.
fn present(
    program: Option<&str>,
    timeout: Duration,
    output: &CommandOutput,
) -> Result<ToolOutput, ToolError> {
    let seconds = output.elapsed.as_secs_f64();
    match output.exit {
        CommandExit::Code(code) => {
            let meaning = program.and_then(|program| Meaning::of(program, code));
            let explained = meaning.map_or(String::new(), |meaning| format!(": {}", meaning.text));
            let text = with_note(
                output,
                &format!("[exit code {code}{explained}, {seconds:.1} s]"),
            );
            if code == 0 || meaning.is_some_and(|meaning| meaning.is_normal) {
                Ok(ToolOutput::text(text))
            } else {
                Err(ToolError::Answer(text))
            }
        }
        CommandExit::Signal(signal) => Err(ToolError::Answer(with_note(
            output,
            &format!(
                "[killed by signal {signal}{}, {seconds:.1} s; the shell is as it was before]",
                signal_name(signal)
            ),
        ))),
        CommandExit::TimedOut => Err(ToolError::Answer(with_note(
            output,
            &format!(
                "[killed after its {} s were over; it may have done part of its work, and the shell is as it was before. Give a longer `timeout`, do less \
                 at once, or run it with `background: true`]",
                timeout.as_secs()
            ),
        ))),
        CommandExit::Stopped => Err(ToolError::Stopped(with_note(
            output,
            &format!(
                "[stopped by the user after {seconds:.1} s and killed; it may have done part of its work, and the shell is as it was before]"
            ),
        ))),
    }
}

/// Puts what the place has to say before what the command printed.
fn with_notices(text: &str, notices: &[String]) -> String {
    let lines: String = notices
        .iter()
        .map(|notice| format!("[{notice}]\n"))
        .collect();
    lines + text
}

fn with_note(output: &CommandOutput, note: &str) -> String {
    match output.text.trim_end() {
        "" => note.to_owned(),
        text => format!("{text}\n{note}"),
    }
}

/// What an exit code means for the program that gave it.
#[derive(Clone, Copy)]
struct Meaning {
    text: &'static str,
    /// The program did its work; the code is its answer.
    is_normal: bool,
}

impl Meaning {
    fn of(program: &str, code: i32) -> Option<Self> {
        let normal = |text| {
            Some(Self {
                text,
                is_normal: true,
            })
        };
        let failure = |text| {
            Some(Self {
                text,
                is_normal: false,
            })
        };
        match (program, code) {
            ("grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack", 1) => normal("nothing matched"),
            ("diff" | "cmp", 1) => normal("the files differ"),
            ("test" | "[" | "[[", 1) => normal("the condition is false"),
            ("find", 1) => failure("some folders could not be read"),
            ("curl", 6) => failure("the host name was not found"),
            ("curl", 7) => failure("the connection was refused"),
            ("curl", 22) => failure("the server answered with an error"),
            ("curl", 28) => failure("the request took too long"),
            (_, 126) => failure("the program may not be executed"),
            (_, 127) => failure("no such program"),
            (_, 137) => failure("something in it was killed, perhaps for want of memory"),
            _ => None,
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        6 => " (it aborted)",
        9 => " (killed, perhaps for want of memory)",
        11 => " (it crashed)",
        13 => " (its reader closed the pipe)",
        15 => " (it was asked to end)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, exit: CommandExit) -> CommandOutput {
        CommandOutput {
            text: text.to_owned(),
            omitted_bytes: 0,
            exit,
            elapsed: Duration::from_millis(1240),
        }
    }

    #[test]
    fn what_the_place_has_to_say_stands_before_the_output() {
        let notices = ["no `tar` there".to_owned()];
        assert_eq!(with_notices("out\n", &notices), "[no `tar` there]\nout\n");
        assert_eq!(with_notices("out\n", &[]), "out\n");
    }

    /// Shows a result as `ok`, `answer` or `stopped` and its text.
    fn shown(line: &str, text: &str, exit: CommandExit) -> (&'static str, String) {
        let place = CommandPlace {
            folder: None,
            allowed_in: Path::new("/"),
            fence: None,
        };
        let program = hermes_policy::CommandLists::default()
            .judge(line, place)
            .last_program;
        match present(
            program.as_deref(),
            Duration::from_secs(180),
            &output(text, exit),
        ) {
            Ok(output) => ("ok", output.text),
            Err(ToolError::Answer(text)) => ("answer", text),
            Err(ToolError::Stopped(text)) => ("stopped", text),
            Err(ToolError::OutcomeUnknown(text)) => ("unknown", text),
        }
    }

    #[test]
    fn the_exit_code_follows_the_output() {
        let (kind, text) = shown("ls", "a\nb\n", CommandExit::Code(0));
        assert_eq!((kind, text.as_str()), ("ok", "a\nb\n[exit code 0, 1.2 s]"));
        let (kind, text) = shown("true", "", CommandExit::Code(0));
        assert_eq!((kind, text.as_str()), ("ok", "[exit code 0, 1.2 s]"));
    }

    #[test]
    fn a_failure_is_an_answer_with_the_output_inside() {
        let (kind, text) = shown("make", "error: x\n", CommandExit::Code(2));
        assert_eq!(
            (kind, text.as_str()),
            ("answer", "error: x\n[exit code 2, 1.2 s]")
        );
    }

    #[test]
    fn a_code_that_is_an_answer_is_no_failure() {
        let (kind, text) = shown("cat a | grep b", "", CommandExit::Code(1));
        assert_eq!(
            (kind, text.as_str()),
            ("ok", "[exit code 1: nothing matched, 1.2 s]")
        );
        assert_eq!(
            shown("grep b a; ls x", "", CommandExit::Code(1)).0,
            "answer"
        );
    }

    #[test]
    fn an_end_by_force_says_what_to_do() {
        let (kind, text) = shown("sleep 999", "x", CommandExit::TimedOut);
        assert_eq!(kind, "answer");
        assert!(text.starts_with("x\n[killed after its 180 s"), "{text}");
        assert_eq!(shown("x", "", CommandExit::Stopped).0, "stopped");
        assert!(
            shown("x", "", CommandExit::Signal(11))
                .1
                .contains("crashed")
        );
    }
}
