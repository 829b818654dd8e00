//! Breaks styled text into rows. Widths are columns of the terminal, not characters.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns a tab takes: terminals cannot be asked for their stops in the middle of a redraw.
const TAB: &str = "    ";

/// What stands before the rows of a wrapped text: list marks, quote bars, indentation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Margin {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) rest: Vec<Span<'static>>,
}

impl Margin {
    pub(crate) fn same(spans: Vec<Span<'static>>) -> Self {
        Self {
            first: spans.clone(),
            rest: spans,
        }
    }

    pub(crate) fn indent(columns: usize) -> Self {
        Self::same(vec![Span::raw(" ".repeat(columns))])
    }
}

/// Text that a terminal only shows: nothing it would obey, and no tabs.
pub(crate) fn clean(text: &str) -> String {
    hermes_core::text::printable(text).replace('\t', TAB)
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// One character as a person sees it.
#[derive(Clone, Copy)]
struct Cell<'a> {
    text: &'a str,
    style: Style,
    columns: usize,
}

impl Cell<'_> {
    fn is_space(&self) -> bool {
        self.text == " "
    }

    /// Scripts without spaces may be broken after any character; they are those with wide ones.
    fn is_wide(&self) -> bool {
        self.columns > 1
    }
}

fn cells<'a>(spans: &'a [Span<'_>]) -> Vec<Cell<'a>> {
    let graphemes = spans.iter().flat_map(|span| {
        let style = span.style;
        span.content.graphemes(true).map(move |text| Cell {
            text,
            style,
            columns: text.width(),
        })
    });
    graphemes.collect()
}

/// Breaks one paragraph at spaces, and inside words that are longer than a row.
pub(crate) fn words(spans: &[Span<'_>], columns: usize, margin: &Margin) -> Vec<Line<'static>> {
    rows(spans, columns, margin, word_break)
}

/// Breaks one line wherever a row is full: for code, where every space counts.
pub(crate) fn hard(line: &Line<'_>, columns: usize) -> Vec<Line<'static>> {
    rows(&line.spans, columns, &Margin::default(), |_, full| {
        (full, full)
    })
}

/// Where a row ends and where the next begins, for a row that would be full at `full`.
fn word_break(cells: &[Cell<'_>], full: usize) -> (usize, usize) {
    for at in (1..=full).rev() {
        if cells[at].is_space() || cells[at - 1].is_space() {
            let words = cells[..at].iter().rposition(|cell| !cell.is_space());
            return match words {
                Some(last) => (last + 1, past_spaces(cells, at)),
                None => (full, full),
            };
        }
        if cells[at - 1].is_wide() && cells[at].is_wide() {
            return (at, at);
        }
    }
    (full, full)
}

fn past_spaces(cells: &[Cell<'_>], from: usize) -> usize {
    let spaces = cells[from..].iter().take_while(|cell| cell.is_space());
    from + spaces.count()
}

fn rows(
    spans: &[Span<'_>],
    columns: usize,
    margin: &Margin,
    break_at: impl Fn(&[Cell<'_>], usize) -> (usize, usize),
) -> Vec<Line<'static>> {
    let cells = cells(spans);
    let mut rest = cells.as_slice();
    let mut rows = Vec::new();
    loop {
        let margin = if rows.is_empty() {
            &margin.first
        } else {
            &margin.rest
        };
        let room = columns.saturating_sub(width_of(margin)).max(1);
        let full = fitting(rest, room);
        let (end, next) = if full < rest.len() {
            break_at(rest, full)
        } else {
            (full, full)
        };
        rows.push(row(margin, &rest[..end]));
        rest = &rest[next..];
        if rest.is_empty() {
            return rows;
        }
    }
}

/// How many cells fit into `room` columns; at least one, so that every row gets us further.
fn fitting(cells: &[Cell<'_>], room: usize) -> usize {
    let mut used = 0;
    let fitting = cells.iter().take_while(|cell| {
        used += cell.columns;
        used <= room
    });
    fitting.count().max(1).min(cells.len())
}

fn row(margin: &[Span<'static>], cells: &[Cell<'_>]) -> Line<'static> {
    let mut spans = margin.to_vec();
    for chunk in cells.chunk_by(|left, right| left.style == right.style) {
        let text: String = chunk.iter().map(|cell| cell.text).collect();
        spans.push(Span::styled(text, chunk[0].style));
    }
    Line::from(spans)
}

/// Cuts a line to `columns`, marking the cut.
pub(crate) fn cut(line: Line<'static>, columns: usize) -> Line<'static> {
    if line.width() <= columns {
        return line;
    }
    let cells = cells(&line.spans);
    let mut used = 0;
    let kept = cells.iter().take_while(|cell| {
        used += cell.columns;
        used < columns
    });
    let kept = kept.count();
    let style = cells.get(kept).map_or(Style::new(), |cell| cell.style);
    let mut cut = row(&[], &cells[..kept]);
    if columns > 0 {
        cut.push_span(Span::styled("…", style));
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let rows = words(&[Span::raw(text.to_owned())], columns, &Margin::default());
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(
            wrapped("the quick brown fox", 10),
            ["the quick", "brown fox"]
        );
        assert_eq!(wrapped("exactly ten", 11), ["exactly ten"]);
        assert_eq!(wrapped("a  b", 2), ["a", "b"]);
        assert_eq!(wrapped("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn wide_characters_take_two_columns_and_never_hang_over() {
        assert_eq!(wrapped("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
        assert_eq!(wrapped("👨‍👩‍👧👨‍👩‍👧", 2), ["👨‍👩‍👧", "👨‍👩‍👧"]);
    }

    #[test]
    fn margins_stand_before_their_rows() {
        let margin = Margin {
            first: vec!["- ".into()],
            rest: vec!["  ".into()],
        };
        let rows = words(&["one two".into()], 5, &margin);
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(rows, ["- one", "  two"]);
    }

    #[test]
    fn a_cut_line_says_so_and_fits() {
        let cut = |text: &str, columns| super::cut(Line::raw(text.to_owned()), columns).to_string();
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello", 4), "hel…");
        assert_eq!(cut("漢字", 3), "漢…");
        assert_eq!(cut("hello", 0), "");
    }
}
