//! What the scripts of `there` answer.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::text::shorten;
use rustix::io::Errno;

use super::{Kind, MODE_BITS, Meta};
use crate::ledger::Stamp;

/// The line before the answer, and the one at its end.
const BEGIN: &str = "hermes-files";
const END: &str = "done";

/// Of what is not an answer, enough to see what it is.
const FOREIGN_CHARS_MAX: usize = 500;

/// What programs say of a system call that failed, in the words of several C libraries and shells.
const COMPLAINTS: &[(&str, Errno)] = &[
    ("No such file or directory", Errno::NOENT),
    ("Directory nonexistent", Errno::NOENT),
    ("Permission denied", Errno::ACCESS),
    ("Operation not permitted", Errno::PERM),
    ("Not a directory", Errno::NOTDIR),
    ("File exists", Errno::NOTDIR),
    ("Is a directory", Errno::ISDIR),
    ("Read-only file system", Errno::ROFS),
    ("No space left on device", Errno::NOSPC),
    ("Disk quota exceeded", Errno::DQUOT),
    ("Quota exceeded", Errno::DQUOT),
    ("File name too long", Errno::NAMETOOLONG),
    ("Filename too long", Errno::NAMETOOLONG),
    ("Too many levels of symbolic links", Errno::LOOP),
    ("Symbolic link loop", Errno::LOOP),
];

/// Words, each with what it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RemoteAnswer {
    lines: Vec<(String, String)>,
    /// The end is missing.
    pub(crate) is_cut: bool,
}

impl RemoteAnswer {
    pub(crate) fn read(text: &str) -> io::Result<Self> {
        let mut lines = text.lines().skip_while(|line| *line != BEGIN);
        if lines.next().is_none() {
            return Err(io::Error::other(format!(
                "no answer from the shell over there, but: {}",
                shorten(text.trim(), FOREIGN_CHARS_MAX)
            )));
        }
        let mut answer = Self {
            lines: Vec::new(),
            is_cut: true,
        };
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "error" => return Err(complaint(rest)),
                END => answer.is_cut = false,
                word => answer.lines.push((word.to_owned(), rest.to_owned())),
            }
        }
        Ok(answer)
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.get(word).is_some()
    }

    pub(crate) fn get(&self, word: &str) -> Option<&str> {
        let mut lines = self.lines.iter();
        lines.find_map(|(found, rest)| (found == word).then_some(rest.as_str()))
    }

    pub(crate) fn bytes(&self, word: &str) -> io::Result<Vec<u8>> {
        decoded(self.get(word).ok_or_else(|| incomplete(word))?)
    }

    pub(crate) fn path(&self, word: &str) -> io::Result<PathBuf> {
        self.bytes(word).map(path)
    }

    /// Returns every path that is said with a word.
    pub(crate) fn paths(&self, word: &str) -> io::Result<Vec<PathBuf>> {
        let said = self.lines.iter().filter(|(found, _)| found == word);
        said.map(|(_, rest)| decoded(rest).map(path)).collect()
    }

    pub(crate) fn number(&self, word: &str) -> io::Result<usize> {
        let number = self.get(word).and_then(|number| number.parse().ok());
        number.ok_or_else(|| incomplete(word))
    }

    /// Returns what was seen; `None` when nothing is there.
    pub(crate) fn meta(&self) -> io::Result<Option<Meta>> {
        if self.has("missing") {
            return Ok(None);
        }
        let meta = self.get("seen").and_then(meta);
        meta.map(Some).ok_or_else(|| incomplete("seen"))
    }
}

/// Makes the error of a system call out of what a program says of it.
pub(crate) fn complaint(words: &str) -> io::Error {
    let known = COMPLAINTS.iter().find(|(said, _)| words.contains(said));
    match known {
        Some((_, errno)) => (*errno).into(),
        None => io::Error::other(shorten(words.trim(), FOREIGN_CHARS_MAX)),
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// Decodes base64 of which the end may be missing.
fn decoded(text: &str) -> io::Result<Vec<u8>> {
    let whole = text.len() - text.len() % 4;
    let whole = &text.as_bytes()[..whole];
    STANDARD.decode(whole).map_err(io::Error::other)
}

fn incomplete(word: &str) -> io::Error {
    io::Error::other(format!(
        "the answer from over there is incomplete: it has no `{word}`"
    ))
}

/// Reads `mode bytes user group device inode modified changed|modified|changed`, the mode in hexadecimal digits, and
/// the fractions of the times in whatever way they are written.
fn meta(seen: &str) -> Option<Meta> {
    let mut parts = seen.split('|');
    let mut words = parts.next()?.split(' ');
    let mode = u32::from_str_radix(words.next()?, 16).ok()?;
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [bytes, user, group, device, inode, modified, changed] = numbers[..] else {
        return None;
    };
    let mut nanoseconds = || parts.next().map_or(0, nanoseconds);
    let modified = (i64::try_from(modified).ok()?, nanoseconds());
    let changed = (i64::try_from(changed).ok()?, nanoseconds());
    Some(Meta {
        kind: Kind::of(mode),
        bytes,
        mode: mode & MODE_BITS,
        user: u32::try_from(user).ok()?,
        group: u32::try_from(group).ok()?,
        stamp: Stamp::new((device, inode), bytes, modified, changed),
    })
}

fn nanoseconds(time: &str) -> i64 {
    let fraction = time.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits: String = fraction
        .chars()
        .take_while(char::is_ascii_digit)
        .take(9)
        .collect();
    format!("{digits:0<9}").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_after_what_others_said() {
        let answer = RemoteAnswer::read("[lost]\nhermes-files\ntarget L2E=\nlink\ndone\n").unwrap();
        assert_eq!(answer.path("target").unwrap(), PathBuf::from("/a"));
        assert!(answer.has("link") && !answer.is_cut);
        assert!(RemoteAnswer::read("hermes-files\nlink\n").unwrap().is_cut);
        let error = RemoteAnswer::read("sh: not found").unwrap_err();
        assert!(error.to_string().contains("sh: not found"), "{error}");
    }

    #[test]
    fn nonsense_is_an_error_of_a_few_words() {
        let answer = RemoteAnswer::read("hermes-files\ntarget abcé\nseen x\ndone\n").unwrap();
        assert!(answer.path("target").is_err() && answer.meta().is_err());
        for nonsense in [
            "é".repeat(100_000),
            format!("hermes-files\nerror {}", "é".repeat(100_000)),
        ] {
            let error = RemoteAnswer::read(&nonsense).unwrap_err().to_string();
            assert!(error.len() < 2000, "{} bytes", error.len());
        }
    }

    #[test]
    fn the_errors_of_programs_are_those_of_system_calls() {
        for (said, kind) in [
            (
                "mv: cannot move: Permission denied",
                io::ErrorKind::PermissionDenied,
            ),
            (
                "cat: write error: No space left on device ",
                io::ErrorKind::StorageFull,
            ),
            ("something else", io::ErrorKind::Other),
        ] {
            let text = format!("hermes-files\nerror {said}\n");
            assert_eq!(
                RemoteAnswer::read(&text).unwrap_err().kind(),
                kind,
                "{said}"
            );
        }
    }

    #[test]
    fn what_stat_says_is_read_in_every_dialect() {
        let gnu = meta("81ed 12 0 7 1 2 100 200|2026-11-16 07:17:01.782464819 +0000|x").unwrap();
        let stamp = Stamp::new((1, 2), 12, (100, 782_464_819), (200, 0));
        assert_eq!(
            (gnu.kind, gnu.mode, gnu.group, gnu.stamp),
            (Kind::File, 0o755, 7, stamp)
        );
        let bsd = meta("41ed 12 0 7 1 2 100 200|100.5|200.25").unwrap();
        let stamp = Stamp::new((1, 2), 12, (100, 500_000_000), (200, 250_000_000));
        assert_eq!((bsd.kind, bsd.stamp), (Kind::Folder, stamp));
        assert_eq!(meta("nonsense"), None);
    }
}
