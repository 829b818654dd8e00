//! `hermes sessions recover`: saves what can be read of a damaged database, then finishes the turns that a crash or a kill
//! cut short, and those of words that waited for them. Whatever it finds, it says something.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::report::Report;
use hermes_core::text::shorten;
use hermes_core::{
    Audience, Clock as _, RunningSession, SessionId, SessionOptions, Sessions as _, Store as _,
    StoreError, TurnEnd, wording,
};
use hermes_store::{Health, Salvage, SqliteStore};

use super::{find, open_archive};
use crate::args::RunFlags;
use crate::base::Base;
use crate::commands::already_told;
use crate::commands::layout::{count, one_line};
use crate::failure::{Failure, Outcome, code};
use crate::output::{note, println};
use crate::render::Renderer;
use crate::turn;
use hermes_runtime::{Runtime, SystemClock, open_store};

/// Enough of an answer to see that it is one.
const ANSWER_CHARS_MAX: usize = 80;
const NOTHING: &str = "nothing to recover: every turn has ended";

pub(super) async fn run(base: &Arc<Base>, flags: &RunFlags, name: Option<&str>) -> Outcome<()> {
    let was_mended = mend(base).await?;
    let sessions = unfinished(base, name).await?;
    if sessions.is_empty() && was_mended {
        return Ok(());
    }
    if sessions.is_empty() {
        return println(NOTHING);
    }
    let mut is_all_finished = true;
    for session in sessions {
        is_all_finished &= recover(base, flags, session).await?;
    }
    if is_all_finished {
        Ok(())
    } else {
        Err(already_told())
    }
}

/// Examines the database and mends it if need be; returns whether it was.
async fn mend(base: &Base) -> Outcome<bool> {
    let path = base.home.database();
    if !path.try_exists().unwrap_or(true) {
        return Ok(false);
    }
    let problem = match examine(base).await {
        Ok(Health::Sound) => return Ok(false),
        Ok(Health::IndexBroken { .. }) => {
            open_store(base)?.rebuild_index().await?;
            println("the search index was broken, and is built anew")?;
            return Ok(true);
        }
        Ok(Health::Damaged { problems }) => {
            let first = problems.into_iter().next().unwrap_or_default();
            format!("`{}` is damaged: {first}", path.display())
        }
        Err(error @ StoreError::Damaged { .. }) => error.to_string(),
        Err(error) => return Err(error.into()),
    };
    note(&problem);
    match SqliteStore::salvage(&path, SystemClock.now()).await {
        Ok(salvage) => {
            println(&saved(&salvage))?;
            Ok(true)
        }
        Err(StoreError::Damaged { .. }) => Err(Failure::new(format!(
            "nothing of `{}` can be read; it was left as it is",
            path.display()
        ))
        .hint("restore it from a backup, or move it aside to start afresh")),
        Err(error) => Err(error.into()),
    }
}

async fn examine(base: &Base) -> Result<Health, StoreError> {
    let store = SqliteStore::open(base.home.database(), base.home.locks())?;
    store.check().await
}

/// Says what was saved, what was not, and where the damaged file is.
fn saved(salvage: &Salvage) -> String {
    let mut text = format!(
        "saved {} with {}",
        count(salvage.sessions, "session"),
        count(salvage.messages, "message")
    );
    let mut add = |line: String| {
        text.push_str("\n  ");
        text.push_str(&line);
    };
    if !salvage.unread_tables.is_empty() {
        let tables = salvage.unread_tables.join(", ");
        add(format!("rows of these tables could not be read: {tables}"));
    }
    if salvage.renamed_sessions > 0 {
        let sessions = count(salvage.renamed_sessions, "session");
        add(format!(
            "{sessions} lost their names, and are called recovered-…"
        ));
    }
    if salvage.incomplete_turns > 0 {
        let turns = count(salvage.incomplete_turns, "turn");
        add(format!(
            "{turns} lack messages, and are left out of their conversations"
        ));
    }
    add(format!(
        "the damaged file is kept as `{}`",
        salvage.kept_as.display()
    ));
    text
}

async fn unfinished(base: &Base, name: Option<&str>) -> Outcome<Vec<SessionId>> {
    if let Some(name) = name {
        let (store, session) = find(base, name).await?;
        let sessions = store.unfinished().await?;
        return Ok(sessions.into_iter().filter(|id| *id == session).collect());
    }
    match open_archive(base)? {
        Some(store) => Ok(store.unfinished().await?),
        None => Ok(Vec::new()),
    }
}

/// Ends the open turn of one session, and those of words that wait in it, and tells how; returns whether it was finished.
async fn recover(base: &Arc<Base>, flags: &RunFlags, session: SessionId) -> Outcome<bool> {
    let runtime = Runtime::start(Arc::clone(base))?;
    let store = runtime.store();
    if let Err(error) = store.claim(&session).await {
        return skip(&session, error);
    }
    let loaded = store.load(&session).await?;
    if loaded.open_turn.is_none() && loaded.queued.is_empty() {
        // A subagent, whose parent went on with it and came first.
        println(&format!("{session}  finished with the one that started it"))?;
        return Ok(true);
    }
    let is_subagent = loaded.record.source == SUBAGENT_SOURCE;
    let cwd = folder_to_work_in(base, &session, loaded.record.cwd);
    let options = SessionOptions {
        cwd: Some(cwd),
        audience: Audience::Nobody,
        ..flags.options()
    };
    let opened = runtime.resume(session, options).await?;
    let done = if is_subagent {
        close(&runtime, opened).await
    } else {
        go_on(&runtime, opened).await
    };
    for notice in runtime.stop().await {
        note(&notice);
    }
    done
}

async fn go_on(runtime: &Runtime, opened: RunningSession) -> Outcome<bool> {
    let asked = turn::run(runtime, opened, None, &mut Renderer::Quiet).await?;
    let report = asked.report;
    println(&shown(&report))?;
    match report.end {
        TurnEnd::Interrupted => Err(Failure {
            code: code::INTERRUPTED,
            ..Failure::new("interrupted")
        }),
        end => Ok(end.is_success()),
    }
}

/// Closes the turn of a subagent that no parent waits for any more: nobody would read what it finds.
async fn close(runtime: &Runtime, opened: RunningSession) -> Outcome<bool> {
    let report = turn::stop(runtime, opened).await?;
    println(&shown(&report))?;
    Ok(true)
}

/// Leaves a session alone that somebody is working in.
fn skip(session: &SessionId, error: StoreError) -> Outcome<bool> {
    match error {
        StoreError::Busy { .. } => {
            note(&format!("{session}  skipped: {error}"));
            Ok(true)
        }
        error => Err(error.into()),
    }
}

fn folder_to_work_in(base: &Base, session: &SessionId, folder: Option<PathBuf>) -> PathBuf {
    match folder {
        Some(folder) if folder.is_dir() => folder,
        Some(folder) => {
            let here = base.cwd.display();
            note(&format!(
                "{session}  its folder `{}` is gone; working in `{here}`",
                folder.display()
            ));
            base.cwd.clone()
        }
        None => base.cwd.clone(),
    }
}

fn shown(report: &Report) -> String {
    let session = &report.session;
    match wording::turn_end(&report.end) {
        None => {
            let answer = shorten(&one_line(&report.text), ANSWER_CHARS_MAX);
            format!("{session}  finished: {answer}")
        }
        Some(words) => format!("{session}  closed: {}", one_line(&words)),
    }
}
