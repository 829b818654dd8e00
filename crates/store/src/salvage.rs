//! Saves what can be read of a damaged database into a new one, and keeps the damaged files.
//!
//! It works on copies: `rows` reads the tables around the holes in them, `mend` makes a whole of what was read. Only when
//! the new database is sound are the files exchanged.

mod mend;
mod rows;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use hermes_core::{StoreError, Timestamp};
use rusqlite::{Connection, OpenFlags};

use crate::failure::Failure;
use crate::wal::{self, WalDamage};
use crate::{connection, health, migrations};

const ACTION: &str = "recover";

/// What was saved, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
    pub sessions: u64,
    pub messages: u64,
    /// Sessions of which only messages were left; they have new names.
    pub renamed_sessions: u64,
    /// Turns with parts missing. They are kept, but are not in their conversations any more.
    pub incomplete_turns: u64,
    /// Tables with rows that could not be read.
    pub unread_tables: Vec<&'static str>,
    /// Where the damaged database is now; what belongs to it is beside it.
    pub kept_as: PathBuf,
}

/// Saves what can be read of the database at `path`. When that is nothing, everything stays as it is.
pub(crate) fn salvage(path: &Path, now: Timestamp) -> Result<Salvage, StoreError> {
    let at = |failure: Failure| failure.at(ACTION, path);
    require_alone(path)?;
    let damage = wal::examine(path).map_err(|error| io_error(path, &error))?;
    let workshop = Workshop::open(path).map_err(|error| io_error(path, &error))?;
    workshop
        .copy(path, damage.as_ref())
        .map_err(|error| io_error(path, &error))?;
    let source = open_damaged(&workshop.damaged(), path).map_err(at)?;
    drop(connection::open_writer(&workshop.mended())?);
    let mut target = Connection::open(workshop.mended()).map_err(|error| at(error.into()))?;
    let mut salvage = fill(&source, &mut target, now).map_err(at)?;
    if salvage.sessions == 0 && salvage.messages == 0 {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            detail: "nothing of it can be read".into(),
        });
    }
    close(target).map_err(at)?;
    salvage.kept_as =
        exchange(path, &workshop.mended(), now).map_err(|error| io_error(path, &error))?;
    Ok(salvage)
}

/// Copies all tables, and makes a whole of what came.
fn fill(source: &Connection, target: &mut Connection, now: Timestamp) -> Result<Salvage, Failure> {
    target.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF;")?;
    let transaction = target.transaction()?;
    let mut salvage = Salvage::default();
    for table in rows::TABLES {
        if !rows::copy(source, &transaction, table)? {
            salvage.unread_tables.push(table.name);
        }
    }
    mend::mend(&transaction, now, &mut salvage)?;
    transaction.commit()?;
    Ok(salvage)
}

/// Writes everything into one file, and makes sure that it is sound.
fn close(target: Connection) -> Result<(), Failure> {
    if let health::Health::Damaged { problems } = health::check(&target)? {
        return Err(Failure::Unreadable(format!(
            "what was saved does not fit together: {}",
            problems.join("; ")
        )));
    }
    target.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE);")?;
    target.close().map_err(|(_, error)| error.into())
}

fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io {
        action: ACTION,
        path: path.to_owned(),
        detail: error.to_string(),
    }
}

/// Refuses when another process has the database open: it would go on writing into the file that is set aside.
fn require_alone(path: &Path) -> Result<(), StoreError> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|error| io_error(path, &error))?;
    // SQLite holds such a lock on a part of the file as long as it is open.
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(&file, lock).map_err(|_| StoreError::Io {
        action: ACTION,
        path: path.to_owned(),
        detail: "another process has it open; end it first".into(),
    })
}

/// Opens the copy of a damaged database, if it is one of ours.
fn open_damaged(copy: &Path, path: &Path) -> Result<Connection, Failure> {
    let source = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // A file that is shorter than it says is read as far as it goes.
    source.execute_batch("PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON;")?;
    migrations::schema_of(&source, path)?;
    Ok(source)
}

/// Where copies are worked on: a folder beside the database, which goes with the work.
struct Workshop(PathBuf);

impl Workshop {
    fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let folder = wal::beside(path, &format!(".recovering-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = fs::remove_dir_all(&folder);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }

    fn damaged(&self) -> PathBuf {
        self.0.join("damaged.db")
    }

    fn mended(&self) -> PathBuf {
        self.0.join("mended.db")
    }

    /// Copies the database, and its log unless that would spoil it.
    fn copy(&self, path: &Path, damage: Option<&WalDamage>) -> io::Result<()> {
        fs::copy(path, self.damaged())?;
        let is_useless = damage.is_some_and(|damage| damage.is_useless);
        for suffix in ["-wal", "-journal"] {
            let beside = wal::beside(path, suffix);
            if beside.exists() && !is_useless {
                fs::copy(beside, wal::beside(&self.damaged(), suffix))?;
            }
        }
        Ok(())
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sets the damaged files aside and puts the new one in their place. Returns what the damaged one is called now.
fn exchange(path: &Path, new: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let aside = wal::beside(path, &format!(".damaged-{}", now.as_millis()));
    fs::hard_link(path, &aside).or_else(|_| fs::copy(path, &aside).map(drop))?;
    // Before the new file is there: nothing that belongs to the old one may be taken for its own.
    for suffix in ["-wal", "-shm", "-journal"] {
        match fs::rename(wal::beside(path, suffix), wal::beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(new, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(aside)
}
