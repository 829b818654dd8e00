//! `read_file`: shows numbered lines of a text file, or a picture.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::picture::{self, PICTURE_BYTES_MAX, Picture, PictureFormat, Unshowable};
use hermes_core::{
    Brief, CancellationToken, Effect, Example, Exposure, Media, MediaSource, Parallel, Plan,
    PlanContext, Reader, Scripts, SessionId, Subagents, Surfaces, Tool, ToolContext, ToolError,
    ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::documents::{self, Extracted};
use crate::files::{FileSystems, Files, Kind as FileKind, Meta, Source};
use crate::ledger::FileLedger;
use crate::lines::{Page, PageText, read_page};
use crate::{BuiltIn, ToolLimits, ToolPorts, arguments, neighbours};

const NAME: &str = "read_file";

/// Lines shown when the model does not say how many: most files whole, few tokens wasted on the others.
const LINES_DEFAULT: usize = 500;

/// How far past the page lines are counted. Nobody needs the exact number of lines of a log of gigabytes.
const COUNT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A sample with more control characters than this is not text.
const CONTROL_PERCENT_MAX: usize = 30;

/// A kind of file that is not text: its first bytes, its name, and what shows it.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    signature: &'static [u8],
    name: &'static str,
    advice: &'static str,
}

const fn kind(signature: &'static [u8], name: &'static str, advice: &'static str) -> Kind {
    Kind {
        signature,
        name,
        advice,
    }
}

const UTF_16_ADVICE: &str = "convert it with `iconv -f utf-16 -t utf-8`";

const KINDS: &[Kind] = &[
    kind(
        b"%PDF",
        "a PDF document",
        "`pdftotext -layout FILE -` in `terminal` shows its text",
    ),
    kind(
        b"PK\x03\x04",
        "a ZIP archive",
        "`unzip -l` lists what is in it",
    ),
    kind(
        b"\x1f\x8b",
        "a gzip archive",
        "`zcat` or `tar -tzf` shows what is in it",
    ),
    kind(b"\x7fELF", "a program", "`file` and `strings` tell more"),
    kind(
        b"SQLite format 3",
        "an SQLite database",
        "`sqlite3 FILE .schema` shows its tables",
    ),
    kind(b"\xff\xfe", "UTF-16 text", UTF_16_ADVICE),
    kind(b"\xfe\xff", "UTF-16 text", UTF_16_ADVICE),
];

const UNKNOWN_KIND: Kind = kind(b"", "a binary file", "`file` and `xxd` tell more");

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("file"),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::Yes,
    for_small_models: Some(Brief {
        description: "Read a file.",
        parameters: &["path"],
        example: Some(Example {
            question: "What does todo.txt say?",
            arguments: r#"{"path": "todo.txt"}"#,
            result: "1|buy milk",
            answer: "todo.txt says \"buy milk\".",
        }),
    }),
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(ReadFile {
        spec: spec(&ports.limits),
        limits: ports.limits.clone(),
        systems: FileSystems::new(ports),
        ledger: ports.files.clone(),
    })
}

fn spec(limits: &ToolLimits) -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Read a text file, the text of a notebook, PDF, docx, xlsx or pptx, or look at a PNG, JPEG, GIF or WebP picture. Lines come numbered as `N|text`; the number and bar are not part of the \
                      file. Long files come in pages: go on with `offset`. Prefer this to `cat`, `head` or `tail`."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Absolute, `~/…`, or relative to the working directory"},
                "offset": {"type": "integer", "minimum": 1, "description": "First line, from 1 (default 1)"},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!("Lines at most (default {LINES_DEFAULT}, at most {})", limits.read_lines_max),
                },
            },
            "required": ["path"],
        }),
    }
}

struct ReadFile {
    spec: ToolSpec,
    limits: ToolLimits,
    systems: FileSystems,
    ledger: FileLedger,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn forget_shown(&self, session: &SessionId) {
        self.ledger.forget_pages(session);
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let path = arguments::text(arguments, "path");
        let path = path.as_slice();
        let parallel = self.systems.parallel(path, cx.cwd, Parallel::Reads);
        let touched = self.systems.on_this_machine(path, cx.cwd);
        let arguments = arguments::parse(NAME, arguments);
        let plan = Plan::doing(Effect::Read, parallel, move |cx| {
            Box::pin(async move { self.read(arguments?, cx).await })
        });
        Plan { touched, ..plan }
    }
}

impl ReadFile {
    async fn read(&self, arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let lines_max = self.limits.read_lines_max.max(1);
        let lines_default = match cx.reader {
            Reader::Model => LINES_DEFAULT,
            Reader::Program => lines_max,
        };
        let page = Page {
            offset: arguments.offset.unwrap_or(1).max(1),
            lines_max: arguments.limit.unwrap_or(lines_default).clamp(1, lines_max),
            is_numbered: cx.reader == Reader::Model,
            chars_max: self.limits.read_chars_max,
            line_chars_max: self.limits.line_chars_max,
            count_bytes_max: COUNT_BYTES_MAX,
        };
        let asked = arguments.path;
        let mut reading = Reading {
            files: self.systems.to_read(&asked, cx).files(),
            path: cx.cwd.clone(),
            page,
            ledger: self.ledger.clone(),
            session: cx.session.clone(),
            reader: cx.reader,
            stop: cx.stop.clone(),
        };
        let stopped =
            || ToolError::Stopped("stopped while reading; nothing was changed".to_owned());
        let pass = self.systems.pass_to_read(&asked, &cx.cwd);
        let place = (cx.cwd.as_path(), &cx.stop);
        let read = self.systems.work(place, pass, move || {
            let path = reading.files.absolute(&asked, &reading.path);
            reading.path = path.map_err(|error| format!("cannot read `{asked}`: {error}"))?;
            reading.run()
        });
        read.await
            .ok_or_else(stopped)?
            .map_err(ToolError::Answer)?
            .ok_or_else(stopped)
    }
}

/// One call, on a thread that may wait for the disk.
struct Reading {
    files: Arc<dyn Files>,
    path: PathBuf,
    page: Page,
    ledger: FileLedger,
    session: SessionId,
    reader: Reader,
    stop: CancellationToken,
}

impl Reading {
    /// Reads a page of a file, or a picture; an error is written for the model, and `Ok(None)` means that it was stopped.
    fn run(&self) -> Result<Option<ToolOutput>, String> {
        let opened = self.files.open(&self.path, self.page);
        let opened = opened.map_err(|error| self.explain(&error))?;
        let (target, meta) = (opened.target, opened.meta);
        let guard = self.files.guard();
        let guard = guard.map_err(|error| self.explain(&error))?;
        let refusal = guard.refuse_read(&self.path);
        if let Some(refusal) = refusal.or_else(|| guard.refuse_read(&target)) {
            return Err(refusal);
        }
        let refuse = || refuse_kind(self.files.as_ref(), &self.path, meta.kind);
        let mut source = opened.source.ok_or_else(refuse)?;
        let stamp = meta.stamp;
        let key = (self.page.offset, self.page.lines_max);
        // What a program reads is not in the conversation, nor can it look there.
        let is_shown = self.reader == Reader::Model;
        if is_shown && self.ledger.may_refer(&self.session, &target, stamp, key) {
            let text = unchanged(&self.path, self.page.offset);
            return Ok(Some(ToolOutput::text(text)));
        }
        let sample = source.sample().map_err(|error| self.explain(&error))?;
        if let Some(format) = PictureFormat::of(&sample) {
            return self.read_picture(format, source.as_mut(), &meta).map(Some);
        }
        let document = documents::extract(&target, source.as_mut())
            .map_err(|what| format!("`{}` {what}", self.path.display()))?;
        let text = match document {
            Some(document) => self.read_document(&document)?,
            None => self.read_text(source.as_mut(), &sample, &meta)?,
        };
        if let Some(text) = text.as_ref().filter(|_| is_shown) {
            self.ledger
                .note_read(&self.session, &target, stamp, key, text.len());
        }
        Ok(text.map(ToolOutput::text))
    }

    /// Shows a picture. It is shown again whenever it is asked for: the model may not have been sent it any more.
    fn read_picture(
        &self,
        format: PictureFormat,
        source: &mut dyn Source,
        meta: &Meta,
    ) -> Result<ToolOutput, String> {
        let shown = self.path.display();
        let size = picture::size(meta.bytes);
        if self.reader == Reader::Program {
            return Err(format!(
                "`{shown}` is a {format} image of {size}, not text; open the file in the script itself, or call \
                 `read_file` outside of scripts to look at it"
            ));
        }
        let refuse = |why: Unshowable| {
            format!(
                "`{shown}` is a {format} image of {size} and {why}; {}",
                remedy(why)
            )
        };
        // One that is too large is not even fetched.
        if meta.bytes > PICTURE_BYTES_MAX as u64 {
            return Err(refuse(Unshowable::TooManyBytes));
        }
        let bytes = whole_picture(source).map_err(|error| self.explain(&error))?;
        let picture = Picture::showable(format, &bytes).map_err(refuse)?;
        let media = Media {
            mime: format.mime().to_owned(),
            source: MediaSource::Base64(STANDARD.encode(&bytes)),
        };
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let size = picture::size(bytes.len() as u64);
        let text = format!("{}: {picture}, {size}", name.display());
        Ok(ToolOutput::text(text).with_images(vec![media]))
    }

    fn read_document(&self, document: &Extracted) -> Result<Option<String>, String> {
        let text = read_page(document.text.as_bytes(), self.page, &self.stop);
        let Some(text) = text.map_err(|error| self.explain(&error))? else {
            return Ok(None);
        };
        let text = present(&self.path, self.page, text)?;
        let kind = document.kind;
        Ok(Some(format!(
            "[the text of {kind}; changes to it need a program that writes the format]\n{text}"
        )))
    }

    fn read_text(
        &self,
        source: &mut dyn Source,
        sample: &[u8],
        meta: &Meta,
    ) -> Result<Option<String>, String> {
        if let Some(kind) = binary_kind(sample) {
            return Err(format!(
                "`{}` is {} of {} bytes, not text; {}",
                self.path.display(),
                kind.name,
                meta.bytes,
                kind.advice
            ));
        }
        let text = source.page(self.page, &self.stop);
        text.map_err(|error| self.explain(&error))?
            .map(|text| present(&self.path, self.page, text))
            .transpose()
    }

    fn explain(&self, error: &io::Error) -> String {
        explain(self.files.as_ref(), &self.path, error)
    }
}

/// Reads all of a picture, and one byte more than may be shown of one that has grown meanwhile.
fn whole_picture(source: &mut dyn Source) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let whole = source.whole()?;
    whole
        .take(PICTURE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the model can do about a picture that cannot be shown.
fn remedy(why: Unshowable) -> &'static str {
    match why {
        Unshowable::Broken => "make or fetch it again, or convert it with a command",
        Unshowable::TooManyBytes | Unshowable::TooLong { .. } => {
            "make a smaller copy with a command, for example `convert FILE -resize '1568x1568>' small.jpg`, and read that"
        }
    }
}

/// Says that a page is in the conversation already.
fn unchanged(path: &Path, offset: usize) -> String {
    format!(
        "[`{}` has not changed since you read it from line {offset}: your earlier result is still right. If you cannot \
         see it any more, read the file again.]",
        path.display()
    )
}

/// Says what a file is if its beginning is not text.
fn binary_kind(sample: &[u8]) -> Option<&'static Kind> {
    let known = KINDS.iter().find(|kind| sample.starts_with(kind.signature));
    let is_control =
        |byte: &&u8| **byte < b' ' && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    let controls = sample.iter().filter(is_control).count();
    let is_binary = sample.contains(&0) || controls * 100 > sample.len() * CONTROL_PERCENT_MAX;
    known.or(is_binary.then_some(&UNKNOWN_KIND))
}

/// Says why what is no regular file is not read.
fn refuse_kind(files: &dyn Files, path: &Path, kind: FileKind) -> String {
    let kind = match kind {
        FileKind::Folder => return neighbours::describe_folder(files, path),
        FileKind::Pipe => "a named pipe",
        FileKind::Socket => "a socket",
        FileKind::File | FileKind::Other => "a device",
    };
    format!(
        "`{}` is {kind}, not a regular file; reading it could hang or have effects",
        path.display()
    )
}

fn explain(files: &dyn Files, path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => neighbours::describe_missing(files, path),
        io::ErrorKind::PermissionDenied => {
            format!("`{shown}` may not be read by this user; its permissions forbid it")
        }
        _ => format!("cannot read `{shown}`: {error}"),
    }
}

/// Adds to the lines what the model must know about what it does not see.
fn present(path: &Path, page: Page, page_text: PageText) -> Result<String, String> {
    let PageText {
        mut text,
        last,
        total,
        is_total_exact,
        is_lossy,
    } = page_text;
    if total == 0 {
        let words = if page.is_numbered {
            "[the file is empty]"
        } else {
            ""
        };
        return Ok(words.to_owned());
    }
    if last == 0 {
        return Err(format!(
            "`{}` has {total} lines; offset {} is past its end",
            path.display(),
            page.offset
        ));
    }
    if is_lossy {
        text.push_str("[bytes that are not UTF-8 are shown as \u{fffd}; writing this text back would change them]\n");
    }
    let at_least = if is_total_exact { "" } else { "at least " };
    if last < total || !is_total_exact {
        text.push_str(&format!(
            "[lines {}-{last} of {at_least}{total}; continue with offset={}]",
            page.offset,
            last + 1
        ));
    } else if page.offset > 1 {
        text.push_str(&format!(
            "[lines {}-{last} of {total}; end of file]",
            page.offset
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_things() {
        for (sample, kind) in [
            (&b"hello\n"[..], None),
            (b"", None),
            ("héllo".as_bytes(), None),
            (b"\x1b[31mcoloured log\x1b[0m", None),
            (b"\x7fELF\x02", Some("a program")),
            (b"a\0b", Some("a binary file")),
            (b"\x01\x02\x03\x04abc", Some("a binary file")),
            (b"latin1 caf\xe9", None),
        ] {
            let found = binary_kind(sample).map(|kind| kind.name);
            assert_eq!(found, kind, "{sample:?}");
        }
    }
}
