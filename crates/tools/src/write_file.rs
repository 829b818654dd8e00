//! `write_file`: creates a file or replaces its whole content.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use hermes_core::{
    Action, BoxFuture, Brief, Effect, Exposure, Parallel, Plan, PlanContext, Preview,
    PreviewContext, Scripts, SessionId, Subagents, Surfaces, Tool, ToolContext, ToolError,
    ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::edits::{Before, Edit, Edits};
use crate::files::FileSystems;
use crate::ledger::FileLedger;
use crate::target::{Existing, Target};
use crate::{BuiltIn, ToolPorts, arguments, blocking, diff, edits, syntax};

const NAME: &str = "write_file";

/// An existing file larger than this is replaced without a look at its style.
const STYLE_BYTES_MAX: u64 = 4 * 1024 * 1024;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Content with this share of lines like `12|text` is our own display of a file, not a file.
const DISPLAY_PERCENT_MIN: usize = 60;

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
        description: "Write a file: creates it, or replaces its whole content.",
        parameters: &["path", "content"],
        example: None,
    }),
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    let systems = FileSystems::new(ports);
    Arc::new(WriteFile {
        edits: Edits::of(NAME, ports, &systems),
        systems,
        ledger: ports.files.clone(),
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Create a file, or replace the whole content of one. Missing folders are created; mode, line \
                      endings and byte order mark of an existing file are kept. Read an existing file first, and \
                      send all of the new content. Prefer this to `echo >` or here-documents in `terminal`."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Absolute, `~/…`, or relative to the working directory"},
                "content": {"type": "string", "description": "Everything the file is to contain, without line numbers"},
            },
            "required": ["path", "content"],
        }),
    }
}

struct WriteFile {
    systems: FileSystems,
    edits: Edits,
    ledger: FileLedger,
}

#[derive(Clone, Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn reviews_changes(&self) -> bool {
        true
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let path = arguments::text(arguments, "path");
        let path = path.as_slice();
        let consent = self.edits.consent(path, cx.cwd);
        let parallel = self.systems.parallel(path, cx.cwd, Parallel::Writes);
        let touched = self.systems.on_this_machine(path, cx.cwd);
        let call = WriteCall {
            arguments: arguments::parse(NAME, arguments),
            tool: self,
        };
        Plan {
            consent,
            changes: touched.clone(),
            touched,
            ..Plan::new(Effect::Idempotent, parallel, call)
        }
    }
}

/// One call, as its arguments were read.
struct WriteCall {
    tool: Arc<WriteFile>,
    arguments: Result<Arguments, ToolError>,
}

impl Action for WriteCall {
    fn preview<'a>(
        &'a self,
        cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async move {
            match &self.arguments {
                Ok(arguments) => self.tool.show(arguments.clone(), cx).await,
                Err(error) => Err(ToolError::Answer(error.to_string())),
            }
        })
    }

    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.tool.write(self.arguments?, cx).await })
    }
}

impl WriteFile {
    /// Works out what would be written, and writes nothing.
    async fn show(
        &self,
        arguments: Arguments,
        cx: PreviewContext<'_>,
    ) -> Result<Option<Preview>, ToolError> {
        let Arguments { path, content } = arguments;
        let files = self.systems.to_write(cx.cwd, cx.stop);
        let (ledger, session, cwd) = (self.ledger.clone(), cx.session.clone(), cx.cwd.to_owned());
        let shown = blocking::unless_stopped(cx.stop, move || {
            let target = Target::asked_for(&files, &path, &cwd)?;
            let prepared = prepare(&target, &content, &ledger, &session)?;
            Ok(edits::preview(&[prepared.edit(&path, &target)]))
        });
        match shown.await {
            Some(shown) => shown.map(Some).map_err(ToolError::Answer),
            None => Err(ToolError::Stopped("stopped before it was shown".to_owned())),
        }
    }

    async fn write(&self, arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { path, content } = arguments;
        let files = self.systems.to_write(&cx.cwd, &cx.stop);
        let (edits, ledger) = (self.edits.clone(), self.ledger.clone());
        let (session, stop) = (cx.session.clone(), cx.stop.clone());
        let progress = cx.progress.clone();
        let (asked, cwd, agreement) = (path.clone(), cx.cwd.clone(), cx.agreement.clone());
        let pass = self.systems.pass_to_write(&[&path], &cx.cwd);
        let place = (cx.cwd.as_path(), &cx.stop);
        let systems = self.systems.clone();
        let written = self.systems.work(place, pass, move || {
            let target = Target::asked_for(&files, &asked, &cwd)?;
            edits.check(&asked, &target, &agreement)?;
            let _lock = ledger.lock(vec![target.path().to_owned()]);
            // Whoever waited for another writer may no longer be wanted.
            if stop.is_cancelled() {
                Ok(None)
            } else {
                let prepared = prepare(&target, &content, &ledger, &session)?;
                edits::check_seen(&[prepared.edit(&asked, &target)], &agreement)?;
                let _agreed = systems.agreed(&[&asked], &cwd);
                let text = write(&target, &prepared, &ledger, &session)?;
                // For whoever watches; the model knows what it wrote.
                progress.show(prepared.diff(&asked));
                Ok(Some(text))
            }
        });
        match written.await {
            Some(Ok(Some(text))) => Ok(ToolOutput::text(text)),
            Some(Err(answer)) => Err(ToolError::Answer(answer)),
            Some(Ok(None)) | None => Err(ToolError::Stopped(format!(
                "stopped while writing `{path}`; it has either all of its old content or all of the new"
            ))),
        }
    }
}

/// What is there, and what would be written.
struct Prepared<'a> {
    existing: Option<Existing>,
    content: Cow<'a, str>,
}

impl Prepared<'_> {
    /// What changes, line by line.
    fn diff(&self, name: &str) -> String {
        let old = self
            .existing
            .as_ref()
            .map(|existing| match &existing.content {
                Some(Ok(content)) => content.as_slice(),
                _ => &[],
            });
        diff::unified(name, old, Some(self.content.as_bytes()))
    }

    fn edit<'a>(&'a self, name: &'a str, target: &'a Target) -> Edit<'a> {
        let before = match &self.existing {
            None => Before::NoFile,
            Some(Existing {
                content: Some(Ok(content)),
                ..
            }) => Before::Content(content),
            Some(existing) => Before::Unread(existing.meta.stamp),
        };
        Edit {
            name,
            moved_from: None,
            target,
            before,
            after: Some(self.content.as_bytes()),
        }
    }
}

/// Checks what is to be written, and against what is there. An error is written for the model.
fn prepare<'a>(
    target: &Target,
    content: &'a str,
    ledger: &FileLedger,
    session: &SessionId,
) -> Result<Prepared<'a>, String> {
    let shown = target.asked().display();
    if is_display_of_a_file(content) {
        return Err(
            "nothing was written: the content has line numbers like `12|`, as `read_file` shows them; send the text \
             without them"
                .to_owned(),
        );
    }
    let existing = target.existing(STYLE_BYTES_MAX)?;
    if let Some(existing) = &existing
        && ledger.is_stale(session, target.path(), existing.meta.stamp)
    {
        return Err(format!(
            "nothing was written: `{shown}` has changed on disk since you last read or wrote it; read it again, and \
             keep what others changed"
        ));
    }
    let old = existing.as_ref().and_then(old_text);
    syntax::check(target.path(), content, old)
        .map_err(|error| format!("nothing was written to `{shown}`: {error}"))?;
    let content = in_style_of(old, content);
    Ok(Prepared { existing, content })
}

/// Writes the file and says what was done; an error is written for the model.
fn write(
    target: &Target,
    prepared: &Prepared<'_>,
    ledger: &FileLedger,
    session: &SessionId,
) -> Result<String, String> {
    let Prepared { existing, content } = prepared;
    let meta = existing.as_ref().map(|existing| &existing.meta);
    let new_folders = target
        .write(content.as_bytes(), meta)
        .map_err(|error| target.explain(&error))?;
    if let Some(stamp) = target.stamp() {
        ledger.note_written(session, target.path(), stamp);
    }
    let done = match (existing.is_some(), new_folders.is_empty()) {
        (true, _) => "replaced",
        (false, true) => "created",
        (false, false) => "created, with its folder",
    };
    Ok(format!(
        "{done} `{}`: {} bytes, {} lines",
        target.asked().display(),
        content.len(),
        content.lines().count()
    ))
}

fn old_text(existing: &Existing) -> Option<&str> {
    let content = existing.content.as_ref()?.as_ref().ok()?;
    std::str::from_utf8(content).ok()
}

/// Gives new content the line endings and byte order mark of the old, unless it brings its own.
fn in_style_of<'a>(old: Option<&str>, new: &'a str) -> Cow<'a, str> {
    let Some(old) = old else {
        return Cow::Borrowed(new);
    };
    let mut styled = if is_crlf(old) && !new.contains('\r') {
        Cow::Owned(new.replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(new)
    };
    if old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK) {
        styled.to_mut().insert_str(0, BYTE_ORDER_MARK);
    }
    styled
}

fn is_crlf(text: &str) -> bool {
    text.find('\n').is_some_and(|at| text[..at].ends_with('\r'))
}

/// Returns whether content looks like what `read_file` shows: consecutive numbers before a bar.
fn is_display_of_a_file(content: &str) -> bool {
    let number = |line: &str| line.split_once('|')?.0.parse::<u64>().ok();
    let numbers: Vec<Option<u64>> = content.lines().map(number).collect();
    let numbered = numbers.iter().flatten().count();
    let is_consecutive = numbers
        .iter()
        .flatten()
        .zip(numbers.iter().flatten().skip(1))
        .all(|(line, next)| line.checked_add(1) == Some(*next));
    numbered >= 2 && is_consecutive && numbered * 100 >= numbers.len() * DISPLAY_PERCENT_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_the_old_content_is_kept() {
        for (old, new, expected) in [
            (None, "a\nb\n", "a\nb\n"),
            (Some("x\r\ny\r\n"), "a\nb\n", "a\r\nb\r\n"),
            (Some("x\r\ny\r\n"), "a\r\nb\n", "a\r\nb\n"),
            (Some("x\ny\r\n"), "a\nb\n", "a\nb\n"),
            (Some("\u{feff}x"), "a", "\u{feff}a"),
            (Some("\u{feff}x"), "\u{feff}a", "\u{feff}a"),
        ] {
            assert_eq!(in_style_of(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_display_of_a_file_is_told_from_a_file() {
        assert!(is_display_of_a_file("1|fn main() {\n2|}\n"));
        assert!(is_display_of_a_file("9|a\n10|b\n[lines 9-10 of 20]"));
        assert!(!is_display_of_a_file("1|a\n"));
        assert!(!is_display_of_a_file("10|a\n20|b\n30|c\n"));
        assert!(!is_display_of_a_file("a|b\nc|d\n"));
        assert!(!is_display_of_a_file(""));
    }
}
