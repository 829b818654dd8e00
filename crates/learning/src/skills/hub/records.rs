//! The books of the hub: `skills/.hub/lock.json` with what is installed, `taps.json`, and `audit.log`.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hermes_core::Timestamp;
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::SkillFile;
use super::install::FilesThere;
use super::sources::TRUSTED_TAPS;
use crate::skills::error::Doing as _;
use crate::skills::{SkillError, names};

/// What is installed, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    pub version: u64,
    #[serde(default)]
    pub installed: BTreeMap<String, Installed>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Installed {
    pub source: String,
    pub identifier: String,
    pub trust_level: String,
    pub scan_verdict: String,
    pub content_hash: String,
    /// Below the folder of skills.
    pub install_path: String,
    pub files: Vec<String>,
    pub metadata: Map<String, Value>,
    pub installed_at: String,
    pub updated_at: String,
}

/// The places that a user added. The known program writes `{"repo", "path"}`, we wrote plain texts; what is neither stays
/// as it is and is passed over.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Taps {
    #[serde(default)]
    taps: Vec<Value>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// A place as it is named to people: `owner/repository`, with a path behind it, or an address.
fn named(tap: &Value) -> Option<String> {
    let text = match tap {
        Value::String(tap) => tap.clone(),
        tap => {
            let word = |key: &str| tap[key].as_str().unwrap_or_default().trim_matches('/');
            let (repo, path) = (word("repo"), word("path"));
            if path.is_empty() {
                repo.to_owned()
            } else {
                format!("{repo}/{path}")
            }
        }
    };
    is_tap(&text).then_some(text)
}

fn is_tap(tap: &str) -> bool {
    names::is_address(tap) || names::repository(tap).is_some()
}

/// A place as both programs read it.
fn entry(tap: &str) -> Value {
    match names::repository(tap) {
        Some((repo, path)) => json!({"repo": repo, "path": path}),
        None => tap.into(),
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            version: 1,
            installed: BTreeMap::new(),
        }
    }
}

pub(super) fn folder(skills: &Path) -> PathBuf {
    skills.join(".hub")
}

impl Lock {
    /// Reads it. A file that cannot be understood is an error: writing it anew would lose what is installed.
    pub fn read(skills: &Path) -> Result<Self, SkillError> {
        let path = folder(skills).join("lock.json");
        read(&path)
    }

    /// What stands in a folder, if it was installed there.
    pub(in crate::skills) fn at(&self, skills: &Path, folder: &Path) -> Option<(&str, &Installed)> {
        let folder = folder.canonicalize().ok()?;
        let is_there = |known: &Installed| {
            let place = names::below(skills, &known.install_path).ok();
            place.and_then(|place| place.canonicalize().ok()).as_ref() == Some(&folder)
        };
        let mut installed = self.installed.iter();
        let found = installed.find(|(_, known)| is_there(known));
        found.map(|(name, known)| (name.as_str(), known))
    }

    pub(super) fn save(&self, skills: &Path) -> Result<(), SkillError> {
        write(&folder(skills).join("lock.json"), self)
    }
}

/// The repositories and sites that are searched: those everybody has, and those of this user.
pub(super) fn taps(skills: &Path) -> Result<Vec<String>, SkillError> {
    let own: Taps = read(&folder(skills).join("taps.json"))?;
    let usual = TRUSTED_TAPS.iter().map(|tap| (*tap).to_owned());
    let own = own.taps.iter().filter_map(named);
    let mut all: Vec<String> = usual.collect();
    for tap in own {
        if !all.contains(&tap) {
            all.push(tap);
        }
    }
    Ok(all)
}

/// Adds a place to search, or takes one away. Returns whether anything changed.
pub(super) fn set_tap(skills: &Path, tap: &str, is_wanted: bool) -> Result<bool, SkillError> {
    let tap = tap.trim().trim_end_matches('/');
    if is_wanted && !is_tap(tap) {
        return Err(SkillError::asked(format!(
            "`{}` is no place that can be searched",
            hermes_core::text::shorten(tap, 200)
        ))
        .hint("owner/repository as at GitHub, or an https address"));
    }
    let path = folder(skills).join("taps.json");
    let mut own: Taps = read(&path)?;
    let is_it = |one: &Value| named(one).as_deref() == Some(tap) || one == tap;
    let is_there = own.taps.iter().any(is_it);
    if is_there == is_wanted {
        return Ok(false);
    }
    if is_wanted {
        own.taps.push(entry(tap));
    } else {
        own.taps.retain(|one| !is_it(one));
    }
    write(&path, &own)?;
    Ok(true)
}

/// Notes what was done. The file is for people.
pub(super) fn note(skills: &Path, now: Timestamp, what: &str) {
    let path = folder(skills).join("audit.log");
    let line = format!("{} {what}\n", now.to_iso());
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        tracing::warn!("`{}` was not written: {error}", path.display());
    }
}

impl Installed {
    /// Whether a folder holds just what was installed.
    pub(in crate::skills) fn is_as_installed(&self, folder: &Path) -> bool {
        let there = FilesThere::of(folder);
        !there.is_cut && content_hash(&there.files) == self.content_hash
    }
}

/// The hash of all files of a skill, by path and content.
pub(in crate::skills) fn content_hash(files: &[SkillFile]) -> String {
    let mut files: Vec<&SkillFile> = files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.path.as_bytes());
        hasher.update([0]);
        hasher.update((file.bytes.len() as u64).to_be_bytes());
        hasher.update(&file.bytes);
    }
    let digest = hasher.finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

pub(super) fn read<T: Default + for<'a> Deserialize<'a>>(path: &Path) -> Result<T, SkillError> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(io::Error::other)
            .doing("understand", path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error).doing("read", path),
    }
}

pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<(), SkillError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).doing("make the folder", folder)?;
    }
    let text = serde_json::to_string_pretty(value)
        .map_err(io::Error::other)
        .doing("write", path)?;
    hermes_os::replace(path, text.as_bytes(), Access::Usual, Durability::Synced)
        .doing("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder(home.path())).unwrap();
        fs::write(folder(home.path()).join("taps.json"), text).unwrap();
        home
    }

    #[test]
    fn taps_are_read_however_they_were_written_and_written_for_both_programs() {
        let home = with(
            r#"{"taps": [{"repo": "me/repo", "path": "skills/"}, "you/repo", {"odd": 1}, "../x"], "later": 1}"#,
        );
        let own = |home: &Path| taps(home).unwrap().split_off(TRUSTED_TAPS.len());
        assert_eq!(own(home.path()), ["me/repo/skills", "you/repo"]);
        assert!(set_tap(home.path(), "a/b", true).unwrap());
        assert!(set_tap(home.path(), "https://a.example", true).unwrap());
        assert!(!set_tap(home.path(), "me/repo/skills", true).unwrap());
        assert!(set_tap(home.path(), "you/repo", false).unwrap());
        let text = fs::read_to_string(folder(home.path()).join("taps.json")).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({"later": 1, "taps": [
            {"repo": "me/repo", "path": "skills/"}, {"odd": 1}, "../x", {"repo": "a/b", "path": ""},
            "https://a.example",
        ]});
        assert_eq!(written, expected);
    }

    #[test]
    fn what_is_no_place_is_no_tap() {
        let home = with("{}");
        for bad in ["../x", "x", "/etc/passwd", "ftp://a.example", "a/../b", ""] {
            let refused = set_tap(home.path(), bad, true).unwrap_err();
            assert!(refused.to_string().contains("no place"), "{bad}: {refused}");
        }
    }
}
