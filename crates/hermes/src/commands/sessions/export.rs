//! `hermes sessions export`: whole conversations, for other programs or for reading.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hermes_core::redact::redact;
use hermes_core::{Archive as _, SessionFilter, SessionId, Store as _};
use hermes_store::SqliteStore;
use serde_json::{Map, Value, json};

use super::{NONE_YET, not_found, open_archive, transcript};
use crate::base::Base;
use crate::commands::layout::count;
use crate::failure::{Failure, Outcome};
use crate::output::{note, print};

#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    format: Format,
    redacts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// One session per line: its record, with its messages.
    JsonLines,
    Markdown,
}

impl Manner {
    pub(super) fn new(format: &str, redacts: bool) -> Self {
        let format = match format {
            "md" => Format::Markdown,
            _ => Format::JsonLines,
        };
        Self { format, redacts }
    }
}

pub(super) async fn run(
    base: &Base,
    name: Option<&str>,
    output: Option<&Path>,
    manner: Manner,
) -> Outcome<()> {
    let (store, sessions) = match (open_archive(base)?, name) {
        (Some(store), name) => {
            let sessions = chosen(&store, name).await?;
            (store, sessions)
        }
        (None, Some(name)) => return Err(not_found(name)),
        (None, None) => {
            note(NONE_YET);
            return Ok(());
        }
    };
    let mut target = Target::open(output)?;
    let written = write_all(&store, &sessions, &mut target, manner).await;
    target.close(written)?;
    if let Some(path) = output {
        let what = count(sessions.len() as u64, "session");
        note(&format!("wrote {what} to `{}`", path.display()));
    }
    Ok(())
}

async fn chosen(store: &SqliteStore, name: Option<&str>) -> Outcome<Vec<SessionId>> {
    if let Some(name) = name {
        return Ok(vec![store.find(name).await?]);
    }
    let mut records = store.list(SessionFilter::default()).await?;
    records.reverse();
    Ok(records.into_iter().map(|record| record.id).collect())
}

async fn write_all(
    store: &SqliteStore,
    sessions: &[SessionId],
    target: &mut Target,
    manner: Manner,
) -> Outcome<()> {
    for (index, session) in sessions.iter().enumerate() {
        if index > 0 && manner.format == Format::Markdown {
            target.write("\n---\n\n")?;
        }
        target.write(&session_text(store, session, manner).await?)?;
    }
    Ok(())
}

async fn session_text(store: &SqliteStore, session: &SessionId, manner: Manner) -> Outcome<String> {
    let record = store.load(session).await?.record;
    let lines = store.transcript(session).await?;
    Ok(match manner.format {
        Format::Markdown => {
            let text = transcript::markdown(&record, &lines);
            if manner.redacts { redact(&text) } else { text }
        }
        Format::JsonLines => {
            let mut value = json!(record);
            value["transcript"] = json!(lines);
            if manner.redacts {
                redact_texts(&mut value);
            }
            format!("{value}\n")
        }
    })
}

/// Redacts every text on its own, so that the JSON around it stays whole. Pictures and sound are not text.
fn redact_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(items) => items.iter_mut().for_each(redact_texts),
        Value::Object(fields) if is_media(fields) => {}
        Value::Object(fields) => fields.values_mut().for_each(redact_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether this is a [`hermes_core::Media`] that holds its bytes.
fn is_media(fields: &Map<String, Value>) -> bool {
    let data = fields.get("source").and_then(|source| source.get("base64"));
    fields.len() == 2 && fields.contains_key("mime") && data.is_some_and(Value::is_string)
}

/// Where an export goes.
enum Target {
    Stdout,
    File {
        path: PathBuf,
        file: BufWriter<File>,
    },
}

impl Target {
    /// Opens the file, which must be new: an export never replaces anything.
    fn open(path: Option<&Path>) -> Outcome<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout);
        };
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match created {
            Ok(file) => Ok(Self::File {
                path: path.to_path_buf(),
                file: BufWriter::new(file),
            }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::usage(
                format!("`{}` exists already", path.display()),
            )
            .hint("name another file, or move that one aside")),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    fn write(&mut self, text: &str) -> Outcome<()> {
        match self {
            Self::Stdout => print(text),
            Self::File { path, file } => file
                .write_all(text.as_bytes())
                .map_err(|error| cannot_write(path, &error)),
        }
    }

    /// Finishes the file, or removes what is only half of one.
    fn close(self, written: Outcome<()>) -> Outcome<()> {
        let Self::File { path, mut file } = self else {
            return written;
        };
        let closed =
            written.and_then(|()| file.flush().map_err(|error| cannot_write(&path, &error)));
        if closed.is_err() {
            // The first error is the one to tell.
            let _ = std::fs::remove_file(&path);
        }
        closed
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write `{}`: {error}", path.display()))
        .hint("the folder must exist, be writable and have space")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Media, MediaSource};

    #[test]
    fn redaction_keeps_the_json_whole() {
        let mut value = json!({"a": ["api_key=abcdefgh12345 \"quoted\""], "n": 1});
        redact_texts(&mut value);
        assert_eq!(value, json!({"a": ["api_key=*** \"quoted\""], "n": 1}));
    }

    #[test]
    fn pictures_are_not_searched_for_secrets() {
        let looks_secret = "sk-proj-abc123def456ghi789jkl".to_owned();
        let picture = Media {
            mime: "image/png".into(),
            source: MediaSource::Base64(looks_secret.clone()),
        };
        let mut value = json!({"image": picture, "base64": looks_secret});
        redact_texts(&mut value);
        assert_eq!(value["image"], json!(picture));
        assert_ne!(value["base64"], json!(looks_secret));
    }
}
