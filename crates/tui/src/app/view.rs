//! What the live part of the screen looks like. From top to bottom: the reply as it comes, what runs, what waits, the
//! input, suggestions, the status row. When there is little room, the lower part is kept.

use std::time::Duration;

use ratatui_core::text::{Line, Span};

use super::App;
use crate::conversation::RunningCall;
use crate::host::{BusyInput, ShowReasoning};
use crate::item::{call_row, spell};
use crate::screen::{Position, View};
use crate::status::Status;
use crate::wrap::{self, Margin};
use crate::{markdown, theme};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPINNER_STEP: Duration = Duration::from_millis(100);
/// Rows of a thought that are shown while it is thought.
const THOUGHT_ROWS: usize = 3;
/// Waiting messages that are shown.
const WAITING_ROWS: usize = 4;
/// A terminal of fewer rows has no room for lines around the input.
const ROWS_FOR_RULES: usize = 8;
const ROWS_FOR_STATUS: usize = 4;

impl App {
    /// The live rows for a terminal of this size; never more than fit on it. While a turn runs and nothing is typed, the
    /// cursor is drawn: the terminal's own rests at the top, where a resize does no harm.
    pub(crate) fn view(&self, columns: usize, rows: usize) -> View {
        let columns = columns.max(1);
        let mut lower = Vec::new();
        let has_rules = rows >= ROWS_FOR_RULES;
        let rule = || Line::styled("─".repeat(columns), theme::DIM);
        let form = self.conversation.forms.front();
        let cursor = match (&self.picker, form) {
            (None, Some(form)) => {
                let (fields, mut cursor) = form.rows(columns);
                lower.extend(has_rules.then(rule));
                cursor.row += lower.len();
                lower.extend(fields);
                Some(cursor)
            }
            (Some(picker), _) => {
                lower.extend(has_rules.then(rule));
                // Its title, an item and how to leave, however small the terminal is.
                let room = rows.saturating_sub(4).max(rows.min(3));
                lower.extend(picker.rows(columns, room));
                None
            }
            (None, None) => {
                let (mut input, mut cursor) = self.composer.rows(columns, (rows / 3).max(1));
                let is_watched = self.conversation.is_busy() && self.composer.is_resting();
                if is_watched && let Some(row) = input.first_mut() {
                    row.push_span(Span::styled(" ", theme::CURSOR));
                }
                lower.extend(has_rules.then(rule));
                cursor.row += lower.len();
                lower.extend(input);
                lower.extend(has_rules.then(rule));
                let room = rows.saturating_sub(lower.len() + 2);
                lower.extend(self.composer.popup(columns, room));
                (!is_watched).then_some(cursor)
            }
        };
        if rows >= ROWS_FOR_STATUS {
            lower.push(self.status_row(columns));
        }
        let mut upper = self.live_rows(columns, rows.saturating_sub(lower.len()));
        let cut = (upper.len() + lower.len()).saturating_sub(rows.max(1));
        upper.drain(..cut.min(upper.len()));
        let above = upper.len();
        upper.extend(lower);
        View {
            cursor: cursor.map(|cursor| Position {
                row: (cursor.row + above).min(upper.len().saturating_sub(1)),
                ..cursor
            }),
            rows: upper,
        }
    }

    fn status_row(&self, columns: usize) -> Line<'static> {
        if let Some((hint, _)) = &self.hint {
            let hint = Line::styled(format!("  {hint}"), theme::WARNING);
            return wrap::cut(hint, columns);
        }
        let status = Status {
            conversation: &self.conversation,
            around: self.around,
            user_home: self.settings.user_home.as_ref(),
            shows_cost: self.settings.shows_cost,
            mode: self.composer.mode(),
        };
        status.row(columns)
    }

    /// What goes on, above the input.
    fn live_rows(&self, columns: usize, room: usize) -> Vec<Line<'static>> {
        let mut below = self.thought_rows(columns);
        for call in &self.conversation.calls {
            below.extend(self.call_rows(call, columns));
        }
        below.extend(self.activity_row(columns));
        below.extend(self.waiting_rows(columns));
        below.extend(self.question_row(columns));
        let mut rows = self.reply_rows(columns, room.saturating_sub(below.len() + 2));
        if !rows.is_empty() && !below.is_empty() {
            rows.push(Line::default());
        }
        rows.extend(below);
        if self.last_printed.is_some() {
            rows.insert(0, Line::default());
        }
        rows
    }

    /// The end of the reply as far as it has come.
    fn reply_rows(&self, columns: usize, room: usize) -> Vec<Line<'static>> {
        if self.conversation.reply.is_empty() {
            return Vec::new();
        }
        let rendered = markdown::render(&self.conversation.reply.rest(), columns);
        let mut rows: Vec<_> = rendered
            .iter()
            .flat_map(|line| wrap::hard(line, columns))
            .collect();
        rows.drain(..rows.len().saturating_sub(room));
        rows
    }

    fn thought_rows(&self, columns: usize) -> Vec<Line<'static>> {
        let Some(thought) = &self.conversation.thought else {
            return Vec::new();
        };
        if self.conversation.reasoning == ShowReasoning::Hidden {
            return Vec::new();
        }
        // The end of it is enough to fill the rows.
        let end = hermes_core::text::tail(&thought.text, columns * THOUGHT_ROWS * 2);
        let mut rows: Vec<_> = end
            .lines()
            .filter(|line| !line.trim().is_empty())
            .flat_map(|line| {
                let words = Span::styled(line.to_owned(), theme::COMMENT);
                wrap::words(&[words], columns, &Margin::indent(2))
            })
            .collect();
        rows.drain(..rows.len().saturating_sub(THOUGHT_ROWS));
        rows
    }

    fn call_rows(&self, call: &RunningCall, columns: usize) -> Vec<Line<'static>> {
        let mark = Span::styled(format!("{} ", self.spinner()), theme::ACCENT);
        let elapsed = self.now.saturating_sub(call.since);
        let mut rows = vec![call_row(mark, &call.tool, &call.brief, elapsed, columns)];
        let shown = if self.conversation.shows_output {
            call.progress.len()
        } else {
            1
        };
        let skipped = call.progress.len().saturating_sub(shown);
        let output = call.progress.iter().skip(skipped).cloned();
        let subagents = call.subagents.iter();
        let subagents = subagents.map(|(number, doing)| format!("[{number}] {doing}"));
        rows.extend(
            output
                .chain(subagents)
                .map(|line| wrap::cut(Line::styled(format!("    │ {line}"), theme::DIM), columns)),
        );
        rows
    }

    fn activity_row(&self, columns: usize) -> Option<Line<'static>> {
        let since = self.conversation.busy_since?;
        if !self.conversation.approvals.is_empty() || !self.conversation.forms.is_empty() {
            // The question below says what is waited for.
            return None;
        }
        let elapsed = Duration::from_secs(self.now.saturating_sub(since).as_secs());
        let compacting = self.conversation.compacting.as_deref();
        let doing = match (&self.conversation.thought, self.conversation.calls.len()) {
            _ if self.is_leaving => "leaving",
            _ if compacting.is_some() => compacting.unwrap_or_default(),
            (Some(_), _) => "thinking",
            (None, 0) if self.conversation.reply.is_empty() => "working",
            (None, 0) => "writing",
            (None, _) => "working",
        };
        let wait = self.conversation.asks_again_at;
        let wait = wait
            .map(|at| at.saturating_sub(self.now))
            .filter(|wait| !wait.is_zero());
        let enter = match (self.composer.is_empty(), self.busy_input) {
            (true, _) => "Ctrl-C stops it",
            (false, BusyInput::Interrupt) => "Enter interrupts it with this",
            (false, BusyInput::Queue) => "Enter says this when it is done",
            (false, BusyInput::Steer) => "Enter tells it this",
        };
        let seconds = match elapsed.as_secs() {
            0..60 => format!("{} s", elapsed.as_secs()),
            _ => spell(elapsed),
        };
        let (doing, seconds) = match wait {
            Some(wait) => (
                "waiting,",
                format!("asking again in {} s", wait.as_secs_f64().ceil()),
            ),
            None => (doing, seconds),
        };
        let row = Line::from(vec![
            Span::styled(format!("{} ", self.spinner()), theme::ACCENT),
            Span::styled(doing.to_owned(), theme::ACCENT),
            Span::styled(format!(" {seconds} · {enter}"), theme::DIM),
        ]);
        Some(wrap::cut(row, columns))
    }

    fn waiting_rows(&self, columns: usize) -> Vec<Line<'static>> {
        let waiting = &self.conversation.waiting;
        let shown = waiting.iter().take(WAITING_ROWS).map(|one| {
            let (mark, fate) = if one.is_steering {
                ("↪", "told")
            } else {
                ("⏳", "waits")
            };
            let words = wrap::clean(&one.text).replace('\n', " ");
            let words = hermes_core::text::shorten(&words, 300);
            wrap::cut(
                Line::styled(format!("{mark} {fate}: {words}"), theme::DIM),
                columns,
            )
        });
        let mut rows: Vec<_> = shown.collect();
        if waiting.len() > WAITING_ROWS {
            let more = waiting.len() - WAITING_ROWS;
            rows.push(Line::styled(format!("  … and {more} more"), theme::DIM));
        }
        rows
    }

    fn question_row(&self, columns: usize) -> Vec<Line<'static>> {
        let Some(asked) = self.conversation.approvals.front() else {
            return Vec::new();
        };
        asked.rows(self.now, columns)
    }

    fn spinner(&self) -> &'static str {
        let step = self.now.as_millis() / SPINNER_STEP.as_millis();
        SPINNER[usize::try_from(step).unwrap_or(0) % SPINNER.len()]
    }
}
