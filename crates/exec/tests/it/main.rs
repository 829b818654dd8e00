//! Real processes on this machine.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod apptainer;
mod checkpoints;
mod comfort;
mod contract;
mod daytona;
mod docker;
mod fence;
mod killed;
mod local;
mod modal;
mod program;
mod ssh;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hermes_core::{
    BoxFuture, CancellationToken, CommandOutput, Pass, Progress, ShellCommand, Terminal,
    TerminalError,
};
use hermes_exec::{CredentialFile, Forwarded, ForwardedFiles, Local};
use hermes_testkit::contract::forwarded::{CREDENTIAL, VARIABLE};

/// Long enough that a test which waits for it has failed.
const NEVER: Duration = Duration::from_secs(60);

fn environment() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

fn command(line: &str) -> ShellCommand {
    ShellCommand {
        session: "session".into(),
        line: line.to_owned(),
        cwd: PathBuf::from("/tmp"),
        workdir: None,
        stdin: Vec::new(),
        pty: false,
        timeout: NEVER,
        output_bytes_max: 10_000,
        pass: Pass::default(),
        mark: None,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    }
}

/// What the contract wants to go along from a home of Hermes.
fn forwarded(home: &Path) -> Forwarded {
    let (name, value) = VARIABLE;
    Forwarded {
        variables: vec![(name.to_owned(), value.to_owned())],
        files: Some(ForwardedFiles {
            home: home.to_owned(),
            folder: "~/.hermes".to_owned(),
            credentials: vec![CredentialFile::new(CREDENTIAL).unwrap()],
            look_interval: Duration::ZERO,
        }),
        ..Forwarded::default()
    }
}

/// A machine with an environment, and a folder for its shells that goes away with it.
struct Machine {
    local: Local,
    _shells: tempfile::TempDir,
}

impl Machine {
    fn new(environment: Vec<(OsString, OsString)>) -> Self {
        let shells = tempfile::tempdir().unwrap();
        Self {
            local: Local::new(environment, shells.path().join("shells")),
            _shells: shells,
        }
    }
}

impl Terminal for Machine {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        Terminal::run(&self.local, command)
    }
}

/// Returns whether a process exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .trim_start()
            .starts_with('Z')
    })
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < NEVER, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a script wrote a whole line into the file.
fn is_written(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|text| text.ends_with(b"\n"))
}

/// Waits until a script wrote a process id into the file, and returns it.
fn pid_in(file: &Path) -> String {
    let read = || std::fs::read_to_string(file).unwrap_or_default();
    wait_until("a process id in the file", || read().ends_with('\n'));
    read().trim().to_owned()
}
