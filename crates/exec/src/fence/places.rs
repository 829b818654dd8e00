//! Which folders are inside a fence: the project and the places for temporary files to write to, programs and their
//! libraries to read.

use std::path::{Component, Path, PathBuf};

use super::missing::{NoBubblewrap, NoLandlock};
use super::{Fence, Network};

/// Top-level folders that are nobody's programs: homes, and the sockets of services.
const NOT_READABLE: &[&str] = &["home", "root", "Users", "run"];

/// Name servers are found through this one.
const RESOLVER: &str = "/run/systemd/resolve";

/// Devices are neither read-only nor to be hidden; each way to put up a fence knows how to let them through.
pub(super) const DEVICES: &str = "/dev";

/// Memory that programs share, where there is any.
const SHARED_MEMORY: &str = "/dev/shm";

/// What programs read in a home: start files, and toolchains without the keys beside them.
const READABLE_AT_HOME: &[&str] = &[
    ".profile",
    ".bash_profile",
    ".bashrc",
    ".bash_aliases",
    ".inputrc",
    ".gitconfig",
    ".config/git",
    ".cargo/bin",
    ".cargo/env",
    ".cargo/config.toml",
    ".cargo/registry",
    ".cargo/git",
    ".rustup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/uv",
    ".pyenv",
    ".rbenv",
    ".nvm",
    ".volta",
    ".bun",
    ".deno",
    ".asdf",
    ".sdkman",
    "go",
];

/// Where the folders are that matter to a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencePlaces {
    /// Commands may write here.
    pub project: PathBuf,
    /// The home of the user.
    pub user_home: Option<PathBuf>,
    /// The home of Hermes, which holds keys.
    pub hermes_home: PathBuf,
    /// Folders that running commands at all needs to write to.
    pub own: Vec<PathBuf>,
    /// For temporary files, besides the usual folders.
    pub temporary: Option<PathBuf>,
}

/// Why there is no fence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFenced {
    #[error("a fence around `{}` would let commands into `{}`", project.display(), private.display())]
    TooWide { project: PathBuf, private: PathBuf },
    #[error("nothing here can fence commands in: {landlock}; {bubblewrap}")]
    NoMeans {
        landlock: NoLandlock,
        bubblewrap: NoBubblewrap,
    },
    #[error("only bubblewrap can cut commands off from the network: {bubblewrap}")]
    NetworkStaysOpen { bubblewrap: NoBubblewrap },
    #[error("the kernel refused the fence: {detail}")]
    Refused { detail: String },
}

impl NotFenced {
    /// What to do about it, besides doing without a fence.
    pub fn fix(&self) -> String {
        match self {
            Self::TooWide { .. } => "start Hermes in the folder of a project".to_owned(),
            Self::NoMeans {
                landlock,
                bubblewrap,
            } => format!("{}; or {}", bubblewrap.fix(), landlock.fix()),
            Self::NetworkStaysOpen { bubblewrap } => bubblewrap.fix(),
            Self::Refused { .. } => {
                "`hermes config set terminal.sandbox offline` uses bubblewrap instead".to_owned()
            }
        }
    }
}

impl Fence {
    /// Decides what is inside. Folders that do not exist when it is put up stay out of reach.
    pub fn around(places: &FencePlaces, network: Network) -> Result<Self, NotFenced> {
        let private = places.user_home.iter().chain([&places.hermes_home]);
        let private: Vec<PathBuf> = private.map(|path| resolved(path)).collect();
        let project = resolved(&places.project);
        if let Some(private) = private.iter().find(|path| path.starts_with(&project)) {
            return Err(NotFenced::TooWide {
                project,
                private: private.clone(),
            });
        }
        let temporary = ["/tmp", "/var/tmp", SHARED_MEMORY].map(PathBuf::from);
        let mut writable = vec![project];
        writable.extend(temporary);
        writable.extend(places.temporary.clone());
        writable.extend(places.own.clone());
        let at_home = |home: &PathBuf| {
            READABLE_AT_HOME
                .iter()
                .map(|name| home.join(name))
                .collect()
        };
        let mut readable = programs(&private);
        readable.push(RESOLVER.into());
        readable.extend(places.user_home.as_ref().map_or(Vec::new(), at_home));
        Ok(Self {
            writable,
            readable,
            network,
        })
    }
}

/// Everything at the top but homes.
fn programs(private: &[PathBuf]) -> Vec<PathBuf> {
    let entries = Path::new("/").read_dir().into_iter().flatten().flatten();
    let is_public = |path: &PathBuf| {
        let named = NOT_READABLE.iter().map(|name| Path::new("/").join(name));
        let hidden: Vec<PathBuf> = named.chain(private.iter().map(|path| top(path))).collect();
        let target = resolved(path);
        path != Path::new(DEVICES) && !hidden.iter().any(|hidden| target.starts_with(hidden))
    };
    let mut readable: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_public)
        .collect();
    readable.sort();
    readable
}

/// The folder directly under the root that a path is in.
fn top(path: &Path) -> PathBuf {
    let components = path.components();
    components
        .filter(|component| !matches!(component, Component::CurDir))
        .take(2)
        .collect()
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(project: &str) -> FencePlaces {
        FencePlaces {
            project: project.into(),
            user_home: Some("/data/me".into()),
            hermes_home: "/data/me/.hermes".into(),
            own: vec!["/data/me/.hermes/shells".into()],
            temporary: None,
        }
    }

    #[test]
    fn homes_are_out_of_reach_and_their_toolchains_are_not() {
        let fence = Fence::around(&places("/data/me/project"), Network::Open).unwrap();
        let reads = |path: &str| fence.readable.contains(&PathBuf::from(path));
        assert!(reads("/usr") && reads("/etc") && reads("/data/me/.rustup"));
        assert!(!reads("/data") && !reads("/home") && !reads("/root") && !reads("/dev"));
        assert!(!reads("/data/me/.cargo") && !reads("/data/me/.ssh"));
        assert_eq!(fence.writable[0], PathBuf::from("/data/me/project"));
    }

    #[test]
    fn a_project_that_holds_a_home_is_refused() {
        for project in ["/", "/data", "/data/me"] {
            let refused = Fence::around(&places(project), Network::Open);
            assert!(
                matches!(refused, Err(NotFenced::TooWide { .. })),
                "{project}"
            );
        }
    }
}
