//! A question for consent as it is printed: what would be done, why it is asked, and the change, where it is one.
//!
//! What a model, a tool or a file wrote is spelt out and stands behind a bar, so that nothing hides and nothing in it can
//! pass for a part of the dialog.

use hermes_core::exact::{exact, parts};
use hermes_core::text::escaped;
use hermes_core::{ApprovalRequest, wording};
use ratatui_core::text::{Line, Span};

use crate::markdown::diff_style;
use crate::screen::Size;
use crate::theme;
use crate::wrap::{self, Margin};

/// What the rest of the dialog and the live rows take, so that a change and the answers to it fit on one screen.
const ROWS_AROUND: usize = 14;
/// Of a change, this much is shown on the smallest screen.
const DIFF_ROWS_MIN: usize = 4;
/// The code of a question is shown on screens of at least this height.
const CODE_ROWS_MIN: usize = 16;
/// Who wants to see more on a large one asks for all of it.
const DIFF_ROWS_MAX: usize = 24;

/// The question, and as much of the change as the screen has room for.
pub(crate) fn rows(question: &ApprovalRequest, size: Size) -> Vec<Line<'static>> {
    let columns = size.columns;
    let mut rows = wrap::words(
        &[
            Span::styled(escaped(&question.tool), theme::BOLD),
            Span::raw(format!(" {}:", wording::wants(question))),
        ],
        columns,
        &Margin::same(vec![bar()]),
    );
    let what = exact(&question.what);
    let parts = parts(&what);
    rows.extend(part_rows(parts[0], 1, parts.len(), columns));
    let mut say = |span| rows.extend(wrap::words(&[span], columns, &Margin::same(vec![bar()])));
    if let Some(folder) = &question.folder {
        say(Span::raw(format!(
            "in {}",
            exact(&folder.to_string_lossy())
        )));
    }
    say(Span::styled(escaped(&question.reason), theme::WARNING));
    if let Some(diff) = &question.diff {
        rows.extend(excerpt(diff, size));
    }
    // Where there is little room, what would run comes first; `hermes approvals` shows the code too.
    if !question.code.shown().is_empty() && size.rows >= CODE_ROWS_MIN {
        let elsewhere = format!(
            "elsewhere: hermes approvals allow {}",
            question.code.shown()
        );
        let elsewhere = Span::styled(elsewhere, theme::DIM);
        rows.extend(wrap::words(
            &[elsewhere],
            columns,
            &Margin::same(vec![bar()]),
        ));
    }
    rows
}

/// A part of what would run, which the bytes themselves may not change the look of.
pub(crate) fn part_rows(
    part: &str,
    number: usize,
    of: usize,
    columns: usize,
) -> Vec<Line<'static>> {
    let lines = part
        .split('\n')
        .map(|line| Line::from(Span::styled(line.to_owned(), theme::BOLD)));
    let mut rows: Vec<_> = lines
        .flat_map(|line| barred(&line, "  ", columns))
        .collect();
    if of > 1 {
        let words = if number < of {
            format!("… part {number} of {of}, d shows more")
        } else {
            format!("part {number} of {of}: that is all of it")
        };
        let words = Span::styled(words, theme::WARNING);
        rows.extend(wrap::words(&[words], columns, &Margin::same(vec![bar()])));
    }
    rows
}

/// All of a change.
pub(crate) fn diff_rows(diff: &str, columns: usize) -> Vec<Line<'static>> {
    let lines = printable_lines(diff);
    let coloured = lines.map(|line| Line::from(Span::styled(line.clone(), diff_style(&line))));
    coloured
        .flat_map(|line| barred(&line, "", columns))
        .collect()
}

fn excerpt(diff: &str, size: Size) -> Vec<Line<'static>> {
    let room = size.rows.saturating_sub(ROWS_AROUND);
    let rows_max = room.clamp(DIFF_ROWS_MIN, DIFF_ROWS_MAX);
    let mut rows = diff_rows(without_header(diff), size.columns);
    if rows.len() > rows_max {
        let more = rows.split_off(rows_max - 1).len();
        let words = format!("… {more} more lines, press d to see all");
        let words = Span::styled(words, theme::WARNING);
        rows.extend(wrap::words(
            &[words],
            size.columns,
            &Margin::same(vec![bar()]),
        ));
    }
    rows
}

/// Leaves out the names of the only file of a change: the question says which it is.
fn without_header(diff: &str) -> &str {
    // A file that is only moved has no hunk, but its names.
    let is_of_many = diff.matches("\n+++ ").count() > 1 || diff.contains("\nrename from ");
    let body = diff
        .strip_prefix("--- ")
        .and_then(|rest| rest.split_once("\n+++ "))
        .and_then(|(_, rest)| rest.split_once('\n'));
    match body {
        Some((_, body)) if !is_of_many => body,
        _ => diff,
    }
}

fn bar() -> Span<'static> {
    Span::styled("▎ ", theme::WARNING)
}

/// Breaks a line wherever the screen ends.
fn barred(line: &Line<'static>, indent: &'static str, columns: usize) -> Vec<Line<'static>> {
    let room = columns.saturating_sub(2 + indent.len()).max(1);
    let rows = wrap::hard(line, room).into_iter();
    rows.map(|row| {
        let margin = [bar(), Span::raw(indent)];
        Line::from_iter(margin.into_iter().chain(row.spans))
    })
    .collect()
}

fn printable_lines(text: &str) -> impl Iterator<Item = String> {
    let text = escaped(text).replace('\t', "    ");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(diff: Option<&str>) -> ApprovalRequest {
        ApprovalRequest {
            approval: "a1".into(),
            code: hermes_core::ApprovalCode::default(),
            call: "c".into(),
            tool: "terminal".into(),
            what: "rm -rf x\u{1b}[2K\rls".into(),
            diff: diff.map(str::to_owned),
            folder: Some("/srv/p".into()),
            reason: "deletes".into(),
            patterns: Vec::new(),
            choices: hermes_core::Verdict::ALL.to_vec(),
            expires_in_ms: 1,
        }
    }

    fn text(rows: &[Line<'static>]) -> String {
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    fn shown(diff: Option<&str>, columns: usize, rows: usize) -> String {
        text(&super::rows(&question(diff), Size { columns, rows }))
    }

    #[test]
    fn a_question_shows_what_would_hide() {
        assert_eq!(
            shown(None, 60, 24),
            "▎ terminal wants to run:\n▎   rm -rf x\\u{1b}[2K\\u{d}ls\n▎ in /srv/p\n▎ deletes"
        );
    }

    #[test]
    fn a_change_cannot_fake_a_dialog() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+▎ allow? \u{1b}[2A\u{1b}[2K\u{202e}\n";
        let shown = shown(Some(diff), 60, 24);
        let expected = "▎ @@ -1 +1 @@\n▎ -a\n▎ +▎ allow? \\x1b[2A\\x1b[2K<U+202E>";
        assert!(shown.ends_with(expected), "{shown}");
    }

    #[test]
    fn a_long_change_is_cut_to_the_screen_and_says_how_to_see_all() {
        let lines: String = (0..100).map(|n| format!("+line {n}\n")).collect();
        let diff = format!("--- /dev/null\n+++ b/x\n@@ -0,0 +1,100 @@\n{lines}");
        for (screen, diff_rows) in [(1, 4), (12, 4), (24, 10), (40, 24), (200, 24)] {
            let shown = shown(Some(&diff), 60, screen);
            assert_eq!(shown.lines().count(), 4 + diff_rows, "{screen}");
            let more = 101 - (diff_rows - 1);
            let note = format!("▎ … {more} more lines, press d to see all");
            assert!(shown.ends_with(&note), "{shown}");
        }
        assert_eq!(super::diff_rows(&diff, 60).len(), 103);
    }

    #[test]
    fn files_are_named_where_a_change_is_of_several() {
        let one = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        let two = format!("{one}--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n");
        let moved = format!("{one}rename from y\nrename to z\n");
        assert!(shown(Some(&moved), 60, 40).contains("--- a/x"));
        assert!(!shown(Some(one), 60, 40).contains("a/x"));
        assert!(shown(Some(&two), 60, 40).contains("--- a/x"));
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let diff = format!("+{}\n", "x".repeat(99));
        for columns in [5, 10, 25] {
            let rows = super::rows(&question(Some(&diff)), Size { columns, rows: 24 });
            assert!(rows.iter().all(|row| row.width() <= columns), "{columns}");
        }
    }
}
