//! A sandbox of Daytona, over its HTTP API.
//!
//! One sandbox per profile is made, found again by its name, and woken when it sleeps: Daytona itself puts it to sleep
//! when nobody has used it for a while, also when we were killed. Commands are calls to its toolbox.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::{BoxFuture, Random, Secret, TerminalError};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::remote::calls::{self, Calls};
use crate::remote::{Remote, RunningScript, Transport};

/// Longest answer of the API. A call to the toolbox waits for output, but not for this long.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a sandbox may take to be made or woken: an image may have to be built first.
const WAKE_TIME_MAX: Duration = Duration::from_secs(600);

/// How often we look whether it is awake.
const WAKE_INTERVAL: Duration = Duration::from_millis(500);

/// Daytona gives a sandbox no more disk than this.
const DISK_GIB_MAX: u64 = 10;

const MB_PER_GIB: u64 = 1024;

/// Which sandbox, and whose.
#[derive(Debug, Clone)]
pub struct DaytonaSettings {
    /// Such as `https://app.daytona.io/api`.
    pub address: String,
    pub key: Secret,
    /// Without one, Daytona's default with its sizes.
    pub image: Option<String>,
    /// The sandbox is found again by this name.
    pub profile: String,
    pub cpus: u64,
    pub memory_mb: u64,
    pub disk_mb: u64,
    /// Whether a sandbox that was put to sleep is kept.
    pub persistent: bool,
    /// Put to sleep after so many minutes without use.
    pub idle_minutes: u64,
    /// Where shells begin there. Without one, in the folder of the conversation.
    pub folder: Option<PathBuf>,
}

/// A sandbox that commands run in.
pub type Daytona = Remote<SandboxTransport>;

impl Daytona {
    pub fn new(settings: DaytonaSettings) -> Self {
        let folder = settings.folder.clone();
        let transport = SandboxTransport {
            sandbox: Arc::new(Sandbox {
                settings,
                http: OnceLock::new(),
                toolbox: Mutex::default(),
            }),
            random: Random::from_system(),
        };
        Self::over(transport, folder, Vec::new())
    }
}

pub struct SandboxTransport {
    sandbox: Arc<Sandbox>,
    random: Random,
}

impl Transport for SandboxTransport {
    fn open<'a>(
        &'a self,
        args: &'a [String],
    ) -> BoxFuture<'a, Result<RunningScript, TerminalError>> {
        let calls: Arc<dyn Calls> = Arc::<Sandbox>::clone(&self.sandbox);
        Box::pin(calls::open(calls, args, &self.random))
    }

    fn cut(&self, said: &str) -> TerminalError {
        let detail = match said.trim() {
            "" => "Daytona does not answer any more; the command there is ended".to_owned(),
            said => format!("Daytona does not answer any more after: {said}"),
        };
        TerminalError::Lost { detail }
    }
}

#[derive(Debug, thiserror::Error)]
enum DaytonaError {
    #[error("cannot ask Daytona: {0}")]
    Unreachable(#[from] reqwest::Error),
    #[error("Daytona says: {message}")]
    Refused { status: StatusCode, message: String },
    #[error("the sandbox is `{state}`: {reason}")]
    Broken { state: String, reason: String },
    #[error("the sandbox was still `{state}` after {} s", WAKE_TIME_MAX.as_secs())]
    Asleep { state: String },
}

struct Sandbox {
    settings: DaytonaSettings,
    http: OnceLock<Client>,
    /// Where its toolbox is, once it was seen awake.
    toolbox: Mutex<Option<String>>,
}

impl Calls for Sandbox {
    fn call(self: Arc<Self>, script: String) -> BoxFuture<'static, Result<String, TerminalError>> {
        Box::pin(async move {
            let said = self.run(&script).await;
            said.map_err(|error| TerminalError::NotStarted {
                shell: "daytona".to_owned(),
                detail: error.to_string(),
            })
        })
    }
}

impl Sandbox {
    /// Runs a script in the toolbox. A sandbox that was put to sleep is woken, once.
    async fn run(&self, script: &str) -> Result<String, DaytonaError> {
        let toolbox = self.toolbox.lock().await.clone();
        if let Some(toolbox) = toolbox {
            match self.execute(&toolbox, script).await {
                Err(DaytonaError::Refused { .. }) if !self.is_awake().await? => {}
                said => return said,
            }
        }
        let toolbox = self.wake().await?;
        self.execute(&toolbox, script).await
    }

    async fn execute(&self, toolbox: &str, script: &str) -> Result<String, DaytonaError> {
        // Not every toolbox has a shell take the command apart; these words mean the same to all of them.
        let encoded = STANDARD.encode(script);
        let command = format!("sh -c 'echo {encoded} | base64 -d | sh'");
        let body = json!({"command": command, "timeout": ANSWER_TIME_MAX.as_secs()});
        let path = format!("{toolbox}/process/execute");
        let said = self.ask(Method::POST, &path, &body).await?;
        Ok(said["result"].as_str().unwrap_or_default().to_owned())
    }

    async fn is_awake(&self) -> Result<bool, DaytonaError> {
        let sandbox = self.find().await?;
        Ok(sandbox.is_some_and(|sandbox| sandbox["state"] == "started"))
    }

    /// Makes the sandbox or wakes it, and returns where its toolbox is.
    async fn wake(&self) -> Result<String, DaytonaError> {
        let mut toolbox = self.toolbox.lock().await;
        let deadline = Instant::now() + WAKE_TIME_MAX;
        let mut is_asked = false;
        loop {
            let Some(sandbox) = self.find().await? else {
                let wanted = wanted(&self.settings, &self.name());
                self.ask(Method::POST, &self.address("sandbox"), &wanted)
                    .await?;
                continue;
            };
            let id = sandbox["id"].as_str().unwrap_or_default();
            let state = sandbox["state"].as_str().unwrap_or_default();
            match state {
                "started" => {
                    let address = self.toolbox_of(&sandbox, id);
                    *toolbox = Some(address.clone());
                    return Ok(address);
                }
                "stopped" | "archived" if !is_asked => {
                    let start = self.address(&format!("sandbox/{id}/start"));
                    self.ask(Method::POST, &start, &Value::Null).await?;
                    is_asked = true;
                    continue;
                }
                "error" | "build_failed" => {
                    let reason = sandbox["errorReason"].as_str().unwrap_or("no reason given");
                    return Err(DaytonaError::Broken {
                        state: state.to_owned(),
                        reason: reason.to_owned(),
                    });
                }
                _ if Instant::now() > deadline => {
                    let state = state.to_owned();
                    return Err(DaytonaError::Asleep { state });
                }
                _ => {}
            }
            sleep(WAKE_INTERVAL).await;
        }
    }

    async fn find(&self) -> Result<Option<Value>, DaytonaError> {
        let path = self.address(&format!("sandbox/{}", self.name()));
        match self.ask(Method::GET, &path, &Value::Null).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(DaytonaError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Newer servers name a proxy that is nearer to the sandbox.
    fn toolbox_of(&self, sandbox: &Value, id: &str) -> String {
        match sandbox["toolboxProxyUrl"].as_str() {
            Some(proxy) => format!("{}/{id}", proxy.trim_end_matches('/')),
            None => self.address(&format!("toolbox/{id}/toolbox")),
        }
    }

    async fn ask(&self, method: Method, url: &str, body: &Value) -> Result<Value, DaytonaError> {
        let mut request = self.client()?.request(method, url);
        request = request.bearer_auth(self.settings.key.expose());
        if !body.is_null() {
            let json = "application/json";
            request = request.header("content-type", json).body(body.to_string());
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        let message = value["message"].as_str().unwrap_or(text.trim());
        Err(DaytonaError::Refused {
            status,
            message: format!("{message} ({status})"),
        })
    }

    /// Made when it is first needed: reading the system's certificates takes time.
    fn client(&self) -> Result<&Client, reqwest::Error> {
        if let Some(client) = self.http.get() {
            return Ok(client);
        }
        let client = hermes_os::http::client().timeout(ANSWER_TIME_MAX).build()?;
        Ok(self.http.get_or_init(|| client))
    }

    fn address(&self, path: &str) -> String {
        format!("{}/{path}", self.settings.address.trim_end_matches('/'))
    }

    fn name(&self) -> String {
        format!("hermes-{}", self.settings.profile)
    }
}

/// What to ask Daytona for. It takes sizes only together with an image.
fn wanted(settings: &DaytonaSettings, name: &str) -> Value {
    let mut wanted = json!({
        "name": name,
        "labels": {"hermes-agent": "1"},
        "autoStopInterval": settings.idle_minutes,
    });
    if !settings.persistent {
        // Deleted as soon as it sleeps.
        wanted["autoDeleteInterval"] = json!(0);
    }
    if let Some(image) = &settings.image {
        wanted["buildInfo"] = json!({"dockerfileContent": format!("FROM {image}\n")});
        wanted["cpu"] = json!(settings.cpus);
        wanted["memory"] = json!(settings.memory_mb.div_ceil(MB_PER_GIB));
        wanted["disk"] = json!(settings.disk_mb.div_ceil(MB_PER_GIB).min(DISK_GIB_MAX));
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_and_go_with_an_image_only() {
        let mut settings = DaytonaSettings {
            address: String::new(),
            key: Secret::new("k"),
            image: Some("python:3.13".into()),
            profile: "default".into(),
            cpus: 1,
            memory_mb: 5120,
            disk_mb: 51200,
            persistent: false,
            idle_minutes: 5,
            folder: None,
        };
        let body = wanted(&settings, "hermes-default");
        assert_eq!((&body["memory"], &body["disk"]), (&json!(5), &json!(10)));
        assert_eq!(body["autoDeleteInterval"], 0);
        settings.image = None;
        assert_eq!(wanted(&settings, "hermes-default")["memory"], Value::Null);
    }
}
