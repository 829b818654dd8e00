//! The files that the file tools work on: those of this machine, or those where commands run.
//!
//! [`Files`] is what the tools need of them; [`here`] does it with system calls, [`there`] with commands of the
//! [`Terminal`](hermes_core::Terminal), for every backend that is not this machine. What a tool says and refuses is the
//! same either way, and one suite checks both (`testkit`: `contract::files`).

pub(crate) mod here;
mod remote_answer;
pub(crate) mod there;

use std::fs;
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{CancellationToken, Fencing, Parallel, Pass, ToolContext};
use hermes_os::paths::{self, Followed};

use crate::blocking::unless_stopped;
use crate::guard::{Guard, PinnedGuard, Write};
use crate::ledger::Stamp;
use crate::lines::{Page, PageText};
use crate::{ToolFence, ToolPorts};
use here::Here;
pub(crate) use remote_answer::RemoteAnswer;
use there::{There, ThereSettings};

const MODE_BITS: u32 = 0o7777;

/// The beginning of a file by which we tell text from other things.
const SAMPLE_BYTES: u64 = 8 * 1024;

/// Where the files of the file tools are.
#[derive(Debug, Clone)]
pub struct FilePlace(Option<ThereSettings>);

impl FilePlace {
    /// On this machine.
    pub fn here() -> Self {
        Self(None)
    }

    /// Where commands run, which is not this machine. Only what Hermes itself keeps in the folders `results`, and tells
    /// the model of, is read on this machine.
    pub fn where_commands_run(results: Vec<PathBuf>) -> Self {
        Self(Some(ThereSettings::new(results)))
    }

    pub(crate) fn is_here(&self) -> bool {
        self.0.is_none()
    }
}

/// A file system. Its methods wait for a disk or a network, so they are called on a thread that may.
///
/// A *target* is an absolute path without links, as [`Files::follow`] returns it.
pub(crate) trait Files: Send + Sync {
    /// Makes a path of a call absolute.
    fn absolute(&self, path: &str, cwd: &Path) -> io::Result<PathBuf>;

    /// Finds out where the guarded files are just now. That takes dozens of system calls: once for each call.
    fn guard(&self) -> io::Result<PinnedGuard>;

    /// Finds the file that a write to a path would change: follows links, also dangling ones. The file and the last
    /// folders on the way to it need not exist.
    fn follow(&self, path: &Path) -> io::Result<Followed>;

    /// Looks at a target, and reads it when it is a regular file of at most so many bytes.
    fn look(&self, target: &Path, content_bytes_max: u64) -> io::Result<Option<Entry>>;

    /// Follows a path to what is there, and opens it for the page that will be read.
    fn open(&self, path: &Path, page: Page) -> io::Result<Opened>;

    /// Writes content beside its target, where nobody looks yet, and creates missing folders. It gets the owner and mode
    /// of `model`. On an error nothing is left behind.
    fn stage(
        &self,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<(Box<dyn Staged>, Vec<PathBuf>)>;

    /// Stages content and puts it into its place. Returns the folders that were created.
    fn write(
        &self,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<Vec<PathBuf>>;

    fn remove(&self, target: &Path) -> io::Result<()>;

    /// Removes folders, as far as they are empty, the last first.
    fn remove_folders(&self, folders: &[PathBuf]);

    /// Returns the innermost folder on the way to a path that is there.
    fn nearest_folder(&self, path: &Path) -> PathBuf;

    /// Returns some names in a folder.
    fn names(&self, folder: &Path, names_max: usize) -> io::Result<Vec<String>>;
}

/// Content that is stored but not yet in its place. Dropped, it is gone.
pub(crate) trait Staged {
    /// Replaces the target all at once.
    fn put(self: Box<Self>) -> io::Result<()>;
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    /// Permissions only.
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) stamp: Stamp,
}

impl Meta {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            kind: Kind::of(metadata.mode()),
            bytes: metadata.len(),
            mode: metadata.mode() & MODE_BITS,
            user: metadata.uid(),
            group: metadata.gid(),
            stamp: Stamp::of(metadata),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Pipe,
    Socket,
    Other,
}

impl Kind {
    /// Takes the kind out of a mode with all of its bits.
    fn of(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o040_000 => Self::Folder,
            0o010_000 => Self::Pipe,
            0o140_000 => Self::Socket,
            _ => Self::Other,
        }
    }
}

pub(crate) struct Entry {
    pub(crate) meta: Meta,
    /// Whether its permissions let this user write it. A folder that may be written lets files in it be replaced all the
    /// same, whoever they belong to.
    pub(crate) may_write: bool,
    /// Not there for what is no regular file, or too large.
    pub(crate) content: Option<io::Result<Vec<u8>>>,
}

/// What a path leads to.
pub(crate) struct Opened {
    pub(crate) target: PathBuf,
    pub(crate) meta: Meta,
    /// Only of a regular file.
    pub(crate) source: Option<Box<dyn Source>>,
}

/// A file to read from.
pub(crate) trait Source {
    /// Returns the beginning, by which text is told from other things.
    fn sample(&mut self) -> io::Result<Vec<u8>>;

    /// Returns the page for which the file was opened; `None` when stopped.
    fn page(&mut self, page: Page, stop: &CancellationToken) -> io::Result<Option<PageText>>;

    /// Returns all of it, at its beginning.
    fn whole(&mut self) -> io::Result<Box<dyn Bytes + '_>>;
}

pub(crate) trait Bytes: Read + Seek {}

impl<T: Read + Seek> Bytes for T {}

/// A write that a call asks for.
pub(crate) struct JudgedWrite {
    pub(crate) judgement: Write,
    /// The same as [`FileSystems::name_of_write`] says later, unless a link was changed.
    pub(crate) name: String,
    /// As a person is shown it.
    pub(crate) shown: String,
}

/// One of the two file systems, for one call.
#[derive(Clone)]
pub(crate) enum FileSystem {
    Here(Arc<Here>),
    There(Arc<There>),
}

impl FileSystem {
    pub(crate) fn files(&self) -> Arc<dyn Files> {
        match self {
            Self::Here(here) => Arc::clone(here) as Arc<dyn Files>,
            Self::There(there) => Arc::clone(there) as Arc<dyn Files>,
        }
    }
}

/// Guarded files that somebody agreed to change, while they are changed.
pub(crate) struct AgreedWrites {
    fencing: Option<Arc<dyn Fencing>>,
    paths: Vec<PathBuf>,
}

impl Drop for AgreedWrites {
    fn drop(&mut self) {
        if let Some(fencing) = &self.fencing {
            self.paths.iter().for_each(|path| fencing.accept(path));
        }
    }
}

/// The file systems of a session.
#[derive(Clone)]
pub(crate) struct FileSystems {
    here: Arc<Here>,
    there: Option<Arc<There>>,
    fence: ToolFence,
}

impl FileSystems {
    pub(crate) fn new(ports: &ToolPorts) -> Self {
        let there = ports.file_place.0.clone();
        Self {
            here: Arc::new(Here::new(ports.home.clone(), Guard::new(ports))),
            there: there
                .map(|settings| Arc::new(There::new(Arc::clone(&ports.terminal), settings))),
            fence: ports.fence.clone(),
        }
    }

    fn fencing(&self) -> Option<&Arc<dyn Fencing>> {
        match &self.fence {
            ToolFence::Held(fencing) | ToolFence::Missing { rules: fencing, .. } => Some(fencing),
            ToolFence::Off => None,
        }
    }

    /// The files of this machine for a session that works in `cwd`.
    fn here(&self, cwd: &Path) -> Arc<Here> {
        match self.fencing() {
            Some(fencing) => Arc::new(self.here.fenced(fencing.area(cwd))),
            None => Arc::clone(&self.here),
        }
    }

    /// Does the work of a call on a thread that may wait, inside the fence: whatever its rules over paths overlook, the
    /// kernel refuses. `None` when it was stopped.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        (cwd, stop): (&Path, &CancellationToken),
        pass: Pass,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Option<Result<T, String>> {
        let fencing = self.fencing().filter(|_| !pass.outside).cloned();
        let Some(fencing) = fencing else {
            return unless_stopped(stop, work).await;
        };
        let cwd = cwd.to_owned();
        let inside = move || {
            let mut done = None;
            let entered = fencing.inside(&cwd, &pass, Box::new(|| done = Some(work())));
            let nothing = |error: io::Error| {
                Err(format!(
                    "nothing was done: the fence could not be put up: {error}"
                ))
            };
            match (done, entered) {
                (Some(done), _) => done,
                (None, Err(error)) => nothing(error),
                (None, Ok(())) => nothing(io::ErrorKind::Other.into()),
            }
        };
        unless_stopped(stop, inside).await
    }

    /// What a call that reads a path may do beyond the fence: look at what Hermes keeps in its home, as far as the guard
    /// lets it.
    pub(crate) fn pass_to_read(&self, path: &str, cwd: &Path) -> Pass {
        if self.fencing().is_none() {
            return Pass::default();
        }
        let path = paths::joined(path, cwd, self.here.home());
        let target = path.canonicalize().unwrap_or(path);
        Pass {
            reads: if self.here.pinned().is_ours_to_read(&target) {
                vec![target]
            } else {
                Vec::new()
            },
            ..Pass::default()
        }
    }

    /// What a call that writes these paths may do beyond the fence. That somebody agreed to it is checked when the files
    /// are found; whatever is free stays inside.
    pub(crate) fn pass_to_write(&self, paths: &[&str], cwd: &Path) -> Pass {
        let is_asked = |write: &JudgedWrite| matches!(write.judgement, Write::Asked { .. });
        if self.fencing().is_some() && self.judge_writes(paths, cwd).iter().any(is_asked) {
            Pass::outside()
        } else {
            Pass::default()
        }
    }

    /// Lets files be changed that are guarded, until what is returned is dropped.
    pub(crate) fn agreed(&self, paths: &[&str], cwd: &Path) -> AgreedWrites {
        let fencing = self.fencing().cloned();
        let paths = match &fencing {
            Some(_) => self.judge_writes(paths, cwd).into_iter(),
            None => Vec::new().into_iter(),
        };
        let paths: Vec<PathBuf> = paths
            .filter(|write| matches!(write.judgement, Write::Asked { .. }))
            .map(|write| write.name.into())
            .collect();
        if let Some(fencing) = &fencing {
            paths.iter().for_each(|path| fencing.agree(path));
        }
        AgreedWrites { fencing, paths }
    }

    /// The files that a call reads.
    pub(crate) fn to_read(&self, path: &str, cx: &ToolContext) -> FileSystem {
        match &self.there {
            Some(there) if !there.is_result(path) => {
                FileSystem::There(there.for_call(&cx.cwd, &cx.stop))
            }
            _ => FileSystem::Here(self.here(&cx.cwd)),
        }
    }

    /// The files that a call writes.
    pub(crate) fn to_write(&self, cwd: &Path, stop: &CancellationToken) -> Arc<dyn Files> {
        match &self.there {
            Some(there) => there.for_call(cwd, stop),
            None => self.here(cwd) as Arc<dyn Files>,
        }
    }

    /// Judges writes before their call begins. Of files elsewhere only the names are judged: looking there takes too long
    /// for a question that most calls need not ask. [`Target`](crate::target::Target) looks again.
    pub(crate) fn judge_writes(&self, paths: &[&str], cwd: &Path) -> Vec<JudgedWrite> {
        match &self.there {
            Some(there) => paths.iter().map(|path| there.judge_write(path)).collect(),
            None => {
                let here = self.here(cwd);
                let guard = here.pinned();
                let judge = |path: &&str| here.judge_write(path, cwd, &guard);
                paths.iter().map(judge).collect()
            }
        }
    }

    /// Returns the name under which a write to a path is agreed to: on this machine the file it leads to.
    pub(crate) fn name_of_write(&self, path: &str, target: &Path) -> String {
        match self.there {
            Some(_) => path.to_owned(),
            None => target.display().to_string(),
        }
    }

    /// Returns paths of this machine that a call is about, for context files and checkpoints; none when its files are
    /// elsewhere.
    pub(crate) fn on_this_machine(&self, paths: &[&str], cwd: &Path) -> Vec<PathBuf> {
        let absolute = |path: &&str| paths::absolute(path, cwd, self.here.home());
        match self.there {
            Some(_) => Vec::new(),
            None => paths.iter().map(absolute).collect(),
        }
    }

    /// Says beside which calls one may run that needs these paths. Alone, while it is not known what they mean.
    pub(crate) fn parallel(
        &self,
        paths: &[&str],
        cwd: &Path,
        claim: fn(Vec<PathBuf>) -> Parallel,
    ) -> Parallel {
        let Some(there) = &self.there else {
            return claim(self.on_this_machine(paths, cwd));
        };
        let known: Option<Vec<_>> = paths.iter().map(|path| there.known(path)).collect();
        known.map_or(Parallel::Never, claim)
    }
}
