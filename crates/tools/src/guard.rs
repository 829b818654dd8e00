//! Which files tools keep their hands off.
//!
//! A net against accidents and careless prompts, not a sandbox: a shell command can do what the user can, after the
//! user agreed to it. Paths are checked as named and as resolved, so a link does not lead around the net.

use std::path::{Path, PathBuf};

use crate::ToolPorts;

/// How the names of examples of secret files end. They are free.
const EXAMPLE_ENDINGS: &[&str] = &[".example", ".sample", ".template", ".dist"];

/// Credentials below the home that no model needs to see.
const HOME_SECRETS: &[&str] = &[
    ".aws/credentials",
    ".aws/sso",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg/private-keys-v1.d",
    ".kube/config",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
];

/// What below the home decides who may log in, as whom, and what runs when they do. Commands that write there are asked
/// about.
pub(crate) const LOGIN_FILES: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/fish",
    ".config/gcloud",
    ".config/gh",
    ".config/systemd",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pam_environment",
    ".pgpass",
    ".profile",
    ".pypirc",
    ".ssh",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

const SYSTEM_WRITE_DENIED: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/private/etc",
    "/proc",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/lib",
    "/usr/sbin",
    "/var/spool/cron",
];

/// Files under `/proc` that show a process's memory, environment or arguments, ours among them.
const PROC_SECRETS: &[&str] = &[
    "auxv",
    "cmdline",
    "environ",
    "kcore",
    "maps",
    "mem",
    "numa_maps",
    "pagemap",
    "smaps",
    "smaps_rollup",
];

#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    place: Place,
    /// More than one where it is known by several paths.
    homes: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

/// Whose files are guarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// This machine's: what a path leads to can be looked up.
    #[default]
    Here,
    /// Another's: paths are only compared. None of our own files is there.
    There,
}

impl Guard {
    pub(crate) fn new(ports: &ToolPorts) -> Self {
        Self {
            place: Place::Here,
            homes: ports.home.clone().into_iter().collect(),
            secret: ports.secret.clone(),
            protected: ports.protected.clone(),
        }
    }

    /// Guards the files of another machine. The home there is given by all of its paths.
    pub(crate) fn there(homes: Vec<PathBuf>) -> Self {
        Self {
            place: Place::There,
            homes,
            ..Self::default()
        }
    }

    /// Finds out where the guarded files are just now, by their names and without links.
    pub(crate) fn pinned(&self) -> PinnedGuard {
        let spellings: fn(&[PathBuf]) -> Vec<PathBuf> = match self.place {
            Place::Here => both_spellings,
            Place::There => <[PathBuf]>::to_vec,
        };
        PinnedGuard {
            place: self.place,
            homes: spellings(&self.homes),
            secret: spellings(&self.secret),
            protected: spellings(&self.protected),
        }
    }
}

/// A guard that knows its files as they are named and without links.
#[derive(Debug)]
pub(crate) struct PinnedGuard {
    place: Place,
    homes: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl PinnedGuard {
    /// Says why a file must not be read, if so.
    pub(crate) fn refuse_read(&self, path: &Path) -> Option<String> {
        let reason = if contains(&self.secret, path) {
            "it holds Hermes' own keys"
        } else if holds_variables(path) && !self.is_folder_here(path) {
            "files of this name hold secrets"
        } else if self.is_below_home(path, HOME_SECRETS) || self.is_private_key(path) {
            "it holds the user's credentials"
        } else if path.starts_with("/proc") && is_named(path, PROC_SECRETS) {
            "it shows the inside of a process"
        } else {
            return None;
        };
        Some(format!(
            "`{}` is not read: {reason}; ask the user for what you need to know from it",
            path.display()
        ))
    }

    /// Says why a file must not be written, if so.
    pub(crate) fn refuse_write(&self, path: &Path) -> Option<String> {
        let reason = if contains(&self.secret, path) || contains(&self.protected, path) {
            "Hermes looks after it itself"
        } else if self.is_below_home(path, LOGIN_FILES) {
            "it decides who may log in or what runs when they do"
        } else if SYSTEM_WRITE_DENIED.iter().any(|dir| path.starts_with(dir)) {
            "it belongs to the system"
        } else {
            return None;
        };
        Some(format!(
            "`{}` is not written: {reason}; if the user wants this change, show it to them and let them make it",
            path.display()
        ))
    }

    fn is_folder_here(&self, path: &Path) -> bool {
        self.place == Place::Here && path.is_dir()
    }

    fn is_below_home(&self, path: &Path, names: &[&str]) -> bool {
        let mut inside = self
            .homes
            .iter()
            .filter_map(|home| path.strip_prefix(home).ok());
        inside.any(|inside| names.iter().any(|name| inside.starts_with(name)))
    }

    fn is_private_key(&self, path: &Path) -> bool {
        let is_public = path.extension().is_some_and(|extension| extension == "pub");
        let is_key = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("id_"));
        is_key && !is_public && self.is_below_home(path, &[".ssh"])
    }
}

fn both_spellings(paths: &[PathBuf]) -> Vec<PathBuf> {
    let canonical = paths.iter().filter_map(|path| path.canonicalize().ok());
    canonical.chain(paths.iter().cloned()).collect()
}

/// Returns whether a file is `.env` or one of its kin, which hold secrets wherever they are.
fn holds_variables(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_example = || EXAMPLE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    matches!(&*name, ".env" | ".envrc") || (name.starts_with(".env.") && !is_example())
}

fn is_named(path: &Path, names: &[&str]) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| names.contains(&name))
}

fn contains(guarded: &[PathBuf], path: &Path) -> bool {
    guarded.iter().any(|guarded| path.starts_with(guarded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> PinnedGuard {
        let guard = Guard {
            place: Place::Here,
            homes: vec!["/home/me".into()],
            secret: vec!["/home/me/.hermes/auth.json".into()],
            protected: vec!["/home/me/.hermes/config.yaml".into()],
        };
        guard.pinned()
    }

    #[test]
    fn secrets_are_not_read() {
        for path in [
            "/home/me/.hermes/auth.json",
            "/srv/project/.env",
            "/srv/project/.env.production",
            "/srv/project/.env.production.local",
            "/srv/project/.envrc",
            "/home/me/.ssh/id_ed25519",
            "/home/me/.aws/credentials",
            "/home/me/.docker/config.json",
            "/proc/self/environ",
            "/proc/1/mem",
        ] {
            assert!(guard().refuse_read(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn the_same_places_are_guarded_on_another_machine() {
        let guard = Guard::there(vec!["/root".into()]).pinned();
        for path in ["/root/.ssh/id_ed25519", "/srv/.env", "/proc/1/environ"] {
            assert!(guard.refuse_read(Path::new(path)).is_some(), "{path}");
        }
        for path in ["/root/.ssh/authorized_keys", "/root/.bashrc", "/etc/shadow"] {
            assert!(guard.refuse_write(Path::new(path)).is_some(), "{path}");
        }
        let path = Path::new("/home/me/.hermes/auth.json");
        assert_eq!(guard.refuse_read(path), None);
    }

    #[test]
    fn ordinary_files_are_read() {
        for path in [
            "/home/me/.hermes/config.yaml",
            "/srv/project/.env.example",
            "/srv/project/.env.local.sample",
            "/srv/project/.environment",
            "/home/me/.ssh/id_ed25519.pub",
            "/home/me/.ssh/config",
            "/srv/id_card.txt",
            "/proc/cpuinfo",
            "/etc/hosts",
        ] {
            assert_eq!(guard().refuse_read(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn files_of_the_system_and_of_the_login_are_not_written() {
        for path in [
            "/etc/hosts",
            "/home/me/.ssh/authorized_keys",
            "/home/me/.bashrc",
            "/home/me/.config/autostart/x.desktop",
            "/var/spool/cron/crontabs/me",
            "/home/me/.hermes/auth.json",
            "/home/me/.hermes/config.yaml",
            "/usr/bin/ls",
        ] {
            assert!(guard().refuse_write(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_written() {
        for path in [
            "/srv/project/.env",
            "/home/me/notes.md",
            "/etcetera",
            "/home/you/.bashrc",
        ] {
            assert_eq!(guard().refuse_write(Path::new(path)), None, "{path}");
        }
    }
}
