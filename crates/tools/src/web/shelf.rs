//! Pages that are too long for a conversation: their ends go to the model, the whole to a file.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hermes_os::{Access, Durability, replace};
use sha2::{Digest, Sha256};

/// More of a page is not kept.
pub(super) const KEPT_CHARS_MAX: usize = 2_000_000;

/// Letters of the address that a file's name may have.
const NAME_CHARS_MAX: usize = 80;

/// Shortens a page of more than `chars_max` characters to its beginning and its end, and keeps the whole.
pub(crate) fn fit(text: String, chars_max: usize, host: &str, folder: &Path) -> String {
    // Bytes bound characters, so most pages are never counted.
    if text.len() <= chars_max {
        return text;
    }
    let chars = text.chars().count();
    if chars <= chars_max {
        return text;
    }
    let tail_chars = chars_max / 4;
    let head = head(&text, chars_max - tail_chars);
    let tail = tail(&text, tail_chars, chars);
    let place = match keep(&text, host, folder) {
        Ok(path) => format!(
            "The whole is in `{}`: read the parts you need with `read_file`.",
            path.display()
        ),
        Err(error) => format!("The whole could not be kept: {error}."),
    };
    let omitted = chars - head.chars().count() - tail.chars().count();
    format!("{head}\n\n[… {omitted} of {chars} characters are left out here. {place}]\n\n{tail}")
}

/// The first characters, up to the end of a line where one is near.
fn head(text: &str, chars_max: usize) -> &str {
    let head = &text[..offset(text, chars_max)];
    match head.rfind('\n') {
        Some(end) if end > head.len() / 2 => &head[..end],
        _ => head,
    }
}

/// The last characters, from the beginning of a line where one is near.
fn tail(text: &str, chars_max: usize, chars: usize) -> &str {
    let tail = &text[offset(text, chars - chars_max)..];
    match tail.find('\n') {
        Some(start) if start < tail.len() / 2 => &tail[start + 1..],
        _ => tail,
    }
}

fn offset(text: &str, chars: usize) -> usize {
    let found = text.char_indices().nth(chars);
    found.map_or(text.len(), |(at, _)| at)
}

/// Writes a page to a file in a folder that only the user can read. Its name says what is in it, so the same page is
/// kept once.
fn keep(text: &str, host: &str, folder: &Path) -> io::Result<PathBuf> {
    let text = &text[..offset(text, KEPT_CHARS_MAX)];
    let name = file_name(host, text);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let file = folder.join(name);
    replace(&file, text.as_bytes(), Access::Usual, Durability::Synced)?;
    Ok(file)
}

fn file_name(host: &str, text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let host: String = host.chars().filter(|c| harmless(*c)).collect();
    let host: String = host.chars().take(NAME_CHARS_MAX).collect();
    let digest = Sha256::digest(text.as_bytes());
    let digest: String = digest
        .iter()
        .take(5)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{host}-{digest}.md")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(lines: usize) -> String {
        (0..lines).map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn a_long_page_keeps_its_ends_and_says_where_the_rest_is() {
        let folder = tempfile::tempdir().unwrap();
        let whole = page(1000);
        let shown = fit(whole.clone(), 2000, "example.com", folder.path());
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 999\n"));
        assert!(shown.chars().count() < 2400, "{}", shown.len());
        let (_, after) = shown.split_once("The whole is in `").unwrap();
        let (path, _) = after.split_once('`').unwrap();
        assert!(path.contains("/example.com-") && path.ends_with(".md"));
        assert_eq!(std::fs::read_to_string(path).unwrap(), whole);
    }

    #[test]
    fn a_page_that_fits_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let text = "é".repeat(2000);
        assert_eq!(fit(text.clone(), 2000, "h", folder.path()), text);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_page_that_cannot_be_kept_still_keeps_its_ends() {
        let shown = fit(page(1000), 2000, "h", Path::new("/proc/no/such/place"));
        assert!(shown.contains("could not be kept"), "{shown}");
    }

    #[test]
    fn hosts_cannot_choose_another_folder() {
        let name = file_name("../../etc/[::1]", "");
        assert!(
            !name.contains('/') && name.starts_with("....etc1-"),
            "{name}"
        );
    }

    proptest! {
        #[test]
        fn ends_never_overlap_nor_split_a_character(
            text in "[aé\n]{100,400}",
            chars_max in 20_usize..90,
        ) {
            let shown = fit(text.clone(), chars_max, "h", Path::new("/proc/no"));
            let (head, rest) = shown.split_once("\n\n[… ").unwrap();
            let (_, tail) = rest.split_once("]\n\n").unwrap();
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(head.chars().count() + tail.chars().count() <= chars_max);
        }
    }
}
