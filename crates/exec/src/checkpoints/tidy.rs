//! Keeps the store within its limits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{CheckpointError, Timestamp};

use super::record::Checkpoint;
use super::{CheckpointLimits, CheckpointStore, failed};

/// How often checkpoints that nobody asked about are looked through.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Each round drops a quarter of what is left, so these leave next to nothing of any number.
const ROUNDS_MAX: usize = 20;

/// What tidying did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tidied {
    pub dropped: usize,
    pub kept: usize,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl CheckpointStore {
    /// Drops what is too old, too many, of projects that are gone, or too much in all, and packs the rest.
    pub async fn prune(&self) -> Result<Tidied, CheckpointError> {
        if !self.repository().is_dir() {
            return Ok(Tidied::default());
        }
        let _lock = self.lock_alone().await?;
        self.remove_leftovers();
        let mut tidied = Tidied {
            bytes_before: self.bytes().await?,
            ..Tidied::default()
        };
        let limits = &self.settings.limits;
        let list = self.list_all().await?;
        let (mut kept, mut dropped) = judged(list, limits, self.clock.now(), Path::is_dir);
        for _ in 0..ROUNDS_MAX {
            self.drop_all(&dropped).await?;
            self.pack().await?;
            tidied.dropped += dropped.len();
            tidied.bytes_after = self.bytes().await?;
            if tidied.bytes_after <= limits.total_bytes_max || kept.is_empty() {
                break;
            }
            // The newest come first, so the oldest quarter is the end.
            dropped = kept.split_off(kept.len() - kept.len().div_ceil(4));
        }
        tidied.kept = kept.len();
        let stamp = self.clock.now().as_millis().to_string();
        std::fs::write(self.stamp(), stamp).map_err(failed("cannot note the time of tidying"))?;
        Ok(tidied)
    }

    /// Prunes when a day has passed since the last time, or the store has grown too large.
    pub async fn prune_when_due(&self) -> Result<(), CheckpointError> {
        if !self.repository().is_dir() {
            return Ok(());
        }
        let last = std::fs::read_to_string(self.stamp()).ok();
        let last = last.and_then(|text| text.trim().parse::<i64>().ok());
        let age = last.map(|last| self.clock.now().as_millis() - last);
        let is_due = age.is_none_or(|age| age < 0 || age as u128 >= EVERY.as_millis());
        if is_due || self.bytes().await? > self.settings.limits.total_bytes_max {
            self.prune().await?;
        }
        Ok(())
    }

    /// Drops the oldest checkpoints of a project that has too many; their contents go with the next prune.
    pub(super) async fn shorten_list(&self, project: &Path) -> Result<(), CheckpointError> {
        let _lock = self.lock_alone().await?;
        self.remove_locks();
        let list = self.list(project).await?;
        let kept = list.len().min(self.settings.limits.per_project_max);
        self.drop_all(&list[kept..]).await
    }

    async fn drop_all(&self, checkpoints: &[Checkpoint]) -> Result<(), CheckpointError> {
        let lines: String = checkpoints
            .iter()
            .map(|checkpoint| format!("delete {}\n", checkpoint.reference))
            .collect();
        if !lines.is_empty() {
            let git = self.git();
            git.run(&["update-ref", "--stdin"], lines.as_bytes())
                .await?;
        }
        Ok(())
    }

    /// Throws away what no checkpoint holds. Indexes may speak of it, so they go too.
    async fn pack(&self) -> Result<(), CheckpointError> {
        if let Ok(indexes) = self.indexes().read_dir() {
            for index in indexes.flatten() {
                let _ = std::fs::remove_file(index.path());
            }
        }
        let git = self.git();
        git.run(&["repack", "-a", "-d", "-q"], &[]).await?;
        git.run(&["prune", "--expire=now"], &[]).await?;
        Ok(())
    }

    /// Returns how much room all checkpoints take.
    pub async fn bytes(&self) -> Result<u64, CheckpointError> {
        if !self.repository().is_dir() {
            return Ok(0);
        }
        let counted = self.git().line(&["count-objects", "-v"], &[]).await?;
        let kilobytes = counted.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let counts = matches!(name, "size" | "size-pack" | "size-garbage");
            value.parse::<u64>().ok().filter(|_| counts)
        });
        Ok(kilobytes.sum::<u64>() * 1024)
    }

    /// What killed processes left. Nobody else is at work: we hold the lock alone.
    fn remove_leftovers(&self) {
        self.remove_locks();
        let entries = self.folder().read_dir().into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().as_encoded_bytes().starts_with(b"new.") {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    fn remove_locks(&self) {
        let _ = std::fs::remove_file(self.repository().join("packed-refs.lock"));
    }

    fn stamp(&self) -> PathBuf {
        self.folder().join("tidied")
    }
}

/// Parts what stays from what goes. The list has the newest first, and so have both parts.
fn judged(
    list: Vec<Checkpoint>,
    limits: &CheckpointLimits,
    now: Timestamp,
    is_there: impl Fn(&Path) -> bool,
) -> (Vec<Checkpoint>, Vec<Checkpoint>) {
    let oldest = now.as_millis() - limits.age_max.as_millis() as i64;
    let mut counts: HashMap<String, usize> = HashMap::new();
    list.into_iter().partition(|checkpoint| {
        let count = counts.entry(checkpoint.group().to_owned()).or_default();
        *count += 1;
        let project = checkpoint.project.as_deref();
        *count <= limits.per_project_max
            && checkpoint.at.as_millis() >= oldest
            && project.is_none_or(&is_there)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(project: &str, at: i64) -> Checkpoint {
        Checkpoint {
            id: at.to_string(),
            at: Timestamp::from_millis(at),
            reason: String::new(),
            session: None,
            project: Some(project.into()),
            tree: String::new(),
            reference: format!("refs/checkpoints/{project}/{at}"),
        }
    }

    #[test]
    fn the_old_the_many_and_the_orphans_go() {
        let limits = CheckpointLimits {
            per_project_max: 2,
            age_max: Duration::from_millis(100),
            ..CheckpointLimits::default()
        };
        let list = vec![
            checkpoint("a", 990),
            checkpoint("a", 980),
            checkpoint("gone", 975),
            checkpoint("a", 970),
            checkpoint("b", 960),
            checkpoint("b", 800),
        ];
        let is_there = |project: &Path| project != Path::new("gone");
        let (kept, dropped) = judged(list, &limits, Timestamp::from_millis(1000), is_there);
        let ids = |list: Vec<Checkpoint>| -> Vec<String> {
            list.into_iter().map(|checkpoint| checkpoint.id).collect()
        };
        assert_eq!(ids(kept), ["990", "980", "960"]);
        assert_eq!(ids(dropped), ["975", "970", "800"]);
    }
}
