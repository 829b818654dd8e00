//! Runs a server in the background, kills it and starts it again on the same port.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

/// Interpreters that start side by side on two cores take their time.
const START_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A server on the network; dropping it kills it and what it has started.
pub(crate) struct HttpServer {
    command: Vec<String>,
    port: u16,
    child: Child,
    logs: TempDir,
}

impl HttpServer {
    /// Starts a server on a free port; `command` puts the port where the server wants it.
    pub(crate) fn start(command: impl Fn(&str) -> Vec<String>) -> Self {
        let port = free_port();
        let command = command(&port.to_string());
        let logs = tempfile::tempdir().unwrap();
        let child = spawn(&command, port, &logs);
        let mut server = Self {
            command,
            port,
            child,
            logs,
        };
        server.wait_until_it_listens();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(pid(&self.child), signal).unwrap();
    }

    /// Waits until it has written something to its log.
    pub(crate) fn wait_for_words(&self, words: &str) {
        let started = Instant::now();
        while !self.log().contains(words) {
            assert!(started.elapsed() < START_MAX, "it never said `{words}`");
            sleep(POLL);
        }
    }

    /// Kills it without a warning, and starts it again. Returns when it listens.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.command, self.port, &self.logs);
        self.wait_until_it_listens();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.logs.path().join("log")).unwrap()
    }

    fn kill(&mut self) {
        kill_process_group(pid(&self.child), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    fn wait_until_it_listens(&mut self) {
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && started.elapsed() < START_MAX,
                "{:?} did not start ({ended:?}): {}",
                self.command,
                self.log()
            );
            sleep(POLL);
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills every process that was started with this very argument; returns when they are gone.
pub(crate) fn kill_all_with(argument: &str) {
    let victims = all_with(argument);
    assert!(
        !victims.is_empty(),
        "no process has the argument {argument}"
    );
    for victim in &victims {
        kill_process(*victim, Signal::KILL).unwrap();
    }
    let started = Instant::now();
    while victims.iter().any(|victim| !is_gone(*victim)) {
        assert!(started.elapsed() < START_MAX, "{victims:?} live on");
        sleep(POLL);
    }
}

/// Returns whether a process is gone and its parent knows: only then all its threads have let go of its pipes.
fn is_gone(process: Pid) -> bool {
    !Path::new(&format!("/proc/{}", process.as_raw_nonzero())).exists()
}

/// Finds processes by one of their arguments.
fn all_with(argument: &str) -> Vec<Pid> {
    let has_it = |line: &[u8]| {
        line.split(|byte| *byte == 0)
            .any(|one| one == argument.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| has_it(&line)))
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the point is a process that the client does not own"
)]
fn spawn(command: &[String], port: u16, logs: &TempDir) -> Child {
    let log = File::create(logs.path().join("log")).unwrap();
    Command::new(&command[0])
        .args(&command[1..])
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap()).unwrap()
}

/// Returns a port that nobody uses now. Somebody might take it in between, but loopback has many.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
