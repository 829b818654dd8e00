//! Calls from a script on this machine: each has a connection of its own, one line of JSON there and one back.
//!
//! So threads and children of the script call without knowing of each other, and a connection that goes wrong spoils
//! nothing but itself. What a killed Hermes left is removed for the next script.

use std::convert::Infallible;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hermes_core::Random;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use super::rpc::{CALL_BYTES_MAX, ToolRpc};

/// Connections served at once; others wait in the system's queue.
const CONNECTIONS_MAX: usize = 32;

/// How long a call may take to arrive, and its answer to be taken, on a machine that is busy.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(20);

/// How long nobody is admitted after that failed, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the names of our folders begin with; 16 hexadecimal digits follow.
const FOLDER_PREFIX: &str = "hermes-";

/// The socket in its folder.
const SOCKET: &str = "socket";

/// A socket in a folder that only the user can enter. Both go away with it.
pub(super) struct Socket {
    listener: UnixListener,
    folder: PathBuf,
}

impl Socket {
    pub(super) async fn bind(parent: &Path) -> Result<Self, String> {
        remove_left(parent).await;
        let number = Random::from_system().next_u64();
        let folder = parent.join(format!("{FOLDER_PREFIX}{number:016x}"));
        let bind = || {
            DirBuilder::new().mode(0o700).create(&folder)?;
            let draft = folder.join("new");
            let listener = UnixListener::bind(&draft)?;
            fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
            // Under its name somebody listens, or nobody will.
            fs::rename(draft, folder.join(SOCKET))?;
            Ok(listener)
        };
        match bind() {
            Ok(listener) => Ok(Self { listener, folder }),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(unusable(parent, &error))
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// Answers calls for as long as it is polled.
    pub(super) async fn serve(&self, rpc: &ToolRpc) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => open.push(converse(stream, rpc)),
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = open.next() => {}
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Whoever removed it before us did the same.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of sockets behind which nobody listens any more: those of a Hermes that was killed.
async fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    for name in names.filter(|name| name.to_str().is_some_and(is_folder_name)) {
        let folder = parent.join(name);
        let connected = UnixStream::connect(folder.join(SOCKET)).await;
        if connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // What is not ours to remove stays.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn is_folder_name(name: &str) -> bool {
    let number = name.strip_prefix(FOLDER_PREFIX);
    number.is_some_and(|number| {
        number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Reads a call and writes its answer. A caller that does not speak or does not listen is left alone.
async fn converse(stream: UnixStream, rpc: &ToolRpc) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut call = Vec::new();
    let mut limited = (&mut stream).take(CALL_BYTES_MAX as u64 + 1);
    let reading = limited.read_until(b'\n', &mut call);
    timeout(TRANSFER_TIME_MAX, reading).await.ok()?.ok()?;
    let mut answer = rpc.answer(&call).await;
    answer.push(b'\n');
    let writing = stream.write_all(&answer);
    timeout(TRANSFER_TIME_MAX, writing).await.ok()?.ok()
}

fn unusable(parent: &Path, error: &io::Error) -> String {
    format!(
        "no socket for the script can be opened in `{}`: {error}; TMPDIR must be a folder that can be written to, with a \
         short name",
        parent.display()
    )
}
