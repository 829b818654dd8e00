//! Files where commands run, which is not this machine: reached with commands of the terminal, one for each question.
//!
//! They need a POSIX `sh` over there, `base64` and `stat`; what busybox has will do. The scripts beside this file do the
//! work; here they are called, and what they print is read. Unlike on this machine, a path is checked with one command and
//! used with the next, so a link that somebody puts there in between is followed.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_core::{
    CancellationToken, CommandExit, Pass, Progress, Random, SessionId, ShellCommand, Terminal,
};
use tokio::runtime::Handle;

use super::remote_answer::{RemoteAnswer, complaint};
use super::{
    Bytes, Entry, Files, Followed, JudgedWrite, Kind, Meta, Opened, SAMPLE_BYTES, Source, Staged,
};
use crate::guard::{Guard, PinnedGuard};
use crate::lines::{Page, PageText, read_page_after};
use crate::paths;

pub(crate) const BASE: &str = include_str!("base.sh");
const SCRIPT: &str = include_str!("there.sh");

/// How long one command may take; a slow network and a large file included.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(60);

/// Most that one command may print: the largest file that is read whole, in base64.
const OUTPUT_BYTES_MAX: usize = 96 * 1024 * 1024;

/// Larger documents are not fetched in order to be understood.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes fetched for a page. Longer lines than fit are cut anyway.
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What all calls know of the place.
#[derive(Debug, Clone)]
pub(super) struct ThereSettings {
    results: Vec<PathBuf>,
    /// Whose shell runs the scripts, apart from everybody's own: it stays where shells begin. New in each process, since
    /// the settings may name another folder by then.
    session: SessionId,
    bearings: Arc<OnceLock<Bearings>>,
}

impl ThereSettings {
    pub(super) fn new(results: Vec<PathBuf>) -> Self {
        let number = Random::from_system().next_u64();
        Self {
            results,
            session: SessionId::from(format!("hermes-files-{number:016x}")),
            bearings: Arc::default(),
        }
    }
}

/// What paths mean over there.
#[derive(Debug)]
pub(crate) struct Bearings {
    home: PathBuf,
    /// Without links.
    real_home: PathBuf,
    /// Where shells begin, and relative paths with them.
    pub(crate) folder: PathBuf,
}

impl Bearings {
    fn homes(&self) -> Vec<PathBuf> {
        vec![self.home.clone(), self.real_home.clone()]
    }

    fn absolute(&self, path: &str) -> PathBuf {
        paths::absolute(path, &self.folder, Some(&self.home))
    }
}

#[derive(Clone)]
pub(crate) struct There {
    terminal: Arc<dyn Terminal>,
    settings: ThereSettings,
    /// The folder of the conversation, which a backend without one of its own begins in.
    cwd: PathBuf,
    stop: CancellationToken,
}

impl There {
    pub(super) fn new(terminal: Arc<dyn Terminal>, settings: ThereSettings) -> Self {
        Self {
            terminal,
            settings,
            cwd: PathBuf::from("/"),
            stop: CancellationToken::new(),
        }
    }

    pub(super) fn for_call(&self, cwd: &Path, stop: &CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            cwd: cwd.to_owned(),
            stop: stop.clone(),
            ..self.clone()
        })
    }

    /// Returns whether a path names something that was too long for the conversation; that is on this machine.
    pub(super) fn is_result(&self, path: &str) -> bool {
        let path = paths::absolute(path, Path::new("/"), None);
        let mut results = self.settings.results.iter();
        results.any(|folder| path.starts_with(folder))
    }

    /// Returns what a path means, once that is known.
    pub(super) fn known(&self, path: &str) -> Option<PathBuf> {
        let bearings = self.settings.bearings.get()?;
        Some(bearings.absolute(path))
    }

    /// Judges a write by the name of its file.
    pub(super) fn judge_write(&self, path: &str) -> JudgedWrite {
        let homes = self
            .settings
            .bearings
            .get()
            .map_or(Vec::new(), Bearings::homes);
        let named = self.known(path).unwrap_or_else(|| PathBuf::from(path));
        JudgedWrite {
            judgement: Guard::there(homes).pinned().judge_write(&named),
            name: path.to_owned(),
            shown: named.display().to_string(),
        }
    }

    pub(crate) fn bearings(&self) -> io::Result<&Bearings> {
        if let Some(bearings) = self.settings.bearings.get() {
            return Ok(bearings);
        }
        let answer = self.ask("home", &[], Vec::new())?;
        let bearings = Bearings {
            home: answer.path("home")?,
            real_home: answer.path("real_home")?,
            folder: answer.path("folder")?,
        };
        Ok(self.settings.bearings.get_or_init(|| bearings))
    }

    /// Runs the script for files; an answer without its end is an error.
    fn ask(&self, what: &str, arguments: &[&str], stdin: Vec<u8>) -> io::Result<RemoteAnswer> {
        let mut words = vec![what];
        words.extend_from_slice(arguments);
        let answer = self.run(SCRIPT, &words, stdin)?;
        if answer.is_cut {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no whole answer came from over there",
            ))
        } else {
            Ok(answer)
        }
    }

    /// Runs a script after what all have in common. What it printed before its time was over is an answer too.
    pub(crate) fn run(
        &self,
        script: &str,
        arguments: &[&str],
        stdin: Vec<u8>,
    ) -> io::Result<RemoteAnswer> {
        let mut line = format!("exec sh -c {} hermes", quoted(&format!("{BASE}{script}")));
        for argument in arguments {
            if argument.contains('\0') {
                return Err(io::Error::other("a path cannot contain a NUL character"));
            }
            line.push(' ');
            line.push_str(&quoted(argument));
        }
        let command = ShellCommand {
            session: self.settings.session.clone(),
            line,
            cwd: self.cwd.clone(),
            workdir: None,
            stdin,
            pty: false,
            timeout: TIME_MAX,
            output_bytes_max: OUTPUT_BYTES_MAX,
            pass: Pass::default(),
            mark: None,
            stop: self.stop.clone(),
            progress: Progress::default(),
        };
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let output = runtime.block_on(self.terminal.run(command));
        let output = output.map_err(io::Error::other)?;
        match output.exit {
            CommandExit::Stopped => Err(io::ErrorKind::Interrupted.into()),
            _ => RemoteAnswer::read(&output.text),
        }
    }

    /// Stages or writes content: `what` says which.
    fn send(
        &self,
        what: &str,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<RemoteAnswer> {
        let bytes = content.len().to_string();
        let mode = model.map_or(String::new(), |model| format!("{:o}", model.mode));
        let owner = model.map_or(String::new(), |model| {
            format!("{}:{}", model.user, model.group)
        });
        let arguments = [text(target)?, &bytes, &mode, &owner];
        self.ask(what, &arguments, content.to_vec())
    }
}

impl Files for There {
    fn absolute(&self, path: &str, _cwd: &Path) -> io::Result<PathBuf> {
        let absolute = self.bearings()?.absolute(path);
        // A slash at the end says that a folder is meant.
        Ok(if path.ends_with('/') {
            absolute.join("")
        } else {
            absolute
        })
    }

    fn guard(&self) -> io::Result<PinnedGuard> {
        Ok(Guard::there(self.bearings()?.homes()).pinned())
    }

    fn follow(&self, path: &Path) -> io::Result<Followed> {
        let answer = self.ask("follow", &[text(path)?], Vec::new())?;
        Ok(Followed {
            target: paths::without_dots(&answer.path("target")?),
            is_link: answer.has("link"),
        })
    }

    fn look(&self, target: &Path, content_bytes_max: u64) -> io::Result<Option<Entry>> {
        let limit = content_bytes_max.to_string();
        let answer = self.ask("look", &[text(target)?, &limit], Vec::new())?;
        let Some(meta) = answer.meta()? else {
            return Ok(None);
        };
        let content = match answer.get("unread") {
            Some(reason) => Some(Err(complaint(reason))),
            None if answer.has("content") => Some(answer.bytes("content")),
            None => None,
        };
        Ok(Some(Entry {
            meta,
            may_write: !answer.has("unwritable"),
            content,
        }))
    }

    fn open(&self, path: &Path, page: Page) -> io::Result<Opened> {
        let numbers = [page.offset, page.lines_max, PAGE_BYTES_MAX];
        let [first, lines, bytes] = numbers.map(|number| number.to_string());
        let sample = SAMPLE_BYTES.to_string();
        let arguments = [text(path)?, &first, &lines, &bytes, &sample];
        let answer = self.ask("open", &arguments, Vec::new())?;
        let target = answer.path("target")?;
        let meta = answer.meta()?.ok_or(io::ErrorKind::NotFound)?;
        let source: Option<Box<dyn Source>> = match meta.kind {
            Kind::File => Some(Box::new(Fetched {
                there: self.clone(),
                target: target.clone(),
                sample: answer.bytes("sample")?,
                page: answer.bytes("page")?,
                lines: answer
                    .number("breaks")?
                    .saturating_add(answer.has("unended").into()),
            })),
            _ => None,
        };
        Ok(Opened {
            target,
            meta,
            source,
        })
    }

    fn stage(
        &self,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<(Box<dyn Staged>, Vec<PathBuf>)> {
        let answer = self.send("stage", target, content, model)?;
        let staged = StagedThere {
            there: self.clone(),
            temp: answer.path("temp")?,
            target: target.to_owned(),
            is_put: false,
        };
        Ok((Box::new(staged), answer.paths("made")?))
    }

    fn write(
        &self,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<Vec<PathBuf>> {
        self.send("write", target, content, model)?.paths("made")
    }

    fn remove(&self, target: &Path) -> io::Result<()> {
        self.ask("remove", &[text(target)?], Vec::new()).map(drop)
    }

    fn remove_folders(&self, folders: &[PathBuf]) {
        let innermost_first = folders.iter().rev().map(|folder| text(folder));
        if let Ok(folders) = innermost_first.collect::<io::Result<Vec<_>>>()
            && !folders.is_empty()
        {
            // Empty folders that stay do no harm.
            let _ = self.ask("rmdir", &folders, Vec::new());
        }
    }

    fn nearest_folder(&self, path: &Path) -> PathBuf {
        let answer = text(path).and_then(|path| self.ask("nearest", &[path], Vec::new()));
        let folder = answer.and_then(|answer| answer.path("folder"));
        folder.unwrap_or_else(|_| PathBuf::from("/"))
    }

    fn names(&self, folder: &Path, names_max: usize) -> io::Result<Vec<String>> {
        let limit = names_max.to_string();
        let answer = self.ask("names", &[text(folder)?, &limit], Vec::new())?;
        let names = answer.bytes("names")?;
        let names = String::from_utf8_lossy(&names);
        Ok(names.lines().map(str::to_owned).collect())
    }
}

/// A file of which the wanted page is here already.
struct Fetched {
    there: There,
    target: PathBuf,
    sample: Vec<u8>,
    page: Vec<u8>,
    lines: usize,
}

impl Source for Fetched {
    fn sample(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.sample.clone())
    }

    fn page(&mut self, page: Page, stop: &CancellationToken) -> io::Result<Option<PageText>> {
        let lines = if self.page.len() < PAGE_BYTES_MAX {
            self.page.as_slice()
        } else {
            whole_lines(&self.page)
        };
        let text = read_page_after(page.offset - 1, lines, page, stop)?;
        Ok(text.map(|text| PageText {
            total: self.lines,
            is_total_exact: true,
            ..text
        }))
    }

    fn whole(&mut self) -> io::Result<Box<dyn Bytes + '_>> {
        let entry = self.there.look(&self.target, DOCUMENT_BYTES_MAX)?;
        let content = entry.and_then(|entry| entry.content);
        let content = content.ok_or(io::ErrorKind::FileTooLarge)??;
        Ok(Box::new(Cursor::new(content)))
    }
}

/// Returns what ends with a line break, or everything when there is none: then one line is all there is to show.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    end.map_or(bytes, |end| &bytes[..=end])
}

struct StagedThere {
    there: There,
    temp: PathBuf,
    target: PathBuf,
    is_put: bool,
}

impl Staged for StagedThere {
    fn put(mut self: Box<Self>) -> io::Result<()> {
        let arguments = [text(&self.temp)?, text(&self.target)?];
        self.there.ask("put", &arguments, Vec::new())?;
        self.is_put = true;
        Ok(())
    }
}

impl Drop for StagedThere {
    fn drop(&mut self) {
        if self.is_put {
            return;
        }
        // Also after a stop.
        self.there.stop = CancellationToken::new();
        if let Ok(temp) = text(&self.temp) {
            let _ = self.there.ask("discard", &[temp], Vec::new());
        }
    }
}

fn text(path: &Path) -> io::Result<&str> {
    let text = path.to_str();
    text.ok_or_else(|| io::Error::other("only names in UTF-8 can be used over there"))
}

/// Quotes a word for any POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_cut_ends_with_a_whole_line() {
        assert_eq!(whole_lines(b"one\ntwo\nthr"), b"one\ntwo\n");
        assert_eq!(whole_lines(b"endless"), b"endless");
    }

    #[test]
    fn a_quoted_word_is_one_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
