//! The log as it is read: its end, and what comes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::layout::printable;
use crate::style::Style;

/// The levels as they stand in the log, worst first.
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

/// A log that grows, and that another file may take the place of.
pub struct Log {
    path: PathBuf,
    open: Option<OpenLog>,
}

struct OpenLog {
    reader: BufReader<File>,
    inode: u64,
    read_bytes: u64,
    /// A line whose end is not written yet.
    partial: Vec<u8>,
}

impl Log {
    pub fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Passes on every line written since the last time.
    pub fn read_new(&mut self, take: impl FnMut(String)) -> Result<()> {
        self.read(take).map_err(|error| {
            Error::failed(format!("cannot read `{}`: {error}", self.path.display()))
                .with_hint("check its permissions with `hermes doctor`")
        })
    }

    fn read(&mut self, mut take: impl FnMut(String)) -> io::Result<()> {
        if let Some(open) = &mut self.open {
            // To the end of the old file first, should there be a new one.
            open.read(&mut take)?;
        }
        if self.is_replaced()? {
            self.open = OpenLog::new(&self.path)?;
            if let Some(open) = &mut self.open {
                open.read(&mut take)?;
            }
        }
        Ok(())
    }

    /// Tells whether the path leads to another file than before, or to one that was emptied.
    fn is_replaced(&self) -> io::Result<bool> {
        let Some(open) = &self.open else {
            return Ok(true);
        };
        match std::fs::metadata(&self.path) {
            Ok(now) => Ok(now.ino() != open.inode || now.len() < open.read_bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl OpenLog {
    fn new(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            inode: file.metadata()?.ino(),
            reader: BufReader::new(file),
            read_bytes: 0,
            partial: Vec::new(),
        }))
    }

    fn read(&mut self, mut take: impl FnMut(String)) -> io::Result<()> {
        // Forgets that the end was reached.
        self.reader.seek(SeekFrom::Start(self.read_bytes))?;
        loop {
            let count = self.reader.read_until(b'\n', &mut self.partial)?;
            self.read_bytes += count as u64;
            if self.partial.last() != Some(&b'\n') {
                return Ok(());
            }
            let line = String::from_utf8_lossy(&self.partial);
            take(line.trim_end().to_owned());
            self.partial.clear();
        }
    }
}

/// Which lines are wanted.
pub struct Filter {
    /// The mildest wanted level, as an index into [`LEVELS`].
    level_max: usize,
    session: Option<String>,
    /// Whether the last line that had a level was taken; lines without one belong to it.
    took_last: bool,
}

impl Filter {
    /// Takes this level and worse, of one session if it is given.
    pub fn new(level: &str, session: Option<String>) -> Self {
        let index = LEVELS.iter().position(|l| l.eq_ignore_ascii_case(level));
        Self {
            level_max: index.unwrap_or(LEVELS.len()),
            session,
            took_last: false,
        }
    }

    pub fn takes(&mut self, line: &str) -> bool {
        if let Some(level) = level(line) {
            let is_of_session = self
                .session
                .as_ref()
                .is_none_or(|session| line.contains(session.as_str()));
            self.took_last = level <= self.level_max && is_of_session;
        }
        self.took_last
    }
}

/// Returns a line's level as an index into [`LEVELS`]: the word after the time.
fn level(line: &str) -> Option<usize> {
    let word = line.split_whitespace().nth(1)?;
    LEVELS.iter().position(|level| *level == word)
}

/// A line as it is shown, in the colour of its level.
pub fn painted(line: &str, style: Style) -> String {
    let line = printable(line);
    match level(&line) {
        Some(0) => style.red(line),
        Some(1) => style.yellow(line),
        Some(2) => line,
        _ => style.dim(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(level: &str, session: Option<&str>, lines: &[&'static str]) -> Vec<&'static str> {
        let mut filter = Filter::new(level, session.map(str::to_owned));
        let lines = lines.iter().copied();
        lines.filter(|line| filter.takes(line)).collect()
    }

    #[test]
    fn a_level_takes_itself_and_worse_with_their_further_lines() {
        let lines = [
            "2026-11-15T21:24:05.123Z  INFO hermes: calm",
            "2026-11-15T21:24:05.123Z  WARN hermes: hm",
            "  more of it",
            "2026-11-15T21:24:05.123Z ERROR hermes: oh",
        ];
        assert_eq!(taken("warn", None, &lines), lines[1..]);
        assert_eq!(taken("trace", None, &lines), lines);
    }

    #[test]
    fn a_session_takes_only_its_own_lines() {
        let lines = [
            "2026-11-15T21:24:05.123Z  INFO hermes: a session=s1",
            "2026-11-15T21:24:05.123Z  INFO hermes: b session=s2",
        ];
        assert_eq!(taken("trace", Some("s2"), &lines), lines[1..]);
    }
}
