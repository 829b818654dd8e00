//! Tables: columns as wide as they must be, narrower when the terminal is.

use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

use crate::theme;
use crate::wrap::{self, Margin};

const SEPARATOR: &str = " │ ";
const CROSSING: &str = "─┼─";
/// No column is squeezed below this.
const COLUMN_MIN: usize = 3;

type Cell = Vec<Span<'static>>;

pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
    open_row: Vec<Cell>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            open_row: Vec::new(),
        }
    }

    pub(super) fn cell(&mut self, words: Cell) {
        self.open_row.push(words);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.open_row));
    }

    /// Renders the table; the first row is its head.
    pub(super) fn rows(&self, columns: usize) -> Vec<Line<'static>> {
        let widths = self.widths(columns);
        let mut rows = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            rows.extend(self.row(row, &widths, index == 0));
            if index == 0 {
                let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                rows.push(Line::styled(rules.join(CROSSING), theme::DIM));
            }
        }
        // The style of a line is that of its spans here: margins are put before them.
        rows.into_iter()
            .map(|row| Line::from(styled_spans(row)))
            .collect()
    }

    /// As wide as the contents; too wide a table is squeezed where it is widest.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.iter().map(Span::width).sum());
            }
        }
        let separators = wrap::width(SEPARATOR) * count.saturating_sub(1);
        let room = columns.saturating_sub(separators);
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > COLUMN_MIN => *widest -= 1,
                _ => break,
            }
        }
        widths
    }

    fn row(&self, cells: &[Cell], widths: &[usize], is_head: bool) -> Vec<Line<'static>> {
        let empty = Vec::new();
        let wrapped: Vec<_> = (widths.iter().enumerate())
            .map(|(index, width)| {
                let cell = cells.get(index).unwrap_or(&empty);
                wrap::words(cell, *width, &Margin::default())
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|at| {
                let mut spans = Vec::new();
                for (index, width) in widths.iter().enumerate() {
                    if index > 0 {
                        spans.push(Span::styled(SEPARATOR, theme::DIM));
                    }
                    let cell = wrapped[index].get(at).cloned().unwrap_or_default();
                    spans.extend(aligned(cell, *width, self.alignments[index], is_head));
                }
                trimmed(spans)
            })
            .collect()
    }
}

fn aligned(
    cell: Line<'static>,
    width: usize,
    alignment: Alignment,
    is_head: bool,
) -> Vec<Span<'static>> {
    let room = width.saturating_sub(cell.width());
    let before = match alignment {
        Alignment::Right => room,
        Alignment::Center => room / 2,
        Alignment::Left | Alignment::None => 0,
    };
    let mut spans = vec![Span::raw(" ".repeat(before))];
    let style = if is_head { theme::BOLD } else { theme::PLAIN };
    spans.extend(cell.spans.into_iter().map(|span| span.patch_style(style)));
    spans.push(Span::raw(" ".repeat(room - before)));
    spans
}

/// A row without the spaces at its end.
fn trimmed(mut spans: Vec<Span<'static>>) -> Line<'static> {
    while spans
        .last()
        .is_some_and(|span| span.content.trim().is_empty())
    {
        spans.pop();
    }
    Line::from(spans)
}

fn styled_spans(line: Line<'static>) -> Vec<Span<'static>> {
    let style = line.style;
    let spans = line.spans.into_iter();
    spans
        .map(|span| {
            let own = span.style;
            span.style(style.patch(own))
        })
        .collect()
}
