//! The words that `append` was executed with: the proof of what was done, and how often.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::Path,
};

/// The executions, in order; also in a file, if they have to outlive the process.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    words: Vec<String>,
    file: Option<File>,
}

impl Ledger {
    /// Goes on where the file ends.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let words = read(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            words,
            file: Some(file),
        })
    }

    /// Records an execution, in a single write so that a kill leaves whole lines.
    pub(crate) fn append(&mut self, word: &str) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(format!("{word}\n").as_bytes())?;
        }
        self.words.push(word.to_owned());
        Ok(())
    }

    pub(crate) fn count(&self, word: &str) -> usize {
        self.words.iter().filter(|known| *known == word).count()
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

/// Returns the lines of a file, one per execution; none if there is no file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
