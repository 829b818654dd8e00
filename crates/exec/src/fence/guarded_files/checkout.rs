//! Whether a repository held a file before anything of ours ran: then git may put it into the working tree again.
//!
//! An object of git is named by its content, and when its file was last changed cannot be forged; so whatever was there
//! before was made by the person, or by somebody they fetched from.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::super::project::git_folders;

/// Packs that are searched. Repositories are packed anew long before they have more.
const PACKS_MAX: usize = 200;

/// How an index of a pack begins, in the only version of the last twenty years.
const INDEX_START: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];

const NAME_BYTES: usize = 20;

/// Numbers of objects by the first byte of their names.
const FANOUT_BYTES: u64 = 256 * 4;

/// Returns whether the repository of `project` held a file of this content before `since`.
pub(super) fn was_held(project: &Path, content: &[u8], since: SystemTime) -> bool {
    let mut blob = format!("blob {}\0", content.len()).into_bytes();
    blob.extend_from_slice(content);
    let name = digest(&SHA1_FOR_LEGACY_USE_ONLY, &blob);
    let name: [u8; NAME_BYTES] = match name.as_ref().try_into() {
        Ok(name) => name,
        Err(_) => return false,
    };
    let own = project.join(".git");
    let folders = [own].into_iter().filter(|folder| folder.is_dir());
    let mut folders = folders.chain(git_folders(project));
    folders.any(|git| is_loose(&git, &name, since) || is_packed(&git, &name, since))
}

fn is_loose(git: &Path, name: &[u8; NAME_BYTES], since: SystemTime) -> bool {
    let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, file) = hex.split_at(2);
    is_older(&git.join("objects").join(folder).join(file), since)
}

fn is_packed(git: &Path, name: &[u8; NAME_BYTES], since: SystemTime) -> bool {
    let entries = git.join("objects/pack").read_dir().into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let indexes = paths.filter(|path| path.extension().is_some_and(|ending| ending == "idx"));
    let mut old = indexes.take(PACKS_MAX).filter(|path| is_older(path, since));
    old.any(|index| is_listed(&index, name).unwrap_or(false))
}

/// Looks a name up among the sorted names of an index.
fn is_listed(index: &PathBuf, name: &[u8; NAME_BYTES]) -> std::io::Result<bool> {
    let file = File::open(index)?;
    let mut start = [0; INDEX_START.len()];
    file.read_exact_at(&mut start, 0)?;
    if start != INDEX_START {
        return Ok(false);
    }
    let count_up_to = |byte: u8| {
        let mut count = [0; 4];
        let at = INDEX_START.len() as u64 + u64::from(byte) * 4;
        file.read_exact_at(&mut count, at)?;
        std::io::Result::Ok(u64::from(u32::from_be_bytes(count)))
    };
    let first = name[0];
    let mut low = match first {
        0 => 0,
        first => count_up_to(first - 1)?,
    };
    let mut high = count_up_to(first)?;
    while low < high {
        let middle = low.midpoint(high);
        let mut found = [0; NAME_BYTES];
        let at = INDEX_START.len() as u64 + FANOUT_BYTES + middle * NAME_BYTES as u64;
        file.read_exact_at(&mut found, at)?;
        match found.cmp(name) {
            std::cmp::Ordering::Equal => return Ok(true),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Ok(false)
}

fn is_older(path: &Path, since: SystemTime) -> bool {
    let Ok(data) = fs::symlink_metadata(path) else {
        return false;
    };
    let seconds = Duration::from_secs(data.ctime().try_into().unwrap_or(u64::MAX));
    let changed = SystemTime::UNIX_EPOCH.checked_add(seconds);
    // Whole seconds: of the second in which Hermes was started, nothing is believed.
    let until = since.checked_sub(Duration::from_secs(1));
    data.is_file()
        && changed
            .zip(until)
            .is_some_and(|(changed, until)| changed < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "the real git makes the repository"
    )]
    fn git(folder: &Path, args: &[&str]) {
        let done = std::process::Command::new("git")
            .current_dir(folder)
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(args)
            .status();
        assert!(done.unwrap().success(), "{args:?}");
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "files are as old as the system says"
    )]
    fn now() -> SystemTime {
        SystemTime::now()
    }

    #[test]
    fn what_a_repository_holds_is_found_loose_and_packed_and_nothing_newer() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        git(root, &["init", "-q"]);
        fs::write(root.join("AGENTS.md"), "be kind\n").unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "-qm", "x"]);
        let later = now() + Duration::from_secs(10);
        let earlier = now() - Duration::from_secs(10);
        assert!(was_held(root, b"be kind\n", later));
        assert!(!was_held(root, b"be kind\n", earlier));
        assert!(!was_held(root, b"evil\n", later));
        git(root, &["gc", "-q"]);
        assert!(was_held(root, b"be kind\n", later));
        assert!(!was_held(root, b"evil\n", later));
    }
}
