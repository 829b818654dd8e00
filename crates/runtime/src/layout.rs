//! How things are laid out for people: columns, ages, sizes, and text that cannot disturb the terminal.

use hermes_core::{Timestamp, Usage, text};

use crate::style::Style;

/// Rows of cells, each column as wide as its widest cell. The last column may be of any width.
pub struct Table<const COLUMNS: usize> {
    heading: Option<[&'static str; COLUMNS]>,
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub fn new(heading: [&'static str; COLUMNS]) -> Self {
        Self {
            heading: Some(heading),
            rows: Vec::new(),
        }
    }

    pub fn without_heading() -> Self {
        Self {
            heading: None,
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    /// The rows as plain text, without a line end after the last.
    pub fn text(&self) -> String {
        self.text_with(str::to_owned)
    }

    /// The same, with the heading as `dressed` makes it.
    pub fn text_with(&self, dressed: impl Fn(&str) -> String) -> String {
        let widths = self.widths();
        let heading = self
            .heading
            .map(|heading| dressed(&line(&heading.map(str::to_owned), &widths)));
        let rows = self.rows.iter().map(|row| line(row, &widths));
        let lines: Vec<String> = heading.into_iter().chain(rows).collect();
        lines.join("\n")
    }

    /// The rows with a heading that stands out.
    pub fn styled(&self, style: Style) -> String {
        self.text_with(|heading| style.bold(heading))
    }

    fn widths(&self) -> [usize; COLUMNS] {
        let width = |column: usize| {
            let heading = self
                .heading
                .map_or(0, |heading| heading[column].chars().count());
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.fold(heading, usize::max)
        };
        std::array::from_fn(width)
    }
}

fn line<const COLUMNS: usize>(cells: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
    let padded = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// How long ago something was: `just now`, `5 min ago`, `2 h ago`, `3 d ago`.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let seconds = now.as_millis().saturating_sub(then.as_millis()) / 1000;
    match seconds {
        ..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        DAY.. => format!("{} d ago", seconds / DAY),
    }
}

/// The seconds that are left until a time, rounded up; none when it is past.
pub fn seconds_between(now: Timestamp, then: Timestamp) -> i64 {
    let millis = then.as_millis().saturating_sub(now.as_millis());
    millis.max(0).saturating_add(999) / 1000
}

/// In the largest unit that fits, rounded up.
pub fn duration(seconds: i64) -> String {
    let up = |unit: i64| (seconds + unit - 1) / unit;
    match seconds {
        ..=60 => format!("{seconds} s"),
        61..=3600 => format!("{} min", up(60)),
        3601..=172_800 => format!("{} h", up(3600)),
        _ => format!("{} d", up(86_400)),
    }
}

/// A number of bytes with a unit people know: `812 bytes`, `1.4 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// What went to a model, of which so much was cached.
pub fn tokens_in(usage: &Usage) -> String {
    let Usage {
        input,
        cache_read,
        cache_write,
        ..
    } = usage;
    format!("{input} ({cache_read} from cache, {cache_write} to cache)")
}

pub fn tokens_out(usage: &Usage) -> String {
    format!("{} ({} thinking)", usage.output, usage.reasoning)
}

/// `1 session`, `2 sessions`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// Text in a single line, without anything a terminal would obey.
pub fn one_line(text: &str) -> String {
    // A carriage return parts words too, in what a progress bar leaves behind.
    let parted = text.replace('\r', " ");
    let visible = text::printable(&parted);
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text with its lines and tabs, without anything else a terminal would obey: models and tools wrote it.
pub fn printable(text: &str) -> String {
    text::printable(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_use_the_largest_unit_that_fits() {
        let check = |seconds: i64, expected: &str| {
            let now = Timestamp::from_millis(1_794_777_845_000);
            let then = Timestamp::from_millis(now.as_millis() - seconds * 1000);
            assert_eq!(age(then, now), expected);
        };
        check(-100, "just now");
        check(59, "just now");
        check(60, "1 min ago");
        check(7199, "1 h ago");
        check(86_400 * 30, "30 d ago");
    }

    #[test]
    fn sizes_never_show_a_thousand_of_a_unit() {
        let check = |bytes: u64, expected: &str| assert_eq!(size(bytes), expected);
        check(0, "0 bytes");
        check(999, "999 bytes");
        check(1000, "1.0 kB");
        check(999_999, "1.0 MB");
        check(1_400_000, "1.4 MB");
    }

    #[test]
    fn text_cannot_move_the_cursor() {
        assert_eq!(one_line("a\n\x1b[2Jb\t c\rd"), "a b c d");
        assert_eq!(printable("a\n\x1b[2Jb\tc\r"), "a\nb\tc");
    }

    #[test]
    fn columns_line_up_and_lines_end_with_text() {
        let widths = [3, 5];
        assert_eq!(line(&["ä".into(), "b".into()], &widths), "ä    b");
        assert_eq!(line(&["abc".into(), String::new()], &widths), "abc");
    }

    #[test]
    fn a_rest_is_told_in_the_largest_unit_that_fits() {
        let told = [30, 61, 3600, 3601, 500_000].map(duration);
        assert_eq!(told, ["30 s", "2 min", "60 min", "2 h", "6 d"]);
    }
}
