//! What sessions know of files: what each has read or written last, and which are being written now.
//!
//! In memory only: after a restart nothing counts as read, and so nothing as stale.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hermes_core::SessionId;

/// Files remembered over all sessions; the one not used for longest is forgotten.
const FILES_MAX: usize = 4096;

/// Pages remembered of one file.
const PAGES_MAX: usize = 64;

/// A page shorter than this is shown again rather than referred to.
const REFERRED_CHARS_MIN: usize = 1000;

/// Shared by all file tools of a process.
#[derive(Debug, Clone, Default)]
pub struct FileLedger(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: Mutex<Known>,
    writing: Mutex<HashSet<PathBuf>>,
    written: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    files: HashMap<(SessionId, PathBuf), File>,
    uses: u64,
}

#[derive(Debug)]
struct File {
    stamp: Stamp,
    pages: HashMap<PageKey, Shown>,
    last_use: u64,
}

/// First line and number of lines that were asked for.
pub(crate) type PageKey = (usize, usize);

/// How often a page was asked for while the file stayed the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Once, and it is in the conversation.
    Once,
    /// More than once: whoever asks again wants to see it.
    Referred,
}

/// Tells one content of a file from another, as far as the file system does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Times are seconds and nanoseconds since 1970.
    pub(crate) fn new(
        file: (u64, u64),
        bytes: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    ) -> Self {
        Self {
            file,
            bytes,
            modified,
            changed,
        }
    }

    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl FileLedger {
    /// Returns whether a page need not be shown again because the session has it. Says so only once per page: who asks
    /// a third time may have lost it.
    pub(crate) fn may_refer(
        &self,
        session: &SessionId,
        path: &Path,
        stamp: Stamp,
        page: PageKey,
    ) -> bool {
        let mut known = self.known();
        let file = known.files.get_mut(&(session.clone(), path.to_owned()));
        let Some(file) = file.filter(|file| file.stamp == stamp) else {
            return false;
        };
        match file.pages.get_mut(&page) {
            Some(shown @ Shown::Once) => {
                *shown = Shown::Referred;
                true
            }
            _ => false,
        }
    }

    /// Remembers that the session has seen a page of a file.
    pub(crate) fn note_read(
        &self,
        session: &SessionId,
        path: &Path,
        stamp: Stamp,
        page: PageKey,
        chars: usize,
    ) {
        let mut known = self.known();
        let file = known.file(session, path, stamp);
        if chars >= REFERRED_CHARS_MIN && file.pages.len() < PAGES_MAX {
            file.pages.entry(page).or_insert(Shown::Once);
        }
    }

    /// Remembers that the session knows what is in a file because it wrote it.
    pub(crate) fn note_written(&self, session: &SessionId, path: &Path, stamp: Stamp) {
        self.known().file(session, path, stamp);
    }

    /// Returns whether a file has changed since the session knew what is in it.
    pub(crate) fn is_stale(&self, session: &SessionId, path: &Path, stamp: Stamp) -> bool {
        let known = self.known();
        let file = known.files.get(&(session.clone(), path.to_owned()));
        file.is_some_and(|file| file.stamp != stamp)
    }

    /// Has every page shown again to a session that no longer sees what it was shown.
    pub(crate) fn forget_pages(&self, session: &SessionId) {
        let mut known = self.known();
        let of_session = known.files.iter_mut().filter(|((of, _), _)| of == session);
        of_session.for_each(|(_, file)| file.pages.clear());
    }

    pub(crate) fn forget(&self, session: &SessionId, path: &Path) {
        let key = (session.clone(), path.to_owned());
        self.known().files.remove(&key);
    }

    /// Waits until nobody writes any of the files, and keeps others from writing them until dropped.
    pub(crate) fn lock(&self, mut paths: Vec<PathBuf>) -> WriteLock<'_> {
        let writing = unpoisoned(self.0.writing.lock());
        let is_busy =
            |writing: &mut HashSet<PathBuf>| paths.iter().any(|path| writing.contains(path));
        let mut writing = unpoisoned(self.0.written.wait_while(writing, is_busy));
        // A file named twice is unlocked once.
        paths.retain(|path| writing.insert(path.clone()));
        drop(writing);
        WriteLock {
            ledger: self,
            paths,
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        unpoisoned(self.0.known.lock())
    }
}

impl Known {
    /// Returns the entry of a file with this content; what was known of another content is forgotten.
    fn file(&mut self, session: &SessionId, path: &Path, stamp: Stamp) -> &mut File {
        self.uses += 1;
        let key = (session.clone(), path.to_owned());
        if self.files.len() >= FILES_MAX && !self.files.contains_key(&key) {
            let oldest = self.files.iter().min_by_key(|(_, file)| file.last_use);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.files.remove(&oldest);
            }
        }
        let file = self.files.entry(key).or_insert_with(|| File {
            stamp,
            pages: HashMap::new(),
            last_use: 0,
        });
        file.last_use = self.uses;
        if file.stamp != stamp {
            file.stamp = stamp;
            file.pages.clear();
        }
        file
    }
}

/// The right to write some files.
pub(crate) struct WriteLock<'a> {
    ledger: &'a FileLedger,
    paths: Vec<PathBuf>,
}

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        let mut writing = unpoisoned(self.ledger.0.writing.lock());
        for path in &self.paths {
            writing.remove(path);
        }
        drop(writing);
        self.ledger.0.written.notify_all();
    }
}

/// Goes on after a panic elsewhere: each change under these locks is whole in itself.
fn unpoisoned<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(bytes: u64) -> Stamp {
        Stamp {
            file: (1, 1),
            bytes,
            modified: (0, 0),
            changed: (0, 0),
        }
    }

    #[test]
    fn a_page_is_referred_to_once_and_only_while_the_file_is_the_same() {
        let (ledger, session, path) = (FileLedger::default(), "s".into(), Path::new("/a"));
        let may_refer = |stamp| ledger.may_refer(&session, path, stamp, (1, 500));
        assert!(!may_refer(stamp(1)));
        ledger.note_read(&session, path, stamp(1), (1, 500), 5000);
        assert!(!may_refer(stamp(2)));
        assert!(may_refer(stamp(1)));
        assert!(!may_refer(stamp(1)));
        ledger.note_read(&session, path, stamp(1), (1, 500), 5000);
        assert!(!may_refer(stamp(1)));
        ledger.note_read(&session, path, stamp(1), (501, 500), 10);
        assert!(!ledger.may_refer(&session, path, stamp(1), (501, 500)));
    }

    #[test]
    fn a_file_is_stale_for_those_who_knew_it_otherwise() {
        let ledger = FileLedger::default();
        let (me, other, path) = ("me".into(), "other".into(), Path::new("/a"));
        assert!(!ledger.is_stale(&me, path, stamp(1)));
        ledger.note_read(&me, path, stamp(1), (1, 500), 10);
        ledger.note_written(&other, path, stamp(2));
        assert!(ledger.is_stale(&me, path, stamp(2)));
        assert!(!ledger.is_stale(&other, path, stamp(2)));
        ledger.forget(&me, path);
        assert!(!ledger.is_stale(&me, path, stamp(2)));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let (ledger, session) = (FileLedger::default(), "s".into());
        for n in 0..FILES_MAX + 10 {
            ledger.note_written(&session, Path::new(&format!("/{n}")), stamp(1));
        }
        assert_eq!(ledger.known().files.len(), FILES_MAX);
        assert!(!ledger.is_stale(&session, Path::new("/3"), stamp(2)));
        assert!(ledger.is_stale(&session, Path::new("/4000"), stamp(2)));
    }

    #[test]
    fn writers_of_the_same_file_wait_for_each_other() {
        let ledger = FileLedger::default();
        let inside = Mutex::new(());
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (ledger, inside) = (&ledger, &inside);
                scope.spawn(move || {
                    let paths = vec!["/a".into(), format!("/{n}").into(), "/a".into()];
                    let _lock = ledger.lock(paths);
                    let _alone = inside.try_lock().unwrap();
                    std::thread::yield_now();
                });
            }
        });
        assert!(unpoisoned(ledger.0.writing.lock()).is_empty());
    }
}
