//! Sessions, one per line.

use hermes_core::text::shorten;
use hermes_core::{Clock as _, SessionRecord, Timestamp};

use crate::clock::SystemClock;
use crate::layout::{Table, age, count, one_line};
use crate::style::Style;

pub const NONE_YET: &str = "no sessions yet; `hermes` starts one";

/// Enough of a title to recognise it, and short enough for a line.
const TITLE_CHARS_MAX: usize = 60;

/// Sessions as plain text.
pub fn text(records: &[SessionRecord]) -> String {
    if records.is_empty() {
        NONE_YET.to_owned()
    } else {
        table(records, SystemClock.now(), Style::PLAIN)
    }
}

/// One line per session.
pub fn table(records: &[SessionRecord], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(["ID", "WHEN", "MESSAGES", "MODEL", "TITLE"]);
    for record in records {
        table.row([
            record.id.to_string(),
            format!(
                "{} ({})",
                age(record.updated, now),
                record.updated.date_text()
            ),
            record.messages.to_string(),
            record.model.to_string(),
            title(record),
        ]);
    }
    let mut text = table.styled(style);
    let unfinished = records.iter().filter(|record| record.has_open_turn).count() as u64;
    if unfinished > 0 {
        let what = count(unfinished, "session");
        let note = format!(
            "! {what} with a turn that is still running or was cut short; `hermes sessions recover` finishes those"
        );
        text.push_str(&format!("\n\n{}", style.yellow(note)));
    }
    text
}

fn title(record: &SessionRecord) -> String {
    let name = record.title.as_deref().unwrap_or(&record.preview);
    let name = shorten(&one_line(name), TITLE_CHARS_MAX);
    if record.has_open_turn {
        format!("! {name}")
    } else {
        name
    }
}
