//! What was typed into background processes and not sent off yet: a line can come in pieces.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use hermes_core::{ProcessName, SessionId};

/// Unfinished lines that are remembered. More programs than this do not wait for the rest of a line at once.
const LINES_MAX: usize = 64;

/// Keys that a terminal takes as corrections of the line.
const BACKSPACE: char = '\u{8}';
const DELETE: char = '\u{7f}';
const KILL_LINE: char = '\u{15}';

/// The lines that are being typed, each of one process.
#[derive(Debug, Default)]
pub(crate) struct TypedLines(Mutex<VecDeque<Line>>);

#[derive(Debug)]
struct Line {
    session: SessionId,
    process: String,
    text: String,
    /// As it was typed, with the keys that corrected it.
    raw: String,
}

impl TypedLines {
    /// Returns the same as it was typed, with the keys that corrected it.
    pub(crate) fn raw_with(&self, process: ProcessName<'_>, typed: &str) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = lines.iter().find(|line| line.is_of(process));
        begun.map_or("", |line| line.raw.as_str()).to_owned() + typed
    }

    /// Returns what the process would read if this came next: the line so far, and what is typed now, corrected.
    pub(crate) fn with(&self, process: ProcessName<'_>, typed: &str) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = lines.iter().find(|line| line.is_of(process));
        let begun = begun.map_or("", |line| line.text.as_str());
        corrected(begun, typed)
    }

    /// Takes note of what was typed.
    pub(crate) fn add(&self, process: ProcessName<'_>, typed: &str) {
        let text = self.with(process, typed);
        let text = unfinished(&text).to_owned();
        let raw = self.raw_with(process, typed);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| !line.is_of(process));
        if text.is_empty() || is_interrupt(typed) {
            return;
        }
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(Line {
            session: process.session.clone(),
            process: process.id.to_owned(),
            text,
            raw,
        });
    }
}

/// Returns whether this is only the key that interrupts a program, or the one that ends its input: both take back what was
/// typed of a line, or send it off as it was judged.
pub(crate) fn is_interrupt(typed: &str) -> bool {
    matches!(typed, "\u{3}" | "\u{4}")
}

impl Line {
    fn is_of(&self, process: ProcessName<'_>) -> bool {
        self.session == *process.session && self.process == process.id
    }
}

/// Appends to a line as a terminal does: some keys take back what was typed before them.
fn corrected(begun: &str, typed: &str) -> String {
    let mut text = begun.to_owned();
    for key in typed.chars() {
        match key {
            BACKSPACE | DELETE => {
                if !text.ends_with('\n') {
                    text.pop();
                }
            }
            KILL_LINE => text.truncate(line_start(&text)),
            '\r' => text.push('\n'),
            key => text.push(key),
        }
    }
    text
}

/// Returns what follows the last line that was sent off. One that ends in a backslash goes on in the next.
fn unfinished(text: &str) -> &str {
    let mut start = line_start(text);
    while text[..start].ends_with("\\\n") {
        start = line_start(&text[..start - 1]);
    }
    &text[start..]
}

fn line_start(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_unfinished_until_it_is_sent_off() {
        for (text, expected) in [
            ("", ""),
            ("ls", "ls"),
            ("ls\n", ""),
            ("ls\nrm -r", "rm -r"),
            ("ls\nrm -r \\\n", "rm -r \\\n"),
            ("rm \\\n-r \\\n /", "rm \\\n-r \\\n /"),
            ("\\\n", "\\\n"),
        ] {
            assert_eq!(unfinished(text), expected, "{text:?}");
        }
    }

    #[test]
    fn corrections_are_made_as_a_terminal_makes_them() {
        for (begun, typed, expected) in [
            ("rx", "\u{7f}m /", "rm /"),
            ("", "\u{8}a", "a"),
            ("ls\n", "\u{7f}a", "ls\na"),
            ("ls\nrm", "\u{15}echo\r", "ls\necho\n"),
            ("é", "\u{7f}", ""),
        ] {
            assert_eq!(corrected(begun, typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn every_process_has_a_line_of_its_own() {
        let lines = TypedLines::default();
        let (one, two) = ("s1".into(), "s2".into());
        let name = |session, id| ProcessName { session, id };
        lines.add(name(&one, "a"), "rm -r");
        lines.add(name(&one, "b"), "ls");
        lines.add(name(&two, "a"), "cat");
        assert_eq!(lines.with(name(&one, "a"), "f /"), "rm -rf /");
        lines.add(name(&one, "a"), "f x\n");
        assert_eq!(lines.with(name(&one, "a"), "y"), "y");
        assert_eq!(lines.with(name(&two, "a"), " x"), "cat x");
    }
}
