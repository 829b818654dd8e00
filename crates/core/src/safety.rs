//! Ports of those who look at a command before it runs, and of the list of what a person allowed for good.

use std::path::Path;

use crate::tool::BoxFuture;

/// A program of its own that knows suspicious commands.
pub trait Scanner: Send + Sync {
    /// Returns what is suspicious about a command; nothing when nothing is.
    fn scan<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Commands that run without a question, from one session to the next. The tool that runs them knows which those are
/// ([`Need::is_allowed`](crate::Need::is_allowed)).
pub trait AllowList: Send + Sync {
    /// Lets a command, or every one of a pattern, run in a folder from now on. Says why when it could not be saved.
    fn allow<'a>(
        &'a self,
        command: &'a str,
        pattern: Option<&'a str>,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<(), String>>;
}
