//! `hermes gateway install|uninstall`: the system starts the gateway, and starts it again.
//!
//! What is written for each service manager is text without a secret, and made by pure functions; `--print` shows it.

mod launchd;
mod systemd;
mod termux;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_os::{Access, Durability};

use super::lifecycle;
use super::serve::drain_time;
use crate::args::{GatewayInstallArgs, GatewayUninstallArgs, ServiceKind};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, print, println};

/// Service managers should not kill what still drains.
const STOP_TIME_MIN: Duration = Duration::from_secs(60);
const STOP_MARGIN: Duration = Duration::from_secs(30);
/// How long systemd waits for a sign of life, unless `gateway.systemd_watchdog_seconds` says otherwise.
const WATCHDOG: Duration = Duration::from_secs(120);

/// What the texts need to know.
#[derive(Debug, Clone)]
struct Unit {
    program: PathBuf,
    profile: Option<String>,
    /// Where it is told by `HERMES_HOME`.
    home: Option<PathBuf>,
    user_home: PathBuf,
    path: String,
    log: PathBuf,
    stop_time: Duration,
    watchdog: Duration,
    /// Whom a service of the whole machine runs as.
    run_as: Option<String>,
}

impl Unit {
    fn of(base: &Base) -> Outcome<Self> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find my own program: {error}")))?;
        let user_home = base.environment.user_home().ok_or_else(|| {
            Failure::new("cannot tell where your home folder is").hint("set `HOME`")
        })?;
        let watchdog = match base.settings.get("gateway.systemd_watchdog_seconds") {
            Some(value) => Duration::from_secs(value.as_u64().unwrap_or_default()),
            None => WATCHDOG,
        };
        Ok(Self {
            program,
            profile: base.home.profile().map(str::to_owned),
            home: base
                .environment
                .path("HERMES_HOME")
                .map(|_| base.home.root().to_owned()),
            user_home,
            path: base.environment.get("PATH").unwrap_or_default().to_owned(),
            log: lifecycle::log_file(base),
            stop_time: (drain_time(base)? + STOP_MARGIN).max(STOP_TIME_MIN),
            watchdog,
            run_as: None,
        })
    }

    /// The words of the command line behind the program.
    fn arguments(&self, service: &str) -> Vec<String> {
        let mut words: Vec<&str> = Vec::new();
        if let Some(profile) = &self.profile {
            words.extend(["-p", profile]);
        }
        words.extend(["gateway", "run", "--service", service]);
        words.into_iter().map(str::to_owned).collect()
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let home = self.home.iter();
        let home = home.map(|home| ("HERMES_HOME", home.display().to_string()));
        home.chain([("PATH", self.path.clone())]).collect()
    }
}

/// A service that is, or is to be, installed.
#[derive(Debug, Clone)]
pub(super) struct Service {
    kind: ServiceKind,
    is_system: bool,
    /// Of the profile: `hermes-gateway`, `hermes-gateway-work`.
    name: String,
    /// Where its text is; the first of several.
    file: PathBuf,
}

/// The service of this home, if one was installed.
pub(super) fn installed(base: &Base) -> Option<Service> {
    let kinds = [
        (ServiceKind::Systemd, false),
        (ServiceKind::Systemd, true),
        (ServiceKind::Launchd, false),
        (ServiceKind::Termux, false),
    ];
    let services = kinds.map(|(kind, is_system)| Service::of(base, kind, is_system));
    services
        .into_iter()
        .flatten()
        .find(|service| service.file.exists())
}

/// The service manager of this machine.
pub(super) fn found(base: &Base) -> Option<ServiceKind> {
    let prefix = base.environment.get("PREFIX").unwrap_or_default();
    if prefix.contains("com.termux") {
        Some(ServiceKind::Termux)
    } else if cfg!(target_os = "macos") {
        Some(ServiceKind::Launchd)
    } else if Path::new("/run/systemd/system").exists() {
        Some(ServiceKind::Systemd)
    } else {
        None
    }
}

pub(super) async fn install(base: &Base, args: &GatewayInstallArgs) -> Outcome<()> {
    let kind = args.manager.or_else(|| found(base)).ok_or_else(|| {
        Failure::usage("no service manager was found here: neither systemd nor launchd nor Termux")
            .hint("`hermes gateway start` runs it in the background; `--manager NAME --print` shows what one of them would need")
    })?;
    let service = Service::of(base, kind, args.system).ok_or_else(|| {
        Failure::usage("services of the whole machine are for systemd").hint("leave out --system")
    })?;
    let unit = Unit {
        run_as: args.system.then(|| run_as(base, args)).flatten(),
        ..Unit::of(base)?
    };
    if args.system && unit.run_as.is_none() {
        return Err(Failure::usage("whom should the service run as?").hint("add --run-as USER"));
    }
    let files = service.files(&unit);
    if args.print {
        for (path, text, _) in &files {
            print(&format!("# {}\n{text}", path.display()))?;
        }
        return Ok(());
    }
    // One that was started by hand would keep the home.
    lifecycle::end_running(base).await?;
    for (path, text, mode) in &files {
        write(path, text, *mode)?;
        note(&format!("written: {}", path.display()));
    }
    service.enable(base)?;
    println(&format!(
        "the gateway is installed as {}, and started",
        service.name
    ))?;
    note("`hermes gateway status` shows how it is, `hermes gateway uninstall` takes it back");
    Ok(())
}

pub(super) async fn uninstall(base: &Base, args: &GatewayUninstallArgs) -> Outcome<()> {
    let service = installed(base).filter(|service| service.is_system == args.system);
    let Some(service) = service else {
        return Err(
            Failure::usage("the gateway of this home is not installed as a service").hint(
                if args.system {
                    "leave out --system for one of your own"
                } else {
                    "--system looks for one of the whole machine"
                },
            ),
        );
    };
    service.disable(base)?;
    for (path, _, _) in service.files(&Unit::of(base)?) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(
                    Failure::new(format!("cannot remove `{}`: {error}", path.display()))
                        .hint("remove it yourself; the service is switched off already"),
                );
            }
            _ => note(&format!("removed: {}", path.display())),
        }
    }
    println(&format!("{} is not installed any more", service.name))
}

/// Who asked, also through `sudo`.
fn run_as(base: &Base, args: &GatewayInstallArgs) -> Option<String> {
    let named = args.run_as.clone();
    let variable = |name: &str| base.environment.get(name).map(str::to_owned);
    named
        .or_else(|| variable("SUDO_USER"))
        .or_else(|| variable("USER"))
}

fn write(path: &Path, text: &str, mode: u32) -> Outcome<()> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| {
            hermes_os::replace(
                path,
                text.as_bytes(),
                Access::Mode(mode),
                Durability::Synced,
            )
        });
    written.map_err(|error| {
        Failure::new(format!("cannot write `{}`: {error}", path.display()))
            .hint("a service of the whole machine needs `sudo`")
    })
}

impl Service {
    /// `None` where there is no such service.
    fn of(base: &Base, kind: ServiceKind, is_system: bool) -> Option<Self> {
        let profile = base.home.profile();
        let name = match (kind, profile) {
            (ServiceKind::Launchd, None) => "ai.hermes.gateway".to_owned(),
            (ServiceKind::Launchd, Some(profile)) => format!("ai.hermes.gateway-{profile}"),
            (_, None) => "hermes-gateway".to_owned(),
            (_, Some(profile)) => format!("hermes-gateway-{profile}"),
        };
        let user_home = base.environment.user_home()?;
        let folder = match (kind, is_system) {
            (ServiceKind::Systemd, true) => PathBuf::from("/etc/systemd/system"),
            (_, true) => return None,
            (ServiceKind::Systemd, false) => base
                .environment
                .path("XDG_CONFIG_HOME")
                .map_or_else(|| user_home.join(".config"), Path::to_owned)
                .join("systemd/user"),
            (ServiceKind::Launchd, false) => user_home.join("Library/LaunchAgents"),
            (ServiceKind::Termux, false) => {
                let prefix = base.environment.path("PREFIX");
                let prefix = prefix.unwrap_or(Path::new("/data/data/com.termux/files/usr"));
                prefix.join("var/service").join(&name)
            }
        };
        let file = match kind {
            ServiceKind::Systemd => folder.join(format!("{name}.service")),
            ServiceKind::Launchd => folder.join(format!("{name}.plist")),
            ServiceKind::Termux => folder.join("run"),
        };
        Some(Self {
            kind,
            is_system,
            name,
            file,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Files, their texts, and who may do what with them.
    fn files(&self, unit: &Unit) -> Vec<(PathBuf, String, u32)> {
        match self.kind {
            ServiceKind::Systemd => vec![(self.file.clone(), systemd::text(unit), 0o644)],
            ServiceKind::Launchd => {
                let text = launchd::text(unit, &self.name);
                vec![(self.file.clone(), text, 0o644)]
            }
            ServiceKind::Termux => {
                let finish = self.file.with_file_name("finish");
                vec![
                    (self.file.clone(), termux::run(unit), 0o755),
                    (finish, termux::finish(), 0o755),
                ]
            }
        }
    }

    fn enable(&self, base: &Base) -> Outcome<()> {
        match self.kind {
            ServiceKind::Systemd => {
                self.systemctl(base, &["daemon-reload"])?;
                self.systemctl(base, &["enable", "--now", &self.name])?;
                if !self.is_system && ask(base, "loginctl", &["enable-linger"]).is_err() {
                    note(
                        "it ends when you log out; `sudo loginctl enable-linger $USER` lets it go on",
                    );
                }
                Ok(())
            }
            ServiceKind::Launchd => {
                let file = self.file.display().to_string();
                ask(base, "launchctl", &["bootstrap", &domain(), &file])
            }
            ServiceKind::Termux => ask(base, "sv-enable", &[&self.name]),
        }
    }

    fn disable(&self, base: &Base) -> Outcome<()> {
        match self.kind {
            ServiceKind::Systemd => {
                self.systemctl(base, &["disable", "--now", &self.name])?;
                self.systemctl(base, &["daemon-reload"])
            }
            ServiceKind::Launchd => ask(base, "launchctl", &["bootout", &self.target()]),
            ServiceKind::Termux => ask(base, "sv-disable", &[&self.name]),
        }
    }

    pub(super) fn start(&self, base: &Base) -> Outcome<()> {
        match self.kind {
            ServiceKind::Systemd => self.systemctl(base, &["start", &self.name]),
            ServiceKind::Launchd => {
                // One that was stopped is not loaded any more.
                let file = self.file.display().to_string();
                let _ = ask(base, "launchctl", &["bootstrap", &domain(), &file]);
                ask(base, "launchctl", &["kickstart", &self.target()])
            }
            ServiceKind::Termux => ask(base, "sv", &["up", &self.name]),
        }
    }

    pub(super) fn stop(&self, base: &Base) -> Outcome<()> {
        match self.kind {
            ServiceKind::Systemd => self.systemctl(base, &["stop", &self.name]),
            ServiceKind::Launchd => ask(base, "launchctl", &["bootout", &self.target()]),
            ServiceKind::Termux => ask(base, "sv", &["down", &self.name]),
        }
    }

    fn target(&self) -> String {
        format!("{}/{}", domain(), self.name)
    }

    fn systemctl(&self, base: &Base, words: &[&str]) -> Outcome<()> {
        let user: &[&str] = if self.is_system { &[] } else { &["--user"] };
        ask(base, "systemctl", &[user, words].concat())
    }
}

/// Where launchd keeps what is a user's.
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// Has the service manager do something. What it says is the user's to read.
fn ask(base: &Base, program: &str, words: &[&str]) -> Outcome<()> {
    let line = format!("{program} {}", words.join(" "));
    match hermes_exec::interactive(program, words, &base.cwd) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("`{line}` ended with {status}"))
            .hint("it said why above; `hermes gateway start` needs no service manager")),
        Err(error) => Err(Failure::new(format!("cannot run `{line}`: {error}"))
            .hint("`hermes gateway start` needs no service manager")),
    }
}
