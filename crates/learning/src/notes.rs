//! Notes: two small files, `MEMORY.md` for the agent and `USER.md` about the user, in a known format that people edit too.
//!
//! What a session is told of them is read when it begins ([`Notes::prompt`]) and stays as it is. Changes come from the tool
//! ([`tool`]) and from people's commands; all of them go through [`Notes::change`], which holds the file's lock, takes over
//! what was edited by hand, writes the learning log first and replaces the file all at once. `entries` has the rules of the
//! format, `files` the disk.

mod entries;
mod files;
mod pending;
mod prompt;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{
    Author, ChangeFilter, ChangeId, Clock, LearnedChange, LearningLog, NewLearnedChange, SessionId,
    StoreError, Subject, TurnId,
};
use hermes_os::FileLock;

pub use entries::{DELIMITER, Operation, Refused, Usage};
pub use files::{Found, folder_name};
pub use pending::PendingNote;
pub use tool::{NAME as TOOL_NAME, staging_tool, tool};

use crate::blocking::blocking;
use entries::{Limits, Planned, join, parse};
use files::Files;

/// Of an entry, this much is shown where it is only to be recognised.
const EXCERPT_CHARS_MAX: usize = 80;

/// Changes looked at for one that a crash left open, or that a hand edit followed.
const RECENT_CHANGES: usize = 8;

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteFile {
    /// What the agent keeps for itself.
    Memory,
    /// What it knows of the user.
    User,
}

impl NoteFile {
    pub const ALL: [Self; 2] = [Self::Memory, Self::User];

    /// As the tool and the learning log call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::User => "user",
        }
    }

    pub fn file_name(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY.md",
            Self::User => "USER.md",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.as_str() == name)
    }
}

/// How notes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesSettings {
    /// Where they are; those of a named person are in a folder of their own below it.
    pub folder: PathBuf,
    /// Whose they are, where a process serves several.
    pub person: Option<String>,
    /// Characters that fit into `MEMORY.md`; `None`: it is not used.
    pub memory_chars_max: Option<usize>,
    /// The same for `USER.md`.
    pub user_chars_max: Option<usize>,
    /// Whether a person agrees to every change that a model makes.
    pub write_approval: bool,
}

/// The notes of one person. Clones share everything: each conversation has some.
#[derive(Clone)]
pub struct Notes {
    settings: Arc<NotesSettings>,
    files: Arc<Files>,
    log: Arc<dyn LearningLog>,
    clock: Arc<dyn Clock>,
}

/// Who makes a change, and where it was learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub author: Author,
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
}

impl Provenance {
    /// A person, by a command.
    pub fn person() -> Self {
        Self {
            author: Author::Person,
            session: None,
            turn: None,
        }
    }
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// `None` when nothing had to be changed.
    pub id: Option<ChangeId>,
    pub summary: String,
    pub usage: Usage,
    pub entries: usize,
    /// What was moved to the archive.
    pub archived: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotesError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{0} is switched off in the settings")]
    Off(&'static str),
    #[error("cannot {action} `{}`: {detail}", path.display())]
    Disk {
        action: &'static str,
        path: PathBuf,
        detail: String,
    },
    #[error("`{}` is larger than {bytes_max} bytes", path.display())]
    TooLarge { path: PathBuf, bytes_max: u64 },
    #[error("somebody else is writing `{}` and did not finish", .0.display())]
    Locked(PathBuf),
    #[error(transparent)]
    Log(#[from] StoreError),
    #[error("there is no change {0} of notes")]
    NoChange(ChangeId),
    #[error("change {0} was taken back already, by change {1}")]
    UndoneAlready(ChangeId, ChangeId),
    #[error("nothing of change {0} is left to take back: the notes have changed since")]
    NothingToUndo(ChangeId),
    #[error("no change {0} of notes waits for consent")]
    NotPending(u64),
    #[error("{0} changes of notes wait for the user's consent already")]
    TooManyWait(usize),
    #[error(
        "the notes have changed since change {0} was proposed, so that it would do something else now"
    )]
    Outdated(u64),
    #[error("the notes are not what was agreed to any more; look at them again")]
    NotAgreed,
}

impl Notes {
    pub fn new(settings: NotesSettings, log: Arc<dyn LearningLog>, clock: Arc<dyn Clock>) -> Self {
        let files = Files::of(&settings.folder, settings.person.as_deref());
        Self {
            settings: Arc::new(settings),
            files: Arc::new(files),
            log,
            clock,
        }
    }

    pub fn settings(&self) -> &NotesSettings {
        &self.settings
    }

    pub fn path(&self, file: NoteFile) -> PathBuf {
        self.files.path(file)
    }

    /// The entries of a file as they are now.
    pub fn entries(&self, file: NoteFile) -> Result<Vec<String>, NotesError> {
        Ok(parse(&self.files.read(file)?.unwrap_or_default()))
    }

    /// How full a file is.
    pub fn usage(&self, file: NoteFile, entries: &[String]) -> Usage {
        Usage::of(entries, self.limit(file).unwrap_or(usize::MAX))
    }

    /// Which files are used.
    pub fn used(&self) -> impl Iterator<Item = NoteFile> + '_ {
        let is_used = |file: &NoteFile| self.limit(*file).is_some();
        NoteFile::ALL.into_iter().filter(is_used)
    }

    fn limit(&self, file: NoteFile) -> Option<usize> {
        match file {
            NoteFile::Memory => self.settings.memory_chars_max,
            NoteFile::User => self.settings.user_chars_max,
        }
    }

    fn limits(&self, file: NoteFile, make_room: bool) -> Result<Limits, NotesError> {
        let chars_max = self.limit(file).ok_or(NotesError::Off(file.file_name()))?;
        Ok(Limits {
            chars_max,
            make_room,
        })
    }

    /// What a session is told of the notes: a paragraph for each file that has any. A file that cannot be read is told of.
    pub fn prompt(&self) -> Vec<String> {
        let told = self.used().filter_map(|file| match self.entries(file) {
            Ok(entries) => prompt::told(file, &entries, self.usage(file, &entries)),
            Err(error) => {
                tracing::warn!("{error}");
                Some(format!("({} could not be read: {error})", file.file_name()))
            }
        });
        told.collect()
    }

    /// Makes changes, all or none of them.
    pub async fn apply(
        &self,
        file: NoteFile,
        operations: &[Operation],
        make_room: bool,
        by: &Provenance,
    ) -> Result<Changed, NotesError> {
        let limits = self.limits(file, make_room)?;
        let plan = |entries: &[String]| Ok(entries::plan(entries, operations, limits)?);
        self.change(file, by, None, None, plan).await
    }

    /// The same for those who agreed to exactly this change.
    async fn apply_agreed(
        &self,
        file: NoteFile,
        operations: &[Operation],
        make_room: bool,
        by: &Provenance,
        basis: Option<&str>,
    ) -> Result<Changed, NotesError> {
        let limits = self.limits(file, make_room)?;
        let plan = |entries: &[String]| Ok(entries::plan(entries, operations, limits)?);
        self.change(file, by, None, basis, plan).await
    }

    /// What changes would do, with nothing done: the text before and after.
    pub fn preview(
        &self,
        file: NoteFile,
        operations: &[Operation],
        make_room: bool,
    ) -> Result<(String, String), NotesError> {
        let limits = self.limits(file, make_room)?;
        let before = self.files.read(file)?.unwrap_or_default();
        let planned = entries::plan(&parse(&before), operations, limits)?;
        Ok((before, join(&planned.entries)))
    }

    /// What the entries are, and what operations would make of them if there were room for everything.
    fn outcome(
        &self,
        file: NoteFile,
        operations: &[Operation],
    ) -> Result<(Vec<String>, Vec<String>), NotesError> {
        let before = self.entries(file)?;
        let unlimited = Limits {
            chars_max: usize::MAX,
            make_room: false,
        };
        let planned = entries::plan(&before, operations, unlimited)?;
        Ok((before, planned.entries))
    }

    /// Replaces all entries by those of a text, as a person wants them: they may also be too many.
    pub async fn rewrite(
        &self,
        file: NoteFile,
        text: &str,
        by: &Provenance,
    ) -> Result<Changed, NotesError> {
        let entries = parse(text);
        let plan = |_: &[String]| {
            Ok(Planned {
                entries: entries.clone(),
                archived: Vec::new(),
                summary: "rewritten".to_owned(),
            })
        };
        self.change(file, by, None, None, plan).await
    }

    /// Takes a change back: what it added goes, what it removed comes back, and everything else stays as it is now.
    pub async fn undo(&self, id: ChangeId, by: &Provenance) -> Result<Changed, NotesError> {
        let change = self.log.change(id).await?.ok_or(NotesError::NoChange(id))?;
        let file = self
            .file_of(&change.change.subject)
            .ok_or(NotesError::NoChange(id))?;
        if let Some(undoing) = change.undone_by {
            return Err(NotesError::UndoneAlready(id, undoing));
        }
        let before = parse(change.change.before.as_deref().unwrap_or_default());
        let after = parse(change.change.after.as_deref().unwrap_or_default());
        let plan = |entries: &[String]| {
            let undone = entries::without_change(entries, &before, &after);
            let undone = undone.ok_or(NotesError::NothingToUndo(id))?;
            Ok(Planned {
                entries: undone,
                archived: Vec::new(),
                summary: format!("took back change {id}: {}", change.change.summary),
            })
        };
        self.change(file, by, Some(id), None, plan).await
    }

    /// Which file of this person's notes a change is about.
    fn file_of(&self, subject: &Subject) -> Option<NoteFile> {
        match subject {
            Subject::Notes { file, person } if *person == self.settings.person => {
                NoteFile::named(file)
            }
            _ => None,
        }
    }

    /// Changes of a file, the newest first.
    pub async fn history(
        &self,
        file: NoteFile,
        limit: usize,
    ) -> Result<Vec<LearnedChange>, NotesError> {
        let filter = ChangeFilter {
            subject: Some(self.subject(file)),
            limit,
            ..ChangeFilter::default()
        };
        Ok(self.log.changes(filter).await?)
    }

    /// Entries, also archived ones, that have all of these words.
    pub fn search(&self, words: &str) -> Result<Vec<Found>, NotesError> {
        self.files.search(words)
    }

    /// Everything that was archived, by file.
    pub fn archive(&self) -> Result<Vec<Found>, NotesError> {
        self.files.archived()
    }

    fn subject(&self, file: NoteFile) -> Subject {
        Subject::Notes {
            file: file.as_str().to_owned(),
            person: self.settings.person.clone(),
        }
    }

    /// Works on the files of who holds their lock. It is given back once the work is done, also when nobody waits for it any
    /// more.
    async fn on_disk<T: Send + 'static>(
        &self,
        lock: &Arc<FileLock>,
        work: impl FnOnce(&Files) -> T + Send + 'static,
    ) -> T {
        let (files, lock) = (Arc::clone(&self.files), Arc::clone(lock));
        blocking(move || {
            let done = work(&files);
            drop(lock);
            done
        })
        .await
    }

    /// Makes one change under the lock of its file. Whatever dies on the way leaves the file as it was or as it is to be.
    async fn change(
        &self,
        file: NoteFile,
        by: &Provenance,
        undoes: Option<ChangeId>,
        agreed: Option<&str>,
        plan: impl FnOnce(&[String]) -> Result<Planned, NotesError>,
    ) -> Result<Changed, NotesError> {
        let lock = Arc::new(self.files.lock(file).await?);
        let now = self.on_disk(&lock, move |files| files.read(file)).await?;
        self.settle_history(file, now.as_deref()).await?;
        let entries = parse(now.as_deref().unwrap_or_default());
        let planned = plan(&entries)?;
        let after = join(&planned.entries);
        if agreed.is_some_and(|basis| basis != basis_of(now.as_deref().unwrap_or_default(), &after))
        {
            return Err(NotesError::NotAgreed);
        }
        let usage = self.usage(file, &planned.entries);
        let mut changed = Changed {
            id: None,
            summary: planned.summary,
            usage,
            entries: planned.entries.len(),
            archived: planned.archived,
        };
        if planned.entries == entries {
            return Ok(changed);
        }
        let (archived, at) = (changed.archived.clone(), self.clock.now());
        self.on_disk(&lock, move |files| {
            files.add_to_archive(file, &archived, at)
        })
        .await?;
        let id = self
            .log
            .begin(NewLearnedChange {
                at: self.clock.now(),
                subject: self.subject(file),
                author: by.author,
                session: by.session.clone(),
                turn: by.turn.clone(),
                summary: changed.summary.clone(),
                before: now,
                after: Some(after.clone()),
                undoes,
            })
            .await?;
        let written = self.on_disk(&lock, move |files| files.write(file, &after));
        if let Err(error) = written.await {
            self.log.abandon(id).await?;
            return Err(error);
        }
        self.log.finish(id).await?;
        changed.id = Some(id);
        Ok(changed)
    }

    /// Brings the history up to what the file has: a change that a crash left open was made or not, and what somebody
    /// edited by hand is written down as theirs.
    async fn settle_history(&self, file: NoteFile, now: Option<&str>) -> Result<(), NotesError> {
        let recent = self.history(file, RECENT_CHANGES).await?;
        for open in recent.iter().filter(|change| !change.is_finished) {
            if open.change.after.as_deref() == now {
                self.log.finish(open.id).await?;
            } else {
                self.log.abandon(open.id).await?;
            }
        }
        let last = recent
            .iter()
            .find(|change| change.is_finished || change.change.after.as_deref() == now);
        let Some(last) = last else {
            return Ok(());
        };
        if parse(last.change.after.as_deref().unwrap_or_default()) == parse(now.unwrap_or_default())
        {
            return Ok(());
        }
        let edit = NewLearnedChange {
            at: self.clock.now(),
            subject: self.subject(file),
            author: Author::Person,
            session: None,
            turn: None,
            summary: "edited by hand".to_owned(),
            before: last.change.after.clone(),
            after: now.map(str::to_owned),
            undoes: None,
        };
        let id = self.log.begin(edit).await?;
        Ok(self.log.finish(id).await?)
    }
}

/// Tells one change from every other.
pub(crate) fn basis_of(before: &str, after: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::new();
    hash.update((before.len() as u64).to_le_bytes());
    hash.update(before);
    hash.update(after);
    let hash = hash.finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The beginning of an entry, in one line.
fn excerpt(entry: &str) -> String {
    let line: Vec<&str> = entry.split_whitespace().collect();
    shorten(&line.join(" "), EXCERPT_CHARS_MAX)
}

/// A change as people judge it.
pub fn diff(path: &Path, before: &str, after: &str) -> String {
    let name = path.to_string_lossy();
    let name = name.trim_start_matches('/');
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .missing_newline_hint(false)
        .to_string()
}
