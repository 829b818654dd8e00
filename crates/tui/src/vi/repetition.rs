//! An insertion that was asked for several times: `3ix`, `2A!`, `2o`. It is typed once, and repeated when it ends.

use super::command::InsertAt;
use crate::editor::Editor;

/// A repetition that would write more is a slip of the finger: it is left out, and what was typed stays.
const WRITTEN_BYTES_MAX: usize = 100_000;

#[derive(Debug)]
pub(super) struct Repetition {
    /// How many times, beside the one that is typed.
    more: usize,
    has_lines_of_its_own: bool,
    /// What stands before the cursor, and behind it, where typing begins.
    before: String,
    after: String,
}

impl Repetition {
    /// Returns nothing for an insertion that happens once.
    pub(super) fn begin(place: InsertAt, count: Option<usize>, editor: &Editor) -> Option<Self> {
        let more = count.unwrap_or(1).saturating_sub(1);
        let (before, after) = editor.text().split_at(editor.cursor());
        (more > 0).then(|| Self {
            more,
            has_lines_of_its_own: matches!(place, InsertAt::Above | InsertAt::Below),
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Writes what was typed as many times again. As in vi, nothing is repeated for who went elsewhere meanwhile.
    pub(super) fn finish(&self, editor: &mut Editor) {
        let Some(typed) = self.typed(editor) else {
            return;
        };
        let again = if self.has_lines_of_its_own {
            format!("\n{typed}")
        } else {
            typed.to_owned()
        };
        if !again.is_empty() && again.len().saturating_mul(self.more) <= WRITTEN_BYTES_MAX {
            editor.put(editor.cursor(), &again.repeat(self.more));
        }
    }

    /// What stands now where typing began, if the cursor is at its end.
    fn typed<'a>(&self, editor: &'a Editor) -> Option<&'a str> {
        let (before, after) = editor.text().split_at(editor.cursor());
        let is_end = after == self.after;
        before.strip_prefix(self.before.as_str()).filter(|_| is_end)
    }
}
