//! Another host, over the system's own `ssh`: its keys, its `known_hosts`, its configuration.
//!
//! The first command opens a master connection, and the others share it, so that each costs a round trip and no login.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use hermes_core::{BoxFuture, CommandOutput, Random, ShellCommand, Terminal, TerminalError};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, ChildStdout, Command};

use crate::remote::{Line, OpenLine, Remote};
use crate::shell::quoted;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT_S: u32 = 10;

/// How long the master connection waits for the next command.
const KEEP_S: u32 = 300;

/// A silent host is given up after three of these.
const ALIVE_INTERVAL_S: u32 = 15;

/// Longest path of a socket that every system takes.
const SOCKET_PATH_BYTES_MAX: usize = 103;

/// What `%C` becomes, and what `ssh` adds to it while it makes the socket.
const SOCKET_NAME_BYTES: usize = 40 + 17;

/// More than `ssh` ever says when it fails.
const COMPLAINT_BYTES_MAX: usize = 4096;

/// Which host, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshSettings {
    pub host: String,
    /// Without one, `ssh` decides.
    pub user: Option<String>,
    pub port: Option<u16>,
    pub key: Option<PathBuf>,
    /// A `known_hosts` file other than the user's. Hosts that are not in it are added when they are first met.
    pub known_hosts: Option<PathBuf>,
    /// A folder for the sockets of shared connections.
    pub sockets: PathBuf,
    /// Where shells begin there, such as `~`. Without one, in the folder of the conversation.
    pub folder: Option<PathBuf>,
    pub start_files: Vec<String>,
    /// What `ssh` itself sees of our environment; the commands over there see nothing of it.
    pub environment: Vec<(OsString, OsString)>,
}

/// A host reached with `ssh`.
pub struct Ssh(Remote<SshLine>);

impl Ssh {
    pub fn new(settings: SshSettings) -> Self {
        let (folder, start_files) = (settings.folder.clone(), settings.start_files.clone());
        Self(Remote::new(SshLine { settings }, folder, start_files))
    }
}

impl Terminal for Ssh {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        self.0.run(command)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // A master that is gone already needs no farewell.
        let _ = self.0.line().farewell();
    }
}

struct SshLine {
    settings: SshSettings,
}

impl SshLine {
    fn options(&self) -> Vec<OsString> {
        let settings = &self.settings;
        let mut options: Vec<OsString> = Vec::new();
        let mut option = |text: String| options.extend(["-o".into(), text.into()]);
        option("BatchMode=yes".to_owned());
        option("LogLevel=ERROR".to_owned());
        option("StrictHostKeyChecking=accept-new".to_owned());
        option(format!("ConnectTimeout={CONNECT_TIMEOUT_S}"));
        option(format!("ServerAliveInterval={ALIVE_INTERVAL_S}"));
        if let Some(socket) = self.socket() {
            option("ControlMaster=auto".to_owned());
            option(format!("ControlPath={}", socket.display()));
            option(format!("ControlPersist={KEEP_S}"));
        }
        if let Some(known_hosts) = &settings.known_hosts {
            option(format!("UserKnownHostsFile={}", known_hosts.display()));
        }
        if let Some(user) = &settings.user {
            options.extend(["-l".into(), user.into()]);
        }
        if let Some(port) = settings.port {
            options.extend(["-p".into(), port.to_string().into()]);
        }
        if let Some(key) = &settings.key {
            options.extend(["-i".into(), key.into()]);
            options.extend(["-o".into(), "IdentitiesOnly=yes".into()]);
        }
        options
    }

    /// The socket of the shared connection; `%C` stands for host, port and user. None when its path would be too long.
    fn socket(&self) -> Option<PathBuf> {
        let folder = &self.settings.sockets;
        let fits = folder.as_os_str().len() + 1 + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES_MAX;
        fits.then(|| folder.join("%C"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-exec owns child processes"
    )]
    fn ssh(&self) -> std::process::Command {
        let environment = &self.settings.environment;
        let mut ssh = std::process::Command::new("ssh");
        ssh.env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .args(self.options());
        ssh
    }

    fn start(&self, args: &[String]) -> io::Result<OpenLine> {
        make_private(&self.settings.sockets)?;
        let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        let complaints = nameless_file(&self.settings.sockets)?;
        let mut child = Command::from(self.ssh())
            .arg("-T")
            .arg("--")
            .arg(&self.settings.host)
            .arg(format!("exec sh -c {}", words.join(" ")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not a pipe: the shared connection keeps it, and we would wait for its end.
            .stderr(complaints.try_clone()?)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no standard input or output"));
        };
        Ok(OpenLine {
            input: Box::new(input),
            output: Box::new(ChildOutput {
                output,
                complaints: Some(complaints),
                _child: child,
            }),
        })
    }

    /// Ends the shared connection.
    fn farewell(&self) -> io::Result<()> {
        let Some(socket) = self.socket() else {
            return Ok(());
        };
        if !socket.parent().is_some_and(has_entries) {
            return Ok(());
        }
        let mut child = self
            .ssh()
            .args(["-O", "exit", "--", &self.settings.host])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        child.wait().map(drop)
    }
}

impl Line for SshLine {
    fn open<'a>(&'a self, args: &'a [String]) -> BoxFuture<'a, Result<OpenLine, TerminalError>> {
        let opened = self.start(args).map_err(|error| TerminalError::NotStarted {
            shell: "ssh".to_owned(),
            detail: error.to_string(),
        });
        Box::pin(std::future::ready(opened))
    }

    fn cut(&self, said: &str) -> TerminalError {
        let host = &self.settings.host;
        let detail = match said.trim() {
            "" => format!("the connection to `{host}` was cut"),
            said => format!("`ssh` to `{host}`: {said}"),
        };
        TerminalError::Lost { detail }
    }
}

/// What `ssh` brings from there, and at the end what it has to say itself. The child goes with it.
struct ChildOutput {
    output: ChildStdout,
    complaints: Option<fs::File>,
    _child: Child,
}

impl AsyncRead for ChildOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(cx, buffer))?;
        let is_over = buffer.filled().len() == filled;
        if let (true, Some(mut complaints)) = (is_over, self.complaints.take_if(|_| is_over)) {
            let mut said = vec![0; buffer.remaining().min(COMPLAINT_BYTES_MAX)];
            complaints.rewind()?;
            let len = complaints.read(&mut said)?;
            buffer.put_slice(&said[..len]);
        }
        Poll::Ready(Ok(()))
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// A file that is gone when nobody has it open any more.
fn nameless_file(folder: &Path) -> io::Result<fs::File> {
    let name = format!("said-{:016x}", Random::from_system().next_u64());
    let path = folder.join(name);
    let file = fs::OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

fn has_entries(folder: &Path) -> bool {
    folder
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
}
