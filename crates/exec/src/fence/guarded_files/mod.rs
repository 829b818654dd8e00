//! Keeps the guarded files of a project as they were: those that make programs of others run, or tell agents what to do.
//!
//! Landlock cannot keep a file out of a folder that may be written. So what is there is remembered before a command, and
//! put back when it has changed without somebody's consent: when the command ends, while anything that it left runs, and
//! before the next one. What was put back is kept aside: it may have been the person's own doing meanwhile.

mod checkout;
mod git_config;
mod snapshot;
mod survey;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hermes_core::fence::guarded_in;
use hermes_core::{Checkout, FenceArea, Fencing, Pass};

use super::Fences;
use snapshot::{Content, Snapshot, Was};

/// Files that were put back and are kept aside.
const ASIDE_MAX: usize = 100;

/// Names that a message lists.
const NAMED_MAX: usize = 8;

/// The guarded files of every project that commands ran in, as they were before.
#[derive(Debug)]
pub(crate) struct GuardedFiles {
    /// Where changed files are kept aside, out of reach of commands.
    aside: PathBuf,
    /// Nothing of ours ran before.
    since: SystemTime,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the folder that has guarded names in it.
    known: HashMap<Root, Snapshot>,
    /// What may be changed just now, once for each who may.
    agreed: Vec<PathBuf>,
    notices: Vec<String>,
}

impl State {
    fn is_agreed(&self, path: &Path) -> bool {
        let mut agreed = self.agreed.iter();
        agreed.any(|agreed| path.starts_with(agreed))
    }

    /// Says something, but not twice in a row.
    fn tell(&mut self, notice: String) {
        if self.notices.last() != Some(&notice) {
            self.notices.push(notice);
        }
    }

    fn forget_agreed(&mut self, path: &Path) {
        if let Some(at) = self.agreed.iter().position(|agreed| agreed == path) {
            self.agreed.swap_remove(at);
        }
    }
}

/// A folder that has guarded names in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    /// A project, or a repository in it.
    Project(PathBuf),
    /// Where git keeps what belongs to a project elsewhere.
    Git(PathBuf),
}

impl Root {
    fn path(&self) -> &Path {
        match self {
            Self::Project(path) | Self::Git(path) => path,
        }
    }

    /// The guarded names, and `.git` itself.
    fn names(&self) -> Vec<PathBuf> {
        match self {
            Self::Project(root) => {
                let names = guarded_in(root).map(|(path, _)| path);
                names
                    .chain([root.join(".git"), root.join(".github")])
                    .collect()
            }
            Self::Git(folder) => GUARDED_BY_GIT
                .iter()
                .map(|name| folder.join(name))
                .collect(),
        }
    }
}

/// What makes git run something, in its own folder.
const GUARDED_BY_GIT: &[&str] = &["hooks", "config", "config.worktree", "info/attributes"];

/// What a command may change, as long as it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Round {
    cwd: PathBuf,
    roots: Vec<Root>,
    agreed: Vec<PathBuf>,
    checkout: Checkout,
}

impl Round {
    /// The same places, with nothing to be changed in them.
    pub(crate) fn without_agreement(&self) -> Self {
        Self {
            agreed: Vec::new(),
            checkout: Checkout::Nothing,
            ..self.clone()
        }
    }
}

impl GuardedFiles {
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with the times of files, which the system sets"
    )]
    pub(crate) fn new(aside: PathBuf) -> Self {
        Self {
            aside,
            since: SystemTime::now(),
            state: Mutex::default(),
        }
    }

    /// Remembers what is there before a command that works in `cwd` and begins in `folder`. `is_quiet`: nothing of ours
    /// runs that could have changed it since, so that whatever did was the person.
    pub(crate) fn begin(
        &self,
        fences: &Fences,
        area: &FenceArea,
        (cwd, folder): (&Path, &Path),
        pass: &Pass,
        is_quiet: bool,
    ) -> Round {
        let round = Round {
            cwd: cwd.to_owned(),
            roots: roots(area, folder),
            agreed: agreed(area, pass),
            checkout: pass.checkout,
        };
        if !is_quiet {
            self.look(fences, &round);
        }
        let mut state = self.state();
        for root in &round.roots {
            if !is_quiet && state.known.contains_key(root) {
                continue;
            }
            let known = state.known.remove(root).unwrap_or_default();
            let now = Snapshot::of(root, Some(&known));
            state.known.insert(root.clone(), known.followed_by(now));
        }
        state.agreed.extend(round.agreed.iter().cloned());
        round
    }

    /// Ends what [`Self::begin`] began.
    pub(crate) fn end(&self, fences: &Fences, round: &Round) {
        self.look(fences, round);
        let mut state = self.state();
        for path in &round.agreed {
            state.forget_agreed(path);
        }
    }

    /// Puts back what has changed without consent.
    pub(crate) fn look(&self, fences: &Fences, round: &Round) {
        let mut state = self.state();
        for root in &round.roots {
            if let Some(before) = state.known.remove(root) {
                let known = self.look_at(fences, round, root, before, &mut state);
                state.known.insert(root.clone(), known);
            }
        }
    }

    /// Returns what is to be remembered from now on.
    fn look_at(
        &self,
        fences: &Fences,
        round: &Round,
        root: &Root,
        mut before: Snapshot,
        state: &mut State,
    ) -> Snapshot {
        let now = Snapshot::of(root, Some(&before));
        let changes = before.changes(&now);
        let (agreed, changed): (Vec<_>, Vec<_>) = changes.into_iter().partition(|path| {
            state.is_agreed(path) || self.is_checked_out(round.checkout, root, path, &now)
        });
        for path in &agreed {
            before = before.with(&now, path);
        }
        if changed.is_empty() {
            return before.followed_by(now);
        }
        self.keep_aside(&changed);
        // Inside the fence: whatever lies in wait there leads nowhere.
        let put_back = Box::new(|| before.put_back(&changed, &now));
        let _ = fences.inside(&round.cwd, &Pass::default(), put_back);
        let now = Snapshot::of(root, Some(&before));
        let left = before.changes(&now);
        state.tell(told(root, &changed, &left));
        if left.is_empty() {
            before.followed_by(now)
        } else {
            // Somebody was faster; the next look puts it back.
            before
        }
    }

    /// Returns whether git put something there, and may.
    fn is_checked_out(&self, by: Checkout, root: &Root, path: &Path, now: &Snapshot) -> bool {
        let is_git = path.components().any(|part| part.as_os_str() == ".git");
        let is_held = || match now.content(path) {
            Content::Of(content) => checkout::was_held(root.path(), content, self.since),
            // What is in it counts.
            Content::Folder => true,
            Content::None => path.symlink_metadata().is_err(),
        };
        match by {
            Checkout::Nothing => false,
            Checkout::Known => !is_git && is_held(),
            Checkout::Fetched => !is_git,
        }
    }

    /// Lets a path be changed until it is accepted.
    pub(crate) fn agree(&self, path: &Path) {
        self.state().agreed.push(path.to_owned());
    }

    /// Takes what is there now for what somebody agreed to.
    pub(crate) fn accept(&self, path: &Path) {
        let mut state = self.state();
        state.forget_agreed(path);
        let roots: Vec<Root> = state.known.keys().cloned().collect();
        for root in roots
            .into_iter()
            .filter(|root| path.starts_with(root.path()))
        {
            let Some(before) = state.known.remove(&root) else {
                continue;
            };
            let now = Snapshot::of(&root, Some(&before));
            state.known.insert(root, before.with(&now, path));
        }
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notices)
    }

    /// Copies what is about to be put back. The oldest copies go.
    fn keep_aside(&self, changed: &[PathBuf]) {
        let _ = fs::create_dir_all(&self.aside);
        for path in changed {
            let Ok(data) = path.symlink_metadata() else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (seconds, nanos) = (data.mtime(), data.mtime_nsec());
            if data.is_file() {
                let copy = format!("{seconds}.{nanos:09}-{name}");
                let _ = fs::copy(path, self.aside.join(copy));
            }
        }
        let entries = self.aside.read_dir().into_iter().flatten().flatten();
        let mut kept: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        kept.sort();
        let surplus = kept.len().saturating_sub(ASIDE_MAX);
        for path in &kept[..surplus] {
            let _ = fs::remove_file(path);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(root: &Root, changed: &[PathBuf], left: &[PathBuf]) -> String {
    let named = |paths: &[PathBuf]| {
        let shown = paths.iter().take(NAMED_MAX).map(|path| {
            let inside = path.strip_prefix(root.path()).unwrap_or(path);
            format!("`{}`", inside.display())
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    let mut words = format!(
        "{} changed without consent and was put back as it was. To change it, use `write_file` or `patch`, or run the \
         command with `outside_fence: true`: the user is asked first",
        named(changed)
    );
    if !left.is_empty() {
        words.push_str(&format!("; {} could not be put back", named(left)));
    }
    words
}

/// Folders whose guarded names count: the project, the repository a command begins in, and where git keeps what belongs to
/// them.
fn roots(area: &FenceArea, folder: &Path) -> Vec<Root> {
    let mut roots = Vec::new();
    if area.is_project_writable() {
        roots.push(Root::Project(area.project.clone()));
    }
    let is_repository = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let inner = folder
        .ancestors()
        .take_while(|folder| area.may_write(folder) && **folder != *area.project)
        .find(is_repository);
    roots.extend(inner.map(|folder| Root::Project(folder.to_owned())));
    let is_git = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == ".git");
    let git_folders = area.writable.iter().filter(is_git);
    roots.extend(git_folders.cloned().map(Root::Git));
    roots
}

/// What a pass lets a command change of what is guarded.
fn agreed(area: &FenceArea, pass: &Pass) -> Vec<PathBuf> {
    if pass.outside {
        vec!["/".into()]
    } else {
        pass.writes
            .iter()
            .filter(|path| area.may_write(path))
            .cloned()
            .collect()
    }
}

/// What an editor that is open rewrites all the time.
fn is_scratch(path: &Path) -> bool {
    path.ends_with(".idea/workspace.xml")
}

/// Whether a change is one that git makes by itself, and that runs nothing.
fn is_harmless(path: &Path, before: &Was, now: &Was) -> bool {
    let text = |was: &Was| match was {
        Was::File { content, .. } => content.as_ref().map(|content| content.to_vec()),
        _ => None,
    };
    match (text(before), text(now)) {
        (Some(before), Some(now)) if path.ends_with(".git/config") => {
            git_config::only_tracks(&before, &now)
        }
        _ => false,
    }
}
