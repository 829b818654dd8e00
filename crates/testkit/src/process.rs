//! Runs the built binary as a user would: in a home of its own, with a clean environment, under
//! a deadline, plainly or in a terminal. Start at [`Hermes::new`].

mod terminal;
mod tmux;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

pub use terminal::Terminal;
pub use tmux::Tmux;

/// Long for a command against a scripted model, short for someone waiting for a test.
const DEADLINE: Duration = Duration::from_secs(30);

/// How often a running process is looked at; also the precision of [`Output::wall`].
const POLL: Duration = Duration::from_millis(1);

/// A command line to run. Clones share the home folder, so a second run finds what the first left.
#[derive(Debug, Clone)]
pub struct Hermes {
    program: PathBuf,
    folder: Arc<TempDir>,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Option<String>,
    deadline: Duration,
    current_folder: Option<PathBuf>,
}

/// What a finished process left.
#[derive(Debug, Clone)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// The signal that ended the process, such as 9 when its deadline passed.
    pub signal: Option<i32>,
    pub wall: Duration,
}

/// A process in the background; dropping it kills it and its group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    started: Instant,
    stdout: PathBuf,
    stderr: PathBuf,
    /// Keeps the home as long as the process runs.
    _folder: Arc<TempDir>,
}

impl Hermes {
    /// Prepares to run `program` in a new, empty home.
    ///
    /// # Panics
    /// If there is no room for temporary files, as do all methods that need them.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for name in ["home", "work", "io"] {
            fs::create_dir(folder.path().join(name)).expect("a folder in a temporary folder");
        }
        Self {
            program: program.into(),
            folder: Arc::new(folder),
            args: Vec::new(),
            env: Vec::new(),
            stdin: None,
            deadline: DEADLINE,
            current_folder: None,
        }
    }

    /// Returns the folder given as `HERMES_HOME`.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the folder the process starts in.
    pub fn work_folder(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Gives the process this text to read; nothing by default.
    pub fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Starts the process in this folder instead of [`Self::work_folder`].
    pub fn current_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current_folder = Some(folder.into());
        self
    }

    /// Kills the process and its group after this time.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs the process to its end, or to its deadline.
    pub fn run(&self) -> Output {
        self.spawn().wait(self.deadline)
    }

    /// Starts the process in the background.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn spawn(&self) -> Running {
        // Files rather than pipes: nothing blocks when they are full or held open by a grandchild.
        let io = TempDir::new_in(self.folder.path().join("io"))
            .expect("a temporary folder")
            .keep();
        let stdout = io.join("stdout");
        let stderr = io.join("stderr");
        let started = Instant::now();
        let child = self
            .command()
            .process_group(0)
            .stdin(self.stdin_file(&io))
            .stdout(File::create(&stdout).expect("a temporary file"))
            .stderr(File::create(&stderr).expect("a temporary file"))
            .spawn();
        Running {
            child: child.unwrap_or_else(|error| self.cannot_start(&error)),
            started,
            stdout,
            stderr,
            _folder: Arc::clone(&self.folder),
        }
    }

    /// Starts the process in a terminal of 80 columns and 24 rows.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn spawn_in_terminal(&self) -> Terminal {
        self.spawn_in_terminal_of(24, 80)
    }

    /// Starts the process in a terminal of this size. It says what it is in `TERM`, unless that is given.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn spawn_in_terminal_of(&self, rows: u16, columns: u16) -> Terminal {
        let mut command = self.command();
        if !self.env.iter().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        Terminal::spawn(command, (rows, columns), Arc::clone(&self.folder))
            .unwrap_or_else(|error| self.cannot_start(&error))
    }

    /// Starts the process in tmux, in a window of 80 columns and 24 rows.
    ///
    /// # Panics
    /// If there is no tmux.
    pub fn spawn_in_tmux(&self) -> Tmux {
        let words = [self.program.as_os_str()].into_iter();
        let words: Vec<_> = words
            .chain(self.args.iter().map(OsString::as_os_str))
            .collect();
        let tmux = self.command_of(OsStr::new("tmux"));
        Tmux::start(tmux, &words, Arc::clone(&self.folder))
    }

    fn command(&self) -> Command {
        let mut command = self.command_of(self.program.as_os_str());
        command.args(&self.args);
        command
    }

    /// Any program in this home, with its folder and its environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests run the program from outside, as a shell would"
    )]
    fn command_of(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(
                self.current_folder
                    .clone()
                    .unwrap_or_else(|| self.work_folder()),
            )
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", self.folder.path())
            .env("HERMES_HOME", self.home())
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn stdin_file(&self, folder: &Path) -> Stdio {
        let Some(text) = &self.stdin else {
            return Stdio::null();
        };
        let path = folder.join("stdin");
        fs::write(&path, text).expect("a temporary file");
        File::open(&path).expect("the file just written").into()
    }

    fn cannot_start(&self, error: &dyn std::error::Error) -> ! {
        panic!("cannot start `{}`: {error}", self.program.display())
    }
}

impl Output {
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns what the process has written so far.
    pub fn stdout(&self) -> String {
        read_lossy(&self.stdout)
    }

    /// Returns what the process has complained of so far.
    pub fn stderr(&self) -> String {
        read_lossy(&self.stderr)
    }

    /// Waits until the output contains `text`.
    ///
    /// # Panics
    /// If that does not happen in time, or cannot because the process has ended.
    pub fn expect_stdout(&mut self, text: &str, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        loop {
            let has_ended = self.is_finished();
            let stdout = self.stdout();
            if stdout.contains(text) {
                return;
            }
            if has_ended || Instant::now() >= deadline {
                let stderr = self.stderr();
                panic!("no `{text}` in time\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
            }
            thread::sleep(POLL);
        }
    }

    /// Waits for the end; kills the process and its group after `deadline`.
    pub fn wait(mut self, deadline: Duration) -> Output {
        while !self.is_finished() {
            if self.started.elapsed() >= deadline {
                kill_group(&mut self.child);
                break;
            }
            thread::sleep(POLL);
        }
        self.collect()
    }

    /// Kills the process at once, without a chance to clean up. Its children are left alone.
    pub fn kill_9(mut self) -> Output {
        // Fails only if the process has already ended.
        self.child.kill().ok();
        self.collect()
    }

    fn is_finished(&mut self) -> bool {
        has_exited(&mut self.child)
    }

    fn collect(mut self) -> Output {
        let status = self.child.wait().expect("a child can be waited for");
        let wall = self.started.elapsed();
        Output {
            stdout: self.stdout(),
            stderr: self.stderr(),
            code: status.code(),
            signal: status.signal(),
            wall,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

/// Kills a child with its group, and reaps it; does nothing if it has ended.
fn kill_group(child: &mut Child) {
    if has_exited(child) {
        return;
    }
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Fails only if the group has ended in between.
        kill_process_group(pid, Signal::KILL).ok();
    }
    child.wait().ok();
}

fn has_exited(child: &mut Child) -> bool {
    exit_status(child).is_some()
}

fn exit_status(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().expect("a child can be waited for")
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
