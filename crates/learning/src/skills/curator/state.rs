//! `skills/.curator.json`: when the curator last ran, and which merges it has proposed, so that a refused one stays refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::Timestamp;
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};

use crate::skills::SkillError;
use crate::skills::error::Doing as _;

const FILE: &str = ".curator.json";
/// Merges that are remembered; with more the oldest may be proposed again.
const PROPOSED_MAX: usize = 500;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CuratorState {
    last_run_at: Option<String>,
    /// Digests of the texts that a merge was proposed of.
    proposed: Vec<String>,
}

/// Whether it is time. If so, or if it never ran, that is noted: no other process runs it now. The lock is held.
pub(super) fn claim(home: &Path, interval: Duration, now: Timestamp) -> Result<bool, SkillError> {
    let mut state = CuratorState::read(home);
    let last = state.last_run_at.as_deref().and_then(Timestamp::from_iso);
    let is_due = last.is_some_and(|last| now >= last.plus(interval));
    // One from the future was written by a clock that was ahead.
    let is_noted = last.is_some_and(|last| last <= now);
    if is_due || !is_noted {
        state.last_run_at = Some(now.to_iso());
        state.save(home)?;
    }
    Ok(is_due)
}

impl CuratorState {
    /// What cannot be understood is begun anew: nothing in it is anybody's work.
    pub(super) fn read(home: &Path) -> Self {
        let text = std::fs::read_to_string(path(home)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) fn has_proposed(&self, digest: &str) -> bool {
        self.proposed.iter().any(|known| known == digest)
    }

    pub(super) fn remember(&mut self, digest: String) {
        self.proposed.push(digest);
        let too_many = self.proposed.len().saturating_sub(PROPOSED_MAX);
        self.proposed.drain(..too_many);
    }

    pub(super) fn save(&self, home: &Path) -> Result<(), SkillError> {
        let path = path(home);
        std::fs::create_dir_all(home).doing("make the folder", home)?;
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        hermes_os::replace(&path, text.as_bytes(), Access::Usual, Durability::Unsynced)
            .doing("write", &path)
    }
}

fn path(home: &Path) -> PathBuf {
    home.join(FILE)
}
