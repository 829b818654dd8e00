//! Tables, which Telegram does not have, as bullets.

use super::{Span, Style, push};

pub(super) type Cell = Vec<Span>;

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) head: Vec<Cell>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// One bullet for each row, with one below it for each further column. No word of the table is lost.
    pub(super) fn lines(&self) -> Vec<Vec<Span>> {
        if self.rows.is_empty() {
            let mut line = Vec::new();
            for (at, cell) in self.head.iter().enumerate() {
                push(
                    &mut line,
                    if at > 0 { " · " } else { "" },
                    &Style::default(),
                );
                append(&mut line, &bold(cell));
            }
            return vec![line];
        }
        self.rows
            .iter()
            .flat_map(|row| self.row_lines(row))
            .collect()
    }

    fn row_lines(&self, row: &[Cell]) -> Vec<Vec<Span>> {
        let mut lines = Vec::new();
        for (at, cell) in row.iter().enumerate() {
            if at > 0 && is_blank(cell) {
                continue;
            }
            let mut line = vec![Span::plain(if at == 0 { "• " } else { "  ◦ " })];
            if let Some(head) = self.head.get(at).filter(|head| !is_blank(head)) {
                append(&mut line, head);
                push(&mut line, ": ", &Style::default());
            }
            let shown = if at == 0 { bold(cell) } else { cell.clone() };
            append(&mut line, &shown);
            lines.push(line);
        }
        lines
    }
}

fn append(line: &mut Vec<Span>, cell: &[Span]) {
    for span in cell {
        push(line, &span.text, &span.style);
    }
}

fn bold(cell: &[Span]) -> Cell {
    let emphasised = |span: &Span| {
        let mut span = span.clone();
        span.style.is_bold = true;
        span
    };
    cell.iter().map(emphasised).collect()
}

fn is_blank(cell: &[Span]) -> bool {
    cell.iter().all(|span| span.text.trim().is_empty())
}
