//! A container of Apptainer, or of Singularity as it was called before, over its command line.
//!
//! One instance per profile is started and found again by its name; every command is an `exec` in it. The home in it is
//! a folder of ours; nothing else of this machine is to be seen there.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_core::{BoxFuture, TerminalError};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::program::{ProgramOutput, find, output};
use crate::remote::{Remote, RunningScript, Transport, child};

/// What the program is called, newest first. They take the same words.
const PROGRAMS: &[&str] = &["apptainer", "singularity"];

/// The home of commands in the container.
const HOME: &str = "/root";

/// How long a start may take: an image may have to be fetched and built first.
const START_TIME_MAX: Duration = Duration::from_secs(600);

/// How long the program may think about a question.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// What the container is made of, and what it may use.
#[derive(Debug, Clone, PartialEq)]
pub struct ApptainerSettings {
    /// A file (`.sif`), or an address such as `docker://python:3.13`.
    pub image: String,
    /// The instance is found again by this name.
    pub profile: String,
    pub cpus: f64,
    pub memory_mb: u64,
    /// Whether the instance runs on, and its files stay, when we leave.
    pub persistent: bool,
    /// Holds what the container writes: its home, and its changes to the image.
    pub state: PathBuf,
    /// Where shells begin there. Without one, in the folder of the conversation.
    pub folder: Option<PathBuf>,
    /// What the program itself sees of our environment; the commands in the container see nothing of it.
    pub environment: Vec<(OsString, OsString)>,
}

/// A container that commands run in.
pub type Apptainer = Remote<Instance>;

impl Apptainer {
    pub fn new(settings: ApptainerSettings) -> Self {
        let folder = settings.folder.clone();
        let instance = Instance {
            settings,
            starting: Mutex::default(),
            is_running: AtomicBool::new(false),
        };
        Self::over(instance, folder, Vec::new())
    }
}

pub struct Instance {
    settings: ApptainerSettings,
    /// Held while it is looked for and started.
    starting: Mutex<()>,
    /// As far as we know.
    is_running: AtomicBool,
}

/// Whether the container is held to its share of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limits {
    Asked,
    None,
}

impl Instance {
    async fn start(&self, args: &[String]) -> Result<RunningScript, TerminalError> {
        let program = self.program()?;
        {
            let _starting = self.starting.lock().await;
            if !self.is_running.load(Ordering::Acquire) {
                self.make_ready(&program).await?;
                self.is_running.store(true, Ordering::Release);
            }
        }
        let mut exec = self.command(&program);
        exec.arg("exec")
            .arg(format!("instance://{}", self.name()))
            .args(["sh", "-c"])
            .args(args);
        let opened = child::open(exec, &self.settings.state);
        opened.map_err(|error| self.not_started(&error.to_string()))
    }

    async fn make_ready(&self, program: &Path) -> Result<(), TerminalError> {
        if self.is_listed(program).await? {
            return Ok(());
        }
        for folder in ["home", "overlay"] {
            std::fs::create_dir_all(self.settings.state.join(folder))
                .map_err(|error| self.not_started(&error.to_string()))?;
        }
        let mut started = self.try_start(program, Limits::Asked).await?;
        // Not every system lets a user hand out shares; a container without limits is better than none.
        if !started.status.success() && started.stderr.contains("cgroup") {
            started = self.try_start(program, Limits::None).await?;
        }
        if started.status.success() {
            Ok(())
        } else {
            Err(self.not_started(started.stderr.trim()))
        }
    }

    /// Returns whether an instance of ours runs, perhaps since an earlier start of Hermes.
    async fn is_listed(&self, program: &Path) -> Result<bool, TerminalError> {
        let args = ["instance", "list", "--json", &self.name()].map(str::to_owned);
        let listed = self.ask(program, &args, ANSWER_TIME_MAX).await?;
        let list: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
        let instances = list["instances"].as_array().map_or(0, Vec::len);
        Ok(instances > 0)
    }

    async fn try_start(
        &self,
        program: &Path,
        limits: Limits,
    ) -> Result<ProgramOutput, TerminalError> {
        let args = start_args(&self.settings, &self.name(), limits);
        self.ask(program, &args, START_TIME_MAX).await
    }

    async fn ask(
        &self,
        program: &Path,
        args: &[String],
        time_max: Duration,
    ) -> Result<ProgramOutput, TerminalError> {
        let program = program.to_string_lossy();
        let environment = &self.settings.environment;
        output(&program, args, environment, Path::new("/"), time_max).await
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "hermes-exec owns child processes"
    )]
    fn command(&self, program: &Path) -> std::process::Command {
        let environment = &self.settings.environment;
        let mut command = std::process::Command::new(program);
        command
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/");
        command
    }

    fn program(&self) -> Result<PathBuf, TerminalError> {
        let environment = &self.settings.environment;
        let found = PROGRAMS.iter().find_map(|name| find(name, environment));
        found.ok_or_else(|| TerminalError::NotStarted {
            shell: PROGRAMS[0].to_owned(),
            detail: "neither `apptainer` nor `singularity` is on the PATH; install one of them"
                .to_owned(),
        })
    }

    fn name(&self) -> String {
        format!("hermes-{}", self.settings.profile)
    }

    fn not_started(&self, detail: &str) -> TerminalError {
        TerminalError::NotStarted {
            shell: format!("apptainer ({})", self.settings.image),
            detail: detail.to_owned(),
        }
    }

    /// Ends the instance and forgets its files.
    fn leave(&self) -> io::Result<()> {
        let program = self.program().map_err(io::Error::other)?;
        let name = self.name();
        self.command(&program)
            .args(["instance", "stop", &name])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        std::fs::remove_dir_all(&self.settings.state)
    }
}

impl Transport for Instance {
    fn open<'a>(
        &'a self,
        args: &'a [String],
    ) -> BoxFuture<'a, Result<RunningScript, TerminalError>> {
        Box::pin(self.start(args))
    }

    fn cut(&self, said: &str) -> TerminalError {
        // Whatever happened, the next command looks again.
        self.is_running.store(false, Ordering::Release);
        let detail = match said.trim() {
            "" => "the container ended; the next command starts another one".to_owned(),
            said => format!("the container is gone; the next command starts another one: {said}"),
        };
        TerminalError::Lost { detail }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.settings.persistent && *self.is_running.get_mut() {
            // An instance that is gone already needs no stop.
            let _ = self.leave();
        }
    }
}

fn start_args(settings: &ApptainerSettings, name: &str, limits: Limits) -> Vec<String> {
    let within = |folder: &str| settings.state.join(folder).display().to_string();
    let mut args = vec![
        "instance".to_owned(),
        "start".to_owned(),
        "--containall".to_owned(),
        "--home".to_owned(),
        format!("{}:{HOME}", within("home")),
    ];
    if settings.persistent {
        args.extend(["--overlay".to_owned(), within("overlay")]);
    } else {
        args.push("--writable-tmpfs".to_owned());
    }
    if limits == Limits::Asked {
        args.extend([
            "--cpus".to_owned(),
            settings.cpus.to_string(),
            "--memory".to_owned(),
            format!("{}M", settings.memory_mb),
        ]);
    }
    args.extend([settings.image.clone(), name.to_owned()]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(persistent: bool) -> ApptainerSettings {
        ApptainerSettings {
            image: "docker://python:3.13".into(),
            profile: "default".into(),
            cpus: 1.5,
            memory_mb: 512,
            persistent,
            state: "/s".into(),
            folder: None,
            environment: Vec::new(),
        }
    }

    #[test]
    fn an_instance_that_stays_has_an_overlay_and_limits() {
        let args = start_args(&settings(true), "hermes-default", Limits::Asked);
        assert_eq!(
            args.join(" "),
            "instance start --containall --home /s/home:/root --overlay /s/overlay --cpus 1.5 --memory 512M \
             docker://python:3.13 hermes-default"
        );
    }

    #[test]
    fn one_that_goes_writes_to_memory() {
        let args = start_args(&settings(false), "hermes-default", Limits::None);
        assert_eq!(
            args.join(" "),
            "instance start --containall --home /s/home:/root --writable-tmpfs docker://python:3.13 hermes-default"
        );
    }
}
