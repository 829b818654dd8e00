//! What git needs: where a remote is, and whether it only checks out what it has.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_core::FenceSetting;

use super::{Needs, Program, located};

/// What git reads to log in over HTTP, below the home.
const CREDENTIALS: &[&str] = &[
    ".git-credentials",
    ".netrc",
    ".config/git/credentials",
    ".config/gh",
];

/// A configuration that is longer was not written by git.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Subcommands that put what commits hold into the working tree.
const CHECKS_OUT: &[&str] = &[
    "checkout",
    "switch",
    "restore",
    "reset",
    "stash",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "pull",
];

/// Subcommands that only look, and what else may stand beside them in a line.
const LOOKS: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "branch",
    "fetch",
    "rev-parse",
    "add",
];

/// Options that have git run something, or take something from elsewhere.
const RUNS: &[&str] = &[
    "-x",
    "--exec",
    "-i",
    "--interactive",
    "--pathspec-from-file",
];

pub(super) fn only_checks_out(program: &Program) -> bool {
    let first = program.args.first().map_or("", String::as_str);
    let is_git = program.name == "git" && (CHECKS_OUT.contains(&first) || LOOKS.contains(&first));
    let runs = program.args.iter().any(|arg| {
        RUNS.iter()
            .any(|option| arg == option || arg.starts_with("--exec"))
    });
    (is_git && !runs) || program.name == "cd"
}

/// Returns whether git fetches from a remote that the person set up, and merges that.
pub(super) fn pulls(program: &Program) -> bool {
    let is_remote = |name: &String| !is_address(name);
    let rest = program.args.split_first();
    rest.is_some_and(|(first, rest)| {
        let named = rest.iter().find(|arg| !arg.starts_with('-'));
        let replays = rest
            .iter()
            .any(|arg| arg.starts_with("--r") || arg.starts_with("-r"));
        first == "pull" && !replays && named.is_none_or(is_remote)
    })
}

/// Adds what git needs.
pub(super) fn add(needs: &mut Needs, program: &Program, setting: FenceSetting<'_>) {
    let (subcommand, rest) = program.subcommand();
    match subcommand {
        "push" | "pull" | "fetch" | "ls-remote" | "clone" => {
            let named = rest.iter().find(|arg| !arg.starts_with('-'));
            let folder = folder_of(program, setting);
            let address = address_of(subcommand, named.map(String::as_str), &folder);
            reach(needs, subcommand, address.as_deref(), &folder, setting);
        }
        "submodule" if program.has(&["update", "add"]) => {
            reach(needs, subcommand, None, &program.folder, setting);
            changes_settings(needs, program, setting);
        }
        "submodule" if program.has(&["init", "sync", "deinit"]) => {
            changes_settings(needs, program, setting);
        }
        "config" if is_changed(program) => {
            if program.has(&["--global", "--system"]) {
                needs.outside("changes what git runs everywhere (`~/.gitconfig`)");
            } else {
                changes_settings(needs, program, setting);
            }
        }
        "remote"
            if program.has(&[
                "add",
                "set-url",
                "rename",
                "remove",
                "rm",
                "set-branches",
                "set-head",
            ]) =>
        {
            changes_settings(needs, program, setting);
        }
        "lfs" if program.has(&["install", "uninstall"]) => {
            needs.outside("changes what git runs everywhere (`~/.gitconfig`)");
        }
        "sparse-checkout" | "maintenance" => changes_settings(needs, program, setting),
        _ => {}
    }
    let signs = program.has(&["-S", "--gpg-sign"])
        && matches!(subcommand, "commit" | "merge" | "rebase")
        || program.has(&["-s", "-u", "--sign"]) && subcommand == "tag";
    if signs {
        needs.uses_at_home(".gnupg", setting);
    }
}

/// Where git is told to work.
fn folder_of(program: &Program, setting: FenceSetting<'_>) -> PathBuf {
    let named = program.args.windows(2).find(|pair| pair[0] == "-C");
    let named = named.and_then(|pair| located(&pair[1], &program.folder, setting));
    named.unwrap_or_else(|| program.folder.clone())
}

fn is_changed(program: &Program) -> bool {
    let looks = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--list",
        "-l",
        "--show-origin",
        "list",
        "get",
    ];
    let changes = [
        "--unset",
        "--unset-all",
        "--add",
        "--replace-all",
        "--edit",
        "-e",
        "--remove-section",
        "--rename-section",
        "set",
        "unset",
        "edit",
    ];
    let (_, rest) = program.subcommand();
    let values = rest.iter().filter(|arg| !arg.starts_with('-')).count();
    !program.has(&looks) && (values > 1 || program.has(&changes))
}

/// What git runs is written down in the repository itself.
fn changes_settings(needs: &mut Needs, program: &Program, setting: FenceSetting<'_>) {
    let folder = folder_of(program, setting);
    let root = folder
        .ancestors()
        .find(|folder| folder.join(".git").is_dir());
    if let Some(root) = root.filter(|root| setting.area.may_write(root)) {
        needs.because("changes what git runs (`.git/config`)".to_owned());
        needs.pass.writes.push(root.join(".git/config"));
    }
}

/// Adds what it takes to reach a repository.
fn reach(
    needs: &mut Needs,
    subcommand: &str,
    address: Option<&str>,
    folder: &Path,
    setting: FenceSetting<'_>,
) {
    match address.map(Way::of) {
        Some(Way::Here(path)) if subcommand == "push" => {
            if let Some(path) = located(path, folder, setting) {
                needs.writes(&path, setting);
            }
        }
        Some(Way::Here(_)) => {}
        Some(Way::Http) => {
            for name in CREDENTIALS {
                needs.reads_at_home(name, setting);
            }
        }
        // A name that nothing explains may be a host as well.
        Some(Way::Ssh) | None => super::programs::uses_ssh(needs, setting),
    }
}

/// How a repository is reached.
enum Way<'a> {
    Here(&'a str),
    Http,
    Ssh,
}

impl<'a> Way<'a> {
    fn of(address: &'a str) -> Self {
        if let Some(path) = address.strip_prefix("file://") {
            return Self::Here(path);
        }
        if ["http://", "https://", "git://"]
            .iter()
            .any(|scheme| address.starts_with(scheme))
        {
            return Self::Http;
        }
        let before_path = address.split('/').next().unwrap_or_default();
        if before_path.contains(':') {
            Self::Ssh
        } else {
            Self::Here(address)
        }
    }
}

/// Returns the address that a subcommand goes to.
fn address_of(subcommand: &str, named: Option<&str>, folder: &Path) -> Option<String> {
    match named {
        Some(name) if subcommand == "clone" || is_address(name) => Some(name.to_owned()),
        named => remote_address(named.unwrap_or("origin"), folder),
    }
}

/// Returns whether a name can only be where a repository is.
fn is_address(name: &str) -> bool {
    name.contains(['/', ':']) || name.starts_with('.')
}

/// Looks a remote up in the configuration of the repository.
fn remote_address(name: &str, folder: &Path) -> Option<String> {
    let configs = folder.ancestors().map(|folder| folder.join(".git/config"));
    let config = configs.into_iter().find(|file| file.is_file())?;
    if fs::metadata(&config).ok()?.len() > CONFIG_BYTES_MAX {
        return None;
    }
    let text = fs::read_to_string(config).ok()?;
    let section = format!("[remote \"{name}\"]");
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != section)
        .skip(1);
    let url = lines
        .by_ref()
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.strip_prefix("url")?.trim_start().strip_prefix('='));
    Some(url?.trim().to_owned())
}
