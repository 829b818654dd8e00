//! `write_file`: creates a file or replaces its whole content.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{
    BoxFuture, Effect, Parallel, Tool, ToolContext, ToolError, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::guard::Guard;
use crate::{ToolPorts, arguments, atomic, blocking, paths};

const NAME: &str = "write_file";

/// An existing file larger than this is replaced without a look at its style.
const STYLE_BYTES_MAX: u64 = 4 * 1024 * 1024;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Content with this share of lines like `12|text` is our own display of a file, not a file.
const DISPLAY_PERCENT_MIN: usize = 60;

const ANY_WRITE_BIT: u32 = 0o222;

pub(crate) fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(WriteFile {
        spec: spec(),
        home: ports.home.clone(),
        guard: Guard::new(ports),
    })
}

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
    spec: ToolSpec,
    home: Option<PathBuf>,
    guard: Guard,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Idempotent
    }

    fn parallel(&self, arguments: &Value, cwd: &Path) -> Parallel {
        Parallel::Writes(self.touched(arguments, cwd))
    }

    fn touched(&self, arguments: &Value, cwd: &Path) -> Vec<PathBuf> {
        let path = arguments::text(arguments, "path");
        path.map(|path| paths::absolute(path, cwd, self.home.as_deref()))
            .into_iter()
            .collect()
    }

    fn run<'a>(
        &'a self,
        arguments: Value,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.write(arguments, cx))
    }
}

impl WriteFile {
    async fn write(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { path, content } = arguments::parse(NAME, arguments)?;
        if cx.stop.is_cancelled() {
            return Err(ToolError::Stopped(format!(
                "stopped before `{path}` was written"
            )));
        }
        let full = paths::joined(&path, &cx.cwd, self.home.as_deref());
        let guard = self.guard.clone();
        let written = blocking::unless_stopped(&cx.stop, move || write(&full, &content, &guard));
        match written.await {
            Some(Ok(text)) => Ok(ToolOutput::text(text)),
            Some(Err(answer)) => Err(ToolError::Answer(answer)),
            None => Err(ToolError::Stopped(format!(
                "stopped while writing `{path}`; it has either all of its old content or all of the new"
            ))),
        }
    }
}

/// Writes the file and says what was done; an error is written for the model.
fn write(path: &Path, content: &str, guard: &Guard) -> Result<String, String> {
    let shown = path.display();
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(format!("`{shown}` names a folder; add a file name"));
    }
    let target = paths::target_of(path).map_err(|error| explain(path, &error))?;
    if let Some(refusal) = guard
        .refuse_write(path)
        .or_else(|| guard.refuse_write(&target))
    {
        return Err(refusal);
    }
    if is_display_of_a_file(content) {
        return Err(
            "nothing was written: the content has line numbers like `12|`, as `read_file` shows them; send the text \
             without them"
                .to_owned(),
        );
    }
    let existing = existing_file(path, &target)?;
    let old = existing
        .as_ref()
        .and_then(|metadata| old_text(&target, metadata));
    check_syntax(&target, content, old.as_deref())?;
    let content = in_style_of(old.as_deref(), content);

    let folder = target.parent().unwrap_or(Path::new("/"));
    let has_new_folders = atomic::create_folders(folder).map_err(|error| explain(path, &error))?;
    atomic::replace(&target, content.as_bytes(), existing.as_ref())
        .map_err(|error| explain(path, &error))?;
    let done = match (existing.is_some(), has_new_folders) {
        (true, _) => "replaced",
        (false, false) => "created",
        (false, true) => "created, with its folder",
    };
    Ok(format!(
        "{done} `{shown}`: {} bytes, {} lines",
        content.len(),
        content.lines().count()
    ))
}

fn existing_file(path: &Path, target: &Path) -> Result<Option<Metadata>, String> {
    let metadata = match target.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(explain(path, &error)),
    };
    let shown = path.display();
    if metadata.is_dir() {
        return Err(format!("`{shown}` is a folder; add a file name"));
    }
    if !metadata.is_file() {
        return Err(format!(
            "`{shown}` is a device, pipe or socket, not a regular file"
        ));
    }
    let mode = std::os::unix::fs::MetadataExt::mode(&metadata);
    if mode & ANY_WRITE_BIT == 0 {
        return Err(format!(
            "`{shown}` is read-only (mode {:03o}); if it is meant to change, run `chmod u+w` on it first",
            mode & 0o777
        ));
    }
    Ok(Some(metadata))
}

fn old_text(target: &Path, metadata: &Metadata) -> Option<String> {
    if metadata.len() > STYLE_BYTES_MAX {
        return None;
    }
    std::fs::read_to_string(target).ok()
}

/// Gives new content the line endings and byte order mark of the old, unless it brings its own.
fn in_style_of(old: Option<&str>, new: &str) -> String {
    let Some(old) = old else {
        return new.to_owned();
    };
    let mut styled = match is_crlf(old) && !new.contains('\r') {
        true => new.replace('\n', "\r\n"),
        false => new.to_owned(),
    };
    if old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK) {
        styled.insert_str(0, BYTE_ORDER_MARK);
    }
    styled
}

fn is_crlf(text: &str) -> bool {
    text.find('\n').is_some_and(|at| text[..at].ends_with('\r'))
}

/// Refuses JSON that does not parse: a broken settings file often shows much later and elsewhere.
fn check_syntax(target: &Path, content: &str, old: Option<&str>) -> Result<(), String> {
    if target
        .extension()
        .is_none_or(|extension| extension != "json")
        || allows_comments(target)
    {
        return Ok(());
    }
    let Err(error) = check_json(content) else {
        return Ok(());
    };
    // A file that was not strict JSON before, such as one with comments, need not become it.
    if old.is_some_and(|old| check_json(old).is_err()) {
        return Ok(());
    }
    Err(format!(
        "nothing was written to `{}`: the content is not valid JSON: {error}",
        target.display()
    ))
}

fn check_json(text: &str) -> Result<IgnoredAny, serde_json::Error> {
    serde_json::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
}

/// Some programs read their `.json` with comments.
fn allows_comments(target: &Path) -> bool {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    ["tsconfig", "jsconfig", "devcontainer", ".eslintrc"]
        .iter()
        .any(|start| name.starts_with(start))
        || target
            .components()
            .any(|part| part.as_os_str() == ".vscode")
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

fn explain(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    let reason = match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space first".to_owned(),
        io::ErrorKind::QuotaExceeded => "the user's disk quota is used up".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "it is on a read-only file system".to_owned(),
        io::ErrorKind::PermissionDenied => "its permissions forbid it to this user".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is a file, not a folder".to_owned(),
        io::ErrorKind::InvalidFilename => "its name is too long or not allowed".to_owned(),
        _ => error.to_string(),
    };
    format!("`{shown}` was not written and is as it was before: {reason}")
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

    #[test]
    fn broken_json_is_refused_with_its_place() {
        let path = Path::new("/x/settings.json");
        let refusal = check_syntax(path, "{\n  \"a\": 1,\n}", None).unwrap_err();
        assert!(refusal.contains("line 3 column 1"), "{refusal}");
        assert!(check_syntax(path, "{\"a\": [1, 2]}", None).is_ok());
        assert!(check_syntax(path, "// new\n{}", Some("// old\n{}")).is_ok());
        assert!(check_syntax(Path::new("/x/tsconfig.json"), "// c\n{}", None).is_ok());
        assert!(check_syntax(Path::new("/x/notes.txt"), "{", None).is_ok());
    }
    #[test]
    fn a_full_disk_is_said_plainly() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            explain(Path::new("/x"), &full),
            "`/x` was not written and is as it was before: the disk is full; free some space first"
        );
    }
}
