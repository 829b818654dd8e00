//! Paths that matter more than others.

use std::path::Path;

use super::wildcard;
use crate::guard::{LOGIN_FILES, START_FILES};

/// Folders whose loss is the loss of the system, or of everybody's files.
pub(super) const VITAL: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "~",
];

/// Disks and their partitions.
const BLOCK_DEVICES: &[&str] = &[
    "/dev/disk",
    "/dev/dm-",
    "/dev/hd",
    "/dev/loop",
    "/dev/mapper/",
    "/dev/md",
    "/dev/mmcblk",
    "/dev/nvme",
    "/dev/rdisk",
    "/dev/sd",
    "/dev/vd",
    "/dev/xvd",
];

const SYSTEM: &[&str] = &[
    "/bin/",
    "/boot/",
    "/etc/",
    "/lib/",
    "/private/etc/",
    "/lib64/",
    "/proc/sys/",
    "/sbin/",
    "/sys/",
    "/usr/",
    "/var/spool/cron",
];

/// Where people keep their work inside the system, as images of containers do.
const SOURCES: &[&str] = &["/usr/src/", "/usr/local/src/"];

/// Our own settings and keys, below a home.
const OWN: &[&str] = &[".hermes/.env", ".hermes/auth.json", ".hermes/config.yaml"];

/// Where files are meant to be short-lived.
const TEMPORARY: &[&str] = &["/tmp/", "/var/tmp/", "/private/tmp/"];

/// Returns whether deleting the path, or everything in it, would be a catastrophe.
pub(super) fn is_vital(path: &str) -> bool {
    let path = without_dots(path);
    let path = path
        .strip_suffix("/*")
        .or_else(|| path.strip_suffix("/.*"))
        .unwrap_or(&path);
    let path = if path.is_empty() { "/" } else { path };
    let is_rooted = path.starts_with(['/', '~']);
    let may_be = |vital: &&str| wildcard::matches(path, vital);
    VITAL.contains(&path)
        || is_home(path)
        || (is_rooted && wildcard::is_pattern(path) && VITAL.iter().any(may_be))
}

/// Returns a path as seen from a folder, if there is one.
pub(super) fn joined(folder: Option<&str>, path: &str) -> String {
    match folder {
        Some(folder) if !path.starts_with(['/', '~', '$']) => {
            without_dots(&format!("{folder}/{path}"))
        }
        _ => path.to_owned(),
    }
}

/// Returns whether writing to the path stops the machine at once.
pub(super) fn is_power_switch(path: &str) -> bool {
    without_dots(path) == "/proc/sysrq-trigger"
}

pub(super) fn is_block_device(path: &str) -> bool {
    let path = without_dots(path);
    BLOCK_DEVICES.iter().any(|device| path.starts_with(device))
}

/// Says why writing to a path should be asked for, if so.
pub(crate) fn why_sensitive(path: &str) -> Option<&'static str> {
    let path = without_dots(path);
    let is_in = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    if is_in(SYSTEM) && !is_in(SOURCES) {
        return Some("changes files of the system");
    }
    let is_guarded = |inside: &str| {
        let mut guarded = LOGIN_FILES.iter().chain(START_FILES).chain(OWN);
        guarded.any(|name| Path::new(inside).starts_with(name))
    };
    if inside_home(&path).is_some_and(is_guarded) {
        return Some("changes what decides who may log in and what runs then");
    }
    if runs_with_git(&path) {
        return Some("changes what git runs in a repository");
    }
    let name = path.rsplit('/').next().unwrap_or(&path);
    let is_example = [".example", ".sample", ".template", ".dist"]
        .iter()
        .any(|ending| name.ends_with(ending));
    (name.starts_with(".env") && !is_example).then_some("overwrites settings or secrets")
}

/// Says the same of what a command writes. Its line does not tell which folder a name is in, so any `config.yaml` may be
/// our own.
pub(super) fn why_sensitive_in_line(path: &str) -> Option<&'static str> {
    let is_settings = path.rsplit('/').next() == Some("config.yaml");
    why_sensitive(path).or(is_settings.then_some("overwrites settings"))
}

/// Returns whether git runs a file, or what it names: hooks and settings of a repository, its submodules and worktrees,
/// the files that say where those are, and the settings for all repositories of somebody.
fn runs_with_git(path: &str) -> bool {
    let is_for_all = |name: &&str| Path::new(path).ends_with(name);
    if [".gitconfig", ".config/git/config"].iter().any(is_for_all) {
        return true;
    }
    let mut parts = path.split('/').skip_while(|part| *part != ".git");
    let is_in_repository = parts.next().is_some();
    let inside: Vec<&str> = parts.collect();
    let leads_to_settings =
        |last: &&str| matches!(*last, "config" | "config.worktree" | "commondir");
    match inside.last() {
        // Of a worktree or submodule it is a file that names its repository.
        None => is_in_repository,
        Some(last) => inside.contains(&"hooks") || leads_to_settings(last),
    }
}

/// Returns whether a path is absolute and not meant to be short-lived.
pub(super) fn is_lasting_absolute(path: &str) -> bool {
    let path = without_dots(path);
    path.starts_with('/') && !TEMPORARY.iter().any(|place| path.starts_with(place))
}

/// Returns whether a path is somebody's home folder, spelt out.
pub(super) fn is_home(path: &str) -> bool {
    if path.starts_with('~') && !path.contains('/') {
        return !matches!(path, "~+" | "~-");
    }
    inside_home(&format!("{path}/")) == Some("")
}

/// Returns the part of a path below a home folder.
pub(crate) fn inside_home(path: &str) -> Option<&str> {
    let below_user = |users: &str| Some(path.strip_prefix(users)?.split_once('/')?.1);
    let below_tilde = || Some(path.strip_prefix('~')?.split_once('/')?.1);
    below_tilde()
        .or_else(|| path.strip_prefix("/root/"))
        .or_else(|| below_user("/home/"))
        .or_else(|| below_user("/Users/"))
}

/// Removes what does not change where a path leads: doubled and trailing slashes, `.` and `..`.
fn without_dots(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let is_home = path.starts_with('~');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if is_absolute || (is_home && parts.len() > 1) => {
                parts.pop();
            }
            // Above a home lie the homes.
            ".." if is_home => parts = vec!["~root"],
            part => parts.push(part),
        }
    }
    match (is_absolute, parts.join("/")) {
        (true, joined) => format!("/{joined}"),
        (false, joined) if joined.is_empty() => ".".to_owned(),
        (false, joined) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vital_folders_are_known_in_every_spelling() {
        for path in [
            "/",
            "//",
            "/.",
            "/*",
            "/etc",
            "/etc/",
            "/usr/*",
            "/usr/../",
            "/tmp/../etc",
            "~",
            "~/",
            "~/*",
            "/home/*",
            "/home/me",
            "/home/me/*",
            "/root",
            "/./var//",
            "/et[c]",
            "/e*",
            "/?tc",
            "~root",
            "~/..",
            "~/x/..",
        ] {
            assert!(is_vital(path), "{path}");
        }
        for path in [
            "build",
            "./",
            "/tmp/x",
            "/home/me/project",
            "/etc/nginx",
            "~/project",
            "/var/log/x",
            "*",
        ] {
            assert!(!is_vital(path), "{path}");
        }
    }

    #[test]
    fn sensitive_files_are_known() {
        for path in [
            "/etc/hosts",
            "~/.bashrc",
            "/home/me/.ssh/config",
            "~/.config/systemd/user/x.service",
            "/root/.netrc",
            ".env",
            "a/.env.local",
            "config.yaml",
            "~/.hermes/config.yaml",
            ".git/hooks/pre-commit",
            "/srv/project/.git/config",
            "a/.git/modules/b/hooks/post-checkout",
            "submodule/.git",
            "~/.gitconfig",
            "/srv/home/me/.config/git/config",
            "a/.git/commondir",
        ] {
            assert!(why_sensitive_in_line(path).is_some(), "{path}");
        }
        for path in [
            "a.txt",
            ".env.example",
            "/tmp/etc/x",
            "src/.bashrc_notes",
            "/dev/null",
            ".git/description",
            ".gitignore",
            "src/hooks/config",
        ] {
            assert_eq!(why_sensitive_in_line(path), None, "{path}");
        }
    }
}
