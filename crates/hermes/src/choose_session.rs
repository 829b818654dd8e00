//! Which session a run belongs to: a new one, or the one that `-r` or `-c` means.

use std::path::{Path, PathBuf};

use hermes_core::{Archive as _, SessionFilter, SessionId};
use hermes_store::SqliteStore;

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;
use crate::wiring::open_store;

/// The session to go on with, before anything is wired: its folder decides what the prompt is made of.
pub struct Chosen {
    pub session: Option<SessionId>,
    pub cwd: PathBuf,
}

/// The place where the session that the flags name was talked in: the folder, and the settings that count there. Says so
/// when that is not where we are.
pub async fn place(base: Base, flags: &RunFlags, source: &str) -> Outcome<Base> {
    let goes_on = flags.resume.is_some() || flags.continue_last.is_some();
    if !goes_on || flags.no_restore_cwd || flags.worktree {
        return Ok(base);
    }
    let chosen = choose(&base, &open_store(&base)?, flags, source).await?;
    if chosen.cwd == base.cwd {
        Ok(base)
    } else {
        base.in_folder(chosen.cwd, flags)
    }
}

/// Finds the session that the flags name and the folder to work in.
pub async fn choose(
    base: &Base,
    store: &SqliteStore,
    flags: &RunFlags,
    source: &str,
) -> Outcome<Chosen> {
    if flags.resume.as_deref() == Some("") {
        return Err(
            Failure::usage("-r needs the id or the title of a session here")
                .hint("`hermes sessions list` shows them; -c goes on with the latest"),
        );
    }
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
        note(&gone(&folder, &base.cwd));
        return Ok(base.cwd.clone());
    }
    let moved = moved(&folder);
    note(&format!("{moved} (--no-restore-cwd stays here)"));
    Ok(folder)
}

/// What somebody is told who goes on with a session of another folder.
pub fn moved(folder: &Path) -> String {
    let folder = folder.display();
    format!("working in `{folder}`, the session's folder, with the settings that count there")
}

pub fn gone(folder: &Path, here: &Path) -> String {
    format!(
        "the session's folder `{}` is gone; staying in `{}`",
        folder.display(),
        here.display()
    )
}
