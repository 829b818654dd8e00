//! `hermes memory`: what it remembers, seen, searched, edited and taken back.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use hermes_core::{Clock as _, LearnedChange};
use hermes_learning::notes::{Found, NoteFile, Notes, Provenance};
use hermes_runtime::{SystemClock, learned, notes, open_store};
use hermes_store::SqliteStore;
use serde_json::{Value, json};

use super::layout::{one_line, print_json};
use crate::args::{JsonFlag, MemoryArgs, MemoryCommand, NotesArg};
use crate::base::Base;
use crate::editor;
use crate::failure::{Failure, Outcome};
use crate::output::println;

pub(crate) async fn run(base: &Base, args: MemoryArgs) -> Outcome<()> {
    let store = Arc::new(open_store(base)?);
    let notes = notes::for_commands(base, args.person, store.clone())?;
    let by_default = MemoryCommand::List {
        json: JsonFlag { json: false },
    };
    match args.command.unwrap_or(by_default) {
        MemoryCommand::List { json: as_json } => {
            if as_json.json {
                print_json(&entries(&notes)?)
            } else {
                println(&notes::listed(&notes)?)
            }
        }
        MemoryCommand::History { json: as_json } => {
            let changes = history(&notes, learned::LISTED_MAX).await?;
            if as_json.json {
                print_json(&json!(changes))
            } else {
                println(&learned::listed(&changes, SystemClock.now()))
            }
        }
        MemoryCommand::Pending { json: as_json } => {
            if as_json.json {
                print_json(&json!(notes.pending()))
            } else {
                println(&notes::waiting(&notes))
            }
        }
        MemoryCommand::Approve { number } => {
            println(&notes::decide(&notes, "approve", &number).await?)
        }
        MemoryCommand::Reject { number } => {
            println(&notes::decide(&notes, "reject", &number).await?)
        }
        MemoryCommand::Undo { change } => undo(base, store, &change).await,
        MemoryCommand::Edit { file } => edit(base, &notes, file).await,
        MemoryCommand::Search {
            words,
            json: as_json,
        } => {
            let found = notes.search(&words.join(" ")).map_err(notes::told)?;
            if as_json.json {
                print_json(&placed(&found))
            } else {
                println(&notes::found(&found))
            }
        }
        MemoryCommand::Export => print_json(&export(&notes).await?),
    }
}

/// Takes a change back and says so.
pub(crate) async fn undo(base: &Base, store: Arc<SqliteStore>, change: &str) -> Outcome<()> {
    let id = change.parse().map_err(|_| {
        Failure::usage(format!("`{change}` is not the number of a change"))
            .hint("`hermes learning log` lists them")
    })?;
    println(&learned::undo(base, store, id).await?)
}

async fn history(notes: &Notes, limit: usize) -> Outcome<Vec<LearnedChange>> {
    let mut changes = Vec::new();
    for file in NoteFile::ALL {
        changes.extend(notes.history(file, limit).await.map_err(notes::told)?);
    }
    changes.sort_by_key(|change| std::cmp::Reverse(change.id));
    if limit > 0 {
        changes.truncate(limit);
    }
    Ok(changes)
}

async fn edit(base: &Base, notes: &Notes, file: NotesArg) -> Outcome<()> {
    let file = match file {
        NotesArg::Memory => NoteFile::Memory,
        NotesArg::User => NoteFile::User,
    };
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let path = notes.path(file);
        return Err(Failure::usage("an editor needs a terminal")
            .hint(format!("edit `{}` yourself", path.display())));
    }
    let now = notes.entries(file).map_err(notes::told)?;
    let text = now.join(hermes_learning::notes::DELIMITER);
    let edited = editor::edit(&base.environment, base.home.directory(), &text)?;
    let changed = notes.rewrite(file, &edited, &Provenance::person()).await;
    let changed = changed.map_err(notes::told)?;
    match changed.id {
        Some(id) => println(&format!("saved as change {id} ({})", changed.usage)),
        None => println("nothing was changed"),
    }
}

fn entries(notes: &Notes) -> Outcome<Value> {
    let mut files = serde_json::Map::new();
    for file in NoteFile::ALL {
        let entries = notes.entries(file).map_err(notes::told)?;
        let usage = notes.usage(file, &entries);
        let told = json!({
            "file": notes.path(file),
            "chars": usage.chars,
            "chars_max": usage.chars_max,
            "entries": entries,
        });
        files.insert(file.as_str().to_owned(), told);
    }
    Ok(Value::Object(files))
}

fn placed(found: &[Found]) -> Value {
    let one = |found: &Found| json!({"in": one_line(&found.place), "entry": found.text});
    found.iter().map(one).collect()
}

async fn export(notes: &Notes) -> Outcome<Value> {
    let archive = notes.archive().map_err(notes::told)?;
    Ok(json!({
        "notes": entries(notes)?,
        "archive": placed(&archive),
        "history": history(notes, 0).await?,
    }))
}
