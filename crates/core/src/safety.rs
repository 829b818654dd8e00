//! Ports of those who look at a command before it runs, and of the list of what a person allowed for good.

use std::path::Path;

use crate::tool::BoxFuture;

/// A program of its own that knows suspicious commands.
pub trait Scanner: Send + Sync {
    /// Returns what is suspicious about a command; nothing when nothing is.
    fn scan<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Commands that run without a question, from one session to the next.
pub trait AllowList: Send + Sync {
    /// Returns whether a command runs in a folder without a question.
    fn allows(&self, command: &str, folder: &Path) -> bool;

    /// Lets a command, or every one of a pattern, run in a folder from now on. Says why when it could not be saved.
    fn allow<'a>(
        &'a self,
        command: &'a str,
        pattern: Option<&'a str>,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<(), String>>;
}
