//! A fence around the commands of this machine: what they may read and write, and whether they reach the network.
//!
//! Landlock fences files in and needs nothing but the kernel. It cannot cut off the network as a whole, so that takes
//! `bubblewrap`, which also fences files where the kernel has no Landlock. Whatever is asked for is enforced, or commands
//! do not run. Start at [`Fence`]; `landlock` and `bubblewrap` are the two ways to put it up.

mod bubblewrap;
mod landlock;
mod missing;
mod places;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::{Child, Command};

pub use missing::{Forbidden, NoBubblewrap, NoLandlock};
pub use places::{FencePlaces, NotFenced};

/// What fenced commands may do. Everything that is not named is out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    network: Network,
}

/// Whether commands reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Open,
    Closed,
}

/// What this machine could put a fence up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceMeans {
    /// The version of Landlock, or why there is none that is good enough.
    pub landlock: Result<i32, NoLandlock>,
    /// Where `bwrap` is, or why it cannot be used.
    pub bubblewrap: Result<PathBuf, NoBubblewrap>,
}

impl FenceMeans {
    /// Tries both.
    pub fn of_this_machine(environment: &[(OsString, OsString)]) -> Self {
        Self {
            landlock: landlock::version(),
            bubblewrap: bubblewrap::find_working(environment),
        }
    }
}

/// A fence that stands.
#[derive(Debug)]
pub(crate) enum Standing {
    Landlock(landlock::FencedThread),
    Bubblewrap(bubblewrap::Wrapper),
}

impl Standing {
    pub(crate) fn put_up(
        fence: Fence,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, NotFenced> {
        if fence.network == Network::Open && landlock::version().is_ok() {
            return landlock::FencedThread::start(fence)
                .map(Self::Landlock)
                .map_err(|detail| NotFenced::Refused { detail });
        }
        match bubblewrap::find_working(environment) {
            Ok(program) => Ok(Self::Bubblewrap(bubblewrap::Wrapper::new(program, &fence))),
            Err(bubblewrap) => Err(match landlock::version() {
                Err(landlock) if fence.network == Network::Open => NotFenced::NoMeans {
                    landlock,
                    bubblewrap,
                },
                _ => NotFenced::NetworkStaysOpen { bubblewrap },
            }),
        }
    }

    /// The words that start a command inside.
    pub(crate) fn words(&self, command: Vec<OsString>, folder: &Path) -> Vec<OsString> {
        match self {
            Self::Landlock(_) => command,
            Self::Bubblewrap(wrapper) => wrapper.wrap(command, folder),
        }
    }

    /// Starts a command that is made of such words.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        match self {
            Self::Landlock(thread) => thread.spawn(command),
            Self::Bubblewrap(_) => command.spawn(),
        }
    }
}
