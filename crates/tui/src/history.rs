//! What was sent before: kept in a file, one line of JSON per message, so that messages may have lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// How much of the end of the file is read, and kept of what is sent: more than anybody searches in.
const BYTES_MAX: u64 = 1024 * 1024;

/// Reads the messages, the oldest first. A file that cannot be read is an empty one: nothing depends on it.
pub(crate) fn load(path: &Path) -> Vec<String> {
    let text = read_end(path).unwrap_or_default();
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    entries.collect()
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds a message. Only its owner may read the file: people paste secrets.
pub(crate) fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut line = serde_json::to_string(text)?;
    line.push('\n');
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(line.as_bytes())
}

/// The messages, and where one is among them.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    /// The entry that is shown; none while the person's own text is.
    shown: Option<usize>,
}

impl History {
    pub(crate) fn new(entries: Vec<String>) -> Self {
        Self {
            entries,
            shown: None,
        }
    }

    /// Adds what was sent. Returns whether it is worth keeping: the same twice in a row is not.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        self.shown = None;
        let is_new = self.entries.last().is_none_or(|last| last != text);
        if is_new {
            self.entries.push(text.to_owned());
            self.forget_oldest();
        }
        is_new
    }

    /// Keeps no more than would be read again; the newest always.
    fn forget_oldest(&mut self) {
        let mut bytes = 0;
        let kept = self.entries.iter().rev().take_while(|entry| {
            bytes += entry.len() as u64;
            bytes <= BYTES_MAX
        });
        let kept = kept.count().max(1);
        self.entries.drain(..self.entries.len() - kept);
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    pub(crate) fn earlier(&mut self) -> Option<&str> {
        let at = self.shown.unwrap_or(self.entries.len()).checked_sub(1)?;
        self.shown = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// Returns the next newer entry; nothing when the person's own text comes next.
    pub(crate) fn later(&mut self) -> Option<&str> {
        let at = self.shown? + 1;
        self.shown = (at < self.entries.len()).then_some(at);
        self.entries.get(self.shown?).map(String::as_str)
    }

    pub(crate) fn leave(&mut self) {
        self.shown = None;
    }

    /// Finds the newest entry before `before` that contains the words.
    pub(crate) fn find(&self, words: &str, before: Option<usize>) -> Option<usize> {
        let words = words.to_lowercase();
        let end = before.unwrap_or(self.entries.len());
        self.entries[..end]
            .iter()
            .rposition(|entry| entry.to_lowercase().contains(&words))
    }

    pub(crate) fn entry(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_in_a_file_that_only_its_owner_reads() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        assert!(load(&path).is_empty());
        append(&path, "one\ntwo").unwrap();
        append(&path, "three").unwrap();
        assert_eq!(load(&path), ["one\ntwo", "three"]);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_goes_back_and_forth_and_ends_where_one_was() {
        let mut history = History::new(vec!["a".into(), "b".into()]);
        assert_eq!(history.earlier(), Some("b"));
        assert_eq!(history.earlier(), Some("a"));
        assert_eq!(history.earlier(), None);
        assert_eq!(history.later(), Some("b"));
        assert_eq!(history.later(), None);
        assert!(!history.is_shown());
        assert!(history.add("c") && !history.add("c"));
    }

    #[test]
    fn messages_without_end_do_not_fill_the_memory() {
        let mut history = History::default();
        for number in 0..100 {
            history.add(&format!("{number}{}", " long".repeat(10_000)));
        }
        let bytes: usize = history.entries.iter().map(String::len).sum();
        assert!(bytes as u64 <= BYTES_MAX && history.entries.len() > 10);
        assert!(
            history
                .earlier()
                .is_some_and(|last| last.starts_with("99 "))
        );
        let huge = "x".repeat(2 * 1024 * 1024);
        history.add(&huge);
        assert_eq!(history.earlier(), Some(huge.as_str()));
    }

    #[test]
    fn a_search_goes_from_the_newest_to_the_oldest() {
        let history = History::new(vec!["Make it".into(), "other".into(), "make that".into()]);
        assert_eq!(history.find("make", None), Some(2));
        assert_eq!(history.find("make", Some(2)), Some(0));
        assert_eq!(history.find("make", Some(0)), None);
    }
}
