//! Results that people want to see at once: a change of files, and the steps of a plan.

use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::more_lines;
use crate::conversation::is_diff;
use crate::markdown::diff_style;
use crate::{theme, wrap};

/// Lines of a change that are shown.
const CHANGE_LINES_MAX: usize = 16;
/// The steps of a plan that are shown: a longer one is cut around those that are worked at.
const STEPS_MAX: usize = 20;

/// The change that a result tells of, behind a line for every file.
pub(super) fn change(text: &str) -> Option<&str> {
    let start = if text.starts_with("--- ") {
        0
    } else {
        text.find("\n--- ")? + 1
    };
    Some(&text[start..]).filter(|rest| is_diff(rest))
}

/// The lines of a change, coloured; the names of its files are left out where the call names them.
pub(super) fn change_rows(diff: &str, columns: usize) -> Vec<Line<'static>> {
    let is_of_many = diff.lines().filter(|line| line.starts_with("+++ ")).count() > 1;
    let is_shown =
        |line: &&str| is_of_many || !(line.starts_with("--- ") || line.starts_with("+++ "));
    let lines: Vec<&str> = diff.lines().filter(is_shown).collect();
    let shown = lines.iter().take(CHANGE_LINES_MAX).map(|line| {
        let line = wrap::clean(line);
        let style = diff_style(&line);
        wrap::cut(
            Line::from(Span::styled(format!("    {line}"), style)),
            columns,
        )
    });
    let mut rows: Vec<_> = shown.collect();
    if lines.len() > CHANGE_LINES_MAX {
        rows.push(more_lines(lines.len() - CHANGE_LINES_MAX));
    }
    rows
}

/// The steps of a plan.
#[derive(Debug)]
pub(super) struct Todo {
    todos: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    content: String,
    status: String,
}

/// The list that the `todo` tool returns; nothing if this is none.
pub(super) fn todo(tool: &str, text: &str) -> Option<Todo> {
    if tool != "todo" {
        return None;
    }
    // Words of the user may follow it.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let list = values.next()?.ok()?;
    let step = |step: &Value| {
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        Step {
            content: text("content"),
            status: text("status"),
        }
    };
    let todos: Vec<Step> = list["todos"].as_array()?.iter().map(step).collect();
    (!todos.is_empty()).then_some(Todo { todos })
}

impl Todo {
    /// How many steps are done: `2 of 5`.
    pub(super) fn done(&self) -> String {
        let done = self.todos.iter().filter(|step| step.status == "completed");
        format!("{} of {} done", done.count(), self.todos.len())
    }

    pub(super) fn rows(&self, columns: usize) -> Vec<Line<'static>> {
        let current = self
            .todos
            .iter()
            .position(|step| step.status == "in_progress");
        let last_first = self.todos.len().saturating_sub(STEPS_MAX);
        let first = current
            .unwrap_or(0)
            .saturating_sub(STEPS_MAX / 2)
            .min(last_first);
        let shown = self.todos.iter().skip(first).take(STEPS_MAX);
        let mut rows: Vec<_> = shown.map(|step| step.row(columns)).collect();
        if self.todos.len() > STEPS_MAX {
            rows.push(more_lines(self.todos.len() - STEPS_MAX));
        }
        rows
    }
}

impl Step {
    fn row(&self, columns: usize) -> Line<'static> {
        let (mark, style) = match self.status.as_str() {
            "completed" => ("☑", theme::GOOD),
            "in_progress" => ("▸", theme::HEADING),
            "cancelled" => ("☒", theme::DIM),
            _ => ("☐", ratatui_core::style::Style::default()),
        };
        let words = wrap::clean(&self.content).replace('\n', " ");
        let row = Line::from(Span::styled(format!("    {mark} {words}"), style));
        wrap::cut(row, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: Vec<Line<'static>>) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_is_found_behind_what_is_said_of_it() {
        let result = "changed `a`\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
        let diff = change(result).unwrap();
        assert_eq!(
            text(change_rows(diff, 40)),
            ["    @@ -1 +1 @@", "    -x", "    +y"]
        );
        assert_eq!(change("a\n--- no change"), None);
        assert_eq!(change("nothing"), None);
    }

    #[test]
    fn steps_are_a_checklist() {
        let list = r#"{"todos": [
            {"id": "1", "content": "read", "status": "completed"},
            {"id": "2", "content": "write", "status": "in_progress"},
            {"id": "3", "content": "test", "status": "pending"}]} and more"#;
        let todo = todo("todo", list).unwrap();
        assert_eq!(todo.done(), "1 of 3 done");
        assert_eq!(
            text(todo.rows(40)),
            ["    ☑ read", "    ▸ write", "    ☐ test"]
        );
    }
}
