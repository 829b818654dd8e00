//! Archives: what goes there is packed, what comes from there is unpacked with care.
//!
//! Whoever answers from over there may be anybody: nothing of an archive is believed but bytes of files that were asked
//! for, and nothing is written here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use super::name::Name;
use super::plan::{Changes, Hash, Ledger, Sent};
use super::scan::{LocalFile, Stamp};
use super::there::{lines, manifest};
use super::{ARCHIVE_BYTES_MAX, FILE_BYTES_MAX};

/// What to send, and what is over there when it was.
pub(super) struct Packed {
    /// Nothing when no file has other contents than before.
    pub(super) archive: Option<Vec<u8>>,
    pub(super) ledger: Ledger,
}

/// Packs changes for `sync.sh`: `files/…`, `remove`, and last the `manifest`.
pub(super) fn pack(
    changes: &Changes,
    files: &BTreeMap<Name, LocalFile>,
    ledger: &Ledger,
) -> io::Result<Packed> {
    let mut ledger = ledger.clone();
    let mut archive = Builder::new(Vec::new());
    let mut is_needed = !changes.remove.is_empty();
    for name in &changes.remove {
        ledger.remove(name);
    }
    for name in &changes.send {
        let Some((file, content)) = files.get(name).and_then(|file| Some((file, read(file)?)))
        else {
            continue;
        };
        let (stamp, hash) = (file.stamp, hash(&content));
        let is_known = |sent: &Sent| sent.hash == hash && sent.stamp.executable == stamp.executable;
        if !ledger.get(name).is_some_and(is_known) {
            is_needed = true;
            append(
                &mut archive,
                &format!("files/{}", name.as_str()),
                stamp,
                &content,
            )?;
        }
        if archive.get_ref().len() > ARCHIVE_BYTES_MAX {
            let mib = ARCHIVE_BYTES_MAX / (1024 * 1024);
            return Err(io::Error::other(format!(
                "the skills have more than {mib} MiB; move large files out of the folder"
            )));
        }
        ledger.insert(name.clone(), Sent { stamp, hash });
    }
    let hashes = ledger.iter().map(|(name, sent)| (name, &sent.hash));
    let stamp = Stamp::default();
    append(&mut archive, "remove", stamp, &lines(&changes.remove))?;
    append(&mut archive, "manifest", stamp, manifest(hashes).as_bytes())?;
    let archive = archive.into_inner()?;
    Ok(Packed {
        archive: is_needed.then_some(archive),
        ledger,
    })
}

/// Reads a file, which may be gone or larger by now.
fn read(file: &LocalFile) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let opened = std::fs::File::open(&file.path).ok()?;
    let mut limited = opened.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut content).ok()?;
    (content.len() as u64 <= FILE_BYTES_MAX).then_some(content)
}

/// Reads the hashes of files.
pub(super) fn read_hashes(files: &BTreeMap<Name, LocalFile>) -> Ledger {
    let sent = |(name, file): (&Name, &LocalFile)| {
        let (stamp, hash) = (file.stamp, hash(&read(file)?));
        Some((name.clone(), Sent { stamp, hash }))
    };
    files.iter().filter_map(sent).collect()
}

pub(super) fn hash(content: &[u8]) -> Hash {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn append(
    archive: &mut Builder<Vec<u8>>,
    path: &str,
    stamp: Stamp,
    content: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(if stamp.executable { 0o700 } else { 0o600 });
    header.set_mtime(stamp.modified.0.try_into().unwrap_or(0));
    archive.append_data(&mut header, path, content)
}

/// A file that came from over there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) name: Name,
    pub(super) content: Vec<u8>,
    pub(super) executable: bool,
}

/// Takes the files that were asked for out of an archive, and counts everything else that was in it.
pub(super) fn unpack(archive: &[u8], asked: &BTreeSet<Name>) -> io::Result<(Vec<Arrived>, usize)> {
    let mut wanted = asked.clone();
    let mut arrived = Vec::new();
    let mut refused = 0;
    for entry in Archive::new(archive).entries()? {
        let mut entry = entry?;
        let header = entry.header();
        let is_file = header.entry_type() == EntryType::Regular && entry.size() <= FILE_BYTES_MAX;
        let executable = header.mode().is_ok_and(|mode| mode & 0o100 != 0);
        let name = std::str::from_utf8(&entry.path_bytes())
            .ok()
            .and_then(Name::new);
        let name = name.filter(|name| is_file && wanted.remove(name));
        let Some(name) = name else {
            refused += 1;
            continue;
        };
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        arrived.push(Arrived {
            name,
            content,
            executable,
        });
    }
    Ok((arrived, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn asked(names: &[&str]) -> BTreeSet<Name> {
        names.iter().map(|text| name(text)).collect()
    }

    /// Adds an entry as nobody honest would.
    fn forge(archive: &mut Builder<Vec<u8>>, path: &[u8], kind: EntryType, content: &[u8]) {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
        header.set_entry_type(kind);
        header.set_mode(0o4755);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, content).unwrap();
    }

    #[test]
    fn of_a_hostile_archive_only_the_files_that_were_asked_for_are_taken() {
        let mut archive = Builder::new(Vec::new());
        for path in [
            "../evil",
            "/etc/evil",
            "skills/../../evil",
            "skills/not-asked",
        ] {
            forge(&mut archive, path.as_bytes(), EntryType::Regular, b"x");
        }
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Char,
            EntryType::Block,
            EntryType::Fifo,
            EntryType::Directory,
            EntryType::Continuous,
        ] {
            forge(&mut archive, b"skills/a", kind, b"");
        }
        forge(&mut archive, b"skills/a", EntryType::Regular, b"good");
        forge(&mut archive, b"skills/a", EntryType::Regular, b"twice");
        let archive = archive.into_inner().unwrap();
        let (arrived, refused) = unpack(&archive, &asked(&["skills/a"])).unwrap();
        let good = Arrived {
            name: name("skills/a"),
            content: b"good".to_vec(),
            executable: true,
        };
        assert_eq!((arrived, refused), (vec![good], 12));
    }

    #[test]
    fn a_file_that_is_too_large_or_lies_about_it_is_not_taken() {
        let mut archive = Builder::new(Vec::new());
        let large = vec![0; FILE_BYTES_MAX as usize + 1];
        forge(&mut archive, b"skills/large", EntryType::Regular, &large);
        forge(&mut archive, b"skills/small", EntryType::Regular, b"s");
        let archive = archive.into_inner().unwrap();
        let wanted = asked(&["skills/large", "skills/small"]);
        let (arrived, refused) = unpack(&archive, &wanted).unwrap();
        assert_eq!((arrived.len(), refused), (1, 1));
        let mut header = Header::new_ustar();
        header.set_path("skills/small").unwrap();
        header.set_size(FILE_BYTES_MAX);
        header.set_cksum();
        let mut lie = header.as_bytes().to_vec();
        lie.extend_from_slice(&[0; 512]);
        assert!(unpack(&lie, &wanted).is_err());
        assert!(unpack(&vec![7; 2048], &wanted).is_err());
    }

    #[test]
    fn what_is_packed_has_long_names_its_modes_and_a_manifest_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("skills/{}/run.sh", "long".repeat(40));
        let path = folder.path().join("run.sh");
        std::fs::write(&path, "echo").unwrap();
        let stamp = Stamp {
            bytes: 4,
            executable: true,
            ..Stamp::default()
        };
        let files = BTreeMap::from([(name(&long), LocalFile { path, stamp })]);
        let changes = Changes {
            send: vec![name(&long)],
            remove: vec![name("token.json")],
        };
        let packed = pack(&changes, &files, &Ledger::new()).unwrap();
        let archive = packed.archive.unwrap();
        let mut entries = Vec::new();
        for entry in Archive::new(&archive[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().display().to_string();
            entries.push((path, entry.header().mode().unwrap(), text));
        }
        let hash = hash(b"echo");
        assert_eq!(
            entries,
            [
                (format!("files/{long}"), 0o700, "echo".to_owned()),
                ("remove".to_owned(), 0o600, "token.json\n".to_owned()),
                ("manifest".to_owned(), 0o600, format!("{hash}  {long}\n")),
            ]
        );
        // Touched, but the same: nothing is sent.
        let touched = Changes {
            send: vec![name(&long)],
            remove: Vec::new(),
        };
        let again = pack(&touched, &files, &packed.ledger).unwrap();
        assert!(again.archive.is_none());
    }
}
