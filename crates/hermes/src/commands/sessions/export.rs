//! `hermes sessions export`: whole conversations, for other programs or for reading.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hermes_core::{Archive as _, SessionFilter, SessionId};
use hermes_store::SqliteStore;

use super::not_found;
use crate::base::Base;
use crate::commands::layout::count;
use crate::failure::{Failure, Outcome};
use crate::output::{note, print};
use hermes_runtime::export::{Format, Manner, session_text};
use hermes_runtime::open_archive;
use hermes_runtime::shown::sessions::NONE_YET;

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
