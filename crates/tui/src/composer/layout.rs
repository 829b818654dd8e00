//! How a text that is being written looks: its rows, its chips, and where the cursor is.

use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::editor::{Chip, Editor};
use crate::screen::Position;
use crate::{theme, wrap};

const PROMPT: &str = "› ";
const INDENT: &str = "  ";
const MARGIN_COLUMNS: usize = 2;

/// The rows of a text that is written, as many as fit around its cursor.
pub(crate) fn layout(
    editor: &Editor,
    columns: usize,
    rows_max: usize,
) -> (Vec<Line<'static>>, Position) {
    let room = columns.saturating_sub(MARGIN_COLUMNS).max(1);
    let mut rows: Vec<Vec<Span<'static>>> = vec![Vec::new()];
    let (mut column, mut cursor) = (0, None);
    for (at, grapheme) in editor.text().grapheme_indices(true) {
        if at == editor.cursor() {
            cursor = Some((rows.len() - 1, column));
        }
        if grapheme == "\n" {
            rows.push(Vec::new());
            column = 0;
            continue;
        }
        let span = shown(editor, grapheme);
        if column + span.width() > room && column > 0 {
            rows.push(Vec::new());
            column = 0;
        }
        column += span.width();
        if let Some(row) = rows.last_mut() {
            push(row, span);
        }
    }
    if column >= room {
        rows.push(Vec::new());
        column = 0;
    }
    let (cursor_row, cursor_column) = cursor.unwrap_or((rows.len() - 1, column));
    let first = (cursor_row + 1).saturating_sub(rows_max.max(1));
    let shown = rows
        .into_iter()
        .enumerate()
        .skip(first)
        .take(rows_max.max(1));
    let lines = shown.map(|(index, row)| {
        let margin = match index {
            0 => Span::styled(PROMPT, theme::HEADING),
            _ => Span::raw(INDENT),
        };
        Line::from_iter(std::iter::once(margin).chain(row))
    });
    let position = Position {
        row: cursor_row - first,
        column: (cursor_column + MARGIN_COLUMNS).min(columns.saturating_sub(1)),
    };
    (lines.collect(), position)
}

/// Joins what is written in one style.
fn push(row: &mut Vec<Span<'static>>, span: Span<'static>) {
    match row.last_mut() {
        Some(last) if last.style == span.style => last.content.to_mut().push_str(&span.content),
        _ => row.push(span),
    }
}

fn shown(editor: &Editor, grapheme: &str) -> Span<'static> {
    let mut chars = grapheme.chars();
    let chip = chars.next().and_then(|c| editor.chip(c));
    match chip {
        Some(chip) => Span::styled(chip_label(chip), theme::ACCENT),
        None => Span::raw(wrap::clean(grapheme)),
    }
}

fn chip_label(chip: &Chip) -> String {
    match chip {
        Chip::Image(path) => {
            let name = path.file_name().unwrap_or(path.as_os_str());
            format!("[image {}]", wrap::clean(&name.to_string_lossy()))
        }
        Chip::Paste(paste) => match paste.lines().count() {
            0 | 1 => format!("[pasted {} characters]", paste.chars().count()),
            lines => format!("[pasted {lines} lines]"),
        },
    }
}
