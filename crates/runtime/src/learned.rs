//! What was learned, as people see it and take it back: the learning log in words.

use std::path::Path;
use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{ChangeId, LearnedChange, LearningLog, Subject, Timestamp};
use hermes_learning::notes::{Provenance, diff};
use hermes_learning::skills::Made;
use hermes_store::SqliteStore;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::layout::{Table, age, one_line, printable};
use crate::notes;
use crate::skills;
use crate::user_model;

/// Changes that a list shows.
pub const LISTED_MAX: usize = 50;

/// Of what a change was, this much fits a line.
const SUMMARY_CHARS_MAX: usize = 100;

/// Changes as a table, the newest first.
pub fn listed(changes: &[LearnedChange], now: Timestamp) -> String {
    if changes.is_empty() {
        return "nothing was learned yet".to_owned();
    }
    let mut table = Table::new(["CHANGE", "WHEN", "BY", "OF", "WHAT"]);
    for change in changes {
        let what = shorten(&one_line(&change.change.summary), SUMMARY_CHARS_MAX);
        table.row([
            change.id.to_string(),
            age(change.change.at, now),
            change.change.author.as_str().to_owned(),
            subject(&change.change.subject),
            format!("{what}{}", state(change)),
        ]);
    }
    table.text()
}

fn state(change: &LearnedChange) -> String {
    match change.undone_by {
        Some(undoing) => format!(" (taken back by {undoing})"),
        None if !change.is_finished => " (cut short by a crash)".to_owned(),
        None => String::new(),
    }
}

/// What a change is about, in a short word.
fn subject(subject: &Subject) -> String {
    let (what, person) = match subject {
        Subject::Notes { file, person } => (file.clone(), person),
        Subject::Skill { name, path } => return format!("skill {name}/{path}"),
        Subject::UserModel { person } => ("user model".to_owned(), person),
    };
    match person {
        Some(person) => format!("{what} of {}", one_line(person)),
        None => what,
    }
}

/// Whether a change may be seen by a person: what is about somebody else is theirs.
pub fn is_of(subject: &Subject, person: Option<&String>) -> bool {
    match subject {
        Subject::Notes { person: whose, .. } | Subject::UserModel { person: whose } => {
            whose.as_ref() == person
        }
        Subject::Skill { .. } => true,
    }
}

/// One change with where it came from and what it changed.
pub fn shown(change: &LearnedChange) -> String {
    let made = &change.change;
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("change", format!("{}{}", change.id, state(change)));
    row("when", made.at.to_text());
    row("by", made.author.as_str().to_owned());
    row("of", subject(&made.subject));
    if let Some(session) = &made.session {
        row("session", session.to_string());
    }
    if let Some(turn) = &made.turn {
        row("turn", turn.to_string());
    }
    row("what", one_line(&made.summary));
    let before = made.before.as_deref().unwrap_or_default();
    let after = made.after.as_deref().unwrap_or_default();
    let diff = diff(Path::new(&subject(&made.subject)), before, after);
    format!("{}\n\n{}", table.text(), printable(diff.trim_end()))
}

/// Finds a change by its number.
pub async fn find(log: &dyn LearningLog, id: ChangeId) -> Result<LearnedChange> {
    let found = log.change(id).await?;
    found.ok_or_else(|| {
        Error::asked(format!("there is no change {id}"))
            .with_hint("`hermes learning log` lists them")
    })
}

/// Takes a change back for a person. Returns what that came to.
pub async fn undo(base: &Base, store: Arc<SqliteStore>, id: ChangeId) -> Result<String> {
    let log: Arc<dyn LearningLog> = store.clone();
    let change = find(log.as_ref(), id).await?;
    match &change.change.subject {
        Subject::Notes { person, .. } => {
            let notes = notes::for_commands(base, person.clone(), log)?;
            let undone = notes.undo(id, &Provenance::person()).await;
            let undone = undone.map_err(notes::told)?;
            let number = undone
                .id
                .map_or(String::new(), |id| format!(" (change {id})"));
            Ok(format!("{}{number}", one_line(&undone.summary)))
        }
        Subject::Skill { .. } => {
            let (_, made) = skills::skills(base, Some(log))?.undo(id).await?;
            let what = one_line(&change.change.summary);
            Ok(match made {
                Made::Done { change, .. } => format!("taken back: {what} (change {change})"),
                Made::Proposed { number, .. } => format!("proposal {number} waits for you"),
            })
        }
        Subject::UserModel { person } => {
            let known = user_model::for_commands(base, person.clone(), store)?;
            let (change, what) = known.undo(id).await.map_err(user_model::told)?;
            Ok(format!("{} (change {change})", one_line(&what)))
        }
    }
}
