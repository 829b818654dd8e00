//! `@file:` and `@folder:` references in what a user types: the words stay as they are, the contents follow them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use hermes_core::text;

/// Bytes of one referenced file. More belongs to `read_file`, page by page.
const FILE_BYTES_MAX: usize = 100_000;
/// Bytes all references of one message may add.
const TOTAL_BYTES_MAX: usize = 250_000;
const FOLDER_ENTRIES_MAX: usize = 200;
/// Names whose contents are never attached: keys and credentials.
const PRIVATE_NAMES: &[&str] = &[
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".env",
    "auth.json",
];

/// What the references of a message add to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Goes behind the user's words, empty without references.
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
}

/// Reads what a message refers to. Paths must lie inside `cwd`.
pub(crate) fn attach(message: &str, cwd: &Path) -> Attached {
    let mut attached = Attached::default();
    let mut blocks = Vec::new();
    let mut bytes_left = TOTAL_BYTES_MAX;
    for reference in find(message) {
        match read(&reference, cwd, bytes_left.min(FILE_BYTES_MAX)) {
            Ok(block) => {
                bytes_left = bytes_left.saturating_sub(block.len());
                blocks.push(block);
            }
            Err(reason) => attached
                .warnings
                .push(format!("`{}`: {reason}", reference.written)),
        }
    }
    if !blocks.is_empty() {
        attached.text = format!("--- Attached Context ---\n\n{}", blocks.join("\n\n"));
    }
    attached
}

#[derive(Debug, PartialEq, Eq)]
struct Reference {
    written: String,
    kind: Kind,
    path: String,
    lines: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

fn find(message: &str) -> Vec<Reference> {
    let mut references = Vec::new();
    for (at, _) in message.match_indices('@') {
        let before = message[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '/') {
            continue;
        }
        let rest = &message[at + 1..];
        let (kind, value) = match (rest.strip_prefix("file:"), rest.strip_prefix("folder:")) {
            (Some(value), _) => (Kind::File, value),
            (_, Some(value)) => (Kind::Folder, value),
            _ => continue,
        };
        let value = unquoted(value);
        let (path, lines) = split_lines(value, kind);
        if !path.is_empty() {
            references.push(Reference {
                written: format!("@{}", head_of(rest, value)),
                kind,
                path: path.into(),
                lines,
            });
        }
    }
    references
}

fn head_of<'a>(rest: &'a str, value: &str) -> &'a str {
    let end = rest.find(value).map_or(rest.len(), |at| at + value.len());
    &rest[..end]
}

/// Takes the value up to its closing quote, or up to white space less the punctuation of the sentence around it.
fn unquoted(value: &str) -> &str {
    let quote = value
        .chars()
        .next()
        .filter(|c| matches!(c, '`' | '"' | '\''));
    if let Some(quote) = quote {
        return value[1..].split(quote).next().unwrap_or_default();
    }
    let word = value.split(char::is_whitespace).next().unwrap_or_default();
    word.trim_end_matches([',', '.', ';', '!', '?', ')', ']', '}'])
}

/// Splits `path:10-20` and `path:10`.
fn split_lines(value: &str, kind: Kind) -> (&str, Option<(usize, usize)>) {
    let range = |text: &str| match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => text.parse().ok().map(|line| (line, line)),
    };
    match value.rsplit_once(':') {
        Some((path, lines)) if kind == Kind::File => match range(lines) {
            Some(lines) => (path, Some(lines)),
            None => (value, None),
        },
        _ => (value, None),
    }
}

fn read(reference: &Reference, cwd: &Path, bytes_max: usize) -> Result<String, String> {
    let path = inside(&reference.path, cwd)?;
    match reference.kind {
        Kind::File => read_file(reference, &path, bytes_max),
        Kind::Folder => list_folder(reference, &path).map_err(|error| error.to_string()),
    }
}

/// Resolves a path, links included, and refuses what lies outside or is private.
fn inside(path: &str, cwd: &Path) -> Result<PathBuf, String> {
    let resolved = cwd
        .join(path)
        .canonicalize()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        })?;
    let root = cwd.canonicalize().map_err(|error| error.to_string())?;
    if !resolved.starts_with(&root) {
        return Err(format!("it lies outside of `{}`", cwd.display()));
    }
    let is_private = |part: &std::ffi::OsStr| {
        part.to_str()
            .is_some_and(|part| PRIVATE_NAMES.contains(&part))
    };
    let below = resolved.strip_prefix(&root).unwrap_or(&resolved);
    if below.iter().any(is_private) {
        return Err("it may hold secrets and is not attached".into());
    }
    Ok(resolved)
}

fn read_file(reference: &Reference, path: &Path, bytes_max: usize) -> Result<String, String> {
    if !path.is_file() {
        return Err("it is not a file; use `@folder:` for a folder".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(16 * 1024 * 1024)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Ok(format!(
            "`{}` is a binary file of {} bytes; it is not shown.",
            reference.path,
            bytes.len()
        ));
    }
    let whole = String::from_utf8_lossy(&bytes);
    let chosen = match reference.lines {
        Some((first, last)) => {
            let lines = whole
                .lines()
                .skip(first.saturating_sub(1))
                .take(last.saturating_add(1).saturating_sub(first.max(1)));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => whole.into_owned(),
    };
    let shown = text::head(&chosen, bytes_max);
    let cut = if shown.len() < chosen.len() {
        "\n[… cut; read the rest with `read_file`]"
    } else {
        ""
    };
    Ok(format!("`{}`:\n```\n{shown}{cut}\n```", reference.path))
}

fn list_folder(reference: &Reference, path: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in path.read_dir()? {
        let entry = entry?;
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    let more = names.len().saturating_sub(FOLDER_ENTRIES_MAX);
    names.truncate(FOLDER_ENTRIES_MAX);
    let more = if more > 0 {
        format!("\n[… and {more} more]")
    } else {
        String::new()
    };
    Ok(format!(
        "`{}` holds:\n{}{more}",
        reference.path,
        names.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(message: &str) -> Vec<(String, Option<(usize, usize)>)> {
        find(message)
            .into_iter()
            .map(|reference| (reference.path, reference.lines))
            .collect()
    }

    #[test]
    fn references_are_found_as_people_write_them() {
        assert_eq!(
            paths("look at @file:src/main.rs, please"),
            [("src/main.rs".into(), None)]
        );
        assert_eq!(paths("(@file:a.rs:3-9)"), [("a.rs".into(), Some((3, 9)))]);
        assert_eq!(paths("@file:a.rs:7"), [("a.rs".into(), Some((7, 7)))]);
        assert_eq!(
            paths("@file:`with space.txt` and @folder:src"),
            [("with space.txt".into(), None), ("src".into(), None)]
        );
        assert!(paths("mail me@file:x or https://host/@file:y or @file: or @fil:z").is_empty());
    }

    #[test]
    fn contents_follow_and_the_words_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        let attached = attach("  see   @file:a.txt:2-3\n\n    code", folder.path());
        assert_eq!(
            attached.text,
            "--- Attached Context ---\n\n`a.txt`:\n```\ntwo\nthree\n```"
        );
        assert!(attached.warnings.is_empty());
    }

    #[test]
    fn outside_private_and_missing_files_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".ssh")).unwrap();
        std::fs::write(folder.path().join(".ssh/id"), "key").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        let attached = attach(
            "@file:/etc/passwd @file:.ssh/id @file:gone @file:link",
            folder.path(),
        );
        assert_eq!((attached.text.as_str(), attached.warnings.len()), ("", 4));
    }

    #[test]
    fn a_binary_file_is_named_but_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.bin"), [0_u8, 1, 2]).unwrap();
        assert!(
            attach("@file:a.bin", folder.path())
                .text
                .contains("binary file of 3 bytes")
        );
    }

    proptest::proptest! {
        #[test]
        fn finding_references_never_panics(message in "(@file:|@folder:|[`\"'é@:0-9/ .-]){0,20}") {
            find(&message);
        }
    }
}
