//! Which session a run belongs to: a new one, or the one that `-r` or `-c` means.

use std::path::PathBuf;

use hermes_core::{Archive as _, SessionFilter, SessionId};
use hermes_store::SqliteStore;

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;

/// The session to go on with, before anything is wired: its folder decides what the prompt is made of.
pub struct Chosen {
    pub session: Option<SessionId>,
    pub cwd: PathBuf,
}

/// Finds the session that the flags name and the folder to work in.
pub async fn choose(
    base: &Base,
    store: &SqliteStore,
    flags: &RunFlags,
    source: &str,
) -> Outcome<Chosen> {
    let named = flags.resume.as_deref().or(flags
        .continue_last
        .as_deref()
        .filter(|name| !name.is_empty()));
    let session = match (named, &flags.continue_last) {
        (Some(name), _) => Some(store.find(name).await?),
        (None, Some(_)) => Some(latest(store, source).await?),
        (None, None) => None,
    };
    let cwd = match &session {
        Some(session) if !flags.no_restore_cwd && !flags.worktree => {
            folder_of(base, store, session).await?
        }
        _ => base.cwd.clone(),
    };
    Ok(Chosen { session, cwd })
}

async fn latest(store: &SqliteStore, source: &str) -> Outcome<SessionId> {
    let filter = |source: Option<&str>| SessionFilter {
        source: source.map(str::to_owned),
        cwd: None,
        limit: 1,
    };
    let mut sessions = store.list(filter(Some(source))).await?;
    if sessions.is_empty() {
        sessions = store.list(filter(None)).await?;
    }
    match sessions.pop() {
        Some(record) => Ok(record.id),
        None => Err(Failure::new("there is no session to continue")
            .hint("start one with `hermes` or `hermes -z PROMPT`")),
    }
}

/// The folder a session was in; where we are, when that one is gone.
async fn folder_of(base: &Base, store: &SqliteStore, session: &SessionId) -> Outcome<PathBuf> {
    let Some(folder) = store.record(session).await?.cwd else {
        return Ok(base.cwd.clone());
    };
    if folder == base.cwd {
        return Ok(folder);
    }
    if !folder.is_dir() {
        note(&format!(
            "the session's folder `{}` is gone; staying in `{}`",
            folder.display(),
            base.cwd.display()
        ));
        return Ok(base.cwd.clone());
    }
    note(&format!(
        "working in `{}`, the session's folder (--no-restore-cwd stays here)",
        folder.display()
    ));
    Ok(folder)
}
