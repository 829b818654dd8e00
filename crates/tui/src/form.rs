//! What a running call wants to know, answered field by field in a line of its own: the draft stays as it is.

use hermes_core::interview::{Heard, Interview};
use hermes_core::{CallId, Elicitation, ElicitationId, Response};
use ratatui_core::text::{Line, Span};

use crate::composer::layout;
use crate::editor::Editor;
use crate::keymap::Key;
use crate::screen::Position;
use crate::{theme, wrap};

/// Rows of a long answer that are shown.
const ANSWER_ROWS_MAX: usize = 3;

#[derive(Debug)]
pub(crate) struct Form {
    interview: Interview,
    answer: Editor,
    /// Why the last answer was not taken.
    refused: Option<String>,
    pub(crate) is_printed: bool,
}

/// What became of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Filled {
    /// Not ours.
    Passed,
    Nothing,
    Done(Response),
}

impl Form {
    pub(crate) fn new(elicitation: Elicitation) -> Self {
        Self {
            interview: Interview::new(elicitation),
            answer: Editor::default(),
            refused: None,
            is_printed: false,
        }
    }

    pub(crate) fn id(&self) -> &ElicitationId {
        self.interview.id()
    }

    pub(crate) fn call(&self) -> &CallId {
        &self.interview.elicitation().call
    }

    /// Who asks what, with everything that could hide spelt out.
    pub(crate) fn introduction(&self) -> String {
        let lines = self.interview.introduction();
        let lines: Vec<_> = lines.iter().map(|line| line.trim_start()).collect();
        lines.join("\n")
    }

    pub(crate) fn key(&mut self, key: Key) -> Filled {
        match key {
            Key::Edit(edit) => self.answer.apply(edit),
            Key::Cancel => return Filled::Done(Response::Declined { reason: None }),
            Key::Send => {
                let heard = self.interview.hear(&self.answer.expanded());
                self.refused = None;
                match heard {
                    Heard::Refused(reason) => self.refused = Some(reason),
                    Heard::Next => self.answer.clear(),
                    Heard::Done(response) => return Filled::Done(response),
                }
            }
            _ => return Filled::Passed,
        }
        Filled::Nothing
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.answer.insert(&wrap::clean(text));
    }

    /// The field that is asked for, and the line it is answered in.
    pub(crate) fn rows(&self, columns: usize) -> (Vec<Line<'static>>, Position) {
        let prompt = self.interview.prompt();
        let mut rows: Vec<_> = prompt
            .trim_end_matches([' ', ':'])
            .lines()
            .map(|line| wrap::cut(Line::styled(line.to_owned(), theme::BOLD), columns))
            .collect();
        let (answer, mut cursor) = layout(&self.answer, columns, ANSWER_ROWS_MAX);
        cursor.row += rows.len();
        rows.extend(answer);
        let below = match &self.refused {
            Some(reason) => Span::styled(format!("  {}", wrap::clean(reason)), theme::WARNING),
            None => Span::styled("  Enter answers, Esc declines", theme::DIM),
        };
        rows.push(wrap::cut(Line::from(below), columns));
        (rows, cursor)
    }
}
