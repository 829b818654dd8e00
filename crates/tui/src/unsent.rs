//! What is typed and not sent, kept in a file beside the history so that it survives the end of the program, however that
//! comes. The file of a program that runs is left alone.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

const NAME: &str = ".unsent-";
/// Files of programs that have ended are looked at up to here; there is hardly ever more than one.
const LEFT_MAX: usize = 16;

/// The file of this program.
#[derive(Debug)]
pub(crate) struct Unsent {
    file: PathBuf,
    /// What is in the file.
    kept: String,
}

impl Unsent {
    pub(crate) fn beside(history: &Path) -> Self {
        Self {
            file: history.with_file_name(format!("{NAME}{}", std::process::id())),
            kept: String::new(),
        }
    }

    pub(crate) fn is_kept(&self, text: &str) -> bool {
        self.kept == text
    }

    /// Keeps a text in the place of the one before it. Nothing depends on it: what cannot be written is not kept.
    pub(crate) fn keep(&mut self, text: &str) {
        let kept = if text.trim().is_empty() {
            std::fs::remove_file(&self.file)
        } else {
            write(&self.file, text)
        };
        if kept.is_ok() || text.trim().is_empty() {
            text.clone_into(&mut self.kept);
        }
    }

    /// Takes what programs have left that ended without sending it.
    pub(crate) fn left(&self) -> Vec<String> {
        let Some(folder) = self.file.parent() else {
            return Vec::new();
        };
        let entries = folder.read_dir().into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|file| is_left(file));
        let texts = files.take(LEFT_MAX).filter_map(|file| {
            let text = std::fs::read_to_string(&file).ok();
            let _ = std::fs::remove_file(&file);
            text.filter(|text| !text.trim().is_empty())
        });
        texts.collect()
    }
}

/// Whether a file is of a program that has ended.
fn is_left(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix(NAME)?.parse().ok());
    let Some(pid) = number.and_then(Pid::from_raw) else {
        return false;
    };
    test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

/// Only its owner may read the file: people type secrets.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_program_left_is_taken_once_and_that_of_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let history = folder.path().join("history");
        let mut own = Unsent::beside(&history);
        own.keep("mine");
        // No process has this number: it is above the largest that Linux gives.
        std::fs::write(folder.path().join(format!("{NAME}2000000000")), "theirs\n").unwrap();
        assert_eq!(own.left(), ["theirs\n"]);
        assert_eq!(own.left(), [""; 0]);
        let file = folder.path().join(format!("{NAME}{}", std::process::id()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        own.keep("");
        assert!(!file.exists() && own.is_kept(""));
    }
}
