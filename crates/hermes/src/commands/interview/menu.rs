//! A list that is chosen from with the arrow keys, or by number. It is drawn where the cursor stands and drawn over when the
//! choice moves; nothing else of the screen is touched.

use std::io::{self, Read as _};

use hermes_core::text::{printable, shorten};
use rustix::termios::tcgetwinsize;

use super::{CTRL_C, CTRL_D, Manner, prompt, unreadable};
use crate::failure::Outcome;
use crate::style::Style;

/// Rows of a long list that are shown at once: they fit into a small window with the question above.
const ROWS_MAX: usize = 12;
/// Columns that the mark and the number in front of a row take.
const MARGIN: usize = 8;
/// Where nobody says how wide the terminal is.
const COLUMNS_DEFAULT: usize = 80;
const ESCAPE: u8 = 0x1b;

pub(super) struct Menu<'a> {
    pub(super) rows: Vec<&'a str>,
    pub(super) style: Style,
    pub(super) at: usize,
    /// A number that is being typed.
    pub(super) typed: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Up,
    Down,
    First,
    Last,
    Enter,
    Leave,
    Back,
    Digit(char),
    Other,
}

impl Menu<'_> {
    /// Returns the index of the chosen row, or `None` when the person leaves.
    pub(super) fn run(mut self) -> Outcome<Option<usize>> {
        let _manner = Manner::hiding()?;
        prompt(&self.drawn())?;
        let mut bytes = io::stdin().lock().bytes();
        loop {
            let mut next = || bytes.next().transpose().map_err(unreadable);
            let Some(byte) = next()? else {
                return self.leave();
            };
            let key = match byte {
                ESCAPE => match (next()?, next()?) {
                    (Some(b'[' | b'O'), Some(letter)) => arrow(letter),
                    _ => Key::Other,
                },
                byte => plain(byte),
            };
            match key {
                Key::Leave => return self.leave(),
                Key::Enter => match self.chosen() {
                    Some(index) => {
                        prompt("\n")?;
                        return Ok(Some(index));
                    }
                    None => self.typed.clear(),
                },
                key => self.press(key),
            }
            prompt(&format!("\x1b[{}A\r\x1b[J{}", self.height(), self.drawn()))?;
        }
    }

    fn leave(&self) -> Outcome<Option<usize>> {
        prompt("\n")?;
        Ok(None)
    }

    fn press(&mut self, key: Key) {
        let last = self.rows.len() - 1;
        match key {
            Key::Digit(digit) => self.typed.push(digit),
            Key::Back => {
                self.typed.pop();
            }
            Key::Up if self.at == 0 => self.at = last,
            Key::Up => self.at -= 1,
            Key::Down if self.at == last => self.at = 0,
            Key::Down => self.at += 1,
            Key::First => self.at = 0,
            Key::Last => self.at = last,
            Key::Enter | Key::Leave | Key::Other => {}
        }
        match key {
            Key::Up | Key::Down | Key::First | Key::Last => self.typed.clear(),
            // The mark follows the number as far as there is such a row.
            _ => self.at = self.chosen().unwrap_or(self.at),
        }
    }

    /// The row that Enter takes: the typed number, else the marked one; none when there is no such number.
    fn chosen(&self) -> Option<usize> {
        if self.typed.is_empty() {
            return Some(self.at);
        }
        let number: usize = self.typed.parse().ok()?;
        (1..=self.rows.len()).contains(&number).then(|| number - 1)
    }

    /// The first of the rows that are shown.
    fn top(&self) -> usize {
        let shown = self.rows.len().min(ROWS_MAX);
        let centred = self.at.saturating_sub(shown / 2);
        centred.min(self.rows.len() - shown)
    }

    /// How many lines the cursor stands below the first one drawn.
    fn height(&self) -> usize {
        self.rows.len().min(ROWS_MAX) + 1
    }

    fn drawn(&self) -> String {
        let columns = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 {
            COLUMNS_DEFAULT
        } else {
            columns
        };
        let mut text = String::new();
        let top = self.top();
        for (index, row) in self.rows.iter().enumerate().skip(top).take(ROWS_MAX) {
            let row = shorten(&printable(row), columns.saturating_sub(MARGIN).max(1));
            let number = format!("{:>3}", index + 1);
            text.push_str(&if index == self.at {
                format!(
                    "{} {}  {}\n",
                    self.style.cyan("›"),
                    self.style.cyan(number),
                    self.style.bold(row)
                )
            } else {
                format!("  {}  {row}\n", self.style.cyan(number))
            });
        }
        let more = if self.rows.len() > ROWS_MAX {
            format!("{} of {}; ", self.at + 1, self.rows.len())
        } else {
            String::new()
        };
        let help = self.style.dim(shorten(
            &format!("{more}↑ ↓ and Enter, or a number; q leaves"),
            columns.saturating_sub(1),
        ));
        let usual = self.style.dim(format!("[{}]", self.at + 1));
        format!("{text}{help}\nchoose {usual}: {}", self.typed)
    }
}

fn arrow(letter: u8) -> Key {
    match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'H' => Key::First,
        b'F' => Key::Last,
        _ => Key::Other,
    }
}

fn plain(byte: u8) -> Key {
    /// Ctrl-P and Ctrl-N, as in shells.
    const UP: u8 = 16;
    const DOWN: u8 = 14;
    match byte {
        b'\r' | b'\n' => Key::Enter,
        CTRL_C | CTRL_D | b'q' => Key::Leave,
        UP | b'k' => Key::Up,
        DOWN | b'j' => Key::Down,
        8 | 127 => Key::Back,
        b'0'..=b'9' => Key::Digit(char::from(byte)),
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rows: usize, keys: &[Key]) -> Option<usize> {
        let mut menu = Menu {
            rows: vec!["row"; rows],
            style: Style::PLAIN,
            at: 0,
            typed: String::new(),
        };
        keys.iter().for_each(|key| menu.press(*key));
        menu.chosen()
    }

    #[test]
    fn arrows_go_round_and_numbers_are_taken_as_they_stand() {
        assert_eq!(after(3, &[Key::Down, Key::Down]), Some(2));
        assert_eq!(after(3, &[Key::Up]), Some(2));
        assert_eq!(after(3, &[Key::Last, Key::Down]), Some(0));
        assert_eq!(after(30, &[Key::Digit('1'), Key::Digit('2')]), Some(11));
        assert_eq!(after(3, &[Key::Digit('9')]), None);
        assert_eq!(
            after(3, &[Key::Digit('9'), Key::Back, Key::Digit('2')]),
            Some(1)
        );
        assert_eq!(after(3, &[Key::Digit('3'), Key::Down]), Some(0));
    }

    #[test]
    fn a_long_list_is_shown_in_part_around_the_choice() {
        let names: Vec<String> = (1..=40).map(|number| format!("model-{number}")).collect();
        let menu = Menu {
            rows: names.iter().map(String::as_str).collect(),
            style: Style::PLAIN,
            at: 20,
            typed: String::new(),
        };
        let drawn = menu.drawn();
        assert_eq!(drawn.lines().count(), menu.height() + 1);
        assert!(
            drawn.contains("›  21  model-21") && !drawn.contains("model-40"),
            "{drawn}"
        );
    }
}
