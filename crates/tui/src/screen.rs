//! Draws below what the terminal already shows: finished lines go into its own scrollback, the live rows under them are
//! redrawn in place. Moves are relative, so the terminal is never asked where its cursor is. Pure: it makes bytes.
//!
//! A terminal that is resized breaks its rows anew and tells us later, tmux up to a quarter of a second. A frame that is
//! on its way meanwhile would count its way up from the input in rows that are no longer there, and write over what was
//! printed. So a view without a cursor leaves the terminal's at its top: the terminal itself keeps it there, and the
//! next frame has no way to count.

use std::fmt::Write as _;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

use crate::host::Narrowing;

/// From here on the terminal shows nothing until [`END`]: no half-drawn frame is ever seen.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
/// A row is cleared as a whole before it is written: a row that is cleared in part counts as full when a terminal breaks
/// its rows anew.
const CLEAR_ROW: &str = "\x1b[2K";
const CLEAR_TO_END: &str = "\x1b[K";
/// Clears the row and what is below it from its second cell on: tmux takes a screen that is cleared from its first cell
/// for one worth keeping, and puts it into its scrollback.
const CLEAR_ROWS: &str = "\x1b[2K\x1b[C\x1b[J\r";
/// Live rows are cut, not wrapped: a character whose width we misjudge must not push the others down.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const SHOW_CURSOR: &str = "\x1b[?25h";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// The part of the screen that is drawn again and again.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) rows: Vec<Line<'static>>,
    /// Where the person types. Without it the terminal's cursor is hidden, and rests at the top.
    pub(crate) cursor: Option<Position>,
}

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

#[derive(Debug)]
pub(crate) struct Screen {
    is_coloured: bool,
    narrowing: Narrowing,
    size: Size,
    drawn: View,
    /// The row of `drawn` that the terminal's cursor is in.
    at_row: usize,
}

impl Screen {
    pub(crate) fn new(is_coloured: bool, narrowing: Narrowing, size: Size) -> Self {
        Self {
            is_coloured,
            narrowing,
            size,
            drawn: View::default(),
            at_row: 0,
        }
    }

    /// Returns what to write so that `finished` is printed for good and `view` stands below it.
    pub(crate) fn draw(&mut self, finished: &[Line<'_>], view: View, size: Size) -> String {
        let is_resized = self.size != size;
        if finished.is_empty() && !is_resized && view == self.drawn {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        if is_resized {
            self.at_row = self.reflowed_row(size.columns);
            self.size = size;
        }
        if !finished.is_empty() || is_resized {
            self.print(&mut out, finished);
        }
        self.draw_rows(&mut out, &view);
        self.place_cursor(&mut out, &view);
        self.drawn = view;
        out.push_str(END);
        out
    }

    /// Returns what removes the live rows, so that whatever comes next starts in their place.
    pub(crate) fn erase(&mut self) -> String {
        let mut out = String::from(BEGIN);
        self.print(&mut out, &[]);
        out.push_str(SHOW_CURSOR);
        out.push_str(END);
        out
    }

    /// Returns what empties the screen; the scrollback stays.
    pub(crate) fn clear(&mut self) -> String {
        self.drawn = View::default();
        self.at_row = 0;
        "\x1b[H\x1b[2J".into()
    }

    /// Replaces the live rows by lines that stay.
    fn print(&mut self, out: &mut String, lines: &[Line<'_>]) {
        move_up(out, self.at_row);
        out.push('\r');
        for line in lines {
            out.push_str(CLEAR_ROW);
            self.encode(out, line);
            self.clear_after(out, line);
            out.push_str("\r\n");
        }
        out.push_str(CLEAR_ROWS);
        self.drawn = View::default();
        self.at_row = 0;
    }

    /// Writes the rows that differ from those on the screen.
    fn draw_rows(&mut self, out: &mut String, view: &View) {
        out.push_str(NO_WRAP);
        for (row, line) in view.rows.iter().enumerate() {
            if self.drawn.rows.get(row) == Some(line) {
                continue;
            }
            self.go_to(out, row);
            out.push_str(CLEAR_ROW);
            self.encode(out, line);
        }
        if view.rows.len() < self.drawn.rows.len() {
            self.go_to(out, view.rows.len());
            out.push_str(CLEAR_ROWS);
        }
        out.push_str(WRAP);
    }

    /// Clears what an earlier row left behind the end of a line that the terminal breaks. Behind a full row there is
    /// nothing, and the cursor is still on its last character.
    fn clear_after(&self, out: &mut String, line: &Line<'_>) {
        let (width, columns) = (line.width(), self.size.columns.max(1));
        if width > columns && !width.is_multiple_of(columns) {
            out.push_str(CLEAR_TO_END);
        }
    }

    /// Moves to the start of a live row; line feeds make rows that are not there yet.
    fn go_to(&mut self, out: &mut String, row: usize) {
        move_up(out, self.at_row.saturating_sub(row));
        for _ in self.at_row..row {
            out.push('\n');
        }
        out.push('\r');
        self.at_row = row;
    }

    fn place_cursor(&mut self, out: &mut String, view: &View) {
        let Some(cursor) = view.cursor else {
            return self.go_to(out, 0);
        };
        self.go_to(out, cursor.row);
        if cursor.column > 0 {
            _ = write!(out, "\x1b[{}C", cursor.column);
        }
        out.push_str(SHOW_CURSOR);
    }

    /// Where the cursor's row is after the terminal broke the rows above it anew for another width, if it does.
    fn reflowed_row(&self, columns: usize) -> usize {
        if self.narrowing == Narrowing::Cuts {
            return self.at_row;
        }
        let above = self.drawn.rows.iter().take(self.at_row);
        let rows = above.map(|row| row.width().div_ceil(columns.max(1)).max(1));
        let before = rows.sum::<usize>();
        let column = self.drawn.cursor.map_or(0, |cursor| cursor.column);
        before + column / columns.max(1)
    }

    fn encode(&self, out: &mut String, line: &Line<'_>) {
        let mut is_styled = false;
        for span in &line.spans {
            let style = line.style.patch(span.style);
            let codes = codes(style, self.is_coloured);
            if is_styled || !codes.is_empty() {
                _ = write!(out, "\x1b[0{codes}m");
            }
            is_styled = !codes.is_empty();
            out.push_str(&span.content);
        }
        if is_styled {
            out.push_str("\x1b[0m");
        }
    }
}

fn move_up(out: &mut String, rows: usize) {
    if rows > 0 {
        _ = write!(out, "\x1b[{rows}A");
    }
}

/// The parameters that select a style after a reset, each behind a semicolon.
fn codes(style: Style, is_coloured: bool) -> String {
    const MODIFIERS: [(Modifier, &str); 6] = [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::ITALIC, ";3"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
        (Modifier::CROSSED_OUT, ";9"),
    ];
    let mut codes = String::new();
    for (modifier, code) in MODIFIERS {
        if style.add_modifier.contains(modifier) {
            codes.push_str(code);
        }
    }
    if let Some(number) = style.fg.filter(|_| is_coloured).and_then(palette_number) {
        _ = write!(codes, ";{}", 30 + number);
    }
    codes
}

/// The number of a colour among the eight that every terminal has; the theme uses no others.
fn palette_number(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme;

    fn size(columns: u16, rows: u16) -> Size {
        Size {
            columns: columns.into(),
            rows: rows.into(),
        }
    }

    /// A screen and the terminal that shows it.
    struct Shown {
        screen: Screen,
        terminal: vt100::Parser,
    }

    impl Shown {
        fn new(rows: u16, columns: u16) -> Self {
            Self {
                screen: Screen::new(true, Narrowing::Breaks, size(columns, rows)),
                terminal: vt100::Parser::new(rows, columns, 100),
            }
        }

        fn draw(&mut self, finished: &[&str], live: &[&str]) {
            let lines = |texts: &[&str]| {
                texts
                    .iter()
                    .map(|text| Line::raw((*text).to_owned()))
                    .collect()
            };
            let finished: Vec<_> = lines(finished);
            let view = View {
                rows: lines(live),
                cursor: Some(Position {
                    row: live.len() - 1,
                    column: 1,
                }),
            };
            let (rows, columns) = self.terminal.screen().size();
            let bytes = self.screen.draw(&finished, view, size(columns, rows));
            self.terminal.process(bytes.as_bytes());
        }

        fn text(&self) -> String {
            self.terminal.screen().contents()
        }

        fn scrolled_back(&mut self, rows: usize) -> String {
            self.terminal.screen_mut().set_scrollback(rows);
            let text = self.text();
            self.terminal.screen_mut().set_scrollback(0);
            text
        }
    }

    #[test]
    fn live_rows_are_replaced_and_finished_lines_stay() {
        let mut shown = Shown::new(10, 20);
        shown.draw(&[], &["working", "> "]);
        assert_eq!(shown.text(), "working\n> ");
        shown.draw(&["done one"], &["more", "rows", "> x"]);
        assert_eq!(shown.text(), "done one\nmore\nrows\n> x");
        shown.draw(&[], &["> y"]);
        assert_eq!(shown.text(), "done one\n> y");
        assert_eq!(shown.terminal.screen().cursor_position(), (1, 1));
    }

    #[test]
    fn finished_lines_end_up_in_the_scrollback_in_order_and_once() {
        let mut shown = Shown::new(4, 20);
        let lines: Vec<_> = (1..=8).map(|n| format!("line {n}")).collect();
        for line in &lines {
            shown.draw(&[line], &["spinner", "> "]);
        }
        assert_eq!(shown.text(), "line 7\nline 8\nspinner\n> ");
        assert_eq!(shown.scrolled_back(6), "line 1\nline 2\nline 3\nline 4");
    }

    #[test]
    fn an_unchanged_view_writes_nothing_and_a_changed_one_only_what_changed() {
        let mut screen = Screen::new(true, Narrowing::Breaks, size(20, 10));
        let view = |last: &'static str| View {
            rows: vec![Line::raw("same"), Line::raw(last)],
            cursor: None,
        };
        screen.draw(&[], view("a"), size(20, 10));
        assert_eq!(screen.draw(&[], view("a"), size(20, 10)), "");
        let changed = screen.draw(&[], view("b"), size(20, 10));
        assert!(
            changed.contains('b') && !changed.contains("same"),
            "{changed:?}"
        );
    }

    #[test]
    fn a_narrower_terminal_leaves_no_remains_of_wider_rows() {
        let mut shown = Shown::new(10, 20);
        shown.draw(&["kept"], &["────────────────────", "> "]);
        // The emulator does not break rows anew, so this does what a terminal that does would: the rule takes two rows.
        shown
            .terminal
            .process(b"\r\x1b[A\x1b[J----------\r\n----------\r\n> \x1b[D");
        shown.terminal.screen_mut().set_size(10, 10);
        shown.draw(&[], &["──────────", "> "]);
        assert_eq!(shown.text(), "kept\n──────────\n> ");
    }

    #[test]
    fn a_terminal_that_cuts_rows_off_keeps_what_was_printed() {
        let mut shown = Shown::new(10, 20);
        shown.screen = Screen::new(true, Narrowing::Cuts, size(20, 10));
        shown.draw(&["one", "two"], &["────────────────────", "> "]);
        shown.terminal.screen_mut().set_size(10, 10);
        shown.draw(&["three"], &["──────────", "> "]);
        assert_eq!(shown.text(), "one\ntwo\nthree\n──────────\n> ");
    }

    #[test]
    fn a_frame_that_comes_too_late_for_a_resize_writes_over_nothing() {
        let mut screen = Screen::new(true, Narrowing::Breaks, size(20, 6));
        let mut terminal = vt100::Parser::new(6, 20, 100);
        let view = |last: &'static str| View {
            rows: vec![Line::raw("-".repeat(20)), Line::raw(last)],
            cursor: None,
        };
        let kept = [Line::raw("one"), Line::raw("two")];
        terminal.process(screen.draw(&kept, view("a"), size(20, 6)).as_bytes());
        assert_eq!(terminal.screen().cursor_position(), (2, 0), "at the top");
        // A terminal that breaks no rows anew is told of as narrow, and is wide again when the frame arrives.
        let late = screen.draw(&[Line::raw("three")], view("b"), size(5, 6));
        terminal.process(late.as_bytes());
        let rule = "-".repeat(20);
        let shown = terminal.screen().contents();
        assert_eq!(shown, format!("one\ntwo\nthree\n{rule}\nb"));
    }

    #[test]
    fn a_screen_is_never_cleared_from_its_first_cell() {
        let mut screen = Screen::new(true, Narrowing::Breaks, size(20, 10));
        let view = |rows: &[&'static str]| View {
            rows: rows.iter().map(|row| Line::raw(*row)).collect(),
            cursor: None,
        };
        let mut written = screen.draw(&[], view(&["one", "two"]), size(20, 10));
        written.push_str(&screen.draw(&[], view(&["one"]), size(20, 10)));
        written.push_str(&screen.draw(&[Line::raw("done")], view(&["one"]), size(10, 10)));
        written.push_str(&screen.erase());
        assert!(!written.contains("\r\x1b[J"), "{written:?}");
    }

    #[test]
    fn without_colour_only_weight_remains() {
        let line = Line::styled("x", theme::HEADING);
        let mut out = String::new();
        Screen::new(false, Narrowing::Breaks, size(10, 10)).encode(&mut out, &line);
        // A line's own style is joined with that of its spans.
        assert_eq!(out, "\x1b[0;1mx\x1b[0m");
    }
}
