//! What the exact reading names, for tests that hold it against a real shell.

use crate::shell::exact::{self, Reading};

/// The programs and files that a line names.
#[derive(Debug)]
pub struct Named(Reading);

/// Reads a line exactly, or says why it is not understood.
pub fn named(line: &str) -> Result<Named, String> {
    exact::read(line).map(Named).map_err(|why| why.to_string())
}

impl Named {
    /// Returns whether the line may run a program with these words. `home` is what `~` is.
    pub fn runs(&self, words: &[String], home: &str) -> bool {
        self.0.names(words, home)
    }

    /// Returns whether a redirection of the line may write to a file.
    pub fn writes(&self, path: &str, home: &str) -> bool {
        self.0.names_file(path, home)
    }
}
