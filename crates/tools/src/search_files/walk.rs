//! Walks a folder on all processors, as `rg` does: hidden files and those that git ignores are left out, links are not
//! followed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::content::{FileMatches, FileSearch, Numbers, Pattern, Searched};
use super::glob::FileGlob;
use super::page::{Hits, Key, Page};
use super::watch::Watch;
use crate::guard::PinnedGuard;

/// Where to look, and at which files.
pub(super) struct SearchScope {
    /// Without links; a folder or a file.
    pub(super) root: PathBuf,
    pub(super) glob: Option<FileGlob>,
}

/// Files that may have matches but were not searched, or not shown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) secret: usize,
    pub(super) long_line: usize,
    /// Only counted when it was named itself.
    pub(super) binary: bool,
}

/// A file as such.
pub(super) struct Name;

impl Hits for Name {
    fn kept(&self) -> usize {
        1
    }

    fn total(&self) -> usize {
        1
    }
}

/// How many lines of a file match.
pub(super) struct Count(pub(super) usize);

impl Hits for Count {
    fn kept(&self) -> usize {
        1
    }

    fn total(&self) -> usize {
        1
    }
}

/// What to look for in files.
pub(super) struct LineSearch<'a> {
    pub(super) pattern: Pattern,
    pub(super) context: usize,
    pub(super) guard: PinnedGuard,
    pub(super) watch: &'a Watch,
}

impl SearchScope {
    /// Finds files, newest first.
    pub(super) fn find_files(&self, wanted: usize, watch: &Watch) -> Page<Name> {
        let page = Mutex::new(Page::new(wanted));
        self.each_file(watch, || {
            |entry: DirEntry| {
                let modified = entry.metadata().ok().and_then(|file| file.modified().ok());
                let key = Key::newest_first(entry.into_path(), modified);
                locked(&page).add(key, Name);
            }
        });
        page.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds lines, by path.
    pub(super) fn find_lines(
        &self,
        search: &LineSearch<'_>,
        wanted: usize,
    ) -> (Page<FileMatches>, LeftOut) {
        self.search(search, wanted, wanted, |found| found)
    }

    /// Counts lines per file, by path.
    pub(super) fn count_lines(
        &self,
        search: &LineSearch<'_>,
        wanted: usize,
    ) -> (Page<Count>, LeftOut) {
        self.search(search, wanted, 0, |found| Count(found.total))
    }

    /// Searches all files, and keeps at most `kept_max` lines of each.
    fn search<H: Hits + Send>(
        &self,
        search: &LineSearch<'_>,
        wanted: usize,
        kept_max: usize,
        hits_of: impl Fn(FileMatches) -> H + Sync,
    ) -> (Page<H>, LeftOut) {
        let numbers = match kept_max {
            0 => Numbers::Unknown,
            _ => Numbers::Counted,
        };
        let found = Mutex::new((Page::new(wanted), LeftOut::default()));
        self.each_file(search.watch, || {
            let mut file_search = FileSearch::new(search.pattern.clone(), search.context, numbers);
            let (found, hits_of) = (&found, &hits_of);
            move |entry: DirEntry| {
                let is_root = entry.depth() == 0;
                let key = Key::by_path(entry.into_path());
                let kept_max = if locked(found).0.is_beyond(&key) {
                    0
                } else {
                    kept_max
                };
                let searched = file_search.search(key.path(), kept_max, search.watch);
                if matches!(searched, Searched::Nothing | Searched::Unread) {
                    return;
                }
                let is_secret = search.guard.refuse_read(key.path()).is_some();
                let (page, left_out) = &mut *locked(found);
                match searched {
                    Searched::Found(_) if is_secret => left_out.secret += 1,
                    Searched::Found(matches) => page.add(key, hits_of(matches)),
                    Searched::LongLine => left_out.long_line += 1,
                    Searched::Binary => left_out.binary |= is_root,
                    Searched::Nothing | Searched::Unread => {}
                }
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives every file that is meant to a visitor; each thread makes its own.
    fn each_file<'s, V>(&'s self, watch: &'s Watch, visitor: impl Fn() -> V + Sync + 's)
    where
        V: FnMut(DirEntry) + Send + 's,
    {
        let wants_hidden = self.glob.as_ref().is_some_and(|glob| glob.wants_hidden);
        let mut walk = WalkBuilder::new(&self.root);
        walk.hidden(!wants_hidden)
            .add_custom_ignore_filename(".rgignore")
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
        walk.build_parallel().run(|| {
            let mut visit = visitor();
            Box::new(move |entry| {
                if watch.is_over() {
                    return WalkState::Quit;
                }
                // A folder that may not be read is as good as empty.
                if let Ok(entry) = entry
                    && self.is_meant(&entry)
                {
                    visit(entry);
                }
                WalkState::Continue
            })
        });
    }

    fn is_meant(&self, entry: &DirEntry) -> bool {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let is_match = |glob: &FileGlob| glob.is_match(entry.path(), &self.root);
        is_file && (entry.depth() == 0 || self.glob.as_ref().is_none_or(is_match))
    }
}

/// Goes on after a panic elsewhere: the walk itself passes it on.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a path as the model may name it in the next call: short below the working folder.
pub(super) fn shown<'a>(path: &'a Path, cwd: &Path) -> std::path::Display<'a> {
    path.strip_prefix(cwd).unwrap_or(path).display()
}
