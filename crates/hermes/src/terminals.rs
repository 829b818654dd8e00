//! Where commands run, as the settings say: `terminal.*`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Processes, Terminal};
use hermes_exec::{
    Background, Docker, DockerSettings, Local, ProcessFolder, START_FILES, Ssh, SshSettings,
    TmpfsSizes, child_environment,
};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::wiring::SystemClock;

/// A place for commands, and the processes in its background.
pub struct Terminals {
    pub terminal: Arc<dyn Terminal>,
    pub processes: Arc<dyn Processes>,
}

impl Terminals {
    pub fn chosen(base: &Base) -> Outcome<Self> {
        let (terminal, folder) = backend(base)?;
        let processes = Background::new(
            Arc::clone(&terminal),
            folder,
            base.home.processes().join("records"),
            Arc::new(SystemClock),
        );
        Ok(Self {
            terminal,
            processes: Arc::new(processes),
        })
    }
}

fn backend(base: &Base) -> Outcome<(Arc<dyn Terminal>, ProcessFolder)> {
    match base.settings.string("terminal.backend")?.as_str() {
        "local" => Ok((
            Arc::new(local(base)?),
            ProcessFolder::Here(base.home.processes()),
        )),
        "ssh" => Ok((Arc::new(ssh(base)?), ProcessFolder::Cache)),
        "docker" => Ok((Arc::new(docker(base)?), ProcessFolder::Cache)),
        other => Err(Failure::usage(format!(
            "`terminal.backend` is `{other}`, which this version cannot run commands on"
        ))
        .hint("known: local, docker, ssh")),
    }
}

fn local(base: &Base) -> Outcome<Local> {
    let passthrough = base.settings.strings("terminal.env_passthrough")?;
    let environment = child_environment(variables(base), &passthrough);
    Ok(Local::new(environment, base.home.shells()).reading(start_files(base)?))
}

fn ssh(base: &Base) -> Outcome<Ssh> {
    let text = |key: &str| {
        let text = base.settings.string(key);
        text.map(|text| (!text.is_empty()).then_some(text))
    };
    let host = text("terminal.ssh_host")?.ok_or_else(|| {
        Failure::usage("`terminal.backend` is `ssh`, but `terminal.ssh_host` names no host")
            .hint("run: hermes config set terminal.ssh_host HOST")
    })?;
    let port = base.settings.u64("terminal.ssh_port")?;
    let port = u16::try_from(port).map_err(|_| {
        Failure::usage(format!(
            "`terminal.ssh_port` is {port}, and ports end at 65535"
        ))
        .hint("run: hermes config set terminal.ssh_port 22")
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

fn docker(base: &Base) -> Outcome<Docker> {
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

/// Where the engine listens: as its own programs find it.
fn docker_socket(base: &Base) -> PathBuf {
    let named = base.environment.get("DOCKER_HOST");
    let socket = named.and_then(|host| host.strip_prefix("unix://"));
    socket.unwrap_or("/var/run/docker.sock").into()
}

/// Where shells on another machine begin: the folder the settings name, or the home there.
fn remote_folder(base: &Base) -> Outcome<PathBuf> {
    let folder = PathBuf::from(base.settings.string("terminal.cwd")?);
    Ok(match folder.is_absolute() {
        true => folder,
        false => "~".into(),
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
fn start_files(base: &Base) -> Outcome<Vec<String>> {
    let named = base.settings.strings("terminal.shell_init_files")?;
    let reads_usual = base.settings.bool("terminal.auto_source_bashrc")?;
    Ok(match named.is_empty() && reads_usual {
        true => START_FILES.iter().map(ToString::to_string).collect(),
        false => named,
    })
}
