//! Files whose change decides who may log in, what runs then, or what the system does: by their names alone, for whoever
//! asks before something is written, be it a tool or a command.

use std::path::Path;

/// What below a home lets somebody in, here or elsewhere. Not written; commands that write there are asked about.
pub const LOGIN_FILES: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
];

/// What below a home runs when its owner logs in or opens a shell. Written when somebody agrees, like everything that
/// [`why_sensitive`] knows.
pub const START_FILES: &[&str] = &[
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".cshrc",
    ".kshrc",
    ".local/share/systemd",
    ".login",
    ".pam_environment",
    ".profile",
    ".tcshrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "Library/LaunchAgents",
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

/// Says why writing to a path should be asked for, if so.
pub fn why_sensitive(path: &str) -> Option<&'static str> {
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

/// Returns the part of a path below a home folder.
pub fn inside_home(path: &str) -> Option<&str> {
    let below_user = |users: &str| Some(path.strip_prefix(users)?.split_once('/')?.1);
    let below_tilde = || Some(path.strip_prefix('~')?.split_once('/')?.1);
    below_tilde()
        .or_else(|| path.strip_prefix("/root/"))
        .or_else(|| below_user("/home/"))
        .or_else(|| below_user("/Users/"))
}

/// Removes what does not change where a path leads: doubled and trailing slashes, `.` and `..`.
pub fn without_dots(path: &str) -> String {
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
