//! Runs shell commands on this machine.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt as _};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    BoxFuture, Checkout, CommandExit, CommandOutput, Found, Pass, Progress, Random, SessionId,
    ShellCommand, Terminal, TerminalError,
};
use hermes_os::{Access, Durability};
use rustix::fs::{AtFlags, CWD, OFlags, Timespec, Timestamps, UTIME_NOW, utimensat};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use crate::capture::Capture;
use crate::environment::Granted;
use crate::fence::{Fence, Fences, Round};
use crate::group::ProcessGroup;
use crate::kin::end_fenced;
use crate::leftovers::Leftovers;
use crate::mark::{mark_of, signal_marked};
use crate::profile::{ProfileKey, Profiles, Stamp};
use crate::program::find;
use crate::shell::{
    Invocation, Left, file_name, folder_left, found_by, invocation, missing_folder, with_pty,
    without_own_variables,
};
use crate::watchdog::Watchdog;

/// Tried in order. Models write bash; a machine without it still has a POSIX shell.
const SHELLS: &[&str] = &["bash", "sh"];

/// A pipe holds 64 KiB on Linux, so one read can empty it.
const READ_BYTES: usize = 64 * 1024;

/// How long a stopped command may clean up. A turn must react to an interrupt within 100 ms, reading the rest included.
const STOP_GRACE: Duration = Duration::from_millis(50);

/// How long a command that timed out may clean up. Nobody waits at the keyboard, so it gets longer.
const TIMEOUT_GRACE: Duration = Duration::from_millis(200);

/// How long we read on after the shell ended. What it waited for is in the pipe already; this is for the likes of
/// `tee >(…)`, and not for a server left in the background that holds the pipe open for ever.
const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(100);

/// The same after a kill: everything that could write is dead.
const DRAIN_AFTER_KILL: Duration = Duration::from_millis(20);

/// Most that is read of what a shell left: variables and functions of a person and of a session.
const STATE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Where programs find services that would act outside of the fence. The kernel does not keep them from a socket, so they
/// are led to one that is not there; whoever needs the service asks to leave the fence.
const CLOSED_SERVICES: &[(&str, &str)] = &[
    ("DOCKER_HOST", "unix:///outside-the-fence/docker.sock"),
    ("CONTAINER_HOST", "unix:///outside-the-fence/podman.sock"),
    (
        "DBUS_SESSION_BUS_ADDRESS",
        "unix:path=/outside-the-fence/bus",
    ),
    (
        "DBUS_SYSTEM_BUS_ADDRESS",
        "unix:path=/outside-the-fence/bus",
    ),
];

/// What shells leave is one file per session, and worth nothing to a conversation nobody takes up again.
const SHELL_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The fence around commands, and what is done about what they leave.
#[derive(Debug)]
struct LocalFence {
    fences: Arc<Fences>,
    leftovers: Leftovers,
}

/// The machine Hermes runs on.
///
/// Commands get the given environment and what the shell of their session was left with, and a process group of their
/// own. A background process outlives a command that ended by itself, but not one that was stopped, timed out or
/// dropped.
#[derive(Debug)]
pub struct Local {
    environment: Vec<(OsString, OsString)>,
    granted: Granted,
    /// Holds what the shell of each session was left with.
    shells: PathBuf,
    start_files: Vec<String>,
    fence: Option<LocalFence>,
    /// Where the keys of `ssh` can be asked for: for commands that somebody let at them.
    agent: Option<OsString>,
    /// Whether what commands left running outlives us.
    leftovers_run_on: bool,
    /// Sessions of ours that left a shell, until they are closed.
    known: Mutex<HashSet<SessionId>>,
    profiles: Profiles,
    /// Held while a session gets its first shell.
    beginning: Mutex<()>,
    random: Random,
    watchdog: Watchdog,
}

impl Local {
    /// Sessions go on in `shells`, a folder that is made when it is needed.
    pub fn new(environment: Vec<(OsString, OsString)>, shells: PathBuf) -> Self {
        forget_old_shells(&shells);
        Self {
            environment,
            granted: Granted::default(),
            shells,
            start_files: Vec::new(),
            fence: None,
            agent: None,
            leftovers_run_on: false,
            known: Mutex::default(),
            profiles: Profiles::default(),
            beginning: Mutex::default(),
            random: Random::from_system(),
            watchdog: Watchdog::default(),
        }
    }

    /// Gives commands what a person let them have besides.
    pub fn granting(mut self, granted: Granted) -> Self {
        self.granted = granted;
        self
    }

    /// Puts a fence around every command.
    pub fn fenced(mut self, fences: Arc<Fences>) -> Self {
        self.fence = Some(LocalFence {
            leftovers: Leftovers::new(Arc::clone(&fences)),
            fences,
        });
        self
    }

    /// Lets commands that may read the keys of `ssh` ask this agent.
    pub fn with_agent(mut self, socket: Option<OsString>) -> Self {
        self.agent = socket;
        self
    }

    /// Lets what fenced commands left running go on when everything else ends. Nobody puts back what it changes then.
    pub fn leaving_processes(mut self, run_on: bool) -> Self {
        self.leftovers_run_on = run_on;
        self
    }

    /// Sets the files a new shell reads, such as [`crate::START_FILES`].
    pub fn reading(mut self, start_files: Vec<String>) -> Self {
        self.start_files = start_files;
        self
    }

    async fn run(&self, command: ShellCommand) -> Result<CommandOutput, TerminalError> {
        let started = Instant::now();
        let mut capture = Capture::new(command.output_bytes_max, command.progress.clone());
        if command.stop.is_cancelled() {
            return Ok(finished(capture, CommandExit::Stopped, started));
        }
        for folder in command.workdir.iter().chain([&command.cwd]) {
            if !folder.is_dir() {
                let path = folder.clone();
                return Err(TerminalError::NoSuchDirectory { path });
            }
        }
        let fence = self.fence_for(&command)?;
        let mut command = command;
        let is_trusted = self.fence.is_some() && !command.pass.is_inside();
        if is_trusted && command.workdir.is_none() {
            command.workdir = Some(self.folder_of(&command));
        }
        // What commands inside the fence left could have this one do what nobody agreed to: it gets a shell of its own.
        let apart = self.fence.as_ref().filter(|_| is_trusted);
        let shells = apart.map_or(self.shells.clone(), |fence| fence.fences.apart());
        let shell = LeftShell::of(&shells, &command, &self.random)?;
        let shell = match apart {
            Some(_) => shell.apart(),
            None => shell,
        };
        let left = if self.known().contains(&command.session) && !is_trusted {
            Left::Something
        } else {
            Left::Nothing
        };
        let state = shell.file.to_string_lossy();
        let invocation = invocation(&command, &state, left, &shell.mark, &self.start_files)?;
        let round = self.begin(&command, fence.as_deref());
        if left == Left::Nothing && !self.start_files.is_empty() && !shell.file.exists() {
            let profile = tokio::select! {
                profile = self.profile(&command, fence.as_deref(), &shells) => profile,
                () = command.stop.cancelled() => {
                    return Ok(finished(capture, CommandExit::Stopped, started));
                }
                () = sleep(command.timeout) => {
                    return Ok(finished(capture, CommandExit::TimedOut, started));
                }
            };
            self.begin_with(&shell, profile.as_deref());
        }
        let watched = self.watchdog.watch(&shell.mark);
        let (mut child, mut output) = self.start(&command, &invocation, fence.as_deref())?;
        let mut group = ProcessGroup::led_by(&child, Some(watched))
            .ok_or_else(|| lost("the shell has no process id"))?
            .marked(&shell.mark);

        let exit = tokio::select! {
            status = exit_while_talking(&mut child, &invocation.stdin, &mut output, &mut capture) => {
                exit_of(status.map_err(|error| lost(error.to_string()))?)
            }
            () = command.stop.cancelled() => CommandExit::Stopped,
            () = sleep(command.timeout) => CommandExit::TimedOut,
        };
        let mut runs_on = false;
        let drain = match exit {
            CommandExit::Code(_) | CommandExit::Signal(_) => {
                runs_on = group.is_alive();
                group.release();
                DRAIN_AFTER_EXIT
            }
            CommandExit::Stopped => {
                group.end(&mut child, STOP_GRACE).await;
                DRAIN_AFTER_KILL
            }
            CommandExit::TimedOut => {
                group.end(&mut child, TIMEOUT_GRACE).await;
                DRAIN_AFTER_KILL
            }
        };
        // Running out of time means that somebody holds the pipe open; what was read is kept.
        let _ = timeout(drain, read_to_end(&mut output, &mut capture)).await;
        if let Some(round) = round {
            round.end(&shell.mark, runs_on);
        }
        if !is_trusted && matches!(exit, CommandExit::Code(_)) && shell.publish() {
            self.known().insert(command.session);
        }
        let output = finished(capture, exit, started);
        match missing_folder(&output.text, &shell.mark) {
            Some(error) => Err(error),
            None => Ok(output),
        }
    }

    fn fence_for(&self, command: &ShellCommand) -> Result<Option<Arc<Fence>>, TerminalError> {
        let fence = self.fence.as_ref();
        let fence = fence.map(|fence| fence.fences.around(&command.cwd, &command.pass));
        fence
            .transpose()
            .map_err(|error| TerminalError::NotStarted {
                shell: "bash".to_owned(),
                detail: format!("the fence around it could not be put up: {error}"),
            })
    }

    /// Returns what the start files leave for a new shell of this command.
    async fn profile(
        &self,
        command: &ShellCommand,
        fence: Option<&Fence>,
        shells: &Path,
    ) -> Option<Arc<[u8]>> {
        let key = ProfileKey {
            folder: command.cwd.clone(),
            pass: Pass {
                // What git may check out is nothing to start files.
                checkout: Checkout::Nothing,
                ..command.pass.clone()
            },
            files: self
                .start_files
                .iter()
                .map(|file| self.stamp(file))
                .collect(),
        };
        let read = || self.read_start_files(command, fence, shells);
        self.profiles.get(key, read).await
    }

    fn stamp(&self, start_file: &str) -> Option<Stamp> {
        let home = self.environment.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| Path::new(home));
        match (start_file.strip_prefix("~/"), home) {
            (Some(inside), Some(home)) => Stamp::of(&home.join(inside)),
            _ => Stamp::of(Path::new(start_file)),
        }
    }

    /// Has a shell of its own read the start files, where the command would run.
    async fn read_start_files(
        &self,
        command: &ShellCommand,
        fence: Option<&Fence>,
        shells: &Path,
    ) -> Option<Vec<u8>> {
        let reading = ShellCommand {
            session: "profile".into(),
            line: ":".to_owned(),
            mark: None,
            workdir: None,
            stdin: Vec::new(),
            pty: false,
            progress: Progress::default(),
            ..command.clone()
        };
        let shell = LeftShell::of(shells, &reading, &self.random).ok()?;
        let shell = shell.apart();
        let state = shell.file.to_string_lossy();
        let files = &self.start_files;
        let invocation = invocation(&reading, &state, Left::Nothing, &shell.mark, files).ok()?;
        let watched = self.watchdog.watch(&shell.mark);
        let (mut child, mut output) = self.start(&reading, &invocation, fence).ok()?;
        let group = ProcessGroup::led_by(&child, Some(watched))?.marked(&shell.mark);
        // What start files print is nobody's concern.
        let mut unseen = Capture::new(reading.output_bytes_max, Progress::default());
        let talk = exit_while_talking(&mut child, &invocation.stdin, &mut output, &mut unseen);
        talk.await.ok()?;
        // An agent that they started may go on.
        group.release();
        let left = read_own(&shell.file).ok()?;
        left.ends_with(b"# complete\n")
            .then(|| without_own_variables(&left))
    }

    /// Gives a shell what the start files left, unless a command was faster. Without it, the shell reads them itself.
    fn begin_with(&self, shell: &LeftShell, profile: Option<&[u8]>) {
        let _alone = self
            .beginning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(profile) = profile
            && !shell.file.exists()
            && let Err(error) =
                hermes_os::replace(&shell.file, profile, Access::Private, Durability::Unsynced)
        {
            tracing::warn!(%error, "a shell could not be given the user's profile");
        }
    }

    /// Remembers what the command must not change.
    fn begin(&self, command: &ShellCommand, fence: Option<&Fence>) -> Option<OpenRound<'_>> {
        let (fence, local) = (fence?, self.fence.as_ref()?);
        let folder = self.folder_of(command);
        let is_quiet = local.leftovers.are_none();
        Some(OpenRound {
            local,
            round: Some(local.fences.begin(fence, &folder, is_quiet)),
        })
    }

    /// The folder in which a command begins.
    fn folder_of(&self, command: &ShellCommand) -> PathBuf {
        let left = || self.folder_here(&command.session, &command.cwd);
        let folder = command.workdir.clone().or_else(left);
        folder.unwrap_or_else(|| command.cwd.clone())
    }

    /// What the shell of a session was left with. Commands can write it, so it may be anything.
    fn state_of(&self, session: &SessionId) -> String {
        let state = read_own(&self.shells.join(file_name(session)));
        String::from_utf8(state.unwrap_or_default()).unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(
        &self,
        command: &ShellCommand,
        invocation: &Invocation,
        fence: Option<&Fence>,
    ) -> Result<(Child, pipe::Receiver), TerminalError> {
        let mut last = None;
        for shell in SHELLS {
            match self.spawn(shell, command, invocation, fence) {
                Ok(started) => return Ok(started),
                Err(error) => {
                    let try_next = error.kind() == ErrorKind::NotFound;
                    last = Some((shell, error));
                    if !try_next {
                        break;
                    }
                }
            }
        }
        let (shell, detail) = last.map_or(("sh", "no shell".to_owned()), |(shell, error)| {
            (shell, error.to_string())
        });
        Err(TerminalError::NotStarted {
            shell: shell.to_owned(),
            detail,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-exec owns child processes"
    )]
    fn spawn(
        &self,
        shell: &str,
        command: &ShellCommand,
        invocation: &Invocation,
        fence: Option<&Fence>,
    ) -> io::Result<(Child, pipe::Receiver)> {
        // One pipe for both keeps errors beside the output they belong to.
        let (reader, writer) = io::pipe()?;
        let mut words: Vec<OsString> = if command.pty {
            with_pty(shell, &invocation.args)
                .into_iter()
                .map(OsString::from)
                .collect()
        } else {
            // By its path: to look a name up, the system has to copy our whole process first.
            let path = find(shell, &self.environment).map(PathBuf::into_os_string);
            let args = invocation.args.iter().map(OsString::from);
            std::iter::once(path.unwrap_or(shell.into()))
                .chain(args)
                .collect()
        };
        if let Some(fence) = fence {
            words = fence.words(words, &command.cwd);
        }
        let stdin = if invocation.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let mut program = Command::new(&words[0]);
        program
            .args(&words[1..])
            .current_dir(&command.cwd)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(self.granted.now())
            .env("PWD", &command.cwd)
            .stdin(stdin)
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0);
        if command.pty {
            // `script` asks it to start the shell, in words of `sh`.
            program.env("SHELL", "/bin/sh");
        }
        if fence.is_some_and(Fence::is_standing) {
            let is_named = |name: &str| self.environment.iter().any(|(known, _)| known == name);
            let closed = CLOSED_SERVICES.iter().filter(|(name, _)| !is_named(name));
            program.envs(closed.copied());
            program.env("TMUX_TMPDIR", &self.shells);
        }
        if let Some(folder) = fence.and_then(Fence::temporary) {
            program.env("TMPDIR", folder);
        }
        if let Some(agent) = self.agent.as_ref().filter(|_| may_ask_agent(command)) {
            program.env(AGENT, agent);
        }
        let child = match fence {
            Some(fence) => fence.spawn(program)?,
            None => program.spawn()?,
        };
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        Ok((child, output))
    }
}

impl Terminal for Local {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        Box::pin(self.run(command))
    }

    fn folder_here(&self, session: &SessionId, cwd: &Path) -> Option<PathBuf> {
        let left = folder_left(&self.state_of(session));
        Some(
            left.filter(|folder| folder.is_dir())
                .unwrap_or(cwd.to_owned()),
        )
    }

    fn close_session(&self, session: &SessionId) {
        self.known().remove(session);
    }

    fn notices(&self) -> Vec<String> {
        let fence = self.fence.as_ref();
        fence.map_or(Vec::new(), |fence| fence.fences.notices())
    }

    fn end_marked(&self, mark: &str) {
        signal_marked(mark, Signal::KILL);
    }

    fn finds(&self, session: &SessionId, program: &str) -> Option<Found> {
        Some(found_by(
            &self.state_of(session),
            &self.environment,
            program,
        ))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        if let Some(fence) = &self.fence {
            if !self.leftovers_run_on {
                end_fenced();
            }
            fence.leftovers.look();
        }
        Box::pin(std::future::ready(()))
    }
}

/// What a running command must not change. Should the command be dropped, it ends all the same.
struct OpenRound<'a> {
    local: &'a LocalFence,
    round: Option<Round>,
}

impl OpenRound<'_> {
    fn end(mut self, mark: &str, runs_on: bool) {
        if let Some(round) = self.round.take() {
            self.local.leftovers.watch(mark, round, runs_on);
        }
    }
}

impl Drop for OpenRound<'_> {
    fn drop(&mut self) {
        if let Some(round) = &self.round {
            self.local.fences.end(round);
        }
    }
}

/// The variable that names the socket of an agent for the keys of `ssh`.
const AGENT: &str = "SSH_AUTH_SOCK";

/// Returns whether somebody let a command at the keys of `ssh`.
fn may_ask_agent(command: &ShellCommand) -> bool {
    let pass = &command.pass;
    pass.outside || pass.reads.iter().any(|path| path.ends_with(".ssh"))
}

async fn exit_while_talking(
    child: &mut Child,
    stdin: &[u8],
    output: &mut pipe::Receiver,
    capture: &mut Capture,
) -> io::Result<ExitStatus> {
    let pipe = child.stdin.take();
    let write = async {
        if let Some(mut pipe) = pipe {
            // A command need not read what it is given.
            let _ = pipe.write_all(stdin).await;
        }
    };
    let talk = async { tokio::join!(write, read_to_end(output, capture)) };
    tokio::select! {
        status = child.wait() => return status,
        // The command closed its output, or cannot be read; it still runs.
        _ = talk => {}
    }
    child.wait().await
}

/// The file a session's shell is in, and the mark of the command that may change it.
struct LeftShell {
    file: PathBuf,
    mark: String,
}

impl LeftShell {
    fn of(shells: &Path, command: &ShellCommand, random: &Random) -> Result<Self, TerminalError> {
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(shells);
        made.map_err(|error| TerminalError::NotStarted {
            shell: "bash".to_owned(),
            detail: format!("cannot make the folder `{}`: {error}", shells.display()),
        })?;
        Ok(Self {
            file: shells.join(file_name(&command.session)),
            mark: mark_of(command, random),
        })
    }

    /// A shell that begins anew, and of which nothing is left.
    fn apart(self) -> Self {
        let mut file = self.file.clone().into_os_string();
        file.push(format!(".{}.apart", self.mark));
        Self {
            file: file.into(),
            mark: self.mark.clone(),
        }
    }

    /// Makes what the command left the session's shell. Returns false when it left nothing whole.
    fn publish(&self) -> bool {
        let left = self.left();
        let Ok(state) = read_own(&left) else {
            return false;
        };
        if !state.ends_with(b"# complete\n") {
            return false;
        }
        let state = without_own_variables(&state);
        // Most commands change nothing. To replace a file makes the system write it to the disk at once; to touch it does not.
        if read_own(&self.file).is_ok_and(|before| before == state) {
            return touch(&self.file).is_ok();
        }
        replace_own(&left, &state).is_ok() && std::fs::rename(left, &self.file).is_ok()
    }

    fn left(&self) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(format!(".{}", self.mark));
        name.into()
    }
}

impl Drop for LeftShell {
    fn drop(&mut self) {
        // Nothing is there after `publish`, and half a file after a kill.
        let _ = std::fs::remove_file(self.left());
        if self
            .file
            .extension()
            .is_some_and(|ending| ending == "apart")
        {
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

/// Says that a file was used, for [`forget_old_shells`].
fn touch(file: &Path) -> rustix::io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    utimensat(CWD, file, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// Reads a file in a folder that commands write to: it may have been replaced by a link to a secret, or by a pipe that
/// nobody writes to.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    io::Read::take(file, STATE_BYTES_MAX).read_to_end(&mut content)?;
    Ok(content)
}

/// Makes a file in such a folder anew, whatever is there: what a link leads to is not ours to write.
fn replace_own(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::remove_file(path)?;
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(content)
}

fn forget_old_shells(shells: &Path) {
    for entry in shells.read_dir().into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|data| data.modified());
        let is_old =
            age.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > SHELL_AGE_MAX));
        if is_old {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

async fn read_to_end(output: &mut pipe::Receiver, capture: &mut Capture) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    loop {
        match output.read(&mut chunk).await? {
            0 => return Ok(()),
            len => capture.push(&chunk[..len]),
        }
        // A flood is always ready to be read; let whoever waits beside us see a stop or a timeout.
        yield_now().await;
    }
}

fn exit_of(status: ExitStatus) -> CommandExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Code(code),
        (None, Some(signal)) => CommandExit::Signal(signal),
        (None, None) => CommandExit::Code(status.into_raw()),
    }
}

fn finished(capture: Capture, exit: CommandExit, started: Instant) -> CommandOutput {
    let captured = capture.finish();
    CommandOutput {
        text: captured.text,
        omitted_bytes: captured.omitted_bytes,
        exit,
        elapsed: started.elapsed(),
    }
}

fn lost(detail: impl Into<String>) -> TerminalError {
    TerminalError::Lost {
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_can_replace_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("secret"), "secret").unwrap();
        std::fs::write(path("plain"), "plain").unwrap();
        std::os::unix::fs::symlink(path("secret"), path("link")).unwrap();
        rustix::fs::mkfifoat(CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(read_own(&path("plain")).unwrap(), b"plain");
        assert!(read_own(&path("link")).is_err());
        assert!(read_own(&path("pipe")).is_err(), "nobody waits for it");
        replace_own(&path("link"), b"new").unwrap();
        assert_eq!(std::fs::read(path("secret")).unwrap(), b"secret");
        assert_eq!(std::fs::read(path("link")).unwrap(), b"new");
    }
}
