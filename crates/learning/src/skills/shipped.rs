//! Skills of our own that come with the program: put into the home at the first use, and replaced by newer ones only while
//! nobody has touched them.
//!
//! `skills/.bundled_manifest` has a line `name:hash` for each that was put there. A skill that is on it and gone was removed by
//! a person, and does not come back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hermes_os::lock::Sharing;
use hermes_os::{Access, Durability};
use sha2::{Digest, Sha256};

use super::document;
use super::error::Doing as _;
use super::folders::SKILL_FILE;
use super::{SkillError, Skills};

const MANIFEST: &str = ".bundled_manifest";
/// Who makes this file wants none of ours.
const NONE_WANTED: &str = ".no-bundled-skills";
/// Characters of a hash on the manifest.
const HASH_CHARS: usize = 32;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("shipped/", $name, ".md")))),*]
    };
}

/// Every skill we ship.
const SHIPPED: &[(&str, &str)] = shipped![
    "bug-hunt",
    "code-review",
    "codebase-tour",
    "daily-report",
    "meeting-notes",
    "openclaw-migration",
    "release-notes",
    "research-with-sources",
    "skill-writing",
    "table-work",
    "tidy-folder",
    "trip-planning",
];

impl Skills {
    /// Puts our own skills into the home. Costs one look at a file when they are there.
    pub fn ship(&self) -> Result<(), SkillError> {
        let home = &self.sources.home;
        if home.join(NONE_WANTED).exists() {
            return Ok(());
        }
        let is_due = |manifest: &BTreeMap<String, String>| {
            let is_new = |(name, text): &&(&str, &str)| manifest.get(*name) != Some(&hash(text));
            SHIPPED.iter().any(|one| is_new(&one))
        };
        if !is_due(&read(home)) {
            return Ok(());
        }
        if let Some(folder) = self.lock.parent() {
            fs::create_dir_all(folder).doing("make the folder", folder)?;
        }
        // Whoever has the lock may be doing the same.
        let Ok(Some(_lock)) = hermes_os::lock::try_lock(&self.lock, Sharing::Alone) else {
            return Ok(());
        };
        let mut manifest = read(home);
        let library = self.sources.library();
        for (name, text) in SHIPPED {
            let is_taken = library.called(name).is_some();
            if ship_one(home, name, text, &manifest, is_taken)? {
                manifest.insert((*name).to_owned(), hash(text));
            }
        }
        write(home, &manifest)
    }
}

/// Returns whether it is settled: what is on the manifest then is not looked at again before the next version.
fn ship_one(
    home: &Path,
    name: &str,
    text: &str,
    manifest: &BTreeMap<String, String>,
    is_taken: bool,
) -> Result<bool, SkillError> {
    let file = place(home, name, text);
    let is_now = fs::read_to_string(&file).ok();
    let is_wanted = match (manifest.get(name), &is_now) {
        // A skill of this name is somebody else's.
        (None, None) => !is_taken,
        (None, Some(_)) => false,
        // Removed on purpose.
        (Some(_), None) => false,
        (Some(before), Some(now)) if hash(now) == *before => true,
        // Changed by somebody: it stays, and may be looked at again.
        (Some(_), Some(_)) => return Ok(false),
    };
    if is_wanted {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).doing("make the folder", folder)?;
        }
        hermes_os::replace(&file, text.as_bytes(), Access::Usual, Durability::Unsynced)
            .doing("write", &file)?;
    }
    Ok(true)
}

fn place(home: &Path, name: &str, text: &str) -> PathBuf {
    let category = document::read(text).category.unwrap_or_default();
    home.join(category).join(name).join(SKILL_FILE)
}

fn read(home: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(home.join(MANIFEST)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, hash)| (name.trim().to_owned(), hash.trim().to_owned()))
        .collect()
}

fn write(home: &Path, manifest: &BTreeMap<String, String>) -> Result<(), SkillError> {
    fs::create_dir_all(home).doing("make the folder", home)?;
    let lines: String = manifest
        .iter()
        .map(|(name, hash)| format!("{name}:{hash}\n"))
        .collect();
    let path = home.join(MANIFEST);
    hermes_os::replace(&path, lines.as_bytes(), Access::Usual, Durability::Unsynced)
        .doing("write", &path)
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..HASH_CHARS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_skills_are_written_strictly_and_described_briefly() {
        for (name, text) in SHIPPED {
            assert_eq!(document::name_problem(name), None, "{name}");
            assert_eq!(document::check(name, text), Ok(()), "{name}");
            let document = document::read(text);
            assert!(document.category.is_some(), "{name}");
            let chars = document.description.chars().count();
            assert!((60..=210).contains(&chars), "{name}: {chars}");
            assert!(document.description.contains("Use "), "{name}");
            assert!(document.body.lines().count() < 200, "{name}");
        }
        assert!(SHIPPED.len() >= 12);
    }

    #[test]
    fn what_is_untouched_is_replaced_and_what_was_changed_or_removed_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let old = "---\nname: x\ndescription: d\n---\nOld.\n";
        let new = "---\nname: x\ndescription: d\n---\nNew.\n";
        let known = BTreeMap::from([("x".to_owned(), hash(old))]);
        let file = place(home, "x", old);
        assert!(ship_one(home, "x", old, &BTreeMap::new(), false).unwrap());
        assert!(ship_one(home, "x", new, &known, true).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), new);
        fs::write(&file, "Mine.").unwrap();
        assert!(!ship_one(home, "x", new, &known, true).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "Mine.");
        fs::remove_file(&file).unwrap();
        assert!(ship_one(home, "x", new, &known, false).unwrap());
        assert!(!file.exists());
        // The name of another.
        assert!(ship_one(home, "x", new, &BTreeMap::new(), true).unwrap());
        assert!(!file.exists());
    }
}
