//! The promises of [`Store`] and [`Archive`], checked on an implementation from outside.
//!
//! The suite is given a way to open a store that lives in a folder. Opening the same folder again is a restart: what
//! was acknowledged before must be there. Each check has a folder of its own.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

mod approvals;
mod archive;
mod claims;
mod learning;
mod log;
mod queued;
mod searching;
mod talk;

use std::path::{Path, PathBuf};

use hermes_core::{Archive, LearningLedger, LearningLog, Reviews, Store};
use tempfile::TempDir;

/// Runs the whole suite. `open` opens the store that lives in a folder, empty at first.
pub async fn store_contract<S: Store + Archive>(open: impl AsyncFn(PathBuf) -> S) {
    log_contract(&open).await;
    claims::check(&open).await;
    archive::check(&open).await;
    searching::check(&open).await;
}

/// Runs the suite of what a store keeps of learning: the log of changes, the reviews that are due, the budget.
pub async fn learning_contract<S: Store + Archive + LearningLog + Reviews + LearningLedger>(
    open: impl AsyncFn(PathBuf) -> S,
) {
    learning::check(&open).await;
}

/// Runs the part of the suite that is about [`Store`] alone: the log and its approvals.
pub async fn log_contract<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    log::check(open).await;
    approvals::check(open).await;
    queued::check(open).await;
}

/// A folder and the stores opened in it.
struct Place<'a, F> {
    folder: TempDir,
    open: &'a F,
}

impl<'a, S, F: AsyncFn(PathBuf) -> S> Place<'a, F> {
    fn new(open: &'a F) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            open,
        }
    }

    async fn open(&self) -> S {
        (self.open)(self.path().to_owned()).await
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}
