//! Where commands run, as the settings say: `terminal.*`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Processes, Terminal};
use hermes_exec::{
    Background, Local, ProcessFolder, START_FILES, Ssh, SshSettings, child_environment,
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
        other => Err(Failure::usage(format!(
            "`terminal.backend` is `{other}`, which this version cannot run commands on"
        ))
        .hint("known: local, ssh")),
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

fn variables(base: &Base) -> impl Iterator<Item = (OsString, OsString)> {
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
