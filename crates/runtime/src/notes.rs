//! Notes as the settings want them, and as text for people.

use std::sync::Arc;

use hermes_agent::prompt::PromptInputs;
use hermes_core::{
    BoxFuture, ChangeFilter, ChangeId, Clock, LearnedChange, LearningLog, NewLearnedChange,
    SessionOptions, StoreError, Tool,
};
use hermes_learning::grounding::Conversations;
use hermes_learning::notes::{Found, NoteFile, Notes, NotesError, NotesSettings};
use hermes_store::SqliteStore;

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::layout::printable;

/// The notes of whoever talks, as the settings want them; `None` when they are off, or a conversation goes without.
pub fn of(
    base: &Base,
    options: &SessionOptions,
    log: Arc<dyn LearningLog>,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Notes>> {
    if options.leaves_out.rules {
        return Ok(None);
    }
    let settings = settings(base, options.person.clone())?;
    let is_on = settings.memory_chars_max.is_some() || settings.user_chars_max.is_some();
    Ok(is_on.then(|| Notes::new(settings, log, Arc::clone(clock))))
}

/// The notes of a person for whoever works on them with commands, switched off or not.
pub fn for_commands(
    base: &Base,
    person: Option<String>,
    log: Arc<dyn LearningLog>,
) -> Result<Notes> {
    let mut settings = settings(base, person)?;
    let limit = |key: &str| base.settings.u64(key).map(|chars| chars as usize);
    settings.memory_chars_max = Some(limit("memory.memory_char_limit")?);
    settings.user_chars_max = Some(limit("memory.user_char_limit")?);
    Ok(Notes::new(settings, log, Arc::new(SystemClock)))
}

/// The notes for those who look and change nothing.
pub fn to_look_at(base: &Base, options: &SessionOptions) -> Result<Option<Notes>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    of(base, options, Arc::new(NoLog), &clock)
}

fn settings(base: &Base, person: Option<String>) -> Result<NotesSettings> {
    let limit = |switch: &str, key: &str| -> Result<Option<usize>> {
        let is_on = base.settings.bool(switch)?;
        let chars = base.settings.u64(key)? as usize;
        Ok((is_on && chars > 0).then_some(chars))
    };
    Ok(NotesSettings {
        folder: base.home.memories(),
        person,
        memory_chars_max: limit("memory.memory_enabled", "memory.memory_char_limit")?,
        user_chars_max: limit("memory.user_profile_enabled", "memory.user_char_limit")?,
        write_approval: base.settings.bool("memory.write_approval")?,
    })
}

/// The tool over notes.
pub fn tool(notes: &Notes, archive: &Arc<SqliteStore>) -> Arc<dyn Tool> {
    hermes_learning::notes::tool(notes.clone(), Conversations::of(archive.clone()))
}

/// The same for those who look at it and never call it.
pub fn tool_to_look_at(notes: &Notes) -> Arc<dyn Tool> {
    hermes_learning::notes::tool(notes.clone(), Conversations::none())
}

/// The same where nobody can be asked: what needs consent waits for it.
pub fn staging_tool(notes: &Notes, archive: &Arc<SqliteStore>) -> Arc<dyn Tool> {
    hermes_learning::notes::staging_tool(notes.clone(), Conversations::of(archive.clone()))
}

/// The changes that wait for consent.
pub fn waiting(notes: &Notes) -> String {
    let waiting = notes.pending();
    if waiting.is_empty() {
        return "no change of notes waits for consent".to_owned();
    }
    let lines = waiting.iter().map(|one| {
        let number = one.number;
        format!("{number}  {}: {}", one.file, printable(&one.summary))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Makes a change that waited, or drops it, and says so.
pub async fn decide(notes: &Notes, word: &str, number: &str) -> Result<String> {
    let number: u64 = number.trim().parse().map_err(|_| {
        Error::asked(format!(
            "`{number}` is not the number of a change that waits"
        ))
        .with_hint("`hermes memory pending` lists them")
    })?;
    if word == "reject" {
        let dropped = notes.reject(number).await.map_err(told)?;
        return Ok(format!("dropped: {}", printable(&dropped.summary)));
    }
    let changed = notes.approve(number).await.map_err(told)?;
    Ok(match changed.id {
        Some(id) => format!("{} (change {id})", printable(&changed.summary)),
        None => "nothing had to be changed".to_owned(),
    })
}

/// What a prompt is made of, with the notes as they are now.
pub fn with_notes(inputs: &PromptInputs, notes: Option<&Notes>) -> PromptInputs {
    PromptInputs {
        remembered: notes.map(Notes::prompt).unwrap_or_default(),
        ..inputs.clone()
    }
}

/// All entries, by file.
pub fn listed(notes: &Notes) -> Result<String> {
    let mut parts = Vec::new();
    for file in NoteFile::ALL {
        let entries = notes.entries(file).map_err(told)?;
        let usage = notes.usage(file, &entries);
        let mut lines = vec![format!("{} ({usage})", notes.path(file).display())];
        lines.extend(entries.iter().map(|entry| {
            let entry = printable(entry).replace('\n', "\n    ");
            format!("  - {entry}")
        }));
        if entries.is_empty() {
            lines.push("  nothing yet".to_owned());
        }
        parts.push(lines.join("\n"));
    }
    Ok(parts.join("\n\n"))
}

/// What a search found.
pub fn found(found: &[Found]) -> String {
    if found.is_empty() {
        return "no note has these words".to_owned();
    }
    let lines = found.iter().map(|found| {
        let text = printable(&found.text).replace('\n', "\n    ");
        format!("{}: {text}", found.place)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// An error of notes in the words of the runtime.
pub fn told(error: NotesError) -> Error {
    let hint = match &error {
        NotesError::NoChange(_) => "`hermes memory history` lists the changes",
        NotesError::TooLarge { .. } => {
            "it is no page of notes any more: move it aside, or shorten it in an editor; entries are read again at once"
        }
        NotesError::Outdated(_) => {
            "`hermes memory reject NUMBER` drops it; the agent can propose it anew"
        }
        NotesError::NotPending(_) => "`hermes memory pending` lists those that wait",
        NotesError::Locked(_) => "try again in a moment",
        NotesError::Disk { .. } => {
            "check that the folder is yours and has room; nothing was changed"
        }
        NotesError::NothingToUndo(_) => "`hermes memory edit` opens the notes",
        _ => return Error::asked(error.to_string()),
    };
    Error::asked(error.to_string()).with_hint(hint)
}

/// For those who look at tools and call none.
struct NoLog;

impl NoLog {
    fn refused<T>(&self) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send,
    {
        Box::pin(async {
            Err(StoreError::Refused {
                detail: "nothing is changed by looking".to_owned(),
            })
        })
    }
}

impl LearningLog for NoLog {
    fn begin(&self, _change: NewLearnedChange) -> BoxFuture<'_, Result<ChangeId, StoreError>> {
        self.refused()
    }

    fn finish(&self, _id: ChangeId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.refused()
    }

    fn abandon(&self, _id: ChangeId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.refused()
    }

    fn changes(
        &self,
        _filter: ChangeFilter,
    ) -> BoxFuture<'_, Result<Vec<LearnedChange>, StoreError>> {
        self.refused()
    }

    fn change(&self, _id: ChangeId) -> BoxFuture<'_, Result<Option<LearnedChange>, StoreError>> {
        self.refused()
    }
}
