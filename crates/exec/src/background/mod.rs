//! Processes in the background, on any [`Terminal`].
//!
//! A process is a folder where it runs: its input is a fifo, its output two files that make a ring, its end a file with
//! the exit code. Nothing in it needs us, so it runs on when we are killed, and is found again by its record in our
//! home. The scripts beside this file do the work there; here they are called, and what they print is read.

mod notices;
mod record;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    BoxFuture, CancellationToken, Clock, CommandExit, CommandOutput, NotifyOn, ProcessError,
    ProcessName, ProcessState, ProcessStatus, Processes, Progress, Random, SessionId, ShellCommand,
    Terminal,
};
use tokio::sync::Notify;

use crate::mark::new_mark;
use crate::shell::quoted;
use notices::Watched;
use record::{Record, Records};

/// Processes that may run at once: more is a model gone wild.
const RUNNING_MAX: usize = 64;

/// How long starting one, or asking about one, may take; a slow network included.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a process may take to read what is typed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Most that is read of a process's output at once.
const OUTPUT_BYTES_MAX: usize = 200_000;

/// The longest one call to `await` in the control script; a stop is seen at once all the same.
const WAIT_STEP: Duration = Duration::from_secs(60);

/// The session whose shell runs the control script, apart from everybody's own.
const CONTROL_SESSION: &str = "hermes-processes";

/// Where the folders of processes are, on the machine they run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessFolder {
    /// A folder of this machine.
    Here(PathBuf),
    /// The user's own cache folder on another machine.
    Cache,
}

impl ProcessFolder {
    /// The folder of one process, as a word of a shell.
    fn word(&self, id: &str) -> String {
        match self {
            Self::Here(folder) => quoted(&folder.join(id).to_string_lossy()),
            Self::Cache => {
                format!("\"${{XDG_CACHE_HOME:-${{HOME:-/tmp}}/.cache}}/hermes/processes/{id}\"")
            }
        }
    }
}

/// Sessions that are remembered before those without processes are forgotten.
const SERVED_MAX: usize = 64;

/// Background processes on a terminal.
pub struct Background {
    terminal: Arc<dyn Terminal>,
    folder: ProcessFolder,
    /// For processes that may leave the fence: commands inside must not type into them.
    apart: Option<ProcessFolder>,
    records: Records,
    clock: Arc<dyn Clock>,
    random: Random,
    /// Sessions that asked for something here.
    served: Mutex<HashSet<SessionId>>,
    watched: Mutex<Vec<Watched>>,
    /// Something is to be watched that was not before.
    started: Notify,
}

/// What the control script says of a process.
struct Seen {
    state: ProcessState,
    /// The file its output has come to, and the byte in it.
    position: (u64, u64),
    output: String,
}

impl Background {
    /// `records` is a folder in our home that says which processes there are.
    pub fn new(
        terminal: Arc<dyn Terminal>,
        folder: ProcessFolder,
        records: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            terminal,
            folder,
            apart: None,
            records: Records::new(records),
            clock,
            random: Random::from_system(),
            served: Mutex::default(),
            watched: Mutex::default(),
            started: Notify::new(),
        }
    }

    /// Keeps processes that may leave the fence in a folder of this machine that commands inside do not reach.
    pub fn with_apart(mut self, folder: PathBuf) -> Self {
        self.apart = Some(ProcessFolder::Here(folder));
        self
    }

    /// The folder of a process, as a word of a shell.
    fn word(&self, record: &Record) -> String {
        let apart = self.apart.as_ref().filter(|_| !record.pass.is_inside());
        apart.unwrap_or(&self.folder).word(&record.id)
    }

    async fn start(
        &self,
        command: ShellCommand,
        notify_on: NotifyOn,
    ) -> Result<ProcessStatus, ProcessError> {
        self.serve(&command.session);
        self.make_room().await?;
        let id = format!("proc_{:012x}", self.random.next_u64() >> 16);
        let mark = new_mark(&self.random);
        let mut record = Record {
            id: id.clone(),
            session: command.session.clone(),
            line: command.line.clone(),
            cwd: command
                .workdir
                .clone()
                .unwrap_or_else(|| command.cwd.clone()),
            started_at_ms: self.clock.now().as_millis(),
            pid: None,
            tell_end: notify_on.tell_end,
            place: Some(command.cwd.clone()),
            pass: command.pass.clone(),
            mark: Some(mark.clone()),
        };
        // Recorded first: a process nobody knows of would be worse than a record of none. So is its mark: a Hermes that
        // starts after this one was killed ends by it what its own fence may not signal.
        self.records.write(&record)?;
        let how = if command.pty { "pty" } else { "plain" };
        let line = format!(
            "(\n{}\n__hermes_background {} {how} {}\n)",
            include_str!("start.sh"),
            self.word(&record),
            quoted(&command.line)
        );
        let started = self
            .terminal
            .run(ShellCommand {
                line,
                pty: false,
                timeout: CONTROL_TIMEOUT,
                mark: Some(mark),
                ..command
            })
            .await;
        let started = match started {
            Ok(output) => started_in(&output).ok_or_else(|| failed(&output)),
            Err(error) => Err(error.into()),
        };
        match started {
            Ok(pid) => record.pid = Some(pid),
            Err(error) => {
                self.records.remove(&id);
                return Err(error);
            }
        }
        self.records.write(&record)?;
        self.watch(&record, notify_on.watch_for);
        Ok(self.status(record, ProcessState::Running, String::new()))
    }

    /// Forgets processes that ended long ago, and refuses one too many.
    async fn make_room(&self) -> Result<(), ProcessError> {
        let records = self.records.all();
        if records.len() < RUNNING_MAX {
            return Ok(());
        }
        for record in &records {
            let seen = self.see(record, "0").await?;
            if seen.state != ProcessState::Running {
                self.forget(record).await?;
                return Ok(());
            }
        }
        Err(ProcessError::TooMany { limit: RUNNING_MAX })
    }

    async fn forget(&self, record: &Record) -> Result<(), ProcessError> {
        let line = format!("rm -rf {}", self.word(record));
        self.control(record, line, Vec::new(), CONTROL_TIMEOUT)
            .await?;
        self.records.remove(&record.id);
        Ok(())
    }

    async fn list(&self, session: &SessionId) -> Result<Vec<ProcessStatus>, ProcessError> {
        self.serve(session);
        let mut processes = Vec::new();
        for record in self.records.all() {
            if record.session == *session {
                let seen = self.see(&record, "200").await?;
                processes.push(self.status(record, seen.state, seen.output));
            }
        }
        Ok(processes)
    }

    async fn look(
        &self,
        process: ProcessName<'_>,
        tail_bytes: usize,
    ) -> Result<ProcessStatus, ProcessError> {
        let record = self.find(process)?;
        let tail = tail_bytes.min(OUTPUT_BYTES_MAX).to_string();
        let seen = self.see(&record, &tail).await?;
        Ok(self.status(record, seen.state, seen.output))
    }

    async fn wait(
        &self,
        process: ProcessName<'_>,
        timeout: Duration,
        stop: CancellationToken,
    ) -> Result<ProcessStatus, ProcessError> {
        let record = self.find(process)?;
        let word = self.word(&record);
        let mut left = timeout;
        while !left.is_zero() && !stop.is_cancelled() {
            let step = left.min(WAIT_STEP);
            left -= step;
            let line = script(&format!("await {word} {}", step.as_secs().max(1)));
            let waited = self.control(&record, line, Vec::new(), step + CONTROL_TIMEOUT);
            tokio::select! {
                () = stop.cancelled() => break,
                output = waited => output?,
            };
            if self.see(&record, "0").await?.state != ProcessState::Running {
                self.unwatch(&record);
                break;
            }
        }
        self.look(process, OUTPUT_BYTES_MAX).await
    }

    async fn kill(&self, process: ProcessName<'_>) -> Result<ProcessStatus, ProcessError> {
        let record = self.find(process)?;
        self.unwatch(&record);
        let line = script(&format!("end {}", self.word(&record)));
        self.control(&record, line, Vec::new(), CONTROL_TIMEOUT)
            .await?;
        // What a fence keeps from being signalled from the inside, or what an earlier start of Hermes left.
        if let Some(mark) = &record.mark {
            self.terminal.end_marked(mark);
        }
        self.look(process, OUTPUT_BYTES_MAX).await
    }

    async fn write(&self, process: ProcessName<'_>, input: Vec<u8>) -> Result<(), ProcessError> {
        let record = self.find(process)?;
        let line = script(&format!("type_into {}", self.word(&record)));
        let output = self.control(&record, line, input, WRITE_TIMEOUT).await?;
        match output.exit {
            CommandExit::Code(0) => Ok(()),
            CommandExit::TimedOut => Err(ProcessError::Failed {
                detail: format!("`{}` does not read its input", record.id),
            }),
            _ => Err(ProcessError::NotRunning { id: record.id }),
        }
    }

    async fn close(&self, process: ProcessName<'_>) -> Result<(), ProcessError> {
        let record = self.find(process)?;
        let line = script(&format!("close_input {}", self.word(&record)));
        let output = self
            .control(&record, line, Vec::new(), CONTROL_TIMEOUT)
            .await?;
        match output.exit {
            CommandExit::Code(0) => Ok(()),
            _ => Err(ProcessError::NotRunning { id: record.id }),
        }
    }

    async fn leave(&self) {
        for record in self.records.all() {
            if !self.served().contains(&record.session) {
                continue;
            }
            let process = ProcessName {
                session: &record.session,
                id: &record.id,
            };
            let ended = self.kill(process).await;
            if ended.is_ok_and(|status| status.state != ProcessState::Running) {
                // What cannot be forgotten now is still in the list for the next time.
                let _ = self.forget(&record).await;
            }
        }
    }

    /// Remembers a session, and forgets those that have no process: they are remembered again when they start one.
    fn serve(&self, session: &SessionId) {
        let mut served = self.served();
        if served.len() >= SERVED_MAX && !served.contains(session) {
            let with_processes: HashSet<SessionId> = self
                .records
                .all()
                .into_iter()
                .map(|record| record.session)
                .collect();
            served.retain(|session| with_processes.contains(session));
        }
        served.insert(session.clone());
    }

    fn served(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, process: ProcessName<'_>) -> Result<Record, ProcessError> {
        self.serve(process.session);
        self.records.find(process)
    }

    /// Asks for the state and some of the output: `what` is a number of bytes at its end, or a position.
    async fn see(&self, record: &Record, what: &str) -> Result<Seen, ProcessError> {
        let line = script(&format!("look {} {what}", self.word(record)));
        let output = self
            .control(record, line, Vec::new(), CONTROL_TIMEOUT)
            .await?;
        parse_seen(&output).ok_or_else(|| failed(&output))
    }

    /// Runs a line that looks at a process, or tells it something, with the rights of the process: it may have put
    /// something into its folder that leads elsewhere.
    async fn control(
        &self,
        record: &Record,
        line: String,
        stdin: Vec<u8>,
        timeout: Duration,
    ) -> Result<CommandOutput, ProcessError> {
        let is_here = matches!(self.folder, ProcessFolder::Here(_));
        let place = record.place.clone();
        let place = place.filter(|place| is_here && place.is_dir());
        let command = ShellCommand {
            session: CONTROL_SESSION.into(),
            line,
            workdir: place.is_some().then(|| "/".into()),
            cwd: place.unwrap_or_else(|| "/".into()),
            stdin,
            pty: false,
            timeout,
            output_bytes_max: 2 * OUTPUT_BYTES_MAX,
            pass: record.pass.clone(),
            mark: None,
            stop: CancellationToken::new(),
            progress: Progress::default(),
        };
        Ok(self.terminal.run(command).await?)
    }

    fn status(&self, record: Record, state: ProcessState, tail: String) -> ProcessStatus {
        let uptime_ms = self.clock.now().as_millis() - record.started_at_ms;
        ProcessStatus {
            id: record.id,
            line: record.line,
            cwd: record.cwd,
            pid: record.pid,
            started_at: hermes_core::Timestamp::from_millis(record.started_at_ms),
            uptime: Duration::from_millis(uptime_ms.max(0).unsigned_abs()),
            state,
            tail,
        }
    }
}

impl Processes for Background {
    fn start(
        &self,
        command: ShellCommand,
        notify_on: NotifyOn,
    ) -> BoxFuture<'_, Result<ProcessStatus, ProcessError>> {
        Box::pin(self.start(command, notify_on))
    }

    fn list<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Vec<ProcessStatus>, ProcessError>> {
        Box::pin(self.list(session))
    }

    fn look<'a>(
        &'a self,
        process: ProcessName<'a>,
        tail_bytes: usize,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        Box::pin(self.look(process, tail_bytes))
    }

    fn wait<'a>(
        &'a self,
        process: ProcessName<'a>,
        timeout: Duration,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        Box::pin(self.wait(process, timeout, stop))
    }

    fn kill<'a>(
        &'a self,
        process: ProcessName<'a>,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        Box::pin(self.kill(process))
    }

    fn write<'a>(
        &'a self,
        process: ProcessName<'a>,
        input: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(self.write(process, input))
    }

    fn close<'a>(&'a self, process: ProcessName<'a>) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(self.close(process))
    }

    fn notice<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, String> {
        // Also when nobody waits for it after all: a conversation that goes on has its processes back.
        self.serve(session);
        Box::pin(self.next_notice(session))
    }

    fn owes_notice(&self, session: &SessionId) -> bool {
        self.watches(session)
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.leave())
    }
}

fn script(call: &str) -> String {
    format!("(\n{}\n{call}\n)", include_str!("control.sh"))
}

/// Returns the process that was started.
fn started_in(output: &CommandOutput) -> Option<u32> {
    let last = output.text.lines().last()?;
    last.strip_prefix("started ")?.parse().ok()
}

fn parse_seen(output: &CommandOutput) -> Option<Seen> {
    let (first, output) = output.text.split_once('\n')?;
    let mut words = first.split(' ');
    let state = match (words.next()?, words.next()?) {
        ("running", _) => ProcessState::Running,
        ("exited", "killed") => ProcessState::Killed,
        ("exited", code) => ProcessState::Exited(code.parse().ok()?),
        ("lost", _) => ProcessState::Lost,
        _ => return None,
    };
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap_or(0);
    Some(Seen {
        state,
        position: (number(words.next()), number(words.next())),
        output: output.to_owned(),
    })
}

fn failed(output: &CommandOutput) -> ProcessError {
    let detail = match output.text.trim() {
        "" => format!("the shell said nothing and ended with {:?}", output.exit),
        text => text.to_owned(),
    };
    ProcessError::Failed { detail }
}
