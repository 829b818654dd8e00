//! A list of things to switch on and off, by their numbers.

use std::io::{self, Write as _};
use std::ops::RangeInclusive;

use hermes_core::text::shorten;

use super::layout::one_line;
use crate::failure::{Failure, Outcome};
use crate::output::note;
use crate::style::Style;

/// Enough to know what something is for.
const PURPOSE_CHARS_MAX: usize = 60;

pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) purpose: String,
    pub(crate) is_on: bool,
}

/// Lets a person switch entries on and off. Returns whether to keep what they chose.
pub(crate) fn ask(entries: &mut [Entry], style: Style) -> Outcome<bool> {
    loop {
        for (number, entry) in (1..).zip(entries.iter()) {
            note(&line(number, entry, style));
        }
        let mut stderr = io::stderr().lock();
        let mut answer = String::new();
        let asked = write!(
            stderr,
            "switch which? (2 or 1,3-5, all, none; Enter saves, q leaves) "
        )
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().read_line(&mut answer));
        drop(stderr);
        let bytes =
            asked.map_err(|error| Failure::new(format!("cannot ask at the terminal: {error}")))?;
        match answer.trim() {
            _ if bytes == 0 => return Ok(false),
            "" => return Ok(true),
            "q" => return Ok(false),
            "all" => entries.iter_mut().for_each(|entry| entry.is_on = true),
            "none" => entries.iter_mut().for_each(|entry| entry.is_on = false),
            numbers => match parse_numbers(numbers, entries.len()) {
                Some(ranges) => ranges.into_iter().flatten().for_each(|number| {
                    let entry = &mut entries[number - 1];
                    entry.is_on = !entry.is_on;
                }),
                None => note(&format!("write numbers from 1 to {}", entries.len())),
            },
        }
    }
}

fn line(number: usize, entry: &Entry, style: Style) -> String {
    let mark = if entry.is_on {
        style.green("[x]")
    } else {
        "[ ]".to_owned()
    };
    let purpose = shorten(&one_line(&entry.purpose), PURPOSE_CHARS_MAX);
    let name = one_line(&entry.name);
    format!("{number:>3} {mark} {name}  {}", style.dim(purpose))
}

/// Reads `1,3-5`; `None` when a part is no number of the list.
fn parse_numbers(text: &str, count: usize) -> Option<Vec<RangeInclusive<usize>>> {
    let number = |text: &str| {
        let number = text.trim().parse().ok()?;
        (1..=count).contains(&number).then_some(number)
    };
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(number(first)?..=number(last)?),
        None => number(part).map(|number| number..=number),
    };
    text.split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(range)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read_and_others_refused() {
        let read = |text: &str| -> Option<Vec<usize>> {
            parse_numbers(text, 5).map(|ranges| ranges.into_iter().flatten().collect())
        };
        assert_eq!(read("2"), Some(vec![2]));
        assert_eq!(read("1, 3-5"), Some(vec![1, 3, 4, 5]));
        assert_eq!(read("5-3"), Some(vec![]));
        for wrong in ["0", "6", "1-9", "x", "1,x", "-1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
