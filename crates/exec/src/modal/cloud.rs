//! What we ask of Modal itself: an image, a sandbox made from it, and the way to the machine that runs it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::ModalSettings;
use super::grpc::{Call, Channel, DetachedCalls, GrpcError, code};
use super::messages::{
    AppGetOrCreate, CREATE_IF_MISSING, Definition, GenericResult, Image, ImageGetOrCreate,
    ImageJoinStreaming, NetworkAccess, OPEN, Resources, SUCCESS, SandboxCreate, SandboxGetTaskId,
    SandboxTerminate, SandboxWait, TaskGetCommandRouterAccess, TaskSnapshotFilesystem, UNFINISHED,
    WORKSPACE,
};

/// All sandboxes of ours belong to this one.
const APP: &str = "hermes-agent";

/// The version of the official client whose protocol this is; Modal turns away clients that are too old.
const CLIENT_VERSION: &str = "1.6.3";

/// `CLIENT_TYPE_CLIENT`: not a container of theirs.
const CLIENT_TYPE: &str = "1";

/// How images are built: of these versions, one that leaves them as they are.
const BUILDER_VERSION: &str = "2025.06";

/// What a sandbox does while no command runs.
const IDLE: [&str; 2] = ["sleep", "infinity"];

/// How long Modal may look for a machine.
const CREATE_TIME_MAX: Duration = Duration::from_secs(300);

/// How often we look whether it has found one.
const CREATE_INTERVAL: Duration = Duration::from_millis(500);

/// How long building an image may take.
const BUILD_TIME_MAX: Duration = Duration::from_secs(900);

/// How long one look at a build lasts, as the server counts.
const JOIN_SECONDS: f32 = 55.0;

/// Of what a build printed, enough to see why it failed.
const BUILD_LOG_BYTES_MAX: usize = 2000;

/// Snapshots that nobody has renewed for this long are removed by Modal.
const SNAPSHOT_SECONDS: i64 = 30 * 24 * 3600;

#[derive(Debug, thiserror::Error)]
pub(super) enum CloudError {
    #[error(transparent)]
    Asked(#[from] GrpcError),
    #[error("the image `{image}` cannot be built: {reason}")]
    NotBuilt { image: String, reason: String },
    #[error("the sandbox ended before it began: {reason}")]
    NotBegun { reason: String },
    #[error("Modal found no machine for the sandbox within {} s", CREATE_TIME_MAX.as_secs())]
    NoMachine,
}

impl CloudError {
    /// Whether the fault lies with what was asked for, and not with the way there.
    pub(super) fn is_final(&self) -> bool {
        let codes = [
            code::INVALID_ARGUMENT,
            code::NOT_FOUND,
            code::FAILED_PRECONDITION,
        ];
        match self {
            Self::Asked(error) => error.has_code(&codes),
            Self::NotBuilt { .. } | Self::NotBegun { .. } => true,
            Self::NoMachine => false,
        }
    }
}

pub(super) struct Cloud {
    settings: ModalSettings,
    /// Made when it is first needed: reading the system's certificates takes time.
    channel: OnceLock<Channel>,
    detached_calls: DetachedCalls,
}

impl Cloud {
    pub(super) fn new(settings: ModalSettings) -> Self {
        Self {
            settings,
            channel: OnceLock::new(),
            detached_calls: DetachedCalls::default(),
        }
    }

    pub(super) async fn app(&self) -> Result<String, CloudError> {
        let app = self.ask(AppGetOrCreate {
            app_name: APP.to_owned(),
            environment_name: self.settings.environment.clone(),
            object_creation_type: CREATE_IF_MISSING,
        });
        Ok(app.await?.app_id)
    }

    /// Returns the image of the settings, which is built when nobody has needed it before.
    pub(super) async fn image(&self, app: &str) -> Result<String, CloudError> {
        let image = &self.settings.image;
        if image.starts_with("im-") {
            return Ok(image.clone());
        }
        let state = self.ask(ImageGetOrCreate {
            image: Some(Image {
                dockerfile_commands: vec![format!("FROM {image}")],
            }),
            app_id: app.to_owned(),
            namespace: WORKSPACE,
            builder_version: BUILDER_VERSION.to_owned(),
        });
        let state = state.await?;
        let (result, log) = match state.result.filter(is_finished) {
            Some(result) => (result, String::new()),
            None => self.built(&state.image_id).await?,
        };
        if result.status == SUCCESS {
            return Ok(state.image_id);
        }
        let reason = [result.exception.trim(), log.trim()].join("\n");
        Err(CloudError::NotBuilt {
            image: image.clone(),
            reason: reason.trim().to_owned(),
        })
    }

    /// Waits for the end of a build. Returns also the last of what it printed.
    async fn built(&self, image_id: &str) -> Result<(GenericResult, String), CloudError> {
        let deadline = Instant::now() + BUILD_TIME_MAX;
        let (mut last_entry_id, mut log) = (String::new(), String::new());
        while Instant::now() < deadline {
            let join = ImageJoinStreaming {
                image_id: image_id.to_owned(),
                timeout: JOIN_SECONDS,
                last_entry_id: last_entry_id.clone(),
            };
            let mut progress = self.channel()?.listen(&join).await?;
            let mut result = None;
            while let Some(step) = progress.next().await? {
                log.extend(step.task_logs.into_iter().map(|entry| entry.data));
                keep_end(&mut log);
                if !step.entry_id.is_empty() {
                    last_entry_id = step.entry_id;
                }
                result = step.result.filter(is_finished).or(result);
            }
            if let Some(result) = result {
                return Ok((result, log));
            }
        }
        let exception = format!("it takes longer than {} s", BUILD_TIME_MAX.as_secs());
        let result = GenericResult {
            exception,
            ..GenericResult::default()
        };
        Ok((result, log))
    }

    /// Makes a sandbox and waits until it has a machine.
    pub(super) async fn create(
        self: &Arc<Self>,
        app: &str,
        image_id: &str,
    ) -> Result<Sandbox, CloudError> {
        let create = SandboxCreate {
            app_id: app.to_owned(),
            definition: Some(definition(&self.settings, image_id)),
        };
        let (hand_over, created) = oneshot::channel();
        let cloud = Arc::clone(self);
        // Whoever stops waiting in the middle would never know that there is a sandbox.
        self.detached_calls.run(async move {
            let created = cloud.ask(create).await;
            let _ = hand_over.send(created.map(|created| Unplaced {
                cloud,
                id: created.sandbox_id,
                is_placed: false,
            }));
        });
        let mut unplaced = created.await.unwrap_or(Err(GrpcError::Cut))?;
        let sandbox = self.placed(&unplaced.id).await?;
        unplaced.is_placed = true;
        Ok(sandbox)
    }

    async fn placed(self: &Arc<Self>, id: &str) -> Result<Sandbox, CloudError> {
        let since = Instant::now();
        while since.elapsed() < CREATE_TIME_MAX {
            let answer = self.ask(SandboxGetTaskId {
                sandbox_id: id.to_owned(),
            });
            let answer = answer.await?;
            if let Some(task) = answer.task_id.filter(|task| !task.is_empty()) {
                return Ok(Sandbox {
                    router: Mutex::new(self.router(&task).await?),
                    cloud: Arc::clone(self),
                    id: id.to_owned(),
                    task,
                    since,
                });
            }
            if let Some(result) = answer.task_result {
                return Err(CloudError::NotBegun {
                    reason: result.exception,
                });
            }
            sleep(CREATE_INTERVAL).await;
        }
        Err(CloudError::NoMachine)
    }

    /// Returns the way to the machine that runs a sandbox.
    async fn router(&self, task: &str) -> Result<Channel, GrpcError> {
        let access = self.ask(TaskGetCommandRouterAccess {
            task_id: task.to_owned(),
        });
        let access = access.await?;
        // The key to a sandbox is not to be read on the way, unless all of it happens on this machine.
        let is_fit = access.url.starts_with("https://")
            || self.settings.address.starts_with("http://") && access.url.starts_with("http://");
        if !is_fit {
            let words = format!("the sandbox is at `{}`, which is not https", access.url);
            return Err(GrpcError::Odd(words));
        }
        let router = self.channel()?.to(&access.url);
        router.showing("authorization", &format!("Bearer {}", access.jwt))
    }

    pub(super) async fn is_running(&self, sandbox: &Sandbox) -> Result<bool, GrpcError> {
        let waited = self.ask(SandboxWait {
            sandbox_id: sandbox.id.clone(),
            timeout: 0.0,
        });
        match waited.await {
            Ok(waited) => Ok(!waited.result.as_ref().is_some_and(is_finished)),
            Err(error) if error.has_code(&[code::NOT_FOUND]) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Keeps the files of a sandbox as an image.
    pub(super) async fn snapshot(
        &self,
        sandbox: &Sandbox,
        name: String,
    ) -> Result<String, GrpcError> {
        let snapshot = TaskSnapshotFilesystem {
            task_id: sandbox.task.clone(),
            snapshot_id: name,
            ttl_seconds: Some(SNAPSHOT_SECONDS),
        };
        let router = self.router(&sandbox.task).await?;
        Ok(router.ask(&snapshot).await?.image_id)
    }

    pub(super) async fn terminate(&self, sandbox_id: &str) -> Result<(), GrpcError> {
        let terminate = SandboxTerminate {
            sandbox_id: sandbox_id.to_owned(),
        };
        self.ask(terminate).await.map(drop)
    }

    async fn ask<C: Call>(&self, call: C) -> Result<C::Response, GrpcError> {
        self.channel()?.ask(&call).await
    }

    fn channel(&self) -> Result<&Channel, GrpcError> {
        if let Some(channel) = self.channel.get() {
            return Ok(channel);
        }
        let channel = Channel::new(&self.settings.address)?
            .showing("x-modal-client-type", CLIENT_TYPE)?
            .showing("x-modal-client-version", CLIENT_VERSION)?
            .showing("x-modal-token-id", self.settings.token_id.expose())?
            .showing("x-modal-token-secret", self.settings.token_secret.expose())?;
        Ok(self.channel.get_or_init(|| channel))
    }
}

/// A sandbox that has no machine yet. Without anybody who waits for it, it is ended: it could begin later, unseen.
struct Unplaced {
    cloud: Arc<Cloud>,
    id: String,
    is_placed: bool,
}

impl Drop for Unplaced {
    fn drop(&mut self) {
        if let (false, Ok(channel)) = (self.is_placed, self.cloud.channel()) {
            let sandbox_id = std::mem::take(&mut self.id);
            let terminate = SandboxTerminate { sandbox_id };
            self.cloud.detached_calls.send(channel.clone(), terminate);
        }
    }
}

/// A sandbox that has a machine.
pub(super) struct Sandbox {
    cloud: Arc<Cloud>,
    pub(super) id: String,
    /// What it is called on its machine.
    pub(super) task: String,
    pub(super) since: Instant,
    router: Mutex<Channel>,
}

impl Sandbox {
    /// Asks the machine. What it is shown is renewed when it has become too old.
    pub(super) async fn ask<C: Call>(&self, call: &C) -> Result<C::Response, GrpcError> {
        match self.router().ask(call).await {
            Err(error) if error.has_code(&[code::UNAUTHENTICATED]) => {
                self.renew().await?;
                self.router().ask(call).await
            }
            asked => asked,
        }
    }

    /// Asks without waiting for an answer.
    pub(super) fn send_off<C: Call + 'static>(&self, call: C) {
        self.cloud.detached_calls.send(self.router(), call);
    }

    pub(super) fn router(&self) -> Channel {
        let router = self.router.lock();
        router.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn renew(&self) -> Result<(), GrpcError> {
        let renewed = self.cloud.router(&self.task).await?;
        *self.router.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }
}

fn is_finished(result: &GenericResult) -> bool {
    result.status != UNFINISHED
}

/// What to ask Modal for. Nothing of ours goes with it: no variable, no secret.
fn definition(settings: &ModalSettings, image_id: &str) -> Definition {
    Definition {
        entrypoint_args: IDLE.map(str::to_owned).into(),
        image_id: image_id.to_owned(),
        resources: Some(Resources {
            memory_mb: u32::try_from(settings.memory_mb).unwrap_or(u32::MAX),
            milli_cpu: (settings.cpus * 1000.0) as u32,
        }),
        timeout_secs: u32::try_from(settings.lifetime.as_secs()).unwrap_or(u32::MAX),
        network_access: Some(NetworkAccess {
            network_access_type: OPEN,
        }),
    }
}

/// Drops the beginning of a log that has become long.
fn keep_end(log: &mut String) {
    let surplus = log.len().saturating_sub(BUILD_LOG_BYTES_MAX);
    log.drain(..log.ceil_char_boundary(surplus));
}
