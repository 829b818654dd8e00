//! What is printed for good: one item after the other, into the terminal's own scrollback.

mod result;

use std::time::Duration;

use hermes_core::{ApprovalRequest, ResultStatus, wording};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::markdown::{self, Piece};
use crate::screen::Size;
use crate::wrap::{self, Margin};
use crate::{approval_request, theme};

/// Rows of a call's output that are shown when details are wanted.
const DETAIL_ROWS_MAX: usize = 12;

#[derive(Debug)]
pub(crate) enum Item {
    /// The first lines of a conversation.
    Greeting(Greeting),
    User(String),
    Reply(Piece),
    Thought {
        elapsed: Duration,
        /// The whole of it, where it is wanted.
        text: Option<String>,
    },
    Call(FinishedCall),
    ApprovalRequest(ApprovalRequest),
    /// All of a change that a question is about.
    Diff(String),
    /// A later part of what a question is about.
    Part {
        text: String,
        number: usize,
        of: usize,
    },
    /// A command's answer.
    Told(String),
    Note {
        style: Style,
        text: String,
    },
}

#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) model: String,
    pub(crate) title: Option<String>,
    pub(crate) cwd: String,
    /// Something was said in the conversation before.
    pub(crate) goes_on: bool,
}

#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(crate) tool: String,
    pub(crate) brief: String,
    pub(crate) status: ResultStatus,
    pub(crate) text: String,
    /// What it changed, line by line, where that is not in the text.
    pub(crate) change: Option<String>,
    pub(crate) elapsed: Duration,
    pub(crate) shows_output: bool,
}

impl Item {
    pub(crate) fn note(style: Style, text: impl Into<String>) -> Self {
        Self::Note {
            style,
            text: text.into(),
        }
    }

    /// Whether a blank line separates it from what was printed before it.
    pub(crate) fn stands_apart_from(&self, before: &Self) -> bool {
        match (before, self) {
            (_, Self::Reply(piece)) => !piece.is_continued,
            (Self::Call(_) | Self::Thought { .. }, Self::Call(_) | Self::Thought { .. }) => false,
            (Self::Call(_) | Self::ApprovalRequest(_) | Self::Note { .. }, Self::Note { .. }) => {
                false
            }
            (Self::Note { .. } | Self::ApprovalRequest(_), Self::Call(_)) => false,
            (Self::Diff(_) | Self::Part { .. }, Self::Note { .. } | Self::Call(_)) => false,
            (Self::ApprovalRequest(_) | Self::Part { .. }, Self::Part { .. }) => false,
            _ => true,
        }
    }

    pub(crate) fn rows(&self, size: Size) -> Vec<Line<'static>> {
        let columns = size.columns;
        match self {
            Self::Greeting(greeting) => greeting.rows(columns),
            Self::User(text) => user(text, columns),
            Self::Reply(piece) => markdown::render(piece, columns),
            Self::Thought { elapsed, text } => thought(*elapsed, text.as_deref(), columns),
            Self::Call(call) => call.rows(columns),
            Self::ApprovalRequest(question) => approval_request::rows(question, size),
            Self::Diff(diff) => approval_request::diff_rows(diff, columns),
            Self::Part { text, number, of } => {
                approval_request::part_rows(text, *number, *of, columns)
            }
            Self::Told(text) => wrap::clean(text)
                .lines()
                .flat_map(|line| told(line, columns))
                .collect(),
            Self::Note { style, text } => note(*style, text, columns),
        }
    }
}

impl Greeting {
    fn rows(&self, columns: usize) -> Vec<Line<'static>> {
        let about = format!(" · {} · {}", wrap::clean(&self.model), self.cwd);
        let about = Line::from(vec![
            Span::styled("☤ Hermes", theme::HEADING),
            Span::styled(about, theme::DIM),
        ]);
        let help = match (self.goes_on, &self.title) {
            (true, Some(title)) => format!("  going on with “{}”", wrap::clean(title)),
            (true, None) => "  going on where you stopped".to_owned(),
            (false, _) => "  /help shows what you can do".to_owned(),
        };
        let help = Line::styled(help, theme::DIM);
        vec![wrap::cut(about, columns), wrap::cut(help, columns)]
    }
}

fn user(text: &str, columns: usize) -> Vec<Line<'static>> {
    let text = wrap::clean(text);
    let mut rows = Vec::new();
    for line in text.lines() {
        let first = if rows.is_empty() {
            Span::styled("› ", theme::HEADING)
        } else {
            Span::raw("  ")
        };
        let margin = Margin {
            first: vec![first],
            rest: vec![Span::raw("  ")],
        };
        rows.extend(wrap::words(
            &[Span::styled(line.to_owned(), theme::BOLD)],
            columns,
            &margin,
        ));
    }
    rows
}

fn thought(elapsed: Duration, text: Option<&str>, columns: usize) -> Vec<Line<'static>> {
    let mut rows = vec![Line::styled(
        format!("  thought for {}", spell(elapsed)),
        theme::DIM,
    )];
    for line in text.unwrap_or_default().trim().lines() {
        rows.extend(note(theme::COMMENT, line, columns));
    }
    rows
}

fn note(style: Style, text: &str, columns: usize) -> Vec<Line<'static>> {
    let text = wrap::clean(text);
    let lines = text.lines();
    lines
        .flat_map(|line| {
            let line = Span::styled(line.to_owned(), style);
            wrap::words(&[line], columns, &Margin::indent(2))
        })
        .collect()
}

/// A line that is laid out already. What is too wide goes on under its last column; a word that fits into no row, such as
/// an address, is the terminal's to break, so that it is copied whole.
fn told(line: &str, columns: usize) -> Vec<Line<'static>> {
    let line = format!("  {line}");
    let indent = match last_column(&line) {
        indent if indent <= columns / 2 => indent,
        _ => 4.min(columns / 2),
    };
    let room = columns.saturating_sub(indent);
    if line.split_whitespace().any(|word| wrap::width(word) > room) {
        return vec![Line::raw(line)];
    }
    let margin = Margin {
        first: Vec::new(),
        rest: vec![Span::raw(" ".repeat(indent))],
    };
    wrap::words(&[Span::raw(line)], columns, &margin)
}

/// Where the text behind the last gap of two spaces begins.
fn last_column(line: &str) -> usize {
    let line = line.trim_end();
    let gap = line.rfind("  ").map_or(0, |at| at + 2);
    wrap::width(&line[..gap])
}

impl FinishedCall {
    fn rows(&self, columns: usize) -> Vec<Line<'static>> {
        let (mark, style) = match self.status {
            ResultStatus::Ok => ("✓", theme::GOOD),
            ResultStatus::Failed => ("✗", theme::BAD),
            ResultStatus::NotRun => ("–", theme::WARNING),
            ResultStatus::OutcomeUnknown => ("?", theme::WARNING),
        };
        let mark = Span::styled(format!("{mark} "), style);
        let todo = result::todo(&self.tool, &self.text);
        let change = self.change.as_deref().or(result::change(&self.text));
        let change = change.filter(|_| self.status == ResultStatus::Ok);
        let brief = match (&todo, change) {
            (Some(todo), _) => todo.done(),
            (None, Some(diff)) => format!("{} {}", self.brief, wording::change_size(diff)),
            (None, None) => self.brief.clone(),
        };
        let mut rows = vec![call_row(mark, &self.tool, &brief, self.elapsed, columns)];
        if let Some(todo) = todo {
            rows.extend(todo.rows(columns));
        } else if let Some(diff) = change {
            rows.extend(result::change_rows(diff, columns));
        } else if self.shows_output {
            rows.extend(detail(&wrap::clean(&self.text), columns));
        } else if self.status != ResultStatus::Ok {
            let why = wording::reason(&self.text).into_iter();
            let row = |why| Line::styled(format!("    {}", wrap::clean(why)), style);
            rows.extend(why.map(|why| wrap::cut(row(why), columns)));
        }
        rows
    }
}

fn detail(output: &str, columns: usize) -> Vec<Line<'static>> {
    let count = output.lines().count();
    let shown = output.lines().take(DETAIL_ROWS_MAX);
    let mut rows: Vec<_> = shown
        .map(|line| wrap::cut(Line::styled(format!("    {line}"), theme::DIM), columns))
        .collect();
    if count > DETAIL_ROWS_MAX {
        let rest = count - DETAIL_ROWS_MAX;
        rows.push(more_lines(rest));
    }
    rows
}

fn more_lines(rest: usize) -> Line<'static> {
    Line::styled(
        format!("    … {rest} more lines, Ctrl-T shows all"),
        theme::DIM,
    )
}

/// A call in one row: a mark, the tool, what it is about, and how long it took. What it is about is cut first.
pub(crate) fn call_row(
    mark: Span<'static>,
    tool: &str,
    brief: &str,
    elapsed: Duration,
    columns: usize,
) -> Line<'static> {
    /// Shorter than this is not worth a word.
    const WORTH_TELLING: Duration = Duration::from_millis(100);
    let time = match elapsed {
        elapsed if elapsed < WORTH_TELLING => String::new(),
        elapsed => format!("  {}", spell(elapsed)),
    };
    let head = Line::from(vec![
        Span::raw("  "),
        mark,
        Span::styled(wrap::clean(tool), theme::BOLD),
        Span::raw(" "),
        Span::styled(wrap::clean(brief), theme::DIM),
    ]);
    let room = columns.saturating_sub(wrap::width(&time));
    let mut row = wrap::cut(head, room);
    row.push_span(Span::styled(time, theme::DIM));
    wrap::cut(row, columns)
}

/// `0.4 s`, `12 s`, `3 m 05 s`, `2 h 10 m`.
pub(crate) fn spell(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", elapsed.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(columns: usize) -> Size {
        Size { columns, rows: 24 }
    }

    fn text(item: &Item, columns: usize) -> String {
        let rows = item.rows(size(columns));
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    fn call(status: ResultStatus, text: &str) -> Item {
        Item::Call(FinishedCall {
            tool: "terminal".into(),
            brief: "cargo test --workspace".into(),
            status,
            text: text.into(),
            change: None,
            elapsed: Duration::from_millis(12_345),
            shows_output: false,
        })
    }

    #[test]
    fn a_call_is_one_row_and_says_why_it_failed() {
        assert_eq!(
            text(&call(ResultStatus::Ok, "fine"), 41),
            "  ✓ terminal cargo test --workspace  12 s"
        );
        let failed = call(ResultStatus::Failed, "a\nexit code 1\n\n");
        assert_eq!(
            text(&failed, 30),
            "  ✗ terminal cargo test…  12 s\n    exit code 1"
        );
    }

    #[test]
    fn a_commands_answer_goes_on_under_its_last_column_and_addresses_stay_whole() {
        let told = |line: &str, columns| text(&Item::Told(line.into()), columns);
        assert_eq!(
            told("/undo [N]  take back your last message", 30),
            "  /undo [N]  take back your\n             last message"
        );
        assert_eq!(
            told("no checkpoints are kept here", 20),
            "  no checkpoints are\n  kept here"
        );
        let address = "open https://example.org/a/long/path?with=more";
        assert_eq!(told(address, 20), format!("  {address}"));
        assert_eq!(told("a  b", 80), "  a  b");
    }

    #[test]
    fn times_are_spelt_as_people_say_them() {
        let spelt = |millis| spell(Duration::from_millis(millis));
        assert_eq!(
            [spelt(420), spelt(12_000), spelt(185_000), spelt(7_800_000)],
            ["0.4 s", "12 s", "3 m 05 s", "2 h 10 m"]
        );
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        for columns in [1, 10, 25] {
            for item in [
                call(ResultStatus::Failed, &"x".repeat(99)),
                Item::User("some words".into()),
            ] {
                assert!(
                    item.rows(size(columns))
                        .iter()
                        .all(|row| row.width() <= columns.max(3)),
                    "{columns}"
                );
            }
        }
    }
}
