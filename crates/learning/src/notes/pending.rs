//! Changes of notes that wait for a person (`memory.write_approval`): `pending/memory/<number>.json` of the home, one file each.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Author, SessionId, Timestamp, TurnId};
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;

use super::{Changed, NoteFile, Notes, NotesError, Operation, Provenance};

/// Who is asked more often than this is asked nothing any more.
const PENDING_MAX: usize = 200;

/// A change that somebody wants to make, and nobody has agreed to yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingNote {
    #[serde(default)]
    pub number: u64,
    pub at: Timestamp,
    pub author: Author,
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
    /// Whose notes; the owner's when nobody is named.
    pub person: Option<String>,
    /// `memory` or `user`.
    pub file: String,
    pub operations: Vec<Operation>,
    pub make_room: bool,
    /// What it would do, in a line.
    pub summary: String,
}

impl Notes {
    /// The changes of these notes that wait, the oldest first.
    pub fn pending(&self) -> Vec<PendingNote> {
        let mut all = self.all_pending();
        all.retain(|one| one.person == self.settings.person);
        all
    }

    /// Makes a change that waited: somebody agreed to it.
    pub async fn approve(&self, number: u64) -> Result<Changed, NotesError> {
        let notes = self.clone();
        let pending = blocking(move || notes.found(number)).await?;
        let file = NoteFile::named(&pending.file).ok_or(NotesError::NotPending(number))?;
        let by = Provenance {
            author: pending.author,
            session: pending.session,
            turn: pending.turn,
        };
        let changed = self.apply(file, &pending.operations, pending.make_room, &by);
        let changed = changed.await?;
        let notes = self.clone();
        blocking(move || notes.forget(number)).await?;
        Ok(changed)
    }

    /// Drops a change that waited.
    pub async fn reject(&self, number: u64) -> Result<PendingNote, NotesError> {
        let notes = self.clone();
        blocking(move || {
            let pending = notes.found(number)?;
            notes.forget(number)?;
            Ok(pending)
        })
        .await
    }

    /// Writes a change down that somebody is to agree to. What could not be made is refused at once, and what waits already is not
    /// written twice.
    pub(super) async fn stage(
        &self,
        file: NoteFile,
        operations: &[Operation],
        make_room: bool,
        by: &Provenance,
    ) -> Result<PendingNote, NotesError> {
        let limits = self.limits(file, make_room)?;
        let lock = Arc::new(self.files.lock(file).await?);
        let (notes, operations, by) = (self.clone(), operations.to_vec(), by.clone());
        let staging = self.on_disk(&lock, move |_| {
            let planned = super::entries::plan(&notes.entries(file)?, &operations, limits)?;
            notes.put(PendingNote {
                number: 0,
                at: notes.clock.now(),
                author: by.author,
                session: by.session,
                turn: by.turn,
                person: notes.settings.person.clone(),
                file: file.as_str().to_owned(),
                operations,
                make_room,
                summary: planned.summary,
            })
        });
        staging.await
    }

    /// Gives a change the next number and writes it down, unless it waits already.
    fn put(&self, new: PendingNote) -> Result<PendingNote, NotesError> {
        let is_same = |one: &PendingNote| {
            one.person == new.person && one.file == new.file && one.operations == new.operations
        };
        let all = self.all_pending();
        if let Some(same) = all.iter().find(|one| is_same(one)) {
            return Ok(same.clone());
        }
        if all.len() >= PENDING_MAX {
            return Err(NotesError::TooManyWait(PENDING_MAX));
        }
        let number = all.last().map_or(1, |last| last.number + 1);
        let pending = PendingNote { number, ..new };
        self.write(&pending)?;
        Ok(pending)
    }

    fn found(&self, number: u64) -> Result<PendingNote, NotesError> {
        let mut all = self.pending().into_iter();
        all.find(|one| one.number == number)
            .ok_or(NotesError::NotPending(number))
    }

    /// Those of everybody: numbers are given once.
    fn all_pending(&self) -> Vec<PendingNote> {
        let entries = self.pending_folder().read_dir().into_iter().flatten();
        let read = |entry: fs::DirEntry| {
            let path = entry.path();
            let number: u64 = path.file_stem()?.to_str()?.parse().ok()?;
            let text = fs::read_to_string(&path).ok()?;
            let pending: PendingNote = serde_json::from_str(&text).ok()?;
            Some(PendingNote { number, ..pending })
        };
        let mut all: Vec<PendingNote> = entries.flatten().filter_map(read).collect();
        all.sort_by_key(|one| one.number);
        all
    }

    fn write(&self, pending: &PendingNote) -> Result<(), NotesError> {
        let path = self.pending_file(pending.number);
        let disk = |error: std::io::Error| NotesError::Disk {
            action: "write",
            path: path.clone(),
            detail: error.to_string(),
        };
        fs::create_dir_all(self.pending_folder()).map_err(disk)?;
        let text = serde_json::to_string_pretty(pending).unwrap_or_default();
        hermes_os::replace(&path, text.as_bytes(), Access::Private, Durability::Synced)
            .map_err(disk)
    }

    fn forget(&self, number: u64) -> Result<(), NotesError> {
        let path = self.pending_file(number);
        fs::remove_file(&path).map_err(|error| NotesError::Disk {
            action: "remove",
            path,
            detail: error.to_string(),
        })
    }

    /// Beside the notes, where proposals for skills wait too.
    fn pending_folder(&self) -> PathBuf {
        let folder = &self.settings.folder;
        let home = folder.parent().unwrap_or(folder);
        home.join("pending").join("memory")
    }

    fn pending_file(&self, number: u64) -> PathBuf {
        self.pending_folder().join(format!("{number}.json"))
    }
}
