//! Opens connections to the database file, with the settings each kind needs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hermes_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::failure::Failure;
use crate::{migrations, wal};

/// How long to wait for another process's transaction. Ours take milliseconds; five seconds outlast a slow disk.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Between attempts at what SQLite does not wait for by itself: the switch to a write-ahead log.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Prepared statements kept per connection: more than either kind has.
const STATEMENTS_MAX: usize = 64;

/// Pages are larger than SQLite's default: messages of one to four kilobytes waste a quarter of a 4 KB page, and half
/// as much of this. A commit writes about ten pages, so that an append costs a tenth of a millisecond more.
///
/// `synchronous = FULL` makes a commit survive a power cut. The cache stays small because the whole program should;
/// the kernel caches the file anyway. No memory map: a damaged file would end the process with a signal.
const WRITER_SETTINGS: &str = "
    PRAGMA page_size = 16384;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA foreign_keys = ON;
    PRAGMA cache_size = -2048;
    PRAGMA journal_size_limit = 8388608;
    PRAGMA temp_store = MEMORY;
";

const READER_SETTINGS: &str = "
    PRAGMA query_only = ON;
    PRAGMA cache_size = -2048;
    PRAGMA temp_store = MEMORY;
";

/// Opens for writing. Creates the file, readable by its owner only, and brings it to the current schema.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    create_private(path).map_err(|error| cannot_open(path, &error))?;
    require_database(path)?;
    patiently(|| {
        let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // Before anything is written: it may not be our file.
        migrations::schema_of(&conn, path)?;
        conn.execute_batch(WRITER_SETTINGS)?;
        migrations::migrate(&mut conn, path)?;
        Ok(conn)
    })
    .map_err(|failure| failure.at("open", path))
}

/// Opens for reading. Never creates the file, and works while another process writes. A file of an older version is
/// brought to the current schema first.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    require_database(path)?;
    let open = || -> Result<(Connection, u32), Failure> {
        let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        conn.execute_batch(READER_SETTINGS)?;
        let schema = migrations::schema_of(&conn, path)?;
        Ok((conn, schema))
    };
    let opened = match open() {
        // A process that was killed left something half done, which only a writer may bring to its end.
        Err(failure) if failure.needs_writer() => None,
        Ok((_, schema)) if schema < migrations::SCHEMA => None,
        opened => Some(opened),
    };
    let opened = match opened {
        Some(opened) => opened,
        None => {
            drop(open_writer(path)?);
            open()
        }
    };
    let opened = opened.map_err(|failure| failure.at("open", path));
    opened.map(|(conn, _)| conn)
}

/// Refuses a database whose log was cut or altered, before SQLite forgets what is missing.
pub(crate) fn require_whole_log(path: &Path) -> Result<(), StoreError> {
    match wal::examine(path).map_err(|error| cannot_open(path, &error))? {
        None => Ok(()),
        Some(damage) => Err(StoreError::Damaged {
            path: damage.path,
            detail: damage.detail,
        }),
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, Failure> {
    // Each connection is used by one thread at a time, so SQLite need not lock for itself.
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_WAIT_MAX)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise a statement that might use a partial index is compiled again for every value bound to it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(conn)
}

/// Makes the file with its mode in one step; SQLite gives the files beside it the same mode.
fn create_private(path: &Path) -> io::Result<()> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a file that is neither empty nor a database. SQLite does so too, except when it is shorter than a page:
/// that it takes for an empty one, and overwrites it.
fn require_database(path: &Path) -> Result<(), StoreError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    const PAGE_BYTES_MIN: u64 = 512;
    let read = || {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut magic = Vec::new();
        file.take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        Ok((bytes, magic))
    };
    let (bytes, magic) = read().map_err(|error| cannot_open(path, &error))?;
    // A process that was killed before its first change was done leaves a journal, with which SQLite undoes it.
    let is_begun = magic.iter().all(|byte| *byte == 0) && has_journal(path);
    if bytes == 0 || (bytes >= PAGE_BYTES_MIN && (magic == MAGIC || is_begun)) {
        return Ok(());
    }
    Err(StoreError::Damaged {
        path: path.to_owned(),
        detail: "it is not a SQLite database".into(),
    })
}

fn has_journal(path: &Path) -> bool {
    fs::metadata(wal::beside(path, "-journal")).is_ok_and(|journal| journal.len() > 0)
}

fn cannot_open(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io {
        action: "open",
        path: path.to_owned(),
        detail: error.to_string(),
    }
}

/// Repeats an attempt while another process is in the way.
fn patiently<T>(attempt: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(failure) if failure.is_busy() && started.elapsed() < BUSY_WAIT_MAX => {
                thread::sleep(BUSY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
