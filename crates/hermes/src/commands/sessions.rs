//! `hermes sessions`: looking at past conversations and keeping them in order.
//!
//! Looking opens the database read-only, so that it works while a chat runs. Recovery is in `recover`.

mod export;
mod list;
mod recover;
mod search;

use std::io;
use std::sync::Arc;

use hermes_core::{Archive as _, SessionId, Store as _, StoreError, StoreStats};
use hermes_store::SqliteStore;
use serde_json::json;

use super::confirm::{Enter, confirm, is_anybody_there};
use super::layout::{
    OnTerminal as _, Table, count, one_line, print_json, size, tokens_in, tokens_out,
};
use crate::args::{JsonFlag, RunFlags, SessionsArgs, SessionsCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use crate::style::Style;
use hermes_runtime::export::Manner;
use hermes_runtime::open_store;
use hermes_runtime::shown::sessions::NONE_YET;
use hermes_runtime::shown::transcript;

pub(crate) use hermes_runtime::open_archive;

pub(crate) async fn run(base: &Arc<Base>, flags: &RunFlags, args: SessionsArgs) -> Outcome<()> {
    let by_default = SessionsCommand::List {
        source: None,
        workspace: None,
        limit: 20,
        json: JsonFlag { json: false },
    };
    match args.command.unwrap_or(by_default) {
        SessionsCommand::List {
            source,
            workspace,
            limit,
            json,
        } => list::run(base, source, workspace, limit, &json).await,
        SessionsCommand::Show { session, json } => show(base, &session, &json).await,
        SessionsCommand::Search {
            query,
            limit,
            session: _,
            summary: true,
            json,
        } => search::summaries(base, &query.join(" "), limit, &json).await,
        SessionsCommand::Search {
            query,
            limit,
            session,
            summary: false,
            json,
        } => search::run(base, &query.join(" "), session.as_deref(), limit, &json).await,
        SessionsCommand::Export {
            session,
            format,
            output,
            redact,
        } => {
            let manner = Manner::new(&format, redact);
            export::run(base, session.as_deref(), output.as_deref(), manner).await
        }
        SessionsCommand::Rename { session, title } => rename(base, &session, &title).await,
        SessionsCommand::Delete { session, yes } => delete(base, &session, yes).await,
        SessionsCommand::Recover { session } => recover::run(base, flags, session.as_deref()).await,
        SessionsCommand::Stats { json } => stats(base, &json).await,
    }
}

/// Opens the database and finds a session in it.
async fn find(base: &Base, name: &str) -> Outcome<(SqliteStore, SessionId)> {
    let Some(store) = open_archive(base)? else {
        return Err(not_found(name));
    };
    let session = store.find(name).await?;
    Ok((store, session))
}

fn not_found(name: &str) -> Failure {
    StoreError::NotFound {
        name: name.to_owned(),
    }
    .into()
}

async fn show(base: &Base, name: &str, json: &JsonFlag) -> Outcome<()> {
    let (store, session) = find(base, name).await?;
    let lines = store.transcript(&session).await?;
    if json.json {
        return lines
            .iter()
            .try_for_each(|line| println(&json!(line).to_string()));
    }
    let record = store.load(&session).await?.record;
    let style = Style::of(&io::stdout(), &base.environment);
    println(transcript::readable(&record, &lines, style).trim_end())
}

async fn rename(base: &Base, name: &str, title: &str) -> Outcome<()> {
    let (_, session) = find(base, name).await?;
    open_store(base)?.rename(&session, title).await?;
    println(&format!("{session} is now called `{}`", one_line(title)))
}

async fn delete(base: &Base, name: &str, yes: bool) -> Outcome<()> {
    let (store, session) = find(base, name).await?;
    let record = store.load(&session).await?.record;
    let what = format!(
        "{session} ({}, {})",
        one_line(record.title.as_deref().unwrap_or(&record.preview)),
        count(record.messages, "message")
    );
    if !yes {
        if !is_anybody_there() {
            return Err(
                Failure::usage(format!("nobody is there to confirm deleting {what}"))
                    .hint("add --yes to delete it without being asked"),
            );
        }
        if !confirm(&format!("delete {what} for good?"), Enter::MeansNo)? {
            return println("nothing was deleted");
        }
    }
    open_store(base)?.delete(&session).await?;
    // Results too long for the conversation were saved beside it.
    hermes_runtime::guests::forget_results(&base.home, &session);
    println(&format!("deleted {what}"))
}

async fn stats(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let stats = match open_archive(base)? {
        Some(store) => store.stats().await?,
        None if json.json => StoreStats::default(),
        None => return println(NONE_YET),
    };
    if json.json {
        return print_json(&json!(stats));
    }
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("sessions", stats.sessions.to_string());
    row("messages", stats.messages.to_string());
    row("tool calls", stats.calls.to_string());
    row("unfinished turns", stats.unfinished_turns.to_string());
    row("tokens in", tokens_in(&stats.usage));
    row("tokens out", tokens_out(&stats.usage));
    row("database", size(stats.database_bytes));
    table.print(Style::PLAIN)
}
