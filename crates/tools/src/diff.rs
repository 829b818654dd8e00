//! Shows what changed, as a unified diff.

use std::time::Duration;

use hermes_core::text::head;
use similar::TextDiff;

/// A longer diff is cut: the model knows what it asked for.
const BYTES_MAX: usize = 20_000;

/// After this time a diff is no longer made as short as possible.
const TIME_MAX: Duration = Duration::from_millis(500);

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// Returns the difference between two contents of a file for a model; `None` stands for no file.
pub(crate) fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let text = whole(path, old, new).replace('\r', "");
    match head(&text, BYTES_MAX) {
        shown if shown.len() == text.len() => text,
        shown => format!(
            "{shown}\n[… {} more bytes of diff]\n",
            text.len() - shown.len()
        ),
    }
}

/// Returns all of the difference between two contents of a file. How lines end is not shown.
pub(crate) fn whole(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let header = |side: &str, bytes: Option<&[u8]>| match bytes {
        Some(_) => format!("{side}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    let (before, after) = (header("a", old), header("b", new));
    let (Ok(old), Ok(new)) = (
        str::from_utf8(old.unwrap_or_default()),
        str::from_utf8(new.unwrap_or_default()),
    ) else {
        return format!("--- {before}\n+++ {after}\n[not text]\n");
    };
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_lines(old, new);
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&before, &after)
        .to_string();
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nX\nf\n");
        let diff = unified("/x/a.txt", Some(old.as_bytes()), Some(new.as_bytes()));
        let expected = "--- a/x/a.txt\n+++ b/x/a.txt\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n+X\n f\n";
        assert_eq!(diff, expected);
        let added = unified("n", None, Some(b"a\n"));
        assert_eq!(added, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn a_long_diff_is_cut() {
        let new: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let diff = unified("a", None, Some(new.as_bytes()));
        assert!(diff.len() < BYTES_MAX + 100);
        assert!(diff.ends_with("more bytes of diff]\n"));
    }
}
