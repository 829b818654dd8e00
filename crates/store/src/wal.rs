//! Looks at the write-ahead log before SQLite does. SQLite reads a log as far as it is whole and takes the rest for a
//! change that was never finished. After a kill that is right; where the log was cut or altered, it loses what was saved,
//! without a word, and may even undo part of what had been copied into the database already.
//!
//! What tells one from the other is the index of the log, the file `-shm`: it names the last frame that was committed and
//! how many were copied. It survives a kill, and is built anew only when the next process opens the database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the parts of the files lie: <https://sqlite.org/walformat.html>.
const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const INDEX_HEADER_BYTES: usize = 48;
const INDEX_BYTES: usize = 136;

/// The log of a database and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalDamage {
    pub(crate) path: PathBuf,
    pub(crate) detail: String,
    /// Everything that is whole in it was copied into the database before; what is read from it would be older.
    pub(crate) is_useless: bool,
}

/// Returns the path of a file beside the database.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Examines the log of a database. A log that another process is writing to is left to it.
pub(crate) fn examine(database: &Path) -> io::Result<Option<WalDamage>> {
    let (path, index_path) = (beside(database, "-wal"), beside(database, "-shm"));
    let index = read(&index_path)?;
    let log = read(&path)?;
    let damage = |detail: String, is_useless| {
        Some(WalDamage {
            path: path.clone(),
            detail,
            is_useless,
        })
    };
    let Some(index) = index else {
        let log = log.unwrap_or_default();
        return Ok(match scan(&log) {
            Some(scan) if !scan.ends_in_the_middle => None,
            None if log.is_empty() => None,
            _ => damage(
                "it ends in the middle of a change, so what was saved last may be missing".into(),
                false,
            ),
        });
    };
    // Whoever writes says so in the index first.
    if read(&index_path)?.as_ref() != Some(&index) {
        return Ok(None);
    }
    let Some(index) = Index::parse(&index).filter(|index| index.committed > 0) else {
        return Ok(None);
    };
    let scan = scan(&log.unwrap_or_default());
    if scan.as_ref().is_some_and(|scan| scan.salts != index.salts) {
        // It was begun anew, and the index is of an earlier time.
        return Ok(None);
    }
    let (frames, last_commit) = scan.map_or((0, 0), |scan| (scan.frames, scan.last_commit));
    if frames >= index.committed {
        return Ok(None);
    }
    let is_copied = index.copied >= index.committed;
    let lost = if is_copied {
        "nothing is lost, because the database has them all"
    } else {
        "what was saved last is lost"
    };
    let detail = format!(
        "of {} pages that were saved in it, {frames} are whole; {lost}",
        index.committed
    );
    Ok(damage(detail, last_commit <= index.copied))
}

/// Reads a file that may not be there.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the index knows of the log.
struct Index {
    committed: u32,
    copied: u32,
    salts: [u8; 8],
}

impl Index {
    /// Reads an index; `None` when it is none, or half written.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..INDEX_HEADER_BYTES)?;
        let is_twice = bytes.get(INDEX_HEADER_BYTES..2 * INDEX_HEADER_BYTES)? == header;
        let is_begun = header[12] == 1;
        let number = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let sums = Sums::default().add(&header[..40], u32::from_ne_bytes);
        let is_whole = bytes.len() >= INDEX_BYTES && [number(40)?, number(44)?] == [sums.0, sums.1];
        let index = Self {
            committed: number(16)?,
            copied: number(96)?,
            salts: header[32..40].try_into().ok()?,
        };
        (is_twice && is_begun && is_whole).then_some(index)
    }
}

/// How far a log is whole.
struct Scan {
    salts: [u8; 8],
    frames: u32,
    /// The last frame that ends a change.
    last_commit: u32,
    /// Something of this time follows the last change, whole or not.
    ends_in_the_middle: bool,
}

/// Reads a log as SQLite does; `None` when its header is not whole.
fn scan(log: &[u8]) -> Option<Scan> {
    let header = log.get(..HEADER_BYTES)?;
    let number = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    let order = match number(header, 0)? {
        0x377f_0682 => u32::from_le_bytes,
        0x377f_0683 => u32::from_be_bytes,
        _ => return None,
    };
    let mut sums = Sums::default().add(&header[..24], order);
    if [number(header, 24)?, number(header, 28)?] != [sums.0, sums.1] {
        return None;
    }
    let page_bytes = number(header, 8)? as usize;
    let mut scan = Scan {
        salts: header[16..24].try_into().ok()?,
        frames: 0,
        last_commit: 0,
        ends_in_the_middle: false,
    };
    for frame in log[HEADER_BYTES..].chunks(FRAME_HEADER_BYTES + page_bytes) {
        if frame.get(8..16).is_some_and(|salts| salts != scan.salts) {
            // Left over from an earlier time.
            return Some(scan);
        }
        scan.ends_in_the_middle = true;
        if frame.len() < FRAME_HEADER_BYTES + page_bytes {
            return Some(scan);
        }
        sums = sums
            .add(&frame[..8], order)
            .add(&frame[FRAME_HEADER_BYTES..], order);
        if [number(frame, 16)?, number(frame, 20)?] != [sums.0, sums.1] {
            return Some(scan);
        }
        scan.frames += 1;
        if number(frame, 4)? > 0 {
            scan.last_commit = scan.frames;
            scan.ends_in_the_middle = false;
        }
    }
    Some(scan)
}

/// The two sums by which SQLite knows that what it reads is what was written.
#[derive(Debug, Clone, Copy, Default)]
struct Sums(u32, u32);

impl Sums {
    fn add(self, bytes: &[u8], order: fn([u8; 4]) -> u32) -> Self {
        let Self(mut first, mut second) = self;
        for pair in bytes.chunks_exact(8) {
            let [a, b, c, d, e, f, g, h] = [
                pair[0], pair[1], pair[2], pair[3], pair[4], pair[5], pair[6], pair[7],
            ];
            first = first.wrapping_add(order([a, b, c, d])).wrapping_add(second);
            second = second.wrapping_add(order([e, f, g, h])).wrapping_add(first);
        }
        Self(first, second)
    }
}
