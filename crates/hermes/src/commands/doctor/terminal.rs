//! What the terminal we are looked at through can do.

use std::io::{self, IsTerminal as _};

use hermes_config::Environment;
use rustix::termios::tcgetwinsize;

use crate::style::Style;
use hermes_runtime::doctor::Check;

const NAME: &str = "terminal";

/// Narrower than this, most lines are broken.
const COLUMNS_MIN: u16 = 40;
/// The editor, the status and one line of conversation.
const ROWS_MIN: u16 = 6;

pub(super) fn check(environment: &Environment) -> Check {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Check::good(NAME, "standard output is no terminal: plain text");
    }
    let size = tcgetwinsize(&stdout).ok();
    judge(&Abilities {
        term: environment.get("TERM").unwrap_or_default(),
        is_coloured: Style::of(&stdout, environment).is_coloured(),
        size: size.map(|size| (size.ws_col, size.ws_row)),
    })
}

struct Abilities<'a> {
    term: &'a str,
    is_coloured: bool,
    /// Columns and rows; some terminals do not tell.
    size: Option<(u16, u16)>,
}

fn judge(abilities: &Abilities) -> Check {
    let term = abilities.term;
    match term {
        "" => {
            return Check::doubtful(
                NAME,
                "TERM is not set, so conversations are in plain lines",
                "`export TERM=xterm-256color`",
            );
        }
        "dumb" => {
            return Check::doubtful(
                NAME,
                "TERM is `dumb`, so conversations are in plain lines",
                "`export TERM=xterm-256color` if it can move its cursor; if not, plain lines are right",
            );
        }
        _ => {}
    }
    let colour = if abilities.is_coloured {
        "colour"
    } else {
        "no colour, because of NO_COLOR"
    };
    match abilities.size {
        Some((columns, rows)) if columns > 0 && (columns < COLUMNS_MIN || rows < ROWS_MIN) => {
            Check::doubtful(
                NAME,
                format!("{term}, {colour}, only {columns}×{rows}"),
                format!(
                    "make the window at least {COLUMNS_MIN}×{ROWS_MIN}, or use `hermes --plain`"
                ),
            )
        }
        Some((columns, rows)) if columns > 0 => {
            Check::good(NAME, format!("{term}, {colour}, {columns}×{rows}"))
        }
        _ => Check::good(NAME, format!("{term}, {colour}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_runtime::doctor::State;

    #[test]
    fn terminals_that_cannot_show_the_interface_are_told_with_a_fix() {
        let judged = |term, size| {
            let check = judge(&Abilities {
                term,
                is_coloured: true,
                size,
            });
            assert_eq!(check.fix.is_some(), check.state != State::Good);
            (check.state, check.text)
        };
        let good = (State::Good, "xterm, colour, 80×24".to_owned());
        assert_eq!(judged("xterm", Some((80, 24))), good);
        assert_eq!(judged("xterm", None).0, State::Good);
        assert_eq!(judged("xterm", Some((0, 0))).0, State::Good);
        assert_eq!(judged("xterm", Some((10, 24))).0, State::Doubtful);
        assert_eq!(judged("dumb", Some((80, 24))).0, State::Doubtful);
        assert_eq!(judged("", Some((80, 24))).0, State::Doubtful);
    }
}
