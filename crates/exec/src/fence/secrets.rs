//! What no command reads unless somebody agrees: keys, logins, browser profiles, what was typed into shells, the homes of
//! others and of Hermes.

use std::path::{Path, PathBuf};

use super::places::resolved;

/// Below a home.
const AT_HOME: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".netrc",
    ".kube",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/doctl",
    ".config/op",
    ".config/rclone",
    ".config/git/credentials",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings-security.xml",
    ".modal.toml",
    ".huggingface/token",
    ".cache/huggingface/token",
    // Other agents.
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".local/share/opencode/auth.json",
    // Browsers, mail and password stores.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".var/app",
    "snap/firefox",
    "snap/chromium",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/KeePass",
    ".config/Bitwarden",
    ".config/Signal",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Safari",
    "Library/Messages",
    "Library/Mail",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Chromium",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Firefox",
    "Library/Application Support/Microsoft Edge",
    // What was typed.
    ".bash_history",
    ".zsh_history",
    ".history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".local/share/fish/fish_history",
];

/// Of the system, where the user could read them: only the superuser can, as a rule.
const OF_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
    "/run/secrets",
    "/var/lib/sss",
];

/// Where the homes of people are.
const HOMES: &[&str] = &["/home", "/Users"];

/// The superuser's.
const ROOT_HOME: &str = "/root";

/// Returns everything hidden from a session that works on `project`, as it is named and where it leads. What the project is
/// in, the person chose to show.
pub(super) fn hidden(home: Option<&Path>, hermes_home: &Path, project: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = OF_SYSTEM.iter().map(PathBuf::from).collect();
    names.extend(home.into_iter().flat_map(secrets_of));
    for other in homes_of_others(home) {
        if project.starts_with(&other) {
            // Somebody works as another user in the project of the first.
            names.extend(secrets_of(&other));
        } else {
            names.push(other);
        }
    }
    let is_around = |path: &PathBuf| project.starts_with(path);
    let mut hidden: Vec<PathBuf> = names
        .into_iter()
        .flat_map(|path| [resolved(&path), path])
        .filter(|path| !is_around(path))
        .collect();
    hidden.extend([resolved(hermes_home), hermes_home.to_owned()]);
    hidden
}

fn secrets_of(home: &Path) -> Vec<PathBuf> {
    AT_HOME.iter().map(|name| home.join(name)).collect()
}

fn homes_of_others(home: Option<&Path>) -> Vec<PathBuf> {
    let mine = home.map(resolved);
    let entries = HOMES
        .iter()
        .flat_map(|folder| Path::new(folder).read_dir().into_iter().flatten().flatten());
    let others = entries.map(|entry| entry.path());
    others
        .chain([PathBuf::from(ROOT_HOME)])
        .filter(|other| !mine.as_ref().is_some_and(|mine| mine.starts_with(other)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_somebody_works_in_is_not_hidden_from_them() {
        let hidden = |project: &str| {
            hidden(
                Some(Path::new("/data/me")),
                Path::new("/data/me/.hermes"),
                Path::new(project),
            )
        };
        let has = |paths: &[PathBuf], path: &str| paths.contains(&PathBuf::from(path));
        let usual = hidden("/data/me/project");
        assert!(has(&usual, "/data/me/.config/gh") && has(&usual, "/root"));
        let inside = hidden("/data/me/.config/gh/extension");
        assert!(!has(&inside, "/data/me/.config/gh") && has(&inside, "/data/me/.ssh"));
        let in_root = hidden("/root/project");
        assert!(!has(&in_root, "/root") && has(&in_root, "/root/.ssh"));
        assert!(has(&hidden("/data/me/.hermes/x"), "/data/me/.hermes"));
    }
}
