//! A container, over the Engine API of Docker or of podman.
//!
//! One container per profile is kept and found again by its labels; every command is an `exec` in it.

mod engine;
mod frames;

use std::path::PathBuf;

use hermes_core::{BoxFuture, TerminalError};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::remote::{Remote, RunningScript, Transport};
use engine::{Engine, EngineError};
use frames::Frames;

/// The label every container of ours has.
const LABEL: &str = "hermes-agent";

/// The label that says whose it is.
const LABEL_PROFILE: &str = "hermes-profile";

/// What a container does while no command runs.
const IDLE: [&str; 2] = ["sleep", "2147483647"];

/// Capabilities that installing packages needs; all others are dropped.
const CAPABILITIES: [&str; 5] = ["DAC_OVERRIDE", "CHOWN", "FOWNER", "SETUID", "SETGID"];

/// Processes at once: a fork bomb ends here.
const PIDS_MAX: u32 = 256;

/// What the container is made of, and what it may use.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerSettings {
    pub socket: PathBuf,
    pub image: String,
    /// Containers are found again by this name.
    pub profile: String,
    pub cpus: f64,
    pub memory_mb: u64,
    pub network: bool,
    /// `HOST:CONTAINER[:ro]`
    pub volumes: Vec<String>,
    /// `NAME=VALUE`, chosen by the user.
    pub environment: Vec<String>,
    pub tmpfs: TmpfsSizes,
    /// Whether the container stays when we leave.
    pub persistent: bool,
    /// Where shells begin there. Without one, in the folder of the conversation.
    pub folder: Option<PathBuf>,
    pub start_files: Vec<String>,
}

/// Sizes as `mount` takes them: `512m`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmpfsSizes {
    pub tmp: String,
    pub var_tmp: String,
    pub run: String,
}

impl Default for TmpfsSizes {
    fn default() -> Self {
        Self {
            tmp: "512m".to_owned(),
            var_tmp: "256m".to_owned(),
            run: "64m".to_owned(),
        }
    }
}

/// A container that commands run in.
pub type Docker = Remote<Container>;

impl Docker {
    pub fn new(settings: DockerSettings) -> Self {
        let (folder, start_files) = (settings.folder.clone(), settings.start_files.clone());
        let container = Container {
            engine: Engine::new(settings.socket.clone()),
            settings,
            id: Mutex::default(),
        };
        Self::over(container, folder, start_files)
    }
}

pub struct Container {
    engine: Engine,
    settings: DockerSettings,
    /// Known once it runs.
    id: Mutex<Option<String>>,
}

impl Container {
    async fn start(&self, args: &[String]) -> Result<RunningScript, EngineError> {
        let mut id = self.id.lock().await;
        if let Some(known) = &*id {
            match self.exec(known, args).await {
                // Somebody stopped or removed it: another one takes its place, once.
                Err(EngineError::Refused {
                    status: 404 | 409, ..
                }) => {}
                opened => return opened,
            }
        }
        let running = self.ready().await?;
        let opened = self.exec(&running, args).await;
        *id = Some(running);
        opened
    }

    /// Finds our container or makes it, and starts it.
    async fn ready(&self) -> Result<String, EngineError> {
        let id = match self.find().await? {
            Some(id) => id,
            None => self.create().await?,
        };
        let start = format!("/containers/{id}/start");
        self.engine.post(&start, &Value::Null).await?;
        Ok(id)
    }

    async fn find(&self) -> Result<Option<String>, EngineError> {
        let profile = format!("{LABEL_PROFILE}={}", self.settings.profile);
        let filters = json!({"label": [format!("{LABEL}=1"), profile]}).to_string();
        let path = format!(
            "/containers/json?all=true&filters={}",
            engine::escaped(&filters)
        );
        let found = self.engine.get(&path).await?;
        Ok(found[0]["Id"].as_str().map(str::to_owned))
    }

    async fn create(&self) -> Result<String, EngineError> {
        let container = container(&self.settings);
        let created = match self.engine.post("/containers/create", &container).await {
            Err(EngineError::Refused { status: 404, .. }) => {
                self.pull().await?;
                self.engine.post("/containers/create", &container).await?
            }
            created => created?,
        };
        let id = created["Id"].as_str();
        id.map(str::to_owned)
            .ok_or_else(|| EngineError::Odd("a container without an id".to_owned()))
    }

    async fn pull(&self) -> Result<(), EngineError> {
        let path = format!(
            "/images/create?fromImage={}",
            engine::escaped(&self.settings.image)
        );
        self.engine.post(&path, &Value::Null).await.map(drop)
    }

    async fn exec(&self, id: &str, args: &[String]) -> Result<RunningScript, EngineError> {
        let mut words = vec!["sh".to_owned(), "-c".to_owned()];
        words.extend_from_slice(args);
        let exec = json!({
            "AttachStdin": true,
            "AttachStdout": true,
            "AttachStderr": true,
            "Tty": false,
            "Cmd": words,
        });
        let created = self
            .engine
            .post(&format!("/containers/{id}/exec"), &exec)
            .await?;
        let exec = created["Id"].as_str();
        let exec = exec.ok_or_else(|| EngineError::Odd("an exec without an id".to_owned()))?;
        let path = format!("/exec/{exec}/start");
        let stream = self
            .engine
            .hijack(&path, &json!({"Detach": false, "Tty": false}))
            .await?;
        let (output, input) = tokio::io::split(stream);
        Ok(RunningScript {
            input: Box::new(input),
            output: Box::new(Frames::new(output)),
        })
    }
}

impl Transport for Container {
    fn open<'a>(
        &'a self,
        args: &'a [String],
    ) -> BoxFuture<'a, Result<RunningScript, TerminalError>> {
        Box::pin(async {
            let opened = self.start(args).await;
            opened.map_err(|error| TerminalError::NotStarted {
                shell: format!("docker ({})", self.settings.image),
                detail: error.to_string(),
            })
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let (false, Some(id)) = (self.settings.persistent, self.id.get_mut()) {
            // An engine that is gone has no container of ours either.
            let _ = self.engine.remove_now(id);
        }
    }
}

/// What to ask the engine for.
fn container(settings: &DockerSettings) -> Value {
    let TmpfsSizes { tmp, var_tmp, run } = &settings.tmpfs;
    json!({
        "Image": settings.image,
        "Cmd": IDLE,
        "Env": settings.environment,
        "Labels": {LABEL: "1", LABEL_PROFILE: settings.profile},
        "HostConfig": {
            "Init": true,
            "CapDrop": ["ALL"],
            "CapAdd": CAPABILITIES,
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": PIDS_MAX,
            "NanoCpus": (settings.cpus * 1e9) as u64,
            "Memory": settings.memory_mb * 1024 * 1024,
            "NetworkMode": if settings.network { "bridge" } else { "none" },
            "Binds": settings.volumes,
            "Tmpfs": {
                "/tmp": format!("rw,nosuid,exec,size={tmp}"),
                "/var/tmp": format!("rw,noexec,nosuid,size={var_tmp}"),
                "/run": format!("rw,noexec,nosuid,size={run}"),
            },
        },
    })
}
