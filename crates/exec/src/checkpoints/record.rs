//! The list of checkpoints: references of the store, each with a line about itself.

use std::path::{Path, PathBuf};

use hermes_core::{CheckpointError, Timestamp};
use serde::{Deserialize, Serialize};

use super::CheckpointStore;
use super::index::key;

/// Under which references checkpoints are.
const REFERENCES: &str = "refs/checkpoints";

/// Shorter beginnings of an id could be numbers.
const ID_CHARS_MIN: usize = 5;

/// A copy of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    pub id: String,
    pub at: Timestamp,
    /// What was about to happen.
    pub reason: String,
    pub session: Option<String>,
    /// Unknown when its name is no text.
    pub project: Option<PathBuf>,
    #[serde(skip)]
    pub(super) tree: String,
    #[serde(skip)]
    pub(super) reference: String,
}

impl Checkpoint {
    /// What it is called where there is little room.
    pub fn short_id(&self) -> &str {
        self.id.get(..10).unwrap_or(&self.id)
    }

    /// What the checkpoints of one project have in common.
    pub(super) fn group(&self) -> &str {
        let parts = self.reference.rsplit_once('/');
        parts.map_or("", |(group, _)| group)
    }
}

/// What a commit says of itself, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) at: Timestamp,
    pub(super) reason: String,
    #[serde(default)]
    pub(super) session: Option<String>,
    #[serde(default)]
    pub(super) project: Option<PathBuf>,
}

/// The reference of a new checkpoint; the order of names is that of time.
pub(super) fn reference(project: &Path, at: Timestamp, id: &str) -> String {
    let short = id.get(..8).unwrap_or(id);
    format!(
        "{REFERENCES}/{}/{:014}-{short}",
        key(project),
        at.as_millis()
    )
}

impl CheckpointStore {
    /// Returns the checkpoints of a project, the newest first.
    pub async fn list(&self, project: &Path) -> Result<Vec<Checkpoint>, CheckpointError> {
        self.listed(&format!("{REFERENCES}/{}/", key(project)))
            .await
    }

    /// Returns the checkpoints of all projects, the newest first.
    pub async fn list_all(&self) -> Result<Vec<Checkpoint>, CheckpointError> {
        let mut all = self.listed(&format!("{REFERENCES}/")).await?;
        all.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.at));
        Ok(all)
    }

    /// Finds a checkpoint by its number in the list, from 1 for the newest, or by the beginning of its id.
    pub async fn find(&self, project: &Path, name: &str) -> Result<Checkpoint, CheckpointError> {
        let list = self.list(project).await?;
        let found = match name.parse::<usize>() {
            Ok(number) if name.len() < ID_CHARS_MIN => number
                .checked_sub(1)
                .and_then(|at| list.into_iter().nth(at)),
            _ => only(list.into_iter().filter(|checkpoint| {
                name.len() >= ID_CHARS_MIN && checkpoint.id.starts_with(&name.to_lowercase())
            })),
        };
        found.ok_or_else(|| CheckpointError::NotFound {
            name: name.to_owned(),
            project: project.to_owned(),
        })
    }

    async fn listed(&self, below: &str) -> Result<Vec<Checkpoint>, CheckpointError> {
        if !self.repository().is_dir() {
            return Ok(Vec::new());
        }
        let args = [
            "for-each-ref",
            "--sort=-refname",
            "--format=%(refname) %(objectname) %(tree) %(contents:subject)",
            below,
        ];
        let output = self.git().run(&args, &[]).await?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().filter_map(read).collect())
    }
}

fn read(line: &str) -> Option<Checkpoint> {
    let mut words = line.splitn(4, ' ');
    let (reference, id, tree) = (words.next()?, words.next()?, words.next()?);
    let note: Note = serde_json::from_str(words.next()?).ok()?;
    Some(Checkpoint {
        id: id.to_owned(),
        at: note.at,
        reason: note.reason,
        session: note.session,
        project: note.project,
        tree: tree.to_owned(),
        reference: reference.to_owned(),
    })
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_a_strange_one_is_passed_over() {
        let line = r#"refs/checkpoints/ab/1-cd 0123456789abcdef tree {"at":5,"reason":"patch a \" b","project":"/p"}"#;
        let checkpoint = read(line).unwrap();
        assert_eq!(checkpoint.reason, "patch a \" b");
        assert_eq!(checkpoint.short_id(), "0123456789");
        assert_eq!(
            (checkpoint.at.as_millis(), checkpoint.tree.as_str()),
            (5, "tree")
        );
        for strange in ["", "refs/x 12 34", "refs/x 12 34 words of somebody"] {
            assert!(read(strange).is_none(), "{strange}");
        }
    }

    #[test]
    fn the_order_of_references_is_that_of_time() {
        let of = |millis| {
            reference(
                Path::new("/p"),
                Timestamp::from_millis(millis),
                "abcdefghij",
            )
        };
        assert!(of(999_999_999_999) < of(1_000_000_000_000));
        assert!(of(1).ends_with("/00000000000001-abcdefgh"), "{}", of(1));
    }
}
