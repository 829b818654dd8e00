//! The files in which results are kept: `cron/output/<job>/<time>.md`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_core::clock::TimeOfDay;
use hermes_core::{Run, Timestamp};
use hermes_os::{Access, Durability, make_private_folder, replace};

/// Writes what a run came to, and forgets the oldest. The same run writes the same file again.
pub(crate) fn keep(folder: &Path, run: &Run, text: &str, kept_max: usize) -> io::Result<PathBuf> {
    let folder = folder.join(run.job.as_str());
    make_private_folder(&folder)?;
    let path = folder.join(format!("{}.md", file_time(run.scheduled)));
    replace(&path, text.as_bytes(), Access::Private, Durability::Synced)?;
    prune(&folder, kept_max)?;
    Ok(path)
}

/// `2026-11-18_09-00-00`, UTC.
fn file_time(at: Timestamp) -> String {
    let (_, time) = at.civil();
    let TimeOfDay {
        hour,
        minute,
        second,
    } = time;
    format!("{}_{hour:02}-{minute:02}-{second:02}", at.date_text())
}

fn prune(folder: &Path, kept_max: usize) -> io::Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(kept_max.max(1));
    files[..surplus].iter().try_for_each(fs::remove_file)
}
