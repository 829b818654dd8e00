//! Paths that matter more than others.

use hermes_core::sensitive::{inside_home, why_sensitive, without_dots};
use hermes_core::wildcard;

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

/// Says the same of what a command writes. Its line does not tell which folder a name is in, so any `config.yaml` may be
/// our own.
pub(super) fn why_sensitive_in_line(path: &str) -> Option<&'static str> {
    let is_settings = path.rsplit('/').next() == Some("config.yaml");
    why_sensitive(path).or(is_settings.then_some("overwrites settings"))
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
