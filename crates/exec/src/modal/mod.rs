//! A sandbox of Modal, over the gRPC that its own client libraries speak.
//!
//! A sandbox is made with the first command. When we leave, a snapshot of its files is taken, from which the next one
//! begins. `cloud` makes sandboxes, `transport` runs commands in them, `grpc` and `messages` are how both speak.

mod cloud;
mod grpc;
mod messages;
mod snapshots;
mod transport;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{BoxFuture, Random, Secret, TerminalError};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::remote::{Remote, RunningScript, Transport};
use cloud::{Cloud, CloudError, Sandbox};
use snapshots::Snapshots;
use transport::Exec;

/// How long the machine of a sandbox may be out of reach while Modal says that it runs.
const REACH_TIME_MAX: Duration = Duration::from_secs(300);

/// How often it is tried.
const REACH_INTERVAL: Duration = Duration::from_secs(1);

/// How long the end of Hermes may wait for a snapshot and the end of the sandbox.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(30);

/// Which sandbox, and whose.
#[derive(Debug, Clone)]
pub struct ModalSettings {
    /// Such as `https://api.modal.com`.
    pub address: String,
    pub token_id: Secret,
    pub token_secret: Secret,
    /// An environment of the workspace; the usual one when empty.
    pub environment: String,
    /// A name in a registry, or the id of an image: `im-…`.
    pub image: String,
    pub cpus: f64,
    pub memory_mb: u64,
    /// How long Modal lets a sandbox live, whatever becomes of us.
    pub lifetime: Duration,
    /// Whether files are kept from one sandbox to the next.
    pub persistent: bool,
    /// Where the snapshot to begin from is remembered.
    pub snapshots: PathBuf,
    /// Where shells begin there. Without one, in the folder of the conversation.
    pub folder: Option<PathBuf>,
}

/// A sandbox that commands run in.
pub type Modal = Remote<SandboxTransport>;

impl Modal {
    pub fn new(settings: ModalSettings) -> Self {
        let folder = settings.folder.clone();
        let transport = SandboxTransport {
            snapshots: Snapshots::new(settings.snapshots.clone()),
            cloud: Arc::new(Cloud::new(settings.clone())),
            settings,
            sandbox: Mutex::default(),
            random: Random::from_system(),
        };
        Self::over(transport, folder, Vec::new())
    }
}

pub struct SandboxTransport {
    settings: ModalSettings,
    cloud: Arc<Cloud>,
    snapshots: Snapshots,
    /// Known once there is one.
    sandbox: Mutex<Option<Arc<Sandbox>>>,
    random: Random,
}

impl Transport for SandboxTransport {
    fn open<'a>(
        &'a self,
        args: &'a [String],
    ) -> BoxFuture<'a, Result<RunningScript, TerminalError>> {
        Box::pin(async {
            let opened = self.open(args).await;
            opened.map_err(|error| TerminalError::NotStarted {
                shell: format!("modal ({})", self.settings.image),
                detail: error.to_string(),
            })
        })
    }

    fn cut(&self, said: &str) -> TerminalError {
        let detail = match said.trim() {
            "" => "the sandbox does not answer any more; the command there is ended".to_owned(),
            said => format!("the sandbox does not answer any more after: {said}"),
        };
        TerminalError::Lost { detail }
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Some(sandbox) = self.sandbox.lock().await.take() else {
                return;
            };
            if timeout(LEAVE_TIME_MAX, self.leave(&sandbox)).await.is_err() {
                let sandbox = &sandbox.id;
                tracing::warn!(
                    sandbox,
                    "leaving took too long; what changed since the last snapshot is lost"
                );
            }
        })
    }
}

impl SandboxTransport {
    async fn open(&self, args: &[String]) -> Result<RunningScript, CloudError> {
        let mut current = self.sandbox.lock().await;
        if let Some(old) = current.take_if(|sandbox| self.is_old(sandbox)) {
            self.leave(&old).await;
        }
        if let Some(sandbox) = &*current
            && let Some(opened) = self.open_in(sandbox, args).await?
        {
            return Ok(opened);
        }
        // There was none, or it died: another one takes its place.
        *current = None;
        let sandbox = Arc::new(self.wake().await?);
        *current = Some(Arc::clone(&sandbox));
        let opened = self.open_in(&sandbox, args).await?;
        opened.ok_or_else(|| CloudError::NotBegun {
            reason: "no command could be run in it".to_owned(),
        })
    }

    /// Starts a script in a sandbox. Returns nothing when the sandbox is no more.
    async fn open_in(
        &self,
        sandbox: &Arc<Sandbox>,
        args: &[String],
    ) -> Result<Option<RunningScript>, CloudError> {
        let exec = Exec::new(Arc::clone(sandbox), args, &self.random);
        let deadline = Instant::now() + REACH_TIME_MAX;
        loop {
            let Err(error) = exec.start().await else {
                return Ok(Some(exec.into_running()));
            };
            if !self.cloud.is_running(sandbox).await? {
                return Ok(None);
            }
            if !error.is_passing() || Instant::now() > deadline {
                return Err(error.into());
            }
            sleep(REACH_INTERVAL).await;
        }
    }

    /// Makes a sandbox that has the files of the last one.
    async fn wake(&self) -> Result<Sandbox, CloudError> {
        let app = self.cloud.app().await?;
        let snapshot = self.snapshots.image().filter(|_| self.settings.persistent);
        if let Some(image_id) = snapshot {
            match self.cloud.create(&app, &image_id).await {
                Err(error) if error.is_final() => {
                    tracing::warn!(%error, image_id, "no sandbox can be made from the last snapshot; the files in it are lost");
                    // What stays recorded is only tried in vain.
                    let _ = self.snapshots.forget();
                }
                created => return created,
            }
        }
        let image_id = self.cloud.image(&app).await?;
        self.cloud.create(&app, &image_id).await
    }

    /// Whether a sandbox that nobody uses now may end before a long command does.
    fn is_old(&self, sandbox: &Arc<Sandbox>) -> bool {
        let is_idle = Arc::strong_count(sandbox) == 1;
        is_idle && sandbox.since.elapsed() >= self.settings.lifetime * 5 / 6
    }

    /// Keeps the files of a sandbox and ends it.
    async fn leave(&self, sandbox: &Sandbox) {
        if self.settings.persistent {
            let name = transport::new_id(&self.random);
            match self.cloud.snapshot(sandbox, name).await {
                Ok(image_id) => {
                    if let Err(error) = self.snapshots.remember(&image_id) {
                        tracing::warn!(%error, image_id, "the snapshot of the sandbox cannot be recorded");
                    }
                }
                Err(error) => tracing::warn!(%error, "the files of the sandbox are lost"),
            }
        }
        if let Err(error) = self.cloud.terminate(&sandbox.id).await {
            tracing::warn!(%error, sandbox = sandbox.id, "the sandbox runs on until its time is over");
        }
    }
}
