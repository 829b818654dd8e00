//! What the model is told when a text does not fit.

use hermes_core::fuzzy;

/// Line numbers that are shown; more do not help.
const LINES_SHOWN: usize = 10;

const NEAR_CHARS_MAX: usize = 200;

pub(super) const ESCAPE_DRIFT: &str = "quotes have a backslash before them that the file does not have; quote the text as it is in the file, without \
     escaping it a second time";

/// Says where a text is that should be in one place only.
pub(super) fn ambiguous(what: &str, lines: &[usize], advice: &str) -> String {
    let shown: Vec<String> = lines
        .iter()
        .take(LINES_SHOWN)
        .map(usize::to_string)
        .collect();
    let more = if lines.len() > LINES_SHOWN {
        ", …"
    } else {
        ""
    };
    format!(
        "{what} occur {} times (lines {}{more}); {advice}",
        lines.len(),
        shown.join(", ")
    )
}

/// Shows the lines that may have been meant, if there are any.
pub(super) fn near_lines(text: &str, old: &str) -> String {
    let near: Vec<String> = fuzzy::nearest_lines(text, old)
        .into_iter()
        .map(|near| {
            let line = hermes_core::text::shorten(near.line.trim(), NEAR_CHARS_MAX);
            format!("line {}: `{line}`", near.number)
        })
        .collect();
    match near.as_slice() {
        [] => "; read the file and quote it".to_owned(),
        near => format!("; similar to its first line are {}", near.join(", ")),
    }
}
