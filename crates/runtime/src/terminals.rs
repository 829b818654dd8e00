//! Where commands run, as the settings say: `terminal.*`.

pub(crate) mod forwarded;
pub mod modal;
pub mod try_out;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Fencing, Processes, Terminal};
use hermes_exec::{
    Apptainer, ApptainerSettings, Background, Daytona, DaytonaSettings, Docker, DockerSettings,
    FenceKind, FencePlaces, Fences, Forwarded, Local, Network, NotFenced, ProcessFolder,
    START_FILES, Ssh, SshSettings, TmpfsSizes, Unfenced, child_environment,
};
use hermes_tools::{CodeMode, CodePlace, CodeSettings, ToolFence};

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::guests::GuestPlaces;
use crate::skills::grants;

/// A place for commands, the processes in its background, and how scripts run there.
pub struct Terminals {
    pub terminal: Arc<dyn Terminal>,
    pub processes: Arc<dyn Processes>,
    pub code: CodeSettings,
    pub fence: ToolFence,
}

impl Terminals {
    pub fn chosen(base: &Base) -> Result<Self> {
        Self::forwarding(base, forwarded::packed(base)?)
    }

    /// The same, for a look at whether commands run there: nothing goes along, and nothing is left there.
    pub fn to_try(base: &Base) -> Result<Self> {
        Self::forwarding(base, Forwarded::default())
    }

    fn forwarding(base: &Base, forwarded: Forwarded) -> Result<Self> {
        let fence = local_fence(base)?;
        let (terminal, folder) = backend(base, forwarded, &fence)?;
        let code = code_settings(base, &folder)?;
        let processes = Background::new(
            Arc::clone(&terminal),
            folder,
            process_records(base),
            Arc::new(SystemClock),
        );
        let processes = match &fence {
            LocalFence::Held(_) => processes.with_apart(apart(base).join("processes")),
            _ => processes,
        };
        Ok(Self {
            terminal,
            processes: Arc::new(processes),
            code,
            fence: fence.for_tools(),
        })
    }
}

/// The fence that file tools ask.
pub fn tool_fence(base: &Base) -> Result<ToolFence> {
    Ok(local_fence(base)?.for_tools())
}

/// A short word for the status row; none where commands run elsewhere.
pub fn fence_word(base: &Base, fence: &ToolFence) -> Result<Option<&'static str>> {
    let is_local = base.settings.string("terminal.backend")? == "local";
    let word = match fence {
        ToolFence::Held(fencing) => match fencing.means() {
            "landlock" => "fence: landlock",
            "seatbelt" => "fence: seatbelt",
            _ => "fence: bubblewrap",
        },
        ToolFence::Off | ToolFence::Missing { .. } => "no fence",
    };
    Ok(is_local.then_some(word))
}

/// The fence around local commands.
enum LocalFence {
    /// Commands run elsewhere.
    Off,
    /// The settings want none, or nothing here can hold it: why, and what would help.
    Missing {
        why: Option<NotFenced>,
        rules: Arc<Unfenced>,
    },
    Held(Arc<Fences>),
}

impl LocalFence {
    fn for_tools(&self) -> ToolFence {
        match self {
            Self::Off => ToolFence::Off,
            Self::Missing { why, rules } => ToolFence::Missing {
                why: match why {
                    Some(why) => why.to_string(),
                    None => "`terminal.sandbox` is off".to_owned(),
                },
                rules: Arc::clone(rules) as Arc<dyn Fencing>,
            },
            Self::Held(fences) => ToolFence::Held(Arc::clone(fences) as Arc<dyn Fencing>),
        }
    }
}

/// Which fence holds local commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FenceState {
    /// `terminal.sandbox` is `off`.
    Off,
    /// Commands run in another place, which is their fence.
    Elsewhere { backend: String },
    /// Nothing here can hold one, so that everything but reading is asked about.
    Missing { why: String, fix: String },
    /// By what, and around which folder; whether commands write in that.
    Held {
        means: &'static str,
        project: PathBuf,
        is_writable: bool,
    },
}

impl FenceState {
    /// A sentence for `status`.
    pub fn sentence(&self) -> String {
        match self {
            Self::Off => {
                "none: `terminal.sandbox` is off; so everything that is not read-only is asked about"
                    .to_owned()
            }
            Self::Elsewhere { backend } => format!("commands run over {backend}"),
            Self::Missing { why, .. } => {
                format!("none: {why}; so everything that is not read-only is asked about")
            }
            Self::Held {
                means,
                project,
                is_writable: true,
            } => format!("{means}, around {}", project.display()),
            Self::Held { means, project, .. } => format!(
                "{means}; nothing in {} is written without a question, as it is a home or a folder of the system",
                project.display()
            ),
        }
    }
}

/// Finds out which fence holds local commands here.
pub fn fence_state(base: &Base) -> Result<FenceState> {
    let backend = base.settings.string("terminal.backend")?;
    if backend != "local" {
        return Ok(FenceState::Elsewhere { backend });
    }
    Ok(match local_fence(base)? {
        LocalFence::Off | LocalFence::Missing { why: None, .. } => FenceState::Off,
        LocalFence::Missing { why: Some(why), .. } => FenceState::Missing {
            why: why.to_string(),
            fix: why.fix(),
        },
        LocalFence::Held(fences) => {
            let area = fences.planned(&base.cwd);
            FenceState::Held {
                means: fences.means(),
                is_writable: area.is_project_writable(),
                project: area.project,
            }
        }
    })
}

/// What the model is told when files and commands are not on this machine.
pub fn note(base: &Base) -> Result<Option<String>> {
    let backend = base.settings.string("terminal.backend")?;
    Ok((backend != "local").then(|| {
        format!(
            "Commands and the file tools work in another place (`terminal.backend` is `{backend}`), not in the working \
             directory above: relative paths begin where shells begin there, which `pwd` tells, and `~` is the home \
             there."
        )
    }))
}

fn code_settings(base: &Base, folder: &ProcessFolder) -> Result<CodeSettings> {
    let mode = match base.settings.string("code_execution.mode")?.as_str() {
        "project" => CodeMode::Project,
        "strict" => CodeMode::Strict,
        other => {
            let message =
                format!("`code_execution.mode` is `{other}`, which is no way to run scripts");
            return Err(Error::asked(message).with_hint("known: project, strict"));
        }
    };
    let place = match folder {
        ProcessFolder::Here(_) => CodePlace::Here {
            sockets: base.environment.get("TMPDIR").unwrap_or("/tmp").into(),
        },
        ProcessFolder::Cache => CodePlace::Elsewhere,
    };
    Ok(CodeSettings {
        place,
        mode,
        timeout: base.settings.seconds("code_execution.timeout")?,
        calls_max: base.settings.u64("code_execution.max_tool_calls")? as usize,
    })
}

fn backend(
    base: &Base,
    forwarded: Forwarded,
    fence: &LocalFence,
) -> Result<(Arc<dyn Terminal>, ProcessFolder)> {
    match base.settings.string("terminal.backend")?.as_str() {
        "local" => Ok((
            Arc::new(local(base, fence)?),
            ProcessFolder::Here(process_folder(base, fence)),
        )),
        "ssh" => Ok((Arc::new(ssh(base)?.forwarding(forwarded)), ProcessFolder::Cache)),
        "docker" => Ok((
            Arc::new(docker(base)?.forwarding(forwarded)),
            ProcessFolder::Cache,
        )),
        "singularity" | "apptainer" => Ok((
            Arc::new(apptainer(base)?.forwarding(forwarded)),
            ProcessFolder::Cache,
        )),
        "daytona" => Ok((
            Arc::new(daytona(base)?.forwarding(forwarded)),
            ProcessFolder::Cache,
        )),
        "modal" => Ok((
            Arc::new(modal::modal(base)?.forwarding(forwarded)),
            ProcessFolder::Cache,
        )),
        other => Err(Error::asked(format!(
            "`terminal.backend` is `{other}`, which this version cannot run commands on"
        ))
        .with_hint("`hermes config set terminal.backend local`; known: local, docker, ssh, singularity, daytona, modal")),
    }
}

fn local(base: &Base, fence: &LocalFence) -> Result<Local> {
    let local = |shells: PathBuf| -> Result<Local> {
        let local = Local::new(local_environment(base)?, shells).reading(start_files(base)?);
        Ok(local.granting(grants::granted(base)))
    };
    match fence {
        LocalFence::Held(fences) => {
            let agent = variables(base).find(|(name, _)| name == "SSH_AUTH_SOCK");
            let local = local(fenced_shells(base))?.fenced(Arc::clone(fences));
            let run_on = base.settings.bool("terminal.background_persist")?;
            Ok(local
                .with_agent(agent.map(|(_, socket)| socket))
                .leaving_processes(run_on))
        }
        LocalFence::Off | LocalFence::Missing { .. } => local(base.home.shells()),
    }
}

/// Apart from the others: what a fenced command writes here is not for a shell without a fence to read.
fn fenced_shells(base: &Base) -> PathBuf {
    match GuestPlaces::of(base) {
        Some(guest) => guest.shells(),
        None => base.home.shells().join("fenced"),
    }
}

/// What background processes are known by.
fn process_records(base: &Base) -> PathBuf {
    match GuestPlaces::of(base) {
        Some(guest) => guest.process_records(),
        None => base.home.processes().join("records"),
    }
}

fn fenced_processes(base: &Base) -> PathBuf {
    match GuestPlaces::of(base) {
        Some(guest) => guest.processes(),
        None => base.home.processes().join("fenced"),
    }
}

/// What commands are shown of the home.
fn shown(base: &Base) -> Vec<PathBuf> {
    match GuestPlaces::of(base) {
        Some(guest) => guest.private().open,
        None => {
            let granted = grants::granted_files(base).into_iter();
            let granted = granted.filter_map(|file| file.find(base.home.directory()).ok());
            let usual = [
                base.home.skills(),
                base.home.results(),
                base.home.web_pages(),
                base.home.media(),
            ];
            usual.into_iter().chain(granted).collect()
        }
    }
}

/// Fenced commands write where their processes are, and must not write the records of them.
fn process_folder(base: &Base, fence: &LocalFence) -> PathBuf {
    match fence {
        LocalFence::Held(_) => fenced_processes(base),
        LocalFence::Off | LocalFence::Missing { .. } => base.home.processes(),
    }
}

/// What commands that may leave the fence need to run, out of reach of the others.
fn apart(base: &Base) -> PathBuf {
    base.home.directory().join("apart")
}

fn local_fence(base: &Base) -> Result<LocalFence> {
    let is_local = base.settings.string("terminal.backend")? == "local";
    if !is_local {
        return Ok(LocalFence::Off);
    }
    let wanted = sandbox(base)?;
    let places = FencePlaces {
        kind: wanted.map_or(FenceKind::Project, |wanted| wanted.kind),
        user_home: base.environment.user_home(),
        hermes_home: base.home.root().to_owned(),
        own: vec![fenced_shells(base), fenced_processes(base)],
        apart: apart(base),
        shown: shown(base),
        variables: variables(base).collect(),
    };
    let rules = Arc::new(Unfenced::new(places.clone()));
    let Some(Sandbox { kind, network }) = wanted else {
        return Ok(LocalFence::Missing { why: None, rules });
    };
    match Fences::new(places, network, &local_environment(base)?) {
        Ok(fences) => Ok(LocalFence::Held(Arc::new(fences))),
        // Nobody asked for more than the default: commands run, after a question.
        Err(why) if kind == FenceKind::Project && network == Network::Open => {
            let why = Some(why);
            Ok(LocalFence::Missing { why, rules })
        }
        Err(error) => Err(
            Error::asked(format!("`terminal.sandbox` is on, but {error}")).with_hint(format!(
                "{}; or `hermes config set terminal.sandbox off` does without",
                error.fix()
            )),
        ),
    }
}

/// What local commands see of our environment.
pub fn local_environment(base: &Base) -> Result<Vec<(OsString, OsString)>> {
    let passthrough = base.settings.strings("terminal.env_passthrough")?;
    Ok(child_environment(variables(base), &passthrough))
}

/// The fence that the settings want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sandbox {
    pub kind: FenceKind,
    pub network: Network,
}

/// Which fence the settings want around local commands, if any: `terminal.sandbox` and `terminal.network`.
pub fn sandbox(base: &Base) -> Result<Option<Sandbox>> {
    let network = if base.settings.bool("terminal.network")? {
        Network::Open
    } else {
        Network::Closed
    };
    let (kind, network) = match base.settings.string("terminal.sandbox")?.as_str() {
        "off" => return Ok(None),
        "project" => (FenceKind::Project, network),
        "strict" => (FenceKind::Strict, network),
        // The name it had when it was the only way to close the network.
        "offline" => (FenceKind::Project, Network::Closed),
        other => {
            return Err(Error::asked(format!(
                "`terminal.sandbox` is `{other}`, which is no sandbox"
            ))
            .with_hint(
                "`hermes config set terminal.sandbox project`; known: off, project, strict",
            ));
        }
    };
    Ok(Some(Sandbox { kind, network }))
}

fn ssh(base: &Base) -> Result<Ssh> {
    let text = |key: &str| {
        let text = base.settings.string(key);
        text.map(|text| (!text.is_empty()).then_some(text))
    };
    let host = text("terminal.ssh_host")?.ok_or_else(|| {
        Error::asked("`terminal.backend` is `ssh`, but `terminal.ssh_host` names no host")
            .with_hint("run: hermes config set terminal.ssh_host HOST")
    })?;
    let port = base.settings.u64("terminal.ssh_port")?;
    let port = u16::try_from(port).map_err(|_| {
        Error::asked(format!(
            "`terminal.ssh_port` is {port}, and ports end at 65535"
        ))
        .with_hint("run: hermes config set terminal.ssh_port 22")
    })?;
    // An agent's socket is no secret itself, and the one way to a key that no file holds.
    let is_agent = |(name, _): &(OsString, OsString)| name == "SSH_AUTH_SOCK";
    let mut environment = child_environment(variables(base), &[]);
    environment.extend(variables(base).filter(is_agent));
    Ok(Ssh::new(SshSettings {
        host,
        user: text("terminal.ssh_user")?,
        port: Some(port),
        key: text("terminal.ssh_key")?.map(|key| expanded(base, &key)),
        known_hosts: None,
        sockets: base.home.directory().join("ssh"),
        folder: Some(remote_folder(base)?),
        start_files: start_files(base)?,
        environment,
    }))
}

fn docker(base: &Base) -> Result<Docker> {
    let settings = &base.settings;
    let forwarded = settings.strings("terminal.docker_forward_env")?;
    let forward = |name: &String| {
        let value = base.environment.get(name)?;
        Some(format!("{name}={value}"))
    };
    let size = |name: &str| settings.string(&format!("terminal.docker_tmpfs.{name}"));
    Ok(Docker::new(DockerSettings {
        socket: docker_socket(base),
        image: settings.string("terminal.docker_image")?,
        profile: base.home.profile().unwrap_or("default").to_owned(),
        cpus: settings.f64("terminal.container_cpu")?,
        memory_mb: settings.u64("terminal.container_memory")?,
        network: settings.bool("terminal.docker_network")?,
        volumes: settings.strings("terminal.docker_volumes")?,
        environment: forwarded.iter().filter_map(forward).collect(),
        tmpfs: TmpfsSizes {
            tmp: size("tmp")?,
            var_tmp: size("var_tmp")?,
            run: size("run")?,
        },
        persistent: settings.bool("terminal.container_persistent")?,
        folder: Some(remote_folder(base)?),
        start_files: Vec::new(),
    }))
}

fn apptainer(base: &Base) -> Result<Apptainer> {
    let settings = &base.settings;
    let image = settings.string("terminal.singularity_image")?;
    if image.is_empty() {
        let words =
            "`terminal.backend` is `singularity`, but `terminal.singularity_image` names no image";
        return Err(Error::asked(words)
            .with_hint("run: hermes config set terminal.singularity_image docker://python:3.13"));
    }
    let profile = base.home.profile().unwrap_or("default").to_owned();
    let passthrough = settings.strings("terminal.env_passthrough")?;
    Ok(Apptainer::new(ApptainerSettings {
        image,
        state: base.home.directory().join("sandboxes/singularity"),
        profile,
        cpus: settings.f64("terminal.container_cpu")?,
        memory_mb: settings.u64("terminal.container_memory")?,
        persistent: settings.bool("terminal.container_persistent")?,
        folder: Some(remote_folder(base)?),
        environment: child_environment(variables(base), &passthrough),
    }))
}

fn daytona(base: &Base) -> Result<Daytona> {
    let settings = &base.settings;
    let key = base.variable("DAYTONA_API_KEY").ok_or_else(|| {
        Error::asked("`terminal.backend` is `daytona`, but there is no DAYTONA_API_KEY")
            .with_hint("put DAYTONA_API_KEY=… into the `.env` file of Hermes' home")
    })?;
    let image = settings.string("terminal.daytona_image")?;
    let address = base.environment.get("DAYTONA_API_URL");
    let idle_seconds = settings.u64("terminal.lifetime_seconds")?;
    Ok(Daytona::new(DaytonaSettings {
        address: address.unwrap_or("https://app.daytona.io/api").to_owned(),
        key,
        image: (!image.is_empty()).then_some(image),
        profile: base.home.profile().unwrap_or("default").to_owned(),
        cpus: settings.f64("terminal.container_cpu")?.ceil() as u64,
        memory_mb: settings.u64("terminal.container_memory")?,
        disk_mb: settings.u64("terminal.container_disk")?,
        persistent: settings.bool("terminal.container_persistent")?,
        // None at all would mean: never.
        idle_minutes: idle_seconds.div_ceil(60).max(1),
        folder: Some(remote_folder(base)?),
    }))
}

/// Where the engine listens: as its own programs find it.
fn docker_socket(base: &Base) -> PathBuf {
    let named = base.environment.get("DOCKER_HOST");
    let socket = named.and_then(|host| host.strip_prefix("unix://"));
    socket.unwrap_or("/var/run/docker.sock").into()
}

/// Where shells on another machine begin: the folder the settings name, or the home there.
fn remote_folder(base: &Base) -> Result<PathBuf> {
    let folder = PathBuf::from(base.settings.string("terminal.cwd")?);
    Ok(if folder.is_absolute() {
        folder
    } else {
        "~".into()
    })
}

fn expanded(base: &Base, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), base.environment.user_home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

pub fn variables(base: &Base) -> impl Iterator<Item = (OsString, OsString)> {
    let variables = base.environment.iter();
    variables.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// The files a new shell reads: those the user named, or else the usual ones.
fn start_files(base: &Base) -> Result<Vec<String>> {
    let named = base.settings.strings("terminal.shell_init_files")?;
    let reads_usual = base.settings.bool("terminal.auto_source_bashrc")?;
    Ok(if named.is_empty() && reads_usual {
        START_FILES.iter().map(ToString::to_string).collect()
    } else {
        named
    })
}
