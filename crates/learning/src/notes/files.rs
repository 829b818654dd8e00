//! The files of notes on disk: where those of a person are, their locks, and the archive.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::Timestamp;
use hermes_os::lock::{Sharing, lock};
use hermes_os::replace::Attributes;
use hermes_os::{Access, Durability, FileLock, make_private_folder, replace};

use super::entries::{join, parse};
use super::{NoteFile, NotesError};

/// Where the notes of named people are.
const PEOPLE: &str = "people";

const ARCHIVE: &str = "archive";

/// A change of notes takes milliseconds: whoever has the lock for longer hangs.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// A file of notes is a page or two. What is larger is something else, and would fill the prompt.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Entries that a search returns.
const FOUND_MAX: usize = 50;

/// A name longer than this is cut; a checksum tells it from others.
const PERSON_CHARS_MAX: usize = 60;

/// An entry, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `MEMORY.md`, `archive/USER-2026-11.md`.
    pub place: String,
    pub text: String,
}

#[derive(Debug, Clone)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(super) fn of(folder: &Path, person: Option<&str>) -> Self {
        let folder = match person {
            None => folder.to_owned(),
            Some(person) => folder.join(PEOPLE).join(folder_name(person)),
        };
        Self { folder }
    }

    pub(super) fn path(&self, file: NoteFile) -> PathBuf {
        self.folder.join(file.file_name())
    }

    /// What a file has; `None` where there is none.
    pub(super) fn read(&self, file: NoteFile) -> Result<Option<String>, NotesError> {
        read(&self.path(file))
    }

    pub(super) async fn lock(&self, file: NoteFile) -> Result<FileLock, NotesError> {
        make_private_folder(&self.folder).map_err(|error| disk("make", &self.folder, &error))?;
        let path = self.folder.join(format!("{}.lock", file.file_name()));
        match lock_file(&path).await {
            Ok(lock) => Ok(lock),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(NotesError::Locked(self.path(file)))
            }
            Err(error) => Err(disk("lock", &path, &error)),
        }
    }

    /// Replaces a file all at once. One that is a link elsewhere is replaced there.
    pub(super) fn write(&self, file: NoteFile, text: &str) -> Result<(), NotesError> {
        write(&self.path(file), text)
    }

    /// Adds entries to the archive of this month. Those that are there already are not added again: a change that died
    /// after this is made anew.
    pub(super) fn add_to_archive(
        &self,
        file: NoteFile,
        entries: &[String],
        now: Timestamp,
    ) -> Result<(), NotesError> {
        if entries.is_empty() {
            return Ok(());
        }
        let folder = self.folder.join(ARCHIVE);
        make_private_folder(&folder).map_err(|error| disk("make", &folder, &error))?;
        let stem = file.file_name().trim_end_matches(".md");
        let date = now.date_text();
        let month = date.get(..7).unwrap_or(&date);
        let path = folder.join(format!("{stem}-{month}.md"));
        let mut kept = parse(&read(&path)?.unwrap_or_default());
        let new = entries.iter().filter(|entry| !kept.contains(entry));
        let new: Vec<String> = new.cloned().collect();
        kept.extend(new);
        write(&path, &join(&kept))
    }

    /// Entries that have all of these words, in the files and in the archive.
    pub(super) fn search(&self, words: &str) -> Result<Vec<Found>, NotesError> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found = self.current()?;
        found.extend(self.archived()?);
        found.retain(|found| {
            let text = found.text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        });
        found.truncate(FOUND_MAX);
        Ok(found)
    }

    fn current(&self) -> Result<Vec<Found>, NotesError> {
        let mut found = Vec::new();
        for file in NoteFile::ALL {
            let entries = parse(&self.read(file)?.unwrap_or_default());
            found.extend(placed(file.file_name(), entries));
        }
        Ok(found)
    }

    /// Everything in the archive, the newest month first.
    pub(super) fn archived(&self) -> Result<Vec<Found>, NotesError> {
        let folder = self.folder.join(ARCHIVE);
        let names = match fs::read_dir(&folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(disk("list", &folder, &error)),
        };
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
        names.sort_unstable_by(|one, other| other.cmp(one));
        let mut found = Vec::new();
        for name in names {
            let entries = parse(&read(&folder.join(&name))?.unwrap_or_default());
            found.extend(placed(&format!("{ARCHIVE}/{name}"), entries));
        }
        Ok(found)
    }
}

fn placed(place: &str, entries: Vec<String>) -> impl Iterator<Item = Found> + use<> {
    let place = place.to_owned();
    entries.into_iter().map(move |text| Found {
        place: place.clone(),
        text,
    })
}

fn read(path: &Path) -> Result<Option<String>, NotesError> {
    match fs::metadata(path) {
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return Err(NotesError::TooLarge {
                path: path.to_owned(),
                bytes_max: FILE_BYTES_MAX,
            });
        }
        _ => {}
    }
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(disk("read", path, &error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), NotesError> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let access = match fs::metadata(&target) {
        Ok(found) => Access::Like(Attributes {
            mode: found.mode() & 0o777,
            user: found.uid(),
            group: found.gid(),
        }),
        Err(_) => Access::Private,
    };
    replace(&target, text.as_bytes(), access, Durability::Synced)
        .map_err(|error| disk("write", path, &error))
}

pub(super) async fn lock_file(path: &Path) -> io::Result<FileLock> {
    lock(path, Sharing::Alone, LOCK_WAIT).await
}

pub(super) fn disk(action: &'static str, path: &Path, error: &io::Error) -> NotesError {
    NotesError::Disk {
        action,
        path: path.to_owned(),
        detail: error.to_string(),
    }
}

/// The name of a person's folder: different for different people on every file system, and never one that leads elsewhere.
pub fn folder_name(person: &str) -> String {
    let mut name = String::new();
    for byte in person.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.len() <= PERSON_CHARS_MAX {
        return name;
    }
    use sha2::{Digest as _, Sha256};
    let hash = Sha256::digest(person);
    let sum: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{}~{sum}", &name[..PERSON_CHARS_MAX])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_person_is_theirs_alone() {
        let people = [
            "anna",
            "Anna",
            "../anna",
            "",
            "an/na",
            "änna",
            "%41nna",
            ".",
            "a".repeat(90).leak(),
            "a".repeat(91).leak(),
        ];
        let names: Vec<String> = people.iter().map(|person| folder_name(person)).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!name.contains(['/', '.']) && name.len() < 100, "{name}");
            assert_eq!(
                names
                    .iter()
                    .position(|other| other.eq_ignore_ascii_case(name)),
                Some(at)
            );
        }
    }
}
