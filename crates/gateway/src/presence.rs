//! Which process serves a home. A lock says so, and it ends with its process: nothing stale is ever believed.
//!
//! The file of the lock says who holds it; a socket beside it answers everybody who connects with a [`Report`].

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{BoxFuture, Timestamp};
use hermes_os::FileLock;
use hermes_os::lock::{self, Sharing};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::report::Report;

const LOCK: &str = "gateway.lock";
const SOCKET: &str = "gateway.sock";
/// Longer paths than this do not fit into an address; they are reached through their folder.
const SOCKET_PATH_BYTES_MAX: usize = 100;
/// A report takes some milliseconds.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// More than any report.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Whoever just took the lock writes its name within moments.
const NAME_LOOKS: u32 = 20;
const NAME_LOOK: Duration = Duration::from_millis(10);

/// Who serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub started: Timestamp,
    pub version: String,
    /// The service manager that starts it again.
    pub service: Option<String>,
}

/// The right to serve a home; given back when it is dropped.
#[derive(Debug)]
pub struct Presence {
    _lock: FileLock,
    listener: UnixListener,
}

#[derive(Debug, thiserror::Error)]
pub enum NotPresent {
    #[error("a gateway serves this home already (pid {})", .0.pid)]
    Held(Holder),
    #[error("`{}` cannot be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Presence {
    /// Takes the right, as soon as whoever has it lets it go.
    pub async fn take(
        home: &Path,
        holder: &Holder,
        patience: Duration,
    ) -> Result<Self, NotPresent> {
        let path = home.join(LOCK);
        let io = |source| NotPresent::Io {
            path: path.clone(),
            source,
        };
        let lock = match lock::lock(&path, Sharing::Alone, patience).await {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(match named(&path).await.map_err(io)? {
                    Some(holder) => NotPresent::Held(holder),
                    None => io(error),
                });
            }
            Err(error) => return Err(io(error)),
        };
        write(lock.file(), holder).map_err(io)?;
        let listener = listen(home).map_err(|source| NotPresent::Io {
            path: home.join(SOCKET),
            source,
        })?;
        Ok(Self {
            _lock: lock,
            listener,
        })
    }

    /// Answers whoever asks how things are. Never ends.
    pub async fn answer(&self, report: impl Fn() -> BoxFuture<'static, Report>) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let answered = timeout(ANSWER_PATIENCE, answer(stream, report().await)).await;
                    if !matches!(answered, Ok(Ok(()))) {
                        tracing::debug!("somebody asked how things are and did not listen");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "nobody can ask how things are for now");
                    tokio::time::sleep(ANSWER_PATIENCE).await;
                }
            }
        }
    }
}

/// Keeps gateways away for as long as it is held, without being one; `None` while one serves.
pub fn alone(home: &Path) -> io::Result<Option<FileLock>> {
    let Some(lock) = lock::try_lock(&home.join(LOCK), Sharing::Alone)? else {
        return Ok(None);
    };
    // Nobody is to take us for whoever was here last.
    lock.file().set_len(0)?;
    Ok(Some(lock))
}

/// Who serves a home now.
pub async fn holder(home: &Path) -> io::Result<Option<Holder>> {
    let path = home.join(LOCK);
    if !path.try_exists()? || lock::try_lock(&path, Sharing::Shared)?.is_some() {
        return Ok(None);
    }
    named(&path).await
}

/// How the gateway of a home says it is.
pub async fn ask(home: &Path) -> io::Result<Report> {
    let (address, _folder) = address(home)?;
    let asking = async {
        let mut stream = UnixStream::connect(&address).await?.take(ANSWER_BYTES_MAX);
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        serde_json::from_str(&text).map_err(io::Error::other)
    };
    let answer = timeout(ANSWER_PATIENCE, asking).await;
    answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Who holds a lock, by its file; `None` when it was let go meanwhile, or is held by nobody who serves.
async fn named(path: &Path) -> io::Result<Option<Holder>> {
    for _ in 0..NAME_LOOKS {
        if let Ok(holder) = serde_json::from_slice(&fs::read(path)?) {
            return Ok(Some(holder));
        }
        if lock::try_lock(path, Sharing::Shared)?.is_some() {
            return Ok(None);
        }
        tokio::time::sleep(NAME_LOOK).await;
    }
    Ok(None)
}

/// Writes into a lock that is held who holds it.
pub(crate) fn write(mut file: &File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(holder)?)
}

async fn answer(mut stream: UnixStream, report: Report) -> io::Result<()> {
    stream.write_all(&serde_json::to_vec(&report)?).await?;
    stream.shutdown().await
}

/// Whoever has the lock may replace the socket that another process left.
fn listen(home: &Path) -> io::Result<UnixListener> {
    let path = home.join(SOCKET);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (address, _folder) = address(home)?;
    let listener = UnixListener::bind(&address)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Where the socket is, and the folder that must stay open meanwhile.
fn address(home: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let path = home.join(SOCKET);
    if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX || !cfg!(target_os = "linux") {
        return Ok((path, None));
    }
    let folder = File::open(home)?;
    let through = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
    Ok((through.into(), Some(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Holder {
        Holder {
            pid: std::process::id(),
            started: Timestamp::from_millis(7),
            version: "1".into(),
            service: None,
        }
    }

    #[tokio::test]
    async fn a_home_is_served_by_one_and_a_name_that_was_left_means_nothing() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(holder(home.path()).await.unwrap(), None);
        let taken = Presence::take(home.path(), &me(), Duration::ZERO).await;
        let presence = taken.unwrap();
        assert_eq!(holder(home.path()).await.unwrap(), Some(me()));
        let second = Presence::take(home.path(), &me(), Duration::from_millis(50)).await;
        assert!(matches!(second, Err(NotPresent::Held(holder)) if holder == me()));
        drop(presence);
        // Complaint 7: markers that outlive what they mark.
        assert_eq!(holder(home.path()).await.unwrap(), None);
        assert!(ask(home.path()).await.is_err());
        let sending = alone(home.path()).unwrap().unwrap();
        assert_eq!(holder(home.path()).await.unwrap(), None);
        drop(sending);
        Presence::take(home.path(), &me(), Duration::ZERO)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn whoever_asks_is_answered_also_in_a_deep_folder() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a".repeat(60)).join("b".repeat(60));
        fs::create_dir_all(&deep).unwrap();
        let presence = Presence::take(&deep, &me(), Duration::ZERO).await.unwrap();
        let mode = fs::metadata(deep.join(SOCKET)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let answering = presence.answer(|| {
            Box::pin(async {
                Report {
                    pid: 42,
                    ..Report::default()
                }
            })
        });
        let report = tokio::select! {
            report = ask(&deep) => report.unwrap(),
            () = answering => unreachable!("it never ends"),
        };
        assert_eq!(report.pid, 42);
    }
}
