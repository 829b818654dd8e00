//! Searches files where commands run, with the `rg` or the `grep` over there.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grep_regex::RegexMatcher;

use super::content::{self, FileMatches, MatchedLine};
use super::extended::extended;
use super::glob::FileGlob;
use super::page::{Hits, Key, Page};
use super::walk::{Count, LeftOut, Name};
use crate::files::there::There;
use crate::files::{Files, Kind, RemoteAnswer};
use crate::neighbours;

const SCRIPT: &str = include_str!("there.sh");

/// Most that is fetched of what was found: some ten thousand lines.
const FOUND_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most that is fetched of a list of files: some hundred thousand.
const NAMES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What stands before the name of a file.
const FILE_MARK: u8 = 0o36;

/// A folder or file over there.
pub(super) struct ThereSearch<'a> {
    pub(super) there: &'a There,
    pub(super) path: &'a Path,
    pub(super) glob: Option<&'a FileGlob>,
}

/// What to look for in files.
pub(super) struct Lines<'a> {
    pub(super) pattern: &'a str,
    pub(super) matcher: &'a RegexMatcher,
    pub(super) context: usize,
}

/// What was found, and whether that is all.
pub(super) struct Found<T> {
    pub(super) found: T,
    pub(super) is_complete: bool,
}

impl ThereSearch<'_> {
    /// Finds files, newest first. An error is written for the model.
    pub(super) fn find_files(&self, wanted: usize) -> Result<Found<Page<Name>>, String> {
        let (files, is_complete) = self.list()?;
        let mut page = Page::new(wanted);
        for (path, modified) in files {
            page.add(Key::newest_first(path, Some(modified)), Name);
        }
        Ok(Found {
            found: page,
            is_complete,
        })
    }

    /// Finds lines, by path.
    pub(super) fn find_lines(
        &self,
        lines: &Lines<'_>,
        wanted: usize,
    ) -> Result<Found<(Page<FileMatches>, LeftOut)>, String> {
        self.search("lines", lines, wanted, |text| {
            file_matches(text, lines.matcher, lines.context)
        })
    }

    /// Counts lines per file, by path.
    pub(super) fn count_lines(
        &self,
        lines: &Lines<'_>,
        wanted: usize,
    ) -> Result<Found<(Page<Count>, LeftOut)>, String> {
        self.search("counts", lines, wanted, |text| {
            let count = String::from_utf8_lossy(text.first().unwrap_or(&&b""[..]));
            Count(count.trim().parse().unwrap_or_default())
        })
    }

    fn search<H: Hits>(
        &self,
        what: &str,
        lines: &Lines<'_>,
        wanted: usize,
        hits_of: impl Fn(&[&[u8]]) -> H,
    ) -> Result<Found<(Page<H>, LeftOut)>, String> {
        let mut is_complete = true;
        let mut given = None;
        if self.glob.is_some() {
            let (files, are_all) = self.list()?;
            is_complete = are_all;
            if files.is_empty() {
                // A program that is given no names would search everything.
                return Ok(Found {
                    found: (Page::new(wanted), LeftOut::default()),
                    is_complete,
                });
            }
            given = Some(files);
        }
        let answer = self.ask(what, Some(lines), given.as_deref())?;
        let root = self.root(&answer)?;
        let found = answer
            .bytes("found")
            .map_err(|error| self.explain(&error))?;
        is_complete &= !answer.is_cut && found.len() < FOUND_BYTES_MAX;
        let guard = self.there.guard();
        let guard = guard.map_err(|error| self.explain(&error))?;
        let mut page = Page::new(wanted);
        let mut left_out = LeftOut {
            binary: answer.has("binary"),
            ..LeftOut::default()
        };
        for (name, text) in by_file(&found) {
            let path = root.base().join(OsStr::from_bytes(name));
            let hits = hits_of(&text);
            match (guard.refuse_read(&path), hits.total()) {
                (_, 0) => {}
                (Some(_), _) => left_out.secret += 1,
                (None, _) => page.add(Key::by_path(path), hits),
            }
        }
        Ok(Found {
            found: (page, left_out),
            is_complete,
        })
    }

    /// Returns the files that are meant with their times, and whether those are all.
    fn list(&self) -> Result<(Vec<(PathBuf, SystemTime)>, bool), String> {
        let answer = self.ask("names", None, None)?;
        let root = self.root(&answer)?;
        let found = answer
            .bytes("found")
            .map_err(|error| self.explain(&error))?;
        let is_complete = !answer.is_cut && found.len() < NAMES_BYTES_MAX;
        let files = found.split(|byte| *byte == b'\n').filter_map(|line| {
            let space = line.iter().position(|byte| *byte == b' ')?;
            let seconds = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
            let path = root.base().join(OsStr::from_bytes(&line[space + 1..]));
            let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
            Some((path, modified))
        });
        let is_meant = |path: &Path| {
            let glob = self.glob.filter(|_| root.is_folder);
            glob.is_none_or(|glob| glob.is_match(path, &root.path))
        };
        Ok((
            files.filter(|(path, _)| is_meant(path)).collect(),
            is_complete,
        ))
    }

    fn ask(
        &self,
        what: &str,
        lines: Option<&Lines<'_>>,
        given: Option<&[(PathBuf, SystemTime)]>,
    ) -> Result<RemoteAnswer, String> {
        let path = self.path.to_string_lossy();
        let wants_hidden = self.glob.is_some_and(|glob| glob.wants_hidden);
        let context = lines.map_or(0, |lines| lines.context).to_string();
        let bytes_max = match lines {
            Some(_) => FOUND_BYTES_MAX,
            None => NAMES_BYTES_MAX,
        };
        let extended = lines.and_then(|lines| extended(lines.pattern));
        let ignores_case = extended
            .as_ref()
            .is_some_and(|extended| extended.ignores_case);
        let arguments = [
            path.as_ref(),
            what,
            if wants_hidden { "hidden" } else { "visible" },
            &context,
            &bytes_max.to_string(),
            lines.map_or("", |lines| lines.pattern),
            extended.as_ref().map_or("", |extended| &extended.pattern),
            if ignores_case { "-i" } else { "" },
            if given.is_some() { "given" } else { "all" },
        ];
        let stdin = given.map_or(Vec::new(), names);
        let answer = self.there.run(SCRIPT, &arguments, stdin);
        answer.map_err(|error| self.explain(&error))
    }

    /// Returns what was searched, unless it must not be.
    fn root(&self, answer: &RemoteAnswer) -> Result<Root, String> {
        let explain = |error| self.explain(&error);
        let path = answer.path("target").map_err(explain)?;
        let meta = answer.meta().map_err(explain)?;
        let meta = meta.ok_or_else(|| neighbours::describe_missing(self.there, self.path))?;
        let guard = self.there.guard().map_err(explain)?;
        let refusal = guard.refuse_read(self.path);
        if let Some(refusal) = refusal.or_else(|| guard.refuse_read(&path)) {
            return Err(refusal);
        }
        match meta.kind {
            Kind::Folder | Kind::File => Ok(Root {
                path,
                is_folder: meta.kind == Kind::Folder,
            }),
            _ => Err(format!(
                "`{}` is neither a folder nor a regular file",
                self.path.display()
            )),
        }
    }

    fn explain(&self, error: &io::Error) -> String {
        format!("cannot search `{}`: {error}", self.path.display())
    }
}

struct Root {
    path: PathBuf,
    is_folder: bool,
}

impl Root {
    /// The folder that names are below.
    fn base(&self) -> &Path {
        if self.is_folder {
            &self.path
        } else {
            self.path.parent().unwrap_or(&self.path)
        }
    }
}

/// Writes paths as lines. They are absolute, and so are what is found of them.
fn names(files: &[(PathBuf, SystemTime)]) -> Vec<u8> {
    let lines = files.iter().flat_map(|(path, _)| {
        let name = path.as_os_str().as_bytes();
        name.iter().chain(b"\n")
    });
    lines.copied().collect()
}

/// Takes apart what was found: names, and the lines of each.
fn by_file(found: &[u8]) -> Vec<(&[u8], Vec<&[u8]>)> {
    let mut files: Vec<(&[u8], Vec<&[u8]>)> = Vec::new();
    for line in found.split(|byte| *byte == b'\n') {
        match (line.strip_prefix(&[FILE_MARK]), files.last_mut()) {
            (Some(name), _) => files.push((name, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    files
}

/// Reads lines like `12:text`, or `12-text` for those around a match.
fn file_matches(text: &[&[u8]], matcher: &RegexMatcher, context: usize) -> FileMatches {
    let mut found = FileMatches::default();
    let mut before = Vec::new();
    let mut matched: Option<u64> = None;
    for line in text {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&line[..digits]).unwrap_or_default();
        let (Ok(number), Some((mark, text))) = (number.parse(), line[digits..].split_first())
        else {
            continue;
        };
        let is_match = *mark == b':';
        let line = MatchedLine {
            number,
            text: if is_match {
                content::shown(text, matcher)
            } else {
                content::cut(&content::text_of(text))
            },
            is_match,
        };
        let is_after =
            matched.is_some_and(|matched| number <= matched.saturating_add(context as u64));
        match found.matches.last_mut() {
            _ if is_match => {
                let mut lines = std::mem::take(&mut before);
                lines.push(line);
                found.matches.push(lines);
                found.total += 1;
                matched = Some(number);
            }
            Some(lines) if is_after => lines.push(line),
            _ => before.push(line),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_read_file_by_file() {
        let found = b"\x1ea/b.txt\n1-above\n2:hit\n3-below\n--\n8-above\n9:hit\n\x1ec\n1:hit\n";
        let files = by_file(found);
        let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [&b"a/b.txt"[..], b"c"]);
        let matcher = content::pattern("hit").unwrap().matcher;
        let matches = file_matches(&files[0].1, &matcher, 1);
        let numbers: Vec<Vec<u64>> = matches
            .matches
            .iter()
            .map(|lines| lines.iter().map(|line| line.number).collect())
            .collect();
        assert_eq!(
            (matches.total, numbers),
            (2, vec![vec![1, 2, 3], vec![8, 9]])
        );
        assert_eq!(matches.matches[0][1].text, "hit");
    }
}
