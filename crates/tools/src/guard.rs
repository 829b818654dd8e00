//! Which files tools keep their hands off, and which they change only when somebody agrees.
//!
//! A write is free, asked for or refused. It is asked for where the policy asks about a command that writes there, so that
//! no door is wider than the other; a test goes through a table of paths. Only a project's `config.yaml` is free here: a
//! command's line does not tell it from our own.
//!
//! A net against accidents and careless prompts, not a sandbox: a shell command can do what the user can, after the
//! user agreed to it. Paths are checked as named and as resolved, so a link does not lead around the net.

use std::path::{Path, PathBuf};

use hermes_core::fence::why_guarded;
use hermes_core::sensitive::{LOGIN_FILES, START_FILES, inside_home, why_sensitive};
use hermes_core::{FenceArea, PrivateFolder};
use hermes_os::paths;

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

/// What the system boots from, what the kernel shows as files, and what decides who may log in and as whom.
const SYSTEM_REFUSED: &[&str] = &[
    "/boot",
    "/dev",
    "/etc/doas.conf",
    "/etc/group",
    "/etc/gshadow",
    "/etc/pam.d",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/systemd",
    "/proc",
    "/sys",
];

/// Where some systems keep the folders that others have at the root.
const PRIVATE: &str = "/private";

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
    place: Machine,
    /// More than one where it is known by several paths.
    homes: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    /// Of the owner of the home, where somebody else talks.
    private: Vec<PrivateFolder>,
    protected: Vec<PathBuf>,
    settings: Vec<PathBuf>,
    /// What is inside the fence, where one stands.
    area: Option<FenceArea>,
}

/// Whose files are guarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Machine {
    /// This machine's: what a path leads to can be looked up.
    #[default]
    Here,
    /// Another's: paths are only compared. None of our own files is there.
    There,
}

impl Guard {
    pub(crate) fn new(ports: &ToolPorts) -> Self {
        Self {
            place: Machine::Here,
            homes: ports.home.clone().into_iter().collect(),
            secret: ports.secret.clone(),
            private: ports.private.iter().cloned().collect(),
            protected: ports.protected.clone(),
            settings: ports.settings.clone(),
            area: None,
        }
    }

    /// Guards what is outside of a fence, too.
    pub(crate) fn fenced(self, area: FenceArea) -> Self {
        Self {
            area: Some(area),
            ..self
        }
    }

    /// Guards the files of another machine. The home there is given by all of its paths.
    pub(crate) fn there(homes: Vec<PathBuf>) -> Self {
        Self {
            place: Machine::There,
            homes,
            ..Self::default()
        }
    }

    /// Finds out where the guarded files are just now, by their names and without links.
    pub(crate) fn pinned(&self) -> PinnedGuard {
        let spellings: fn(&[PathBuf]) -> Vec<PathBuf> = match self.place {
            Machine::Here => both_spellings,
            Machine::There => <[PathBuf]>::to_vec,
        };
        PinnedGuard {
            place: self.place,
            homes: spellings(&self.homes),
            secret: spellings(&self.secret),
            private: self
                .private
                .iter()
                .flat_map(|private| {
                    let open = spellings(&private.open);
                    let folders = spellings(std::slice::from_ref(&private.folder));
                    folders.into_iter().map(move |folder| PrivateFolder {
                        folder,
                        open: open.clone(),
                    })
                })
                .collect(),
            protected: spellings(&self.protected),
            settings: spellings(&self.settings),
            area: self.area.clone(),
        }
    }
}

/// A guard that knows its files as they are named and without links.
#[derive(Debug)]
pub(crate) struct PinnedGuard {
    place: Machine,
    homes: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    private: Vec<PrivateFolder>,
    protected: Vec<PathBuf>,
    settings: Vec<PathBuf>,
    area: Option<FenceArea>,
}

/// What becomes of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    Free,
    /// Somebody must agree.
    Asked {
        /// Completes "this …".
        reason: &'static str,
        /// Whether only a person may: no model does in their place.
        is_for_person: bool,
    },
    /// Why it is never done, in words for the model.
    Refused(String),
}

impl Write {
    /// Keeps the worse of two; of equals, the first.
    pub(crate) fn or(self, other: Self) -> Self {
        let rank = |write: &Self| match write {
            Self::Free => 0,
            Self::Asked { is_for_person, .. } => 1 + u8::from(*is_for_person),
            Self::Refused(_) => 3,
        };
        if rank(&other) > rank(&self) {
            other
        } else {
            self
        }
    }
}

impl PinnedGuard {
    /// Says why a file must not be read, if so, in words for the model.
    pub(crate) fn refuse_read(&self, path: &Path) -> Option<String> {
        if self.why_not_read(path).is_none()
            && self.is_beyond(path, FenceArea::may_read)
            && !self.is_ours_to_read(path)
        {
            return Some(format!(
                "`{}` is not read: it is outside the fence, where keys and logins are; if it is needed, show it with \
                 `terminal`, outside the fence: the user is asked",
                path.display()
            ));
        }
        let reason = self.why_not_read(path)?;
        Some(format!(
            "`{}` is not read: {reason}; ask the user for what you need to know from it",
            path.display()
        ))
    }

    /// Says why a file must not be read, if so: what it is.
    pub(crate) fn why_not_read(&self, path: &Path) -> Option<&'static str> {
        if contains(&self.secret, path) {
            Some("it holds Hermes' own keys")
        } else if self.is_private(path) || self.is_closed_to_guests(path) {
            Some("it belongs to the owner of this Hermes, and whoever asks is somebody else")
        } else if holds_variables(path) && !self.is_folder_here(path) {
            Some("files of this name hold secrets")
        } else if self.is_below_home(path, HOME_SECRETS) || self.is_private_key(path) {
            Some("it holds the user's credentials")
        } else if path.starts_with("/proc") && is_named(path, PROC_SECRETS) {
            Some("it shows the inside of a process")
        } else {
            None
        }
    }

    fn is_private(&self, path: &Path) -> bool {
        let path = paths::without_dots(path);
        self.private.iter().any(|private| private.hides(&path))
    }

    /// Nobody is asked whether a guest may read beyond their fence.
    fn is_closed_to_guests(&self, path: &Path) -> bool {
        !self.private.is_empty() && self.is_beyond(path, FenceArea::may_read)
    }

    /// Returns whether the fence keeps a path from being used so.
    fn is_beyond(&self, path: &Path, may: fn(&FenceArea, &Path) -> bool) -> bool {
        let area = self.area.as_ref();
        area.is_some_and(|area| !may(area, &paths::without_dots(path)))
    }

    /// Says what becomes of a write. Whatever is not refused is asked about where a command that writes there would be.
    pub(crate) fn judge_write(&self, path: &Path) -> Write {
        if let Some(reason) = self.why_refused(path) {
            return Write::Refused(format!(
                "`{}` is not written: {reason}; if the user wants this change, show it to them and let them make it",
                path.display()
            ));
        }
        // Whoever is not the owner cannot agree to more than happens inside the fence.
        if !self.private.is_empty() && self.is_beyond(path, FenceArea::may_write) {
            return Write::Refused(format!(
                "`{}` is not written: it is outside the project, and only the owner of this Hermes could agree to that",
                path.display()
            ));
        }
        if contains(&self.settings, path) {
            return Write::Asked {
                reason: "changes Hermes' own settings, which decide what is asked",
                is_for_person: true,
            };
        }
        if self.is_ours(path) {
            return Write::Asked {
                reason: "changes what Hermes itself is told and remembers",
                is_for_person: true,
            };
        }
        let reason = if self.is_below_home(path, START_FILES) {
            Some("changes what runs when the user logs in")
        } else {
            why_sensitive(&path.to_string_lossy())
        };
        let reason = reason.or_else(|| why_guarded(self.inside_project(path)));
        let is_outside = || self.is_beyond(path, FenceArea::may_write);
        let reason = reason.or_else(|| is_outside().then_some("writes outside the project"));
        reason.map_or(Write::Free, |reason| Write::Asked {
            reason,
            is_for_person: false,
        })
    }

    /// Returns whether a file is in a home of Hermes: instructions, skills, notes.
    fn is_ours(&self, path: &Path) -> bool {
        let mut homes = self.settings.iter().filter_map(|file| file.parent());
        // What a home has for guests is no business of ours.
        let mut open = self.private.iter().flat_map(|private| &private.open);
        homes.any(|home| path.starts_with(home)) && !open.any(|open| path.starts_with(open))
    }

    /// Returns whether a file in a home of Hermes is none of those that only Hermes looks after.
    pub(crate) fn is_ours_to_read(&self, path: &Path) -> bool {
        let is_kept = contains(&self.secret, path) || contains(&self.protected, path);
        self.is_ours(path) && !is_kept
    }

    /// What of a path is inside the project; all of it where that is not known.
    fn inside_project<'a>(&self, path: &'a Path) -> &'a Path {
        let area = self.area.as_ref();
        let inside = area.and_then(|area| path.strip_prefix(&area.project).ok());
        inside.unwrap_or(path)
    }

    fn why_refused(&self, path: &Path) -> Option<&'static str> {
        if contains(&self.secret, path) || contains(&self.protected, path) {
            return Some("Hermes looks after it itself");
        }
        if self.is_private(path) {
            return Some("it belongs to the owner of this Hermes");
        }
        let spelt = path.to_str().and_then(inside_home).map(Path::new);
        let is_of_somebody = spelt.is_some_and(|inside| begins_with(inside, LOGIN_FILES));
        if is_of_somebody || self.is_below_home(path, LOGIN_FILES) {
            return Some("it decides who may log in, here or elsewhere");
        }
        let inside = path.strip_prefix(PRIVATE);
        let public = inside.map_or(path.to_owned(), |inside| Path::new("/").join(inside));
        begins_with(&public, SYSTEM_REFUSED).then_some("it belongs to the system")
    }

    fn is_folder_here(&self, path: &Path) -> bool {
        self.place == Machine::Here && path.is_dir()
    }

    fn is_below_home(&self, path: &Path, names: &[&str]) -> bool {
        let mut inside = self
            .homes
            .iter()
            .filter_map(|home| path.strip_prefix(home).ok());
        inside.any(|inside| begins_with(inside, names))
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

fn begins_with(path: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn contains(guarded: &[PathBuf], path: &Path) -> bool {
    guarded.iter().any(|guarded| path.starts_with(guarded))
}

#[cfg(test)]
mod tests {
    use hermes_core::Consent;

    use super::*;

    fn guard() -> PinnedGuard {
        let guard = Guard {
            place: Machine::Here,
            homes: vec!["/home/me".into()],
            secret: vec!["/home/me/.hermes/auth.json".into()],
            private: Vec::new(),
            protected: vec!["/home/me/.hermes/hermes.db".into()],
            settings: vec!["/home/me/.hermes/config.yaml".into()],
            area: None,
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
        for (path, expected) in [
            ("/root/.ssh/authorized_keys", "refused"),
            ("/root/.bashrc", "asked"),
            ("/etc/shadow", "refused"),
        ] {
            assert_eq!(class(&guard, path), expected, "{path}");
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

    fn class(guard: &PinnedGuard, path: &str) -> &'static str {
        match guard.judge_write(Path::new(path)) {
            Write::Free => "free",
            Write::Asked { .. } => "asked",
            Write::Refused(_) => "refused",
        }
    }

    /// What the other door says: a command that writes to the path.
    fn class_of_command(path: &str) -> &'static str {
        match hermes_policy::consent_for(&format!("echo x > '{path}'")) {
            Consent::NotNeeded => "free",
            Consent::Needed(_) | Consent::Review(_) => "asked",
            Consent::Forbidden { .. } => "refused",
        }
    }

    #[test]
    fn a_file_tool_asks_where_a_command_asks() {
        for path in [
            "/home/me/.bashrc",
            "/home/me/.profile",
            "/home/me/.zshrc",
            "/home/me/.config/fish/config.fish",
            "/home/me/.config/autostart/x.desktop",
            "/home/me/.config/systemd/user/x.service",
            "/home/you/.bashrc",
            "/root/.zshenv",
            "/home/me/.hermes/config.yaml",
            "/etc/hosts",
            "/etc/nginx/nginx.conf",
            "/private/etc/hosts",
            "/usr/bin/ls",
            "/usr/local/bin/mine",
            "/usr/share/x",
            "/bin/sh",
            "/var/spool/cron/crontabs/me",
            "/srv/project/.git/hooks/pre-commit",
            "/srv/project/.git/config",
            "/srv/project/.git/modules/part/config",
            "/srv/project/.git/commondir",
            "/srv/worktree/.git",
            "/home/me/.gitconfig",
            "/srv/project/.env",
        ] {
            assert_eq!(class(&guard(), path), "asked", "{path}");
            assert_eq!(class_of_command(path), "asked", "{path}");
        }
        for path in [
            "/srv/project/src/main.rs",
            "/srv/project/.env.example",
            "/srv/project/.gitignore",
            "/srv/project/.git/description",
            "/srv/project/hooks/config",
            "/home/me/notes.md",
            "/home/me/.config/nvim/init.lua",
            "/etcetera",
            "/tmp/etc/hosts",
            "/usr/src/app/main.py",
        ] {
            assert_eq!(class(&guard(), path), "free", "{path}");
            assert_eq!(class_of_command(path), "free", "{path}");
        }
    }

    #[test]
    fn a_file_tool_knows_our_settings_from_those_of_a_project() {
        assert_eq!(class(&guard(), "/srv/project/config.yaml"), "free");
        assert_eq!(class_of_command("config.yaml"), "asked");
    }

    #[test]
    fn what_a_file_tool_refuses_no_command_does_unasked() {
        for path in [
            "/home/me/.ssh/authorized_keys",
            "/home/me/.ssh/config",
            "/home/me/.aws/credentials",
            "/home/me/.cargo/credentials.toml",
            "/home/me/.config/gh/hosts.yml",
            "/home/me/.docker/config.json",
            "/home/me/.git-credentials",
            "/home/me/.gnupg/gpg.conf",
            "/home/me/.kube/config",
            "/home/me/.netrc",
            "/home/me/.npmrc",
            "/home/me/.pgpass",
            "/home/me/.pypirc",
            "/home/you/.ssh/authorized_keys",
            "/etc/passwd",
            "/etc/shadow",
            "/etc/sudoers",
            "/etc/sudoers.d/me",
            "/etc/systemd/system/x.service",
            "/etc/ssh/sshd_config",
            "/private/etc/sudoers",
            "/boot/grub/grub.cfg",
            "/dev/sda",
            "/proc/sys/kernel/panic",
            "/sys/power/state",
            "/home/me/.hermes/auth.json",
        ] {
            assert_eq!(class(&guard(), path), "refused", "{path}");
            assert_ne!(class_of_command(path), "free", "{path}");
        }
        assert_eq!(class(&guard(), "/home/me/.hermes/hermes.db"), "refused");
    }

    #[test]
    fn behind_a_fence_what_is_outside_is_asked_about_and_secrets_are_not_read() {
        let area = FenceArea {
            project: "/home/me/.cursor/project".into(),
            writable: vec!["/home/me/.cursor/project".into(), "/tmp".into()],
            hidden: vec!["/home/me/.ssh".into()],
            ..FenceArea::default()
        };
        let guard = Guard {
            area: Some(area),
            ..Guard::default()
        };
        let guard = guard.pinned();
        for (path, expected) in [
            ("/home/me/.cursor/project/src/main.rs", "free"),
            ("/tmp/x", "free"),
            ("/home/me/notes.md", "asked"),
            ("/home/me/.cursor/project/../notes.md", "asked"),
            ("/home/me/.cursor/project/AGENTS.md", "asked"),
            ("/home/me/.cursor/project/part/.vscode/tasks.json", "asked"),
            ("/home/me/.cursor/project/skills/x/SKILL.md", "asked"),
        ] {
            assert_eq!(class(&guard, path), expected, "{path}");
        }
        assert!(
            guard
                .refuse_read(Path::new("/home/me/.ssh/config"))
                .is_some()
        );
        assert_eq!(guard.refuse_read(Path::new("/home/me/notes.md")), None);
    }

    #[test]
    fn only_a_person_changes_what_hermes_is_told() {
        for name in [
            "SOUL.md",
            "memories/MEMORY.md",
            "skills/x/SKILL.md",
            "cron/jobs.json",
        ] {
            let path = Path::new("/home/me/.hermes").join(name);
            let write = guard().judge_write(&path);
            assert!(
                matches!(
                    write,
                    Write::Asked {
                        is_for_person: true,
                        ..
                    }
                ),
                "{name}: {write:?}"
            );
        }
    }

    #[test]
    fn only_a_person_changes_the_settings_the_settings_that_decide_what_is_asked() {
        let is_for_person = |path| match guard().judge_write(Path::new(path)) {
            Write::Asked { is_for_person, .. } => is_for_person,
            other => panic!("{other:?}"),
        };
        assert!(is_for_person("/home/me/.hermes/config.yaml"));
        assert!(!is_for_person("/home/me/.bashrc"));
        // A link of a name that is asked about as well.
        let judge = |path| guard().judge_write(Path::new(path));
        let settings = judge("/home/me/.hermes/config.yaml");
        assert_eq!(judge("/srv/.env").or(settings.clone()), settings);
    }
}
