//! `skills/.usage.json`: how often skills were used and when, who made them, and which are pinned or archived.
//!
//! The format is that of the program people know; what we do not know in it is kept.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hermes_core::Timestamp;
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const FILE: &str = ".usage.json";
/// Thousands of skills fit; a larger file is not ours.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Who made it, where the agent did.
const AGENT: &str = "agent";

/// What is known of skills, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage(BTreeMap<String, Record>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub created_by: Option<String>,
    pub use_count: u64,
    pub view_count: u64,
    pub patch_count: u64,
    pub last_used_at: Option<String>,
    pub last_viewed_at: Option<String>,
    pub last_patched_at: Option<String>,
    pub created_at: Option<String>,
    pub state: State,
    pub pinned: bool,
    pub archived_at: Option<String>,
    /// Where an archived skill was, below the folder of skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_from: Option<String>,
    /// Uses after which the task was done, and after which it was not.
    #[serde(skip_serializing_if = "is_zero")]
    pub success_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub failure_count: u64,
    /// A person has changed what the agent wrote: it is theirs until they give it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited_by_person: bool,
    /// On which day a review was last to look at it because a person spoke after it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at_on: Option<String>,
    /// Digests of its files when they last gave it back.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub given_back: BTreeMap<String, String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    Active,
    /// Not used for long.
    Stale,
    Archived,
    #[serde(other)]
    Unknown,
}

/// What happened to a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// A person named it, or a job or webhook that they made.
    Used,
    /// The model loaded it.
    Viewed,
    Patched,
    /// The agent wrote it.
    Created,
    /// What was done with it came out well, or not.
    Succeeded,
    Failed,
    /// What was counted as a success was none: the skill had to be mended afterwards.
    Misled,
}

impl Usage {
    /// Reads what is known. A file that cannot be read counts as empty; it is only replaced by [`Self::save`] when it was
    /// understood.
    pub fn read(skills: &Path) -> Self {
        Self::try_read(skills).unwrap_or_default()
    }

    /// The same for whoever will write it back.
    pub(super) fn try_read(skills: &Path) -> io::Result<Self> {
        let path = path(skills);
        match path.metadata() {
            Ok(data) if data.len() > BYTES_MAX => {
                return Err(io::Error::other("it is too large to be ours"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        }
        let text = std::fs::read_to_string(path)?;
        let records = serde_json::from_str(&text).map_err(io::Error::other)?;
        Ok(Self(records))
    }

    pub(super) fn save(&self, skills: &Path) -> io::Result<()> {
        std::fs::create_dir_all(skills)?;
        let text = serde_json::to_string_pretty(&self.0).map_err(io::Error::other)?;
        hermes_os::replace(
            &path(skills),
            text.as_bytes(),
            Access::Usual,
            Durability::Unsynced,
        )
    }

    pub fn get(&self, name: &str) -> Option<&Record> {
        self.0.get(name)
    }

    pub(super) fn entry(&mut self, name: &str) -> &mut Record {
        self.0.entry(name.to_owned()).or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.0.iter().map(|(name, record)| (name.as_str(), record))
    }

    /// How often a skill was used, by people and by models.
    pub fn uses(&self, name: &str) -> u64 {
        self.get(name)
            .map_or(0, |record| record.use_count + record.view_count)
    }

    /// Whether the agent made it.
    pub fn is_of_agent(&self, name: &str) -> bool {
        let by = self
            .get(name)
            .and_then(|record| record.created_by.as_deref());
        by == Some(AGENT)
    }

    pub(super) fn happened(&mut self, name: &str, what: Happened, now: Timestamp) {
        let record = self.entry(name);
        let now = Some(now.to_iso());
        if record.state == State::Stale {
            record.state = State::Active;
        }
        match what {
            Happened::Used => {
                record.use_count += 1;
                record.last_used_at = now;
            }
            Happened::Viewed => {
                record.view_count += 1;
                record.last_viewed_at = now;
            }
            Happened::Patched => {
                record.patch_count += 1;
                record.last_patched_at = now;
            }
            Happened::Created => {
                record.created_by = Some(AGENT.to_owned());
                record.created_at = now;
                record.state = State::Active;
                record.archived_at = None;
                record.edited_by_person = false;
                record.given_back.clear();
            }
            Happened::Succeeded => record.success_count += 1,
            Happened::Failed => record.failure_count += 1,
            Happened::Misled => {
                record.success_count = record.success_count.saturating_sub(1);
                record.failure_count += 1;
            }
        }
    }
}

impl Record {
    /// Somebody else's skill stands there now: what was said of whoever wrote the one before does not hold for it.
    pub(super) fn replaced(&mut self) {
        self.created_by = None;
        self.state = State::Active;
        self.archived_at = None;
        self.archived_from = None;
        self.edited_by_person = false;
        self.given_back.clear();
    }

    /// When anything last happened to it.
    pub fn last_touched(&self) -> Option<Timestamp> {
        let times = [
            &self.last_used_at,
            &self.last_viewed_at,
            &self.last_patched_at,
            &self.created_at,
        ];
        let times = times.into_iter().flatten();
        times.filter_map(|text| Timestamp::from_iso(text)).max()
    }
}

pub(super) fn path(skills: &Path) -> PathBuf {
    skills.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_format_is_read_and_what_is_unknown_in_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let known = r#"{"a": {"created_by": "agent", "use_count": 2, "view_count": 1, "patch_count": 0,
            "last_used_at": "2026-01-02T03:04:05+00:00", "state": "stale", "pinned": true, "later": {"x": 1}},
            "b": {"created_by": null, "state": "odd"}}"#;
        std::fs::write(folder.path().join(FILE), known).unwrap();
        let mut usage = Usage::try_read(folder.path()).unwrap();
        assert!(usage.is_of_agent("a") && !usage.is_of_agent("b"));
        assert_eq!((usage.uses("a"), usage.uses("c")), (3, 0));
        usage.happened(
            "a",
            Happened::Used,
            Timestamp::from_millis(1_800_000_000_000),
        );
        usage.save(folder.path()).unwrap();
        let again = Usage::try_read(folder.path()).unwrap();
        assert_eq!(again, usage);
        let record = again.get("a").unwrap();
        assert_eq!((record.use_count, record.state), (3, State::Active));
        assert!(record.pinned && record.other.contains_key("later"));
        assert_eq!(
            record.last_touched(),
            Some(Timestamp::from_millis(1_800_000_000_000))
        );
    }

    #[test]
    fn a_broken_file_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(Usage::try_read(folder.path()).is_err());
        assert_eq!(Usage::read(folder.path()), Usage::default());
    }
}
