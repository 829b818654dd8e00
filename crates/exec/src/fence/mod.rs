//! A fence around the commands of this machine: what they may read and write, and whether they reach the network.
//!
//! Landlock fences files in and needs nothing but the kernel. It cannot cut off the network as a whole, so that takes
//! `bubblewrap`, which also fences files where the kernel has no Landlock. Whatever is asked for is enforced, or commands
//! do not run. Start at [`Fences`]: `places` decides what is inside, `secrets` what is hidden, `project` what a session
//! works on; `landlock` (by the `grants` it takes) and `bubblewrap` are the two ways to put it up, `guarded_files` keeps the
//! guarded files of a project as they were.

mod bubblewrap;
mod grants;
mod guarded_files;
mod landlock;
mod missing;
mod places;
mod project;
mod seatbelt;
mod secrets;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use hermes_core::{Checkout, FenceArea, Fencing, Pass};
use tokio::process::{Child, Command};

use grants::{Grants, Level};
use guarded_files::GuardedFiles;
pub(crate) use guarded_files::Round;
use landlock::{FencedThread, Rules};
pub use missing::{Forbidden, NoBubblewrap, NoLandlock, NotFenced};
pub use places::{FenceKind, FencePlaces, GuestFolders};

/// Fences that stand at once: one for each folder sessions work in, and for each pass of late.
const STANDING_MAX: usize = 32;

/// Whether commands reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Open,
    Closed,
}

/// What this machine could put a fence up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceSupport {
    /// The version of Landlock, or why there is none that is good enough.
    pub landlock: Result<i32, NoLandlock>,
    /// Where `bwrap` is, or why it cannot be used.
    pub bubblewrap: Result<PathBuf, NoBubblewrap>,
    /// Where `sandbox-exec` is, on macOS.
    pub seatbelt: Option<PathBuf>,
}

impl FenceSupport {
    /// Tries both.
    pub fn of_this_machine(environment: &[(OsString, OsString)]) -> Self {
        Self {
            landlock: landlock::version(),
            bubblewrap: bubblewrap::find_working(environment),
            seatbelt: seatbelt::find(environment),
        }
    }
}

/// The fences of this machine: one around each folder that sessions work in, and wider ones for what somebody agreed to.
#[derive(Debug)]
pub struct Fences {
    places: FencePlaces,
    network: Network,
    by: By,
    /// The last used is the last.
    standing: Mutex<Vec<Arc<Fence>>>,
    prepared: Once,
    guarded_files: GuardedFiles,
}

#[derive(Debug)]
enum By {
    Landlock,
    Bubblewrap(PathBuf),
    Seatbelt(PathBuf),
}

/// A fence that stands.
#[derive(Debug)]
pub(crate) struct Fence {
    cwd: PathBuf,
    pass: Pass,
    area: FenceArea,
    /// Where commands put temporary files, if not where they usually do.
    temporary: Option<PathBuf>,
    walls: Walls,
}

#[derive(Debug)]
enum Walls {
    /// Somebody agreed to do without.
    None,
    Landlock {
        rules: Rules,
        levels: Vec<Level>,
        thread: OnceLock<FencedThread>,
    },
    Bubblewrap {
        program: PathBuf,
        beyond: Pass,
        own: Vec<PathBuf>,
        network: Network,
    },
    Seatbelt {
        program: PathBuf,
        profile: String,
    },
}

impl Fences {
    /// Finds out how fences can be put up here.
    pub fn new(
        places: FencePlaces,
        network: Network,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, NotFenced> {
        let landlock = landlock::version();
        let seatbelt = seatbelt::find(environment);
        let by = match (&landlock, network) {
            (Ok(_), Network::Open) => By::Landlock,
            _ if let Some(program) = seatbelt => By::Seatbelt(program),
            _ => match bubblewrap::find_working(environment) {
                Ok(program) => By::Bubblewrap(program),
                Err(bubblewrap) => {
                    return Err(match (landlock, network) {
                        (Err(landlock), Network::Open) => NotFenced::NoSupport {
                            landlock,
                            bubblewrap,
                        },
                        _ => NotFenced::NetworkStaysOpen { bubblewrap },
                    });
                }
            },
        };
        let guarded_files = GuardedFiles::new(places.hermes_home.join("put-back"));
        Ok(Self {
            places,
            network,
            by,
            standing: Mutex::default(),
            prepared: Once::new(),
            guarded_files,
        })
    }

    /// Returns the fence for a session that works in `cwd`, widened by what somebody agreed to. Put up when it does not
    /// stand, or when something has appeared beside a secret that it does not open.
    pub(crate) fn around(&self, cwd: &Path, pass: &Pass) -> io::Result<Arc<Fence>> {
        let mut standing = self.standing();
        let at = standing
            .iter()
            .position(|fence| fence.cwd == cwd && fence.pass == *pass);
        if let Some(at) = at {
            let fence = standing.remove(at);
            if !fence.is_outdated() {
                standing.push(Arc::clone(&fence));
                return Ok(fence);
            }
        }
        let fence = Arc::new(self.put_up(cwd, pass)?);
        if standing.len() == STANDING_MAX {
            standing.remove(0);
        }
        standing.push(Arc::clone(&fence));
        Ok(fence)
    }

    /// What would be inside for a session that works in `cwd`. Makes and puts up nothing.
    pub fn planned(&self, cwd: &Path) -> FenceArea {
        self.places.area(cwd)
    }

    fn put_up(&self, cwd: &Path, pass: &Pass) -> io::Result<Fence> {
        // Before the first: what does not exist cannot be opened.
        self.prepared.call_once(|| {
            for folder in self.places.own.iter().chain([&self.places.apart]) {
                // What cannot be made is missed by the first command, which says so.
                let _ = std::fs::create_dir_all(folder);
            }
            self.places.make_caches();
        });
        let area = self.places.area(cwd);
        let own = self.own(pass);
        let walls = match (widened(&area, pass), &self.by) {
            (None, _) => Walls::None,
            (Some(beyond), By::Bubblewrap(program)) => Walls::Bubblewrap {
                program: program.clone(),
                beyond,
                own,
                network: self.network,
            },
            (Some(beyond), By::Seatbelt(program)) => Walls::Seatbelt {
                program: program.clone(),
                profile: seatbelt::profile(&area, &own, &beyond, self.network),
            },
            (Some(beyond), By::Landlock) => {
                let grants = Grants::new(&area, &own, &beyond);
                Walls::Landlock {
                    rules: Rules::of(&grants).map_err(io::Error::other)?,
                    levels: grants.levels,
                    thread: OnceLock::new(),
                }
            }
        };
        let temporary = self.places.temporary(&area);
        if let Some(folder) = &temporary {
            // Without it, those who need one say so.
            let _ = std::fs::create_dir_all(folder);
        }
        Ok(Fence {
            cwd: cwd.to_owned(),
            pass: pass.clone(),
            area,
            temporary,
            walls,
        })
    }

    /// Where commands with such a pass keep what running them takes.
    fn own(&self, pass: &Pass) -> Vec<PathBuf> {
        if pass.is_inside() {
            self.places.own.clone()
        } else {
            vec![self.places.apart.clone()]
        }
    }

    /// Where shells of commands that may leave the fence are kept, out of reach of the others.
    pub(crate) fn apart(&self) -> PathBuf {
        self.places.apart.join("shells")
    }

    /// Remembers what a command must not change. `folder` is where it begins.
    pub(crate) fn begin(&self, fence: &Fence, folder: &Path, is_quiet: bool) -> Round {
        let places = (fence.cwd.as_path(), folder);
        self.guarded_files
            .begin(self, &fence.area, places, &fence.pass, is_quiet)
    }

    /// Puts back what has changed without consent, while anything may still change it.
    pub(crate) fn look(&self, round: &Round) {
        self.guarded_files.look(self, round);
    }

    pub(crate) fn end(&self, round: &Round) {
        self.guarded_files.end(self, round);
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.guarded_files.notices()
    }

    fn standing(&self) -> MutexGuard<'_, Vec<Arc<Fence>>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fencing for Fences {
    fn area(&self, cwd: &Path) -> FenceArea {
        match self.around(cwd, &Pass::default()) {
            Ok(fence) => fence.area.clone(),
            Err(_) => self.places.area(cwd),
        }
    }

    fn inside(
        &self,
        cwd: &Path,
        pass: &Pass,
        work: Box<dyn FnOnce() + Send + '_>,
    ) -> io::Result<()> {
        let fence = self.around(cwd, pass)?;
        match &fence.walls {
            Walls::Landlock { rules, .. } => landlock::work(rules, work),
            Walls::None | Walls::Bubblewrap { .. } | Walls::Seatbelt { .. } => {
                work();
                Ok(())
            }
        }
    }

    fn agree(&self, path: &Path) {
        self.guarded_files.agree(path);
    }

    fn accept(&self, path: &Path) {
        self.guarded_files.accept(path);
    }

    fn means(&self) -> &'static str {
        match self.by {
            By::Landlock => "landlock",
            By::Bubblewrap(_) => "bubblewrap",
            By::Seatbelt(_) => "seatbelt",
        }
    }
}

/// The rules of a fence where none stands: file tools keep to them, and commands are asked about.
#[derive(Debug)]
pub struct Unfenced {
    places: FencePlaces,
}

impl Unfenced {
    pub fn new(places: FencePlaces) -> Self {
        Self { places }
    }
}

impl Fencing for Unfenced {
    fn area(&self, cwd: &Path) -> FenceArea {
        self.places.area(cwd)
    }

    fn inside(&self, _: &Path, _: &Pass, work: Box<dyn FnOnce() + Send + '_>) -> io::Result<()> {
        work();
        Ok(())
    }

    fn agree(&self, _: &Path) {}

    fn accept(&self, _: &Path) {}

    fn means(&self) -> &'static str {
        "none"
    }
}

/// What a fence opens besides its area, or `None` when what was agreed to takes none at all. A file is made, replaced and
/// removed in its folder; where that folder has secrets in it, it cannot be opened, so that the whole fence is left.
fn widened(area: &FenceArea, pass: &Pass) -> Option<Pass> {
    let mut beyond = area.beyond(pass);
    if beyond.outside {
        return None;
    }
    let holds_secrets = |folder: &Path| {
        let mut hidden = area.hidden.iter();
        hidden.any(|hidden| hidden.starts_with(folder))
    };
    for path in &mut beyond.writes {
        if !path.is_dir() {
            let mut folders = path.ancestors().skip(1);
            let folder = folders.find(|folder| folder.is_dir());
            *path = folder.unwrap_or(Path::new("/")).to_owned();
        }
        if holds_secrets(path) {
            return None;
        }
    }
    Some(beyond)
}

impl Fence {
    fn is_outdated(&self) -> bool {
        match &self.walls {
            Walls::Landlock { levels, .. } => levels.iter().any(Level::has_changed),
            Walls::None | Walls::Bubblewrap { .. } | Walls::Seatbelt { .. } => false,
        }
    }

    /// Returns whether commands are held: somebody may have agreed to do without.
    pub(crate) fn is_standing(&self) -> bool {
        !matches!(self.walls, Walls::None)
    }

    /// Where a command puts temporary files, if not where it usually does.
    pub(crate) fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref().filter(|_| self.is_standing())
    }

    /// The words that start a command inside.
    pub(crate) fn words(&self, command: Vec<OsString>, folder: &Path) -> Vec<OsString> {
        match &self.walls {
            Walls::None | Walls::Landlock { .. } => command,
            Walls::Bubblewrap {
                program,
                beyond,
                own,
                network,
            } => {
                let mut agreed = self.pass.writes.clone();
                if self.pass.checkout != Checkout::Nothing {
                    // Git has to write them; what it may not have written is put back.
                    let git = self.area.project.join(".git");
                    let guarded = self.area.guarded().map(|(path, _)| path);
                    agreed.extend(guarded.filter(|path| !path.starts_with(&git)));
                }
                let walls = bubblewrap::Walls {
                    program,
                    area: &self.area,
                    own,
                    agreed: &agreed,
                    pass: beyond,
                    network: *network,
                };
                bubblewrap::wrap(&walls, command, folder)
            }
            Walls::Seatbelt { program, profile } => seatbelt::wrap(program, profile, command),
        }
    }

    /// Starts a command that is made of such words.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        match &self.walls {
            Walls::Landlock { rules, thread, .. } => {
                if thread.get().is_none() {
                    // Two at once: one of the threads is let go before it has started anything.
                    let _ = thread.set(FencedThread::start(rules)?);
                }
                let thread = thread.get();
                thread.ok_or(io::ErrorKind::NotFound)?.spawn(command)
            }
            Walls::None | Walls::Bubblewrap { .. } | Walls::Seatbelt { .. } => command.spawn(),
        }
    }
}
