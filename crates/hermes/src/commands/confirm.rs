//! Asking a person at the keyboard, and knowing when there is none.

use std::io::{self, IsTerminal as _, Write as _};

use crate::failure::{Failure, Outcome};

/// What Enter alone means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enter {
    MeansYes,
    MeansNo,
}

/// Whether somebody can see a question and answer it.
pub(crate) fn is_anybody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question that has a yes and a no. The end of the input counts as no.
pub(crate) fn confirm(question: &str, enter: Enter) -> Outcome<bool> {
    let choices = match enter {
        Enter::MeansYes => "Y/n",
        Enter::MeansNo => "y/N",
    };
    let mut stderr = io::stderr().lock();
    let mut answer = String::new();
    let asked = write!(stderr, "{question} [{choices}] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().read_line(&mut answer));
    let bytes =
        asked.map_err(|error| Failure::new(format!("cannot ask at the terminal: {error}")))?;
    Ok(bytes > 0 && is_yes(&answer, enter))
}

fn is_yes(answer: &str, enter: Enter) -> bool {
    match answer.trim().to_lowercase().as_str() {
        "" => enter == Enter::MeansYes,
        "y" | "yes" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for answer in ["y\n", "Yes\r\n", " YES "] {
            assert!(is_yes(answer, Enter::MeansNo), "{answer:?}");
        }
        for answer in ["n\n", "yep\n", "\x1b\n"] {
            assert!(!is_yes(answer, Enter::MeansYes), "{answer:?}");
        }
        assert!(is_yes("\n", Enter::MeansYes) && !is_yes("\n", Enter::MeansNo));
    }
}
