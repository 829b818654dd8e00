//! The port to what people refer to with an `@` besides files: changes in a repository, pages of the web.

use std::path::Path;

use crate::tool::BoxFuture;

/// What a model is told before the things that a person referred to.
pub const ATTACHED: &str = "--- Attached Context ---";

/// Brings what a person refers to. Errors complete the sentence "`@…`: …".
pub trait References: Send + Sync {
    /// Says why a file is not shown to a model, if so.
    fn refuse_file(&self, path: &Path) -> Option<String>;

    /// What `~` means.
    fn home(&self) -> Option<&Path>;

    /// Changes in the repository around a folder, as a unified diff.
    fn changes<'a>(
        &'a self,
        which: Changes,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<String, String>>;

    /// The readable text of a web page.
    fn page<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// Which changes of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// What is changed and not staged.
    Unstaged,
    Staged,
    /// The latest commits, so many of them.
    Commits(u32),
}
