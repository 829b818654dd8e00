//! `terminal`: runs a shell command and waits for it, or starts it in the background.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    BoxFuture, CommandExit, CommandOutput, Consent, Effect, FenceArea, Found, Need, NotifyOn,
    Parallel, Pass, Processes, Reader, SessionId, ShellCommand, Terminal, Tool, ToolContext,
    ToolError, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::policy::needs::{self, Needs, Setting};
use crate::policy::{self, CommandLists, LINE_BYTES_MAX, is_read_only};
use crate::{ToolFence, ToolLimits, ToolPorts, arguments, paths};

const NAME: &str = "terminal";

pub(crate) fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
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
    commands: Arc<CommandLists>,
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
}

impl Tool for TerminalTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, arguments: &Value) -> Effect {
        let runs_on = arguments["background"] == true;
        if arguments::text(arguments, "command").is_some_and(is_read_only) && !runs_on {
            Effect::Read
        } else {
            Effect::Effect
        }
    }

    /// What surely changes nothing does so only when its programs are what they are called.
    fn effect_in(&self, arguments: &Value, session: &SessionId, cwd: &Path) -> Effect {
        let programs = || {
            let line = arguments::text(arguments, "command")?;
            policy::programs_of(line)
        };
        let area = || match &self.fence {
            ToolFence::Held(fencing) | ToolFence::Missing { rules: fencing, .. } => {
                fencing.area(cwd)
            }
            ToolFence::Off => FenceArea::default(),
        };
        match self.effect(arguments) {
            Effect::Read
                if programs()
                    .is_some_and(|programs| self.are_themselves(&programs, session, &area())) =>
            {
                Effect::Read
            }
            _ => Effect::Effect,
        }
    }

    fn parallel(&self, arguments: &Value, _cwd: &Path) -> Parallel {
        match self.effect(arguments) {
            // A command may look anywhere, so no file may change meanwhile.
            Effect::Read => Parallel::Reads(vec![PathBuf::from("/")]),
            Effect::Idempotent | Effect::Effect => Parallel::Never,
        }
    }

    /// Where a line runs decides what `rm -rf *` is.
    fn consent(&self, arguments: &Value, session: &SessionId, cwd: &Path) -> Consent {
        let folder = self.folder_of(arguments, session, cwd);
        let Some(line) = arguments::text(arguments, "command") else {
            return Consent::NotNeeded;
        };
        let judged = self.commands.consent_in(folder.as_deref(), line);
        match &self.fence {
            ToolFence::Off => judged,
            ToolFence::Missing { why, rules } => {
                let (area, folder) = (rules.area(cwd), self.path_of(arguments, session, cwd));
                let setting = Setting {
                    area: &area,
                    home: self.home.as_deref(),
                    folder: &folder,
                };
                let looks = needs::only_looks(line, setting);
                let is_free = looks.is_some_and(|programs| {
                    arguments["background"] != true
                        && self.are_themselves(&programs, session, &area)
                });
                let mut patterns = needs::patterns(line, setting);
                if policy::programs_of(line)
                    .is_none_or(|programs| programs.iter().any(|name| policy::is_judged(name)))
                {
                    // With other words it destroys, or shows what it should not.
                    patterns.truncate(1);
                }
                match judged {
                    Consent::NotNeeded if !is_free => Consent::Needed(Need {
                        patterns,
                        folder: Some(folder.clone()),
                        ..Need::because(format!(
                            "may change something or show what is kept from commands, and no fence holds it ({why})"
                        ))
                    }),
                    judged => judged,
                }
            }
            ToolFence::Held(fencing) => {
                let (area, folder) = (fencing.area(cwd), self.path_of(arguments, session, cwd));
                let setting = Setting {
                    area: &area,
                    home: self.home.as_deref(),
                    folder: &folder,
                };
                let mut needs = Needs::of(line, setting);
                if arguments["outside_fence"] == true {
                    needs.leave();
                }
                asked_to_leave(judged, line, needs, setting)
            }
        }
    }

    fn touched(&self, arguments: &Value, cwd: &Path) -> Vec<PathBuf> {
        let workdir = arguments::text(arguments, "workdir");
        workdir
            .map(|workdir| paths::absolute(workdir, cwd, self.home.as_deref()))
            .into_iter()
            .collect()
    }

    /// Whatever is not known to change nothing may change what is around it. Other machines are out of reach.
    fn changes(&self, arguments: &Value, session: &SessionId, cwd: &Path) -> Vec<PathBuf> {
        let folder = self.terminal.folder_here(session, cwd);
        match self.effect(arguments) {
            Effect::Read => Vec::new(),
            Effect::Idempotent | Effect::Effect => folder
                .map(|folder| self.touched(arguments, cwd).pop().unwrap_or(folder))
                .into_iter()
                .collect(),
        }
    }

    fn run<'a>(
        &'a self,
        arguments: Value,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run_command(arguments, cx))
    }
}

impl TerminalTool {
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

    /// Returns the folder that a command would run in, where that is known: the home as `~`.
    fn folder_of(&self, arguments: &Value, session: &SessionId, cwd: &Path) -> Option<String> {
        let workdir = arguments::text(arguments, "workdir");
        if !self.is_here {
            return workdir.map(str::to_owned);
        }
        let home = self.home.as_deref();
        let folder = match workdir {
            Some(workdir) => paths::absolute(workdir, cwd, home),
            None => self.terminal.folder_here(session, cwd)?,
        };
        let in_home = home.and_then(|home| folder.strip_prefix(home).ok());
        let in_home = in_home.map(|inside| Path::new("~").join(inside));
        Some(in_home.unwrap_or(folder).to_string_lossy().into_owned())
    }

    /// The folder that a command on this machine would run in.
    fn path_of(&self, arguments: &Value, session: &SessionId, cwd: &Path) -> PathBuf {
        let folder = match arguments::text(arguments, "workdir") {
            Some(workdir) => Some(paths::absolute(workdir, cwd, self.home.as_deref())),
            None => self.terminal.folder_here(session, cwd),
        };
        folder.unwrap_or_else(|| cwd.to_owned())
    }

    /// What a command may do beyond the fence: what was agreed to, and what git checks out by itself.
    fn pass(&self, arguments: &Arguments, cx: &ToolContext) -> Pass {
        let mut pass = cx.agreement.pass.clone();
        if let ToolFence::Held(fencing) = &self.fence {
            let area = fencing.area(&cx.cwd);
            let workdir = json!({"workdir": arguments.workdir});
            let setting = Setting {
                area: &area,
                home: self.home.as_deref(),
                folder: &self.path_of(&workdir, &cx.session, &cx.cwd),
            };
            pass.checkout = needs::checked_out_by(&arguments.command, setting);
        }
        pass
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
        arguments: Value,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = arguments::parse(NAME, arguments)?;
        let command = self.command(&arguments, cx).map_err(ToolError::Answer)?;
        let (timeout, pass) = (command.timeout, command.pass.clone());
        if cx.stop.is_cancelled() {
            return Err(ToolError::Stopped(
                "stopped before the command was started".to_owned(),
            ));
        }
        if arguments.background {
            return self.start(command, &arguments).await;
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
                present(&arguments.command, timeout, &output)
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

    fn command(&self, arguments: &Arguments, cx: &ToolContext) -> Result<ShellCommand, String> {
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
        let timeout = arguments
            .timeout
            .map(|seconds| Duration::from_secs(seconds.max(1)));
        let longest = self.limits.command_timeout_max;
        if timeout.is_some_and(|timeout| timeout > longest) {
            return Err(format!(
                "`timeout` is at most {} seconds; start longer work with `background: true`",
                longest.as_secs()
            ));
        }
        let workdir = arguments.workdir.as_deref();
        Ok(ShellCommand {
            session: cx.session.clone(),
            line: line.clone(),
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
            timeout: timeout.unwrap_or(self.limits.command_timeout.min(longest)),
            output_bytes_max: self.limits.output_bytes_max,
            pass: self.pass(arguments, cx),
            mark: None,
            stop: cx.stop.clone(),
            progress: cx.progress.clone(),
        })
    }
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
fn asked_to_leave(judged: Consent, line: &str, needs: Needs, setting: Setting<'_>) -> Consent {
    let mut need = match judged {
        Consent::NotNeeded => Need::default(),
        Consent::Needed(need) => need,
        decided @ (Consent::Review(_) | Consent::Forbidden { .. }) => return decided,
    };
    if needs.is_empty() && need.reason.is_empty() {
        return Consent::NotNeeded;
    }
    let reasons = [need.reason].into_iter().chain(needs.reasons);
    let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    need.reason = reasons.join(", and ");
    if need.patterns.is_empty() && !needs.pass.is_inside() {
        need.patterns = needs::patterns(line, setting);
    }
    need.folder = need.folder.or_else(|| Some(setting.folder.to_owned()));
    need.pass = needs.pass;
    Consent::Needed(need)
}

/// Puts what the command printed and how it ended into words.
fn present(line: &str, timeout: Duration, output: &CommandOutput) -> Result<ToolOutput, ToolError> {
    let seconds = output.elapsed.as_secs_f64();
    match output.exit {
        CommandExit::Code(code) => {
            let meaning = Meaning::of(line, code);
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
    fn of(line: &str, code: i32) -> Option<Self> {
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
        match (policy::last_program(line)?.as_str(), code) {
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
        match present(line, Duration::from_secs(180), &output(text, exit)) {
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
