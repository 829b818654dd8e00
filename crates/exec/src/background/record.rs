//! Which processes there are: one small file each, so that a crash loses none.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_core::{Pass, ProcessError, ProcessName, SessionId};
use hermes_os::{Access, Durability, make_private_folder};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) session: SessionId,
    pub(super) line: String,
    pub(super) cwd: PathBuf,
    pub(super) started_at_ms: i64,
    /// None while it is being started.
    pub(super) pid: Option<u32>,
    /// Its session is still to be told that it ended.
    #[serde(default)]
    pub(super) tell_end: bool,
    /// Where its session works.
    #[serde(default)]
    pub(super) place: Option<PathBuf>,
    /// What it may do beyond the fence; whoever looks at it may do the same, and no more.
    #[serde(default)]
    pub(super) pass: Pass,
    /// What everything it started carries.
    #[serde(default)]
    pub(super) mark: Option<String>,
}

#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn write(&self, record: &Record) -> Result<(), ProcessError> {
        self.try_write(record)
            .map_err(|error| ProcessError::NotRecorded {
                detail: format!("`{}`: {error}", self.folder.display()),
            })
    }

    fn try_write(&self, record: &Record) -> std::io::Result<()> {
        make_private_folder(&self.folder)?;
        let (file, content) = (self.file(&record.id), serde_json::to_vec(record)?);
        hermes_os::replace(&file, &content, Access::Private, Durability::Unsynced)
    }

    pub(super) fn remove(&self, id: &str) {
        let _ = fs::remove_file(self.file(id));
    }

    /// Returns all records, the oldest first. What cannot be read is no record.
    pub(super) fn all(&self) -> Vec<Record> {
        let entries = self.folder.read_dir().into_iter().flatten().flatten();
        let mut records: Vec<Record> = entries.filter_map(|entry| read(&entry.path())).collect();
        records.sort_by(|a, b| (a.started_at_ms, &a.id).cmp(&(b.started_at_ms, &b.id)));
        records
    }

    pub(super) fn find(&self, process: ProcessName<'_>) -> Result<Record, ProcessError> {
        self.all()
            .into_iter()
            .find(|record| record.id == process.id && record.session == *process.session)
            .ok_or_else(|| ProcessError::Unknown {
                id: process.id.to_owned(),
            })
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}

fn read(path: &Path) -> Option<Record> {
    path.extension().filter(|extension| *extension == "json")?;
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
