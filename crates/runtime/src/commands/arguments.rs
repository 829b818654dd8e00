//! Reads the words behind a command, where they are a number or a message, and says what was expected instead.

use hermes_core::UserMessage;

use crate::error::{Error, Result};

/// Turns that one `/undo` takes back at most: more is a slip of the finger.
const UNDO_MAX: u32 = 1_000;

pub(super) fn undo_count(arguments: &str) -> Result<u32> {
    match arguments {
        "" => Ok(1),
        number => match number.parse() {
            Ok(turns @ 1..=UNDO_MAX) => Ok(turns),
            _ => Err(no_such("/undo", number, "a number of messages")),
        },
    }
}

/// `/insights 7` and `/insights --days 7` mean the same.
pub(super) fn days(arguments: &str) -> Result<u32> {
    const USUAL: u32 = 30;
    match arguments.trim_start_matches("--days").trim() {
        "" => Ok(USUAL),
        number => match number.parse() {
            Ok(days @ 1..=36_500) => Ok(days),
            _ => Err(no_such("/insights", number, "a number of days")),
        },
    }
}

/// `/skills review`, `/skills search review`; `/skills list` lists all.
pub(super) fn search_words(arguments: &str) -> &str {
    match arguments.split_once(char::is_whitespace) {
        Some(("search", words)) => words.trim(),
        _ if arguments == "list" => "",
        _ => arguments,
    }
}

pub(super) fn said(arguments: &str, example: &str) -> Result<UserMessage> {
    match words(arguments) {
        Some(text) => Ok(UserMessage::text(text)),
        None => {
            Err(Error::asked("there are no words").with_hint(format!("for example: {example}")))
        }
    }
}

pub(super) fn words(arguments: &str) -> Option<String> {
    (!arguments.is_empty()).then(|| arguments.to_owned())
}

pub(super) fn no_such(command: &str, given: &str, expected: &str) -> Error {
    let given = match given {
        "" => "nothing".to_owned(),
        given => format!("`{given}`"),
    };
    Error::asked(format!("{command} takes {expected}, not {given}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undo_takes_a_sensible_number() {
        assert_eq!(undo_count("").ok(), Some(1));
        assert_eq!(undo_count("3").ok(), Some(3));
        for wrong in ["0", "-1", "x", "1001"] {
            assert!(undo_count(wrong).is_err(), "{wrong}");
        }
    }
}
