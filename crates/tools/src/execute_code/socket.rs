//! Calls from a script on this machine: each has a connection of its own, one line of JSON there and one back.
//!
//! So threads and children of the script call without knowing of each other, and a connection that goes wrong spoils
//! nothing but itself.

use std::convert::Infallible;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hermes_core::Random;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use super::door::{CALL_BYTES_MAX, Door};

/// Connections served at once; others wait in the system's queue.
const CONNECTIONS_MAX: usize = 32;

/// How long a call may take to arrive, and its answer to be taken, on a machine that is busy.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(20);

/// How long nobody is admitted after that failed, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A socket in a folder that only the user can enter. Both go away with it.
pub(super) struct Socket {
    listener: UnixListener,
    folder: PathBuf,
}

impl Socket {
    pub(super) fn bind(parent: &Path) -> Result<Self, String> {
        let name = format!("hermes-{:016x}", Random::from_system().next_u64());
        let folder = parent.join(name);
        let bind = || {
            DirBuilder::new().mode(0o700).create(&folder)?;
            let path = folder.join("socket");
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
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
        self.folder.join("socket")
    }

    /// Answers calls for as long as it is polled.
    pub(super) async fn serve(&self, door: &Door) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => open.push(converse(stream, door)),
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

/// Reads a call and writes its answer. A caller that does not speak or does not listen is left alone.
async fn converse(stream: UnixStream, door: &Door) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut call = Vec::new();
    let mut limited = (&mut stream).take(CALL_BYTES_MAX as u64 + 1);
    let reading = limited.read_until(b'\n', &mut call);
    timeout(TRANSFER_TIME_MAX, reading).await.ok()?.ok()?;
    let mut answer = door.answer(&call).await;
    answer.push(b'\n');
    let writing = stream.write_all(&answer);
    timeout(TRANSFER_TIME_MAX, writing).await.ok()?.ok()
}

fn unusable(parent: &Path, error: &std::io::Error) -> String {
    format!(
        "no socket for the script can be opened in `{}`: {error}; TMPDIR must be a folder that can be written to, with a \
         short name",
        parent.display()
    )
}
