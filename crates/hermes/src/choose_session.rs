//! Which session a run belongs to: a new one, or the one that `-r` or `-c` means.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Archive as _, Chats as _, Clock as _, SessionFilter, SessionId, SessionOptions, Store as _,
    StoreError,
};
use hermes_store::SqliteStore;

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;
use hermes_runtime::commands::{gone, handoff, moved};
use hermes_runtime::{SystemClock, open_store};
use tokio::time::Instant;

/// How long the gateway is waited for.
const LETTING_GO: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
/// Chats that are looked through for one with a conversation.
const CHATS_MAX: usize = 100;

/// The session to go on with, before anything is wired: its folder decides what the prompt is made of.
pub struct Chosen {
    pub session: Option<SessionId>,
    pub cwd: PathBuf,
}

/// The place where the session that the flags name was talked in: the folder, and the settings that count there. Says so
/// when that is not where we are.
pub async fn place(base: Arc<Base>, flags: &RunFlags, source: &str) -> Outcome<Arc<Base>> {
    let goes_on = flags.resume.is_some() || flags.continue_last.is_some();
    if !goes_on || flags.no_restore_cwd || flags.worktree {
        return Ok(base);
    }
    let chosen = choose(&base, &open_store(&base)?, flags, source).await?;
    if chosen.cwd == base.cwd {
        Ok(base)
    } else {
        let options = SessionOptions {
            cwd: Some(chosen.cwd),
            ..flags.options()
        };
        Ok(Arc::new(base.with_options(&options)?))
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
        (None, Some(_)) => Some(match &flags.from {
            Some(platform) => latest_in_chat(store, platform).await?,
            None => latest(store, source).await?,
        }),
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

/// The conversation that a platform's chats were in last.
async fn latest_in_chat(store: &SqliteStore, platform: &str) -> Outcome<SessionId> {
    let platform = platform.to_lowercase();
    let chats = store.chats(Some(&platform), CHATS_MAX).await?;
    let chat = chats.into_iter().find(|chat| chat.session.is_some());
    let Some((chat, session)) = chat.and_then(|chat| Some((chat.clone(), chat.session?))) else {
        return Err(
            Failure::usage(format!("no chat on {platform} has a conversation"))
                .hint("`hermes send --list` shows the chats there are"),
        );
    };
    let deadline = Instant::now() + LETTING_GO;
    let mut is_told = false;
    while let Err(StoreError::Busy { .. }) = store.claim(&session).await
        && Instant::now() < deadline
    {
        if !is_told {
            is_told = true;
            note("asking the gateway to let go of the conversation ...");
            let now = SystemClock.now();
            handoff::tell_chat(store, &chat, "/handoff".to_owned(), now).await?;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(session)
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
