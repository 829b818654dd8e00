//! Unpacks archives from strangers: only plain files below the archive's own folder, and no more of them than a skill has.

use std::io::{Cursor, Read};
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use tar::EntryType;
use zip::ZipArchive;

use super::{FILES_MAX, SkillFile, TOTAL_BYTES_MAX};
use crate::skills::SkillError;
use crate::skills::folders::SKILL_FILE;

/// Entries that are looked at; an archive of more is no skill.
const ENTRIES_MAX: usize = 5_000;

pub(super) fn is_archive(path: &str) -> bool {
    let endings = [".zip", ".tar.gz", ".tgz", ".skill"];
    endings
        .iter()
        .any(|ending| path.to_ascii_lowercase().ends_with(ending))
}

/// The files of the one skill in an archive, by their paths below its folder.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<SkillFile>, SkillError> {
    let files = if bytes.starts_with(b"PK") {
        unzip(bytes)
    } else {
        untar(bytes)
    };
    let files =
        files.map_err(|why| SkillError::Fetch(format!("the archive cannot be used: {why}")))?;
    below_skill(files)
}

/// A path that stays where it is put: relative, without `..`, and nothing hidden.
pub(in crate::skills) fn safe_path(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => {
                let part = part.to_str()?;
                if part.starts_with('.') || part.chars().any(char::is_control) {
                    return None;
                }
                parts.push(part);
            }
            Component::CurDir => {}
            _ => return None,
        }
    }
    let is_good = !parts.is_empty() && parts.len() <= 12 && !path.contains('\\');
    is_good.then(|| parts.join("/"))
}

/// What is packed, entry by entry.
struct Unpacked {
    files: Vec<SkillFile>,
    bytes_left: usize,
}

impl Unpacked {
    fn new() -> Self {
        Self {
            files: Vec::new(),
            bytes_left: TOTAL_BYTES_MAX,
        }
    }

    /// Takes an entry. What a header says of its length is not believed.
    fn take(&mut self, path: &str, content: impl Read) -> Result<(), String> {
        let is_hidden = path
            .split('/')
            .any(|part| part.starts_with('.') && part != "." && part != "..");
        let Some(path) = safe_path(path) else {
            // `.git` and its like are left out; what leads out is a trap.
            return if is_hidden && !path.contains("..") {
                Ok(())
            } else {
                Err(format!("`{path}` leads out of it"))
            };
        };
        let mut bytes = Vec::new();
        let read = content
            .take(self.bytes_left as u64 + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.len() > self.bytes_left || self.files.len() >= FILES_MAX {
            return Err("it holds more than a skill may have".to_owned());
        }
        self.bytes_left -= bytes.len();
        self.files.push(SkillFile { path, bytes });
        Ok(())
    }
}

fn unzip(bytes: &[u8]) -> Result<Vec<SkillFile>, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    if archive.len() > ENTRIES_MAX {
        return Err("it has too many entries".to_owned());
    }
    let mut unpacked = Unpacked::new();
    for number in 0..archive.len() {
        let entry = archive
            .by_index(number)
            .map_err(|error| error.to_string())?;
        if entry.is_dir() {
            continue;
        }
        let name = entry
            .name()
            .map_err(|error| error.to_string())?
            .into_owned();
        if entry.is_symlink() {
            return Err(format!("`{name}` is a link"));
        }
        unpacked.take(&name, entry)?;
    }
    Ok(unpacked.files)
}

fn untar(bytes: &[u8]) -> Result<Vec<SkillFile>, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes));
    let mut unpacked = Unpacked::new();
    let entries = archive.entries().map_err(|error| error.to_string())?;
    for (number, entry) in entries.enumerate() {
        if number >= ENTRIES_MAX {
            return Err("it has too many entries".to_owned());
        }
        let entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path().map_err(|error| error.to_string())?;
        let path = path.to_string_lossy().into_owned();
        match entry.header().entry_type() {
            EntryType::Regular => unpacked.take(&path, entry)?,
            EntryType::Symlink | EntryType::Link => return Err(format!("`{path}` is a link")),
            _ => {}
        }
    }
    Ok(unpacked.files)
}

/// The files below the folder of the archive's one `SKILL.md`.
fn below_skill(files: Vec<SkillFile>) -> Result<Vec<SkillFile>, SkillError> {
    let mut folders = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix(SKILL_FILE)?;
        (folder.is_empty() || folder.ends_with('/')).then(|| folder.to_owned())
    });
    let folder = folders.next();
    let others = folders.count();
    let folder = folder.filter(|_| others == 0).ok_or_else(|| {
        SkillError::Fetch(match others {
            0 => "the archive has no SKILL.md".to_owned(),
            more => format!(
                "the archive has {} skills; one at a time is installed",
                more + 1
            ),
        })
    })?;
    let files = files.into_iter().filter_map(|file| {
        let path = file.path.strip_prefix(&folder)?.to_owned();
        Some(SkillFile { path, ..file })
    });
    Ok(files.collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::Header;

    use super::*;

    fn tarred(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive.append(&header, *content).unwrap();
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&archive.into_inner().unwrap()).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_skill_is_taken_out_of_its_folder() {
        let packed = tarred(&[
            ("top/x/SKILL.md", EntryType::Regular, b"Do."),
            ("top/x/scripts/a.sh", EntryType::Regular, b"a"),
            ("top/x/.git/config", EntryType::Regular, b"no"),
            ("top/README.md", EntryType::Regular, b"no"),
        ]);
        let files = unpack(&packed).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(names, ["SKILL.md", "scripts/a.sh"]);
    }

    #[test]
    fn what_leads_out_links_or_is_too_much_is_refused_whole() {
        let refused = |entries: &[(&str, EntryType, &[u8])]| {
            unpack(&tarred(entries)).unwrap_err().to_string()
        };
        let skill = ("x/SKILL.md", EntryType::Regular, &b"Do."[..]);
        assert!(
            refused(&[skill, ("x/../../evil", EntryType::Regular, b"e")]).contains("leads out")
        );
        assert!(refused(&[skill, ("/etc/evil", EntryType::Regular, b"e")]).contains("leads out"));
        assert!(refused(&[skill, ("x/link", EntryType::Symlink, b"")]).contains("is a link"));
        let large = vec![0; TOTAL_BYTES_MAX + 1];
        assert!(refused(&[skill, ("x/large", EntryType::Regular, &large)]).contains("more than"));
        assert!(refused(&[("a/SKILL.md", EntryType::Regular, b"a"), skill]).contains("2 skills"));
        assert!(refused(&[("README.md", EntryType::Regular, b"a")]).contains("no SKILL.md"));
        assert!(unpack(b"PK\x03\x04 not a zip").is_err());
        assert!(unpack(b"nothing").is_err());
    }
}
