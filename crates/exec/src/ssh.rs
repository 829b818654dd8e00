//! Another host, over the system's own `ssh`: its keys, its `known_hosts`, its configuration.
//!
//! The first command opens a master connection, and the others share it, so that each costs a round trip and no login.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hermes_core::{BoxFuture, TerminalError};

use crate::remote::{Remote, RunningScript, Transport, child};
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
pub type Ssh = Remote<SshTransport>;

impl Ssh {
    pub fn new(settings: SshSettings) -> Self {
        let (folder, start_files) = (settings.folder.clone(), settings.start_files.clone());
        Self::over(SshTransport { settings }, folder, start_files)
    }
}

impl Drop for SshTransport {
    fn drop(&mut self) {
        // A master that is gone already needs no farewell.
        let _ = self.farewell();
    }
}

pub struct SshTransport {
    settings: SshSettings,
}

impl SshTransport {
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

    fn start(&self, args: &[String]) -> io::Result<RunningScript> {
        let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        let mut ssh = self.ssh();
        ssh.arg("-T")
            .arg("--")
            .arg(&self.settings.host)
            .arg(format!("exec sh -c {}", words.join(" ")));
        child::open(ssh, &self.settings.sockets)
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

impl Transport for SshTransport {
    fn open<'a>(
        &'a self,
        args: &'a [String],
    ) -> BoxFuture<'a, Result<RunningScript, TerminalError>> {
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

fn has_entries(folder: &Path) -> bool {
    folder
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
}
