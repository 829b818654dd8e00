//! Runs commands somewhere else, over any [`Transport`] that carries a script's input and output.
//!
//! The script `lifeline.sh` guards the command there: it kills everything the command started as soon as the connection is
//! cut, by us or by an accident, and says in the end how it went.

pub(crate) mod calls;
pub(crate) mod child;
mod output;
pub(crate) mod script;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    BoxFuture, CommandExit, CommandOutput, Random, SessionId, ShellCommand, Terminal, TerminalError,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use crate::capture::Capture;
use crate::environment::Granted;
use crate::mark::mark_of;
use crate::shell::{Left, file_name, invocation, missing_folder, quoted};
use crate::sync::{FileSync, Forwarded};
use output::{EndOfOutput, Heard};

/// How long the other side may take to kill a command and say so.
const END_TIME_MAX: Duration = Duration::from_secs(3);

/// One read of a network.
const READ_BYTES: usize = 64 * 1024;

/// Where the arguments of `shell.sh` that the other side does not decide begin: after `-c`, the script, its name, the
/// file, what is left in it and the mark.
const SHELL_ARGUMENTS: usize = 6;

/// A way to run a script on another machine.
pub trait Transport: Send + Sync {
    /// Starts `sh -c args…` there.
    fn open<'a>(
        &'a self,
        args: &'a [String],
    ) -> BoxFuture<'a, Result<RunningScript, TerminalError>>;

    /// Says why a connection may have been cut.
    fn cut(&self, said: &str) -> TerminalError {
        let detail = match said.trim() {
            "" => "the connection was cut".to_owned(),
            said => format!("the connection was cut: {said}"),
        };
        TerminalError::Lost { detail }
    }

    /// Ends what is only there for us. The next script may begin it anew.
    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// A script that runs there. Dropping it cuts the connection.
pub struct RunningScript {
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
}

/// Another machine, reached over a transport. Each backend has a name for its own, such as [`crate::Ssh`].
pub struct Remote<T> {
    transport: T,
    /// Where shells begin instead of where the command says, which is a folder of this machine.
    folder: Option<PathBuf>,
    start_files: Vec<String>,
    /// Sessions of ours that left a shell there, until they are closed.
    known: Mutex<HashSet<SessionId>>,
    random: Random,
    /// Lines of a script that set the variables which go along.
    exports: String,
    granted: Granted,
    files: Option<FileSync>,
}

impl<T: Transport> Remote<T> {
    pub(crate) fn over(transport: T, folder: Option<PathBuf>, start_files: Vec<String>) -> Self {
        Self {
            transport,
            folder,
            start_files,
            known: Mutex::default(),
            random: Random::from_system(),
            exports: String::new(),
            granted: Granted::default(),
            files: None,
        }
    }

    /// Takes something along for commands.
    pub fn forwarding(mut self, forwarded: Forwarded) -> Self {
        self.exports = exports(&forwarded.variables);
        self.granted = forwarded.granted;
        self.files = forwarded.files.map(FileSync::new);
        self
    }

    async fn run(&self, mut command: ShellCommand) -> Result<CommandOutput, TerminalError> {
        if let Some(files) = &self.files {
            // A stopped command is dealt with below.
            tokio::select! {
                () = files.bring(&self.transport) => {}
                () = command.stop.cancelled() => {}
            }
        }
        let started = Instant::now();
        if let Some(folder) = &self.folder {
            command.cwd.clone_from(folder);
        }
        let mut capture = Capture::new(command.output_bytes_max, command.progress.clone());
        if command.stop.is_cancelled() {
            return Ok(finished(capture, CommandExit::Stopped, started));
        }
        let mark = mark_of(&command, &self.random);
        let (args, stdin) = self.script(&command, &mark)?;
        let mut script = tokio::select! {
            script = self.transport.open(&args) => script?,
            () = command.stop.cancelled() => {
                return Ok(finished(capture, CommandExit::Stopped, started));
            }
        };
        let mut end = EndOfOutput::new(&mark);
        let exit = {
            let mut talk = std::pin::pin!(talk(&mut script, &stdin, &mut end, &mut capture));
            tokio::select! {
                code = &mut talk => code.map(CommandExit::Code),
                () = command.stop.cancelled() => Some(CommandExit::Stopped),
                () = sleep(command.timeout) => Some(CommandExit::TimedOut),
            }
        };
        if matches!(exit, Some(CommandExit::Stopped | CommandExit::TimedOut)) {
            // The end of our input is what kills the command.
            let _ = script.input.shutdown().await;
            let rest = read_to_the_end(&mut script.output, &mut end, &mut capture);
            let _ = timeout(END_TIME_MAX, rest).await;
        }
        let Some(exit) = exit else {
            return Err(self.transport.cut(&capture.finish().text));
        };
        let output = finished(capture, exit, started);
        if let Some(error) = missing_folder(&output.text, &mark) {
            return Err(error);
        }
        if matches!(exit, CommandExit::Code(_)) {
            self.known().insert(command.session);
        }
        Ok(output)
    }

    fn script(
        &self,
        command: &ShellCommand,
        mark: &str,
    ) -> Result<(Vec<String>, Vec<u8>), TerminalError> {
        let left = if self.known().contains(&command.session) {
            Left::Something
        } else {
            Left::Nothing
        };
        let shell = invocation(command, "", left, mark, &self.start_files)?;
        let how = if command.pty { "pty" } else { "plain" };
        let mut args = vec![
            self.exports.clone() + &exports(&self.granted.now()) + include_str!("lifeline.sh"),
            "hermes".to_owned(),
            file_name(&command.session),
            shell.args[SHELL_ARGUMENTS - 2].clone(),
            mark.to_owned(),
            shell.stdin.len().to_string(),
            how.to_owned(),
            shell.args[1].clone(),
        ];
        args.extend_from_slice(&shell.args[SHELL_ARGUMENTS..]);
        Ok((args, shell.stdin))
    }

    fn known(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transport> Terminal for Remote<T> {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        Box::pin(self.run(command))
    }

    fn close_session(&self, session: &SessionId) {
        self.known().remove(session);
    }

    fn notices(&self) -> Vec<String> {
        let files = self.files.as_ref();
        files.map_or_else(Vec::new, FileSync::take_notices)
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(files) = &self.files {
                files.leave(&self.transport).await;
            }
            self.transport.leave().await;
        })
    }
}

/// Gives the command its input and reads what it prints. Returns its code, or nothing when the connection was cut.
/// Lines of a script that set variables.
fn exports(variables: &[(String, String)]) -> String {
    let export = |(name, value): &(String, String)| format!("export {name}={}\n", quoted(value));
    variables.iter().map(export).collect()
}

async fn talk(
    script: &mut RunningScript,
    stdin: &[u8],
    end: &mut EndOfOutput,
    capture: &mut Capture,
) -> Option<i32> {
    let input = &mut script.input;
    let write = async {
        // A command need not read what it is given.
        let _ = input.write_all(stdin).await;
        let _ = input.flush().await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        code = read_to_the_end(&mut script.output, end, capture) => code,
        () = write => None,
    }
}

async fn read_to_the_end(
    output: &mut (dyn AsyncRead + Send + Unpin),
    end: &mut EndOfOutput,
    capture: &mut Capture,
) -> Option<i32> {
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let len = output.read(&mut chunk).await.unwrap_or(0);
        if len == 0 {
            capture.push(end.rest());
            return None;
        }
        match end.hear(&chunk[..len]) {
            Heard::Output(bytes) => capture.push(&bytes),
            Heard::End(bytes, code) => {
                capture.push(&bytes);
                return Some(code);
            }
        }
        // A flood is always ready to be read; let whoever waits beside us see a stop or a timeout.
        tokio::task::yield_now().await;
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
