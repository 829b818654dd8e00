//! The fence around what commands and file tools reach on this machine: which paths are inside, and what a call was
//! allowed beyond it.
//!
//! Pure rules over paths without links. `hermes-exec` has the kernel hold them for commands; file tools ask the same rules
//! and do their work on a fenced thread. Leaving the fence is what a person is asked about.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What is inside the fence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FenceArea {
    /// The folder that the session works on; the first of those that may be written to.
    pub project: PathBuf,
    /// Folders that may be written to: the project, places for temporary files, caches of tools.
    pub writable: Vec<PathBuf>,
    /// Neither read nor written, wherever they lie: keys, logins, browser profiles, Hermes' own home.
    pub hidden: Vec<PathBuf>,
    /// Read although they are inside something hidden: what Hermes keeps for those it runs.
    pub shown: Vec<PathBuf>,
    /// `strict`: what may be read besides what may be written. Otherwise everything that is not hidden.
    pub readable: Option<Vec<PathBuf>>,
}

/// Names inside a project that make programs of others run, or tell agents what to do. They are written when a person
/// agrees, although they are inside the fence.
const GUARDED: &[(&str, &str)] = &[
    (".git/hooks", "changes what git runs"),
    (".git/config", "changes what git runs"),
    (".git/config.worktree", "changes what git runs"),
    (".git/info/attributes", "changes what git runs"),
    (".git/commondir", "changes what git runs"),
    (
        ".envrc",
        "changes what runs when somebody enters the folder",
    ),
    (".husky", "changes what git runs"),
    (".vscode", "changes what the editor runs"),
    (".idea", "changes what the editor runs"),
    (".zed", "changes what the editor runs"),
    (".devcontainer", "changes what the editor runs"),
    (".github/workflows", "changes what runs after a push"),
    (".github/actions", "changes what runs after a push"),
    (".gitlab-ci.yml", "changes what runs after a push"),
    (".circleci", "changes what runs after a push"),
    (".hermes", "changes what agents are told"),
    (".hermes.md", "changes what agents are told"),
    ("HERMES.md", "changes what agents are told"),
    ("AGENTS.md", "changes what agents are told"),
    ("CLAUDE.md", "changes what agents are told"),
    (".claude", "changes what agents are told"),
    (".cursorrules", "changes what agents are told"),
    (".cursor", "changes what agents are told"),
    ("SOUL.md", "changes what agents are told"),
    ("GEMINI.md", "changes what agents are told"),
    (".windsurfrules", "changes what agents are told"),
    (".clinerules", "changes what agents are told"),
    (".goosehints", "changes what agents are told"),
    (
        ".github/copilot-instructions.md",
        "changes what agents are told",
    ),
    (".mcp.json", "changes what agents run"),
];

impl FenceArea {
    /// Returns whether a path may be written. The path is absolute and has no links in it.
    pub fn may_write(&self, path: &Path) -> bool {
        !contains(&self.hidden, path) && contains(&self.writable, path)
    }

    /// Returns whether a path may be read. The path is absolute and has no links in it.
    pub fn may_read(&self, path: &Path) -> bool {
        let is_shown = match &self.readable {
            Some(readable) => contains(readable, path) || contains(&self.writable, path),
            None => true,
        };
        is_shown && !self.is_hidden(path)
    }

    /// Returns whether a path is, or is inside, one that is hidden.
    pub fn is_hidden(&self, path: &Path) -> bool {
        contains(&self.hidden, path) && !contains(&self.shown, path)
    }

    /// Returns whether commands may write in the project. Not when it is a home, or a folder of the system.
    pub fn is_project_writable(&self) -> bool {
        self.may_write(&self.project)
    }

    /// What of a pass is really beyond the fence; the rest needs no wider one.
    pub fn beyond(&self, pass: &Pass) -> Pass {
        let beyond = |paths: &[PathBuf], may: &dyn Fn(&Path) -> bool| {
            let mut paths: Vec<PathBuf> = paths.iter().filter(|path| !may(path)).cloned().collect();
            paths.sort();
            paths.dedup();
            paths
        };
        Pass {
            outside: pass.outside,
            reads: beyond(&pass.reads, &|path| self.may_read(path)),
            writes: beyond(&pass.writes, &|path| self.may_write(path)),
            checkout: Checkout::default(),
        }
    }

    /// The guarded names of the project, with what a change of them does.
    pub fn guarded(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        guarded_in(&self.project)
    }
}

/// The guarded names of a folder, with what a change of them does.
pub fn guarded_in(folder: &Path) -> impl Iterator<Item = (PathBuf, &'static str)> {
    GUARDED
        .iter()
        .map(|(name, reason)| (folder.join(name), *reason))
}

/// Names that agents go by wherever in a project they are, and what runs when somebody enters a folder.
const GUARDED_ANYWHERE: &[&str] = &[
    "agents.md",
    "claude.md",
    "hermes.md",
    ".hermes.md",
    "soul.md",
    "skill.md",
    "gemini.md",
    ".windsurfrules",
    ".clinerules",
    ".goosehints",
    ".mcp.json",
    ".cursorrules",
    ".cursor",
    ".claude",
    ".hermes",
    ".envrc",
];

/// Returns whether a name is guarded in every folder of a project.
pub fn is_guarded_anywhere(name: &str) -> bool {
    GUARDED_ANYWHERE
        .iter()
        .any(|guarded| name.eq_ignore_ascii_case(guarded))
}

/// A fence that stands on this machine, for those who work inside it without being commands.
pub trait Fencing: Send + Sync {
    /// What is inside for a session that works in this folder.
    fn area(&self, cwd: &Path) -> FenceArea;

    /// Does work inside the fence, widened by a pass, and returns when it is done. Where the fence can only be put around
    /// programs, the rules over paths are all that holds it. An error means that nothing was done.
    fn inside(
        &self,
        cwd: &Path,
        pass: &Pass,
        work: Box<dyn FnOnce() + Send + '_>,
    ) -> std::io::Result<()>;

    /// Lets a guarded path be changed, as somebody agreed to, until [`Self::accept`].
    fn agree(&self, path: &Path);

    /// Takes what is now at a guarded path for what somebody agreed to.
    fn accept(&self, path: &Path);

    /// A short word for what holds it: `landlock`, `bubblewrap`.
    fn means(&self) -> &'static str;
}

/// Says why a file is written only when somebody agrees, wherever a project is: its name, or that of a folder it is in,
/// makes programs run or tells agents what to do. Letters' case does not matter, as on some disks.
pub fn why_guarded(path: &Path) -> Option<&'static str> {
    let text = path.to_string_lossy().to_lowercase();
    let components: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let named = |name: &str| {
        let name = name.to_lowercase();
        let parts: Vec<&str> = name.split('/').collect();
        components
            .windows(parts.len())
            .any(|window| window == parts)
    };
    let known = GUARDED.iter().find(|(name, _)| named(name));
    let is_skill = components.last().is_some_and(|name| *name == "skill.md");
    known
        .map(|(_, reason)| *reason)
        .or(is_skill.then_some("changes what agents are told"))
}

/// A folder that somebody sees nothing of but what is theirs in it: the home of Hermes, for those who are not its owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateFolder {
    pub folder: PathBuf,
    /// Theirs, or everybody's.
    pub open: Vec<PathBuf>,
}

impl PrivateFolder {
    /// Returns whether a path is none of theirs. The path is absolute.
    pub fn hides(&self, path: &Path) -> bool {
        path.starts_with(&self.folder) && !contains(&self.open, path)
    }
}

/// What a call may do beyond the fence: what somebody agreed to. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pass {
    /// The whole fence is left.
    pub outside: bool,
    /// Also read.
    pub reads: Vec<PathBuf>,
    /// Also written.
    pub writes: Vec<PathBuf>,
    /// Which guarded files git may put into the working tree.
    #[serde(default)]
    pub checkout: Checkout,
}

/// Guarded files that a call may change because git does it, with what commits of the repository hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkout {
    #[default]
    Nothing,
    /// What the repository held before Hermes was started: nothing of ours can have made it.
    Known,
    /// Also what comes from the remote that the person set up.
    Fetched,
}

impl Pass {
    /// Leaves the fence altogether.
    pub fn outside() -> Self {
        Self {
            outside: true,
            ..Self::default()
        }
    }

    /// Returns whether the call stays inside.
    pub fn is_inside(&self) -> bool {
        *self == Self::default()
    }
}

fn contains(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> FenceArea {
        FenceArea {
            project: "/home/me/project".into(),
            writable: vec!["/home/me/project".into(), "/tmp".into()],
            hidden: vec!["/home/me/.ssh".into(), "/home/me/project/keys".into()],
            shown: vec!["/home/me/.ssh/known_hosts".into()],
            readable: None,
        }
    }

    #[test]
    fn everything_is_read_but_what_is_hidden_and_the_project_is_written() {
        let area = area();
        for (path, reads, writes) in [
            ("/home/me/project/src/main.rs", true, true),
            ("/home/me/project/keys/one", false, false),
            ("/home/me/project-2/x", true, false),
            ("/tmp/x", true, true),
            ("/etc/hosts", true, false),
            ("/home/me/.ssh/id_ed25519", false, false),
            ("/home/me/.ssh", false, false),
            ("/home/me/.ssh/known_hosts", true, false),
        ] {
            assert_eq!(area.may_read(Path::new(path)), reads, "{path}");
            assert_eq!(area.may_write(Path::new(path)), writes, "{path}");
        }
    }

    #[test]
    fn a_pass_for_what_is_inside_takes_no_wider_fence() {
        let pass = Pass {
            writes: vec!["/tmp/x".into(), "/home/me/y".into()],
            reads: vec!["/etc/hosts".into(), "/home/me/.ssh".into()],
            ..Pass::default()
        };
        let beyond = area().beyond(&pass);
        assert_eq!(beyond.writes, [PathBuf::from("/home/me/y")]);
        assert_eq!(beyond.reads, [PathBuf::from("/home/me/.ssh")]);
    }

    #[test]
    fn a_strict_fence_reads_what_is_listed() {
        let area = FenceArea {
            readable: Some(vec!["/usr".into()]),
            ..area()
        };
        assert!(area.may_read(Path::new("/usr/bin/ls")));
        assert!(area.may_read(Path::new("/tmp/x")));
        assert!(!area.may_read(Path::new("/home/me/notes")));
    }

    #[test]
    fn names_that_make_programs_run_are_guarded_in_every_project() {
        for path in [
            "/srv/p/.git/hooks/pre-commit",
            "/srv/p/.GIT/config",
            "/srv/p/sub/AGENTS.md",
            "/srv/p/.github/workflows/ci.yml",
            "/srv/p/skills/x/SKILL.md",
            "/srv/p/.envrc",
        ] {
            assert!(why_guarded(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "/srv/p/.github/README.md",
            "/srv/p/.gitignore",
            "/srv/p/hooks/config",
        ] {
            assert_eq!(why_guarded(Path::new(path)), None, "{path}");
        }
    }
}
