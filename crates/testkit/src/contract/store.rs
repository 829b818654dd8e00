//! The promises of [`Store`] and [`Archive`], checked on an implementation from outside.
//!
//! The suite is given a way to open a store that lives in a folder. Opening the same folder again is a restart: what
//! was acknowledged before must be there. Each check has a folder of its own.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

mod approvals;
mod archive;
mod claims;
mod compaction;
mod gateway;
mod learning;
mod log;
mod queued;
mod records;
mod schedules;
mod searching;
mod talk;
mod user_models;

use std::path::{Path, PathBuf};

pub use gateway::GatewayStore;
use hermes_core::{
    Archive, LearningLedger, LearningLog, Records, Reviews, Schedules, Store, UserModels,
};
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

/// Runs the suite of what a store keeps of people: their models, and the conversations that are to be heard.
pub async fn user_models_contract<S: Store + Archive + LearningLog + UserModels>(
    open: impl AsyncFn(PathBuf) -> S,
) {
    user_models::check(&open).await;
}

/// Runs the suite of what a store keeps of schedules.
pub async fn schedules_contract<S: Schedules>(open: impl AsyncFn(PathBuf) -> S) {
    schedules::check(&open).await;
}

/// Runs the suite of what a gateway needs: inbox, outbox, leases, chats, pairing.
pub async fn gateway_contract<S: GatewayStore>(open: impl AsyncFn(PathBuf) -> S) {
    gateway::check(&open).await;
}

/// Runs the suite of what surfaces keep beside conversations.
pub async fn records_contract<S: Records>(open: impl AsyncFn(PathBuf) -> S) {
    records::check(&open).await;
}

/// Runs the part of the suite that is about [`Store`] alone: the log and its approvals.
pub async fn log_contract<S: Store>(open: &impl AsyncFn(PathBuf) -> S) {
    log::check(open).await;
    compaction::check(open).await;
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
