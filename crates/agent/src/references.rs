//! `@` references in what a user types: the words stay as they are, the contents follow them. What cannot be attached is
//! said.
//!
//! A path inside the conversation's folder may be named as one likes; one outside is meant only when it is spelt so
//! (`/etc/hosts`, `~/notes.md`, `../other`), never because a link leads there.

mod find;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hermes_core::reference::ATTACHED;
use hermes_core::{References, text};
use hermes_os::folder::Folder;

use find::{FileLines, Reference, What, find};

/// Bytes of one referenced thing. More of a file belongs to `read_file`, page by page.
const BYTES_MAX: usize = 100_000;
/// Bytes all references of one message may add.
const TOTAL_BYTES_MAX: usize = 250_000;
/// References of one message that are looked at; more are pasted text.
const REFERENCES_MAX: usize = 20;
const FOLDER_ENTRIES_MAX: usize = 200;
/// A file is read up to here, to find lines in it.
const FILE_READ_MAX: u64 = 16 * 1024 * 1024;
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

/// Who brings what is not a file, if anybody does.
pub(crate) type Sources = Option<Arc<dyn References>>;

/// What the references of a message add to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Goes behind the user's words, empty without references.
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
}

/// Reads what a message refers to.
pub(crate) async fn attach(
    message: &str,
    cwd: &Path,
    sources: &Sources,
    window: Option<u64>,
) -> Attached {
    let mut attached = Attached::default();
    let mut blocks = Vec::new();
    let total_max = bytes_of_window(window, 2).min(TOTAL_BYTES_MAX);
    let mut bytes_left = total_max;
    let references = find(message);
    let more = references.len().saturating_sub(REFERENCES_MAX);
    for reference in references.into_iter().take(REFERENCES_MAX) {
        let written = reference.written.clone();
        let bytes_max = bytes_left.min(BYTES_MAX);
        let read = match bytes_max {
            0 => Err(format!(
                "the message has {total_max} bytes of attachments already"
            )),
            _ => read(reference, cwd, sources, bytes_max).await,
        };
        match read {
            Ok(block) => {
                bytes_left = bytes_left.saturating_sub(block.len());
                blocks.push(block);
            }
            Err(reason) => attached
                .warnings
                .push(format!("`{written}` is not attached: {reason}")),
        }
    }
    if more > 0 {
        attached.warnings.push(format!(
            "{more} more references are not attached: one message may have {REFERENCES_MAX}"
        ));
    }
    let attached_bytes = total_max - bytes_left;
    if attached_bytes > bytes_of_window(window, 4) {
        attached.warnings.push(format!(
            "what is attached takes more than a quarter of the model's window ({attached_bytes} bytes)"
        ));
    }
    if !blocks.is_empty() {
        attached.text = format!("{ATTACHED}\n\n{}", blocks.join("\n\n"));
    }
    attached
}

/// Bytes that fill a part of the model's window; as many as one likes where nobody knows it.
fn bytes_of_window(window: Option<u64>, part: u64) -> usize {
    /// Bytes of English in a token.
    const BYTES: u64 = 4;
    let bytes = window.map(|tokens| tokens.saturating_mul(BYTES) / part);
    bytes.map_or(usize::MAX, |bytes| {
        usize::try_from(bytes).unwrap_or(usize::MAX)
    })
}

async fn read(
    reference: Reference,
    cwd: &Path,
    sources: &Sources,
    bytes_max: usize,
) -> Result<String, String> {
    let nobody = || "nobody here can fetch it".to_owned();
    let (text, rest) = match reference.what {
        What::Wrong(reason) => return Err(reason),
        What::Changes(which) => {
            let source = sources.as_ref().ok_or_else(nobody)?;
            (source.changes(which, cwd).await?, "git shows the rest")
        }
        What::Page(url) => {
            let source = sources.as_ref().ok_or_else(nobody)?;
            (source.page(&url).await?, "`web_extract` reads the rest")
        }
        what => {
            let (cwd, sources) = (cwd.to_owned(), sources.clone());
            let read = move || read_path(&what, &cwd, &sources, bytes_max);
            let read = tokio::task::spawn_blocking(read).await;
            return read.unwrap_or_else(|error| Err(error.to_string()));
        }
    };
    if text.trim().is_empty() {
        return Err("there is nothing in it".to_owned());
    }
    let shown = shown(&text, bytes_max, rest);
    Ok(fenced(&reference.written, &shown))
}

fn read_path(
    what: &What,
    cwd: &Path,
    sources: &Sources,
    bytes_max: usize,
) -> Result<String, String> {
    let name = match what {
        What::Path(place) | What::File(place) => &place.path,
        What::Folder(path) => path,
        What::Changes(_) | What::Page(_) | What::Wrong(_) => return Err(String::new()),
    };
    let path = resolved(name, cwd, sources)?;
    let listed = || list_folder(name, &path).map_err(|error| error.to_string());
    match what {
        What::Folder(_) if !path.is_dir() => Err("it is not a folder".into()),
        What::Folder(_) => listed(),
        What::Path(_) if path.is_dir() => listed(),
        What::Path(place) | What::File(place) => read_file(place, &path, bytes_max),
        What::Changes(_) | What::Page(_) | What::Wrong(_) => Err(String::new()),
    }
}

/// Resolves a path, links included, and refuses what is private, or outside without having been spelt so.
fn resolved(name: &str, cwd: &Path, sources: &Sources) -> Result<PathBuf, String> {
    let home = sources.as_ref().and_then(|sources| sources.home());
    let spelt = match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(name),
    };
    let named = cwd.join(&spelt);
    let resolved = named.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    })?;
    let root = cwd.canonicalize().map_err(|error| error.to_string())?;
    let leads_outside =
        spelt.is_absolute() || spelt.components().any(|part| part == Component::ParentDir);
    if !resolved.starts_with(&root) && !leads_outside {
        return Err(format!(
            "it leads out of `{}`, to `{}`",
            cwd.display(),
            resolved.display()
        ));
    }
    let below = resolved.strip_prefix(&root).unwrap_or(&resolved);
    let is_private = |part: &std::ffi::OsStr| {
        part.to_str()
            .is_some_and(|part| PRIVATE_NAMES.contains(&part))
    };
    if below.iter().any(is_private) {
        return Err("it may hold secrets".into());
    }
    let refused = sources.iter().find_map(|sources| {
        [&named, &resolved]
            .iter()
            .find_map(|path| sources.refuse_file(path))
    });
    refused.map_or(Ok(resolved), Err)
}

fn read_file(place: &FileLines, path: &Path, bytes_max: usize) -> Result<String, String> {
    let name = &place.path;
    if path.is_dir() {
        return Err("it is a folder; use `@folder:`".into());
    }
    if !path.is_file() {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = open(path).map_err(|error| error.to_string())?;
    file.take(FILE_READ_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        let length = bytes.len();
        return Ok(format!(
            "`{name}` is a binary file of {length} bytes; it is not shown."
        ));
    }
    let whole = String::from_utf8_lossy(&bytes);
    let chosen = match place.lines {
        Some((first, last)) => {
            let lines = whole
                .lines()
                .skip(first.saturating_sub(1))
                .take(last.saturating_add(1).saturating_sub(first.max(1)));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => whole.into_owned(),
    };
    let shown = shown(&chosen, bytes_max, "read the rest with `read_file`");
    Ok(fenced(name, &shown))
}

/// Opens a file by a path without links: should there be one by now, nothing was said of where that leads.
fn open(path: &Path) -> io::Result<File> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Folder::open(folder)?.open_file(name),
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

fn shown(text: &str, bytes_max: usize, rest: &str) -> String {
    let shown = text::head(text, bytes_max);
    if shown.len() < text.len() {
        format!("{shown}\n[… cut; {rest}]")
    } else {
        shown.to_owned()
    }
}

fn fenced(name: &str, text: &str) -> String {
    format!("`{name}`:\n```\n{text}\n```")
}

fn list_folder(name: &str, path: &Path) -> io::Result<String> {
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
    Ok(format!("`{name}` holds:\n{}{more}", names.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn attached(message: &str, folder: &Path) -> Attached {
        attach(message, folder, &None, None).await
    }

    #[tokio::test]
    async fn contents_follow_and_the_words_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        let expected = "--- Attached Context ---\n\n`a.txt`:\n```\ntwo\nthree\n```";
        for message in ["  see   @file:a.txt:2-3\n\n    code", "@a.txt:2-3"] {
            let attached = attached(message, folder.path()).await;
            assert_eq!(attached.text, expected);
            assert!(attached.warnings.is_empty());
        }
    }

    #[tokio::test]
    async fn a_path_is_attached_however_it_is_spelt() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("a b.txt"), "within").unwrap();
        std::fs::write(folder.path().join("c.txt"), "beside").unwrap();
        let whole = format!("@\"{}\"", inside.join("a b.txt").display());
        for (message, expected) in [
            ("@'a b.txt'", "within"),
            ("@\"./a b.txt\"", "within"),
            (whole.as_str(), "within"),
            ("@../c.txt", "beside"),
            ("@./", "`./` holds:\na b.txt"),
        ] {
            let attached = attached(message, &inside).await;
            assert!(attached.text.contains(expected), "{message}: {attached:?}");
            assert_eq!(attached.warnings, [""; 0], "{message}");
        }
    }

    #[tokio::test]
    async fn private_missing_and_misleading_files_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".ssh")).unwrap();
        std::fs::write(folder.path().join(".ssh/id"), "key").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        let message =
            "@file:.ssh/id @.ssh/id @file:gone @gone @link @file:link @diff @git:99 @url:x";
        let attached = attached(message, folder.path()).await;
        assert_eq!((attached.text.as_str(), attached.warnings.len()), ("", 9));
        assert_eq!(
            attached.warnings[3],
            "`@gone` is not attached: there is no such file"
        );
    }

    #[tokio::test]
    async fn a_binary_file_is_named_but_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.bin"), [0_u8, 1, 2]).unwrap();
        let attached = attached("@file:a.bin", folder.path()).await;
        assert!(attached.text.contains("binary file of 3 bytes"));
    }

    #[tokio::test]
    async fn what_is_attached_fits_the_models_window() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("long.txt"), "x".repeat(10_000)).unwrap();
        std::fs::write(folder.path().join("more.txt"), "y".repeat(10_000)).unwrap();
        let both = "@file:long.txt @file:more.txt";
        let attached = attach(both, folder.path(), &None, Some(1_000)).await;
        assert!(attached.text.len() < 2_500, "{}", attached.text.len());
        assert!(
            attached.warnings[0].contains("of attachments already"),
            "{:?}",
            attached.warnings
        );
        assert!(attached.warnings[1].contains("a quarter of the model's window"));
        let attached = attach(both, folder.path(), &None, Some(1_000_000)).await;
        assert_eq!(attached.warnings, [""; 0]);
        assert!(attached.text.len() > 20_000);
    }
}
