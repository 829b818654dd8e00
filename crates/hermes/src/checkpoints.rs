//! Checkpoints as the settings want them, and what `/rollback` and `hermes checkpoints` say of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Clock as _, SessionId, Timestamp};
use hermes_exec::{
    Checkpoint, CheckpointLimits, CheckpointSettings, CheckpointStore, Restored, child_environment,
};

use crate::base::Base;
use crate::commands::layout::{Table, age, count, one_line, printable};
use crate::failure::{Failure, Outcome};
use crate::wiring::SystemClock;

/// Files named after a restore; the rest are counted.
const FILES_TOLD_MAX: usize = 10;

pub fn store(base: &Base) -> Outcome<CheckpointStore> {
    const MEGABYTE: u64 = 1024 * 1024;
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let number = |key: &str| base.settings.u64(&format!("checkpoints.{key}"));
    let days = u32::try_from(number("retention_days")?).unwrap_or(u32::MAX);
    let limits = CheckpointLimits {
        per_project_max: number("max_snapshots")?.max(1) as usize,
        total_bytes_max: number("max_total_size_mb")?.saturating_mul(MEGABYTE),
        file_bytes_max: number("max_file_size_mb")?.saturating_mul(MEGABYTE),
        age_max: DAY.saturating_mul(days.max(1)),
        ..CheckpointLimits::default()
    };
    let variables = base.environment.iter();
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = CheckpointSettings {
        home: base.home.directory().to_owned(),
        user_home: base.environment.user_home(),
        environment: child_environment(variables, &[]),
        limits,
    };
    Ok(CheckpointStore::new(settings, Arc::new(SystemClock)))
}

/// The checkpoints of the project around a folder.
pub struct Checkpoints {
    store: CheckpointStore,
    project: PathBuf,
    /// Where names of files are seen from.
    folder: PathBuf,
    is_on: bool,
}

impl Checkpoints {
    pub fn around(base: &Base, folder: &Path) -> Outcome<Self> {
        let store = store(base)?;
        let project = store.project(folder, folder).ok_or_else(|| {
            Failure::usage(format!(
                "`{}` is too wide for checkpoints",
                folder.display()
            ))
            .hint("they are kept of projects: change to the folder of one")
        })?;
        Ok(Self {
            store,
            project,
            folder: folder.to_owned(),
            is_on: base.settings.bool("checkpoints.enabled")?,
        })
    }

    pub async fn all(&self) -> Outcome<Vec<Checkpoint>> {
        Ok(self.store.list(&self.project).await?)
    }

    /// The list for people. `verb` is how one is brought back from here.
    pub async fn list(&self, verb: &str) -> Outcome<String> {
        let list = self.all().await?;
        let project = one_line(&self.project.to_string_lossy());
        if list.is_empty() {
            let next = if self.is_on {
                "one is kept before the first change of each turn"
            } else {
                "none are kept: `hermes config set checkpoints.enabled true` changes that"
            };
            return Ok(format!("no checkpoints of {project}; {next}"));
        }
        let now = SystemClock.now();
        Ok(format!(
            "checkpoints of {project}\n{}\n\n{verb} N brings one back",
            table(&list, now)
        ))
    }

    /// What changed since a checkpoint.
    pub async fn diff(&self, name: &str) -> Outcome<String> {
        let checkpoint = self.store.find(&self.project, name).await?;
        let diff = self.store.diff(&self.project, &checkpoint).await?;
        Ok(if diff.is_empty() {
            format!("nothing changed since checkpoint {}", checkpoint.short_id())
        } else {
            printable(diff.trim_end())
        })
    }

    pub async fn restore(
        &self,
        name: &str,
        file: Option<&Path>,
        session: &SessionId,
    ) -> Outcome<(Checkpoint, Restored)> {
        let checkpoint = self.store.find(&self.project, name).await?;
        let file = file.map(|file| self.folder.join(file));
        let restored = self
            .store
            .restore(&self.project, &checkpoint, file.as_deref(), session)
            .await?;
        Ok((checkpoint, restored))
    }
}

fn table(list: &[Checkpoint], now: Timestamp) -> String {
    let mut table = Table::new(["N", "WHEN", "ID", "BEFORE"]);
    for (position, checkpoint) in list.iter().enumerate() {
        table.row([
            (position + 1).to_string(),
            age(checkpoint.at, now),
            checkpoint.short_id().to_owned(),
            one_line(&checkpoint.reason),
        ]);
    }
    table.text()
}

/// Says what a restore did, and how to undo it. `verb` is how a checkpoint is brought back from here.
pub fn told(checkpoint: &Checkpoint, restored: &Restored, verb: &str) -> String {
    let changes = restored.written.len() + restored.removed.len();
    if changes == 0 {
        return format!(
            "nothing to do: all is as in checkpoint {}",
            checkpoint.short_id()
        );
    }
    let line =
        |sign: char, path: &PathBuf| format!("  {sign} {}", one_line(&path.to_string_lossy()));
    let written = restored.written.iter().map(|path| line('~', path));
    let removed = restored.removed.iter().map(|path| line('-', path));
    let mut lines = vec![format!(
        "back to checkpoint {} (before {}): {} written, {} removed",
        checkpoint.short_id(),
        one_line(&checkpoint.reason),
        count(restored.written.len() as u64, "file"),
        restored.removed.len(),
    )];
    lines.extend(written.chain(removed).take(FILES_TOLD_MAX));
    if changes > FILES_TOLD_MAX {
        lines.push(format!("  … and {} more", changes - FILES_TOLD_MAX));
    }
    lines.push(format!("{verb} {} undoes this", restored.undo.short_id()));
    lines.join("\n")
}
