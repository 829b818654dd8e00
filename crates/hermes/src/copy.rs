//! The clipboard of whoever sits at the terminal. The terminal itself takes what is copied (OSC 52), so it works over ssh
//! too; no terminal says whether it did, so what is told says what is known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_config::Environment;

use crate::failure::{Failure, Outcome};

/// Terminals drop sequences beyond about 100,000 bytes; this is what fits into that many in base64.
const COPIED_BYTES_MAX: usize = 74_000;

/// Variables by which terminals that take a clipboard are known, with what they begin with.
const TAKES_IT: [(&str, &str); 11] = [
    ("ALACRITTY_WINDOW_ID", ""),
    ("KITTY_WINDOW_ID", ""),
    ("WEZTERM_PANE", ""),
    ("WT_SESSION", ""),
    ("TERM_PROGRAM", "WezTerm"),
    ("TERM_PROGRAM", "ghostty"),
    ("TERM_PROGRAM", "vscode"),
    ("TERM", "alacritty"),
    ("TERM", "foot"),
    ("TERM", "xterm-ghostty"),
    ("TERM", "xterm-kitty"),
];

/// What a terminal is sent to take a text, and what the person is told of it.
pub struct Copied {
    pub sequence: String,
    pub told: String,
}

pub fn copy(text: &str, environment: &Environment) -> Outcome<Copied> {
    if text.len() > COPIED_BYTES_MAX {
        return Err(
            Failure::new("the answer is too long for a terminal's clipboard")
                .hint("`hermes sessions show` prints it"),
        );
    }
    let around = Around::of(environment);
    Ok(Copied {
        sequence: sequence(text, around),
        told: told(text.chars().count(), around),
    })
}

/// What stands between us and the clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Tmux,
    TakesIt,
    Unknown,
}

impl Around {
    fn of(environment: &Environment) -> Self {
        let has = |(name, begin): &(&str, &str)| {
            let value = environment.get(name);
            value.is_some_and(|value| value.starts_with(begin))
        };
        match () {
            () if has(&("TMUX", "")) => Self::Tmux,
            () if TAKES_IT.iter().any(has) => Self::TakesIt,
            () => Self::Unknown,
        }
    }
}

fn sequence(text: &str, around: Around) -> String {
    let copy = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    match around {
        // tmux takes the first with `set-clipboard on`, and hands the second on with `allow-passthrough on`.
        Around::Tmux => {
            let inner = copy.replace('\x1b', "\x1b\x1b");
            format!("{copy}\x1bPtmux;{inner}\x1b\\")
        }
        Around::TakesIt | Around::Unknown => copy,
    }
}

fn told(characters: usize, around: Around) -> String {
    match around {
        Around::TakesIt => format!("copied {characters} characters to the clipboard"),
        Around::Tmux => format!(
            "gave {characters} characters to tmux, which passes them on to the clipboard if `set-clipboard` is on"
        ),
        Around::Unknown => format!(
            "gave {characters} characters to the terminal; whether this one has a clipboard for programs is not known: if \
             nothing arrives there, select the text with the mouse"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_known_of_the_terminal() {
        let around = |pairs: &[(&str, &str)]| {
            let around = Around::of(&Environment::from_pairs(pairs.iter().copied()));
            (around, told(3, around))
        };
        let (kitty, said) = around(&[("TERM", "xterm-kitty")]);
        assert_eq!(
            (kitty, said.as_str()),
            (Around::TakesIt, "copied 3 characters to the clipboard")
        );
        let (unknown, said) = around(&[("TERM", "xterm-256color")]);
        assert_eq!(unknown, Around::Unknown);
        assert!(said.contains("not known"), "{said}");
        let (tmux, said) = around(&[("TERM", "foot"), ("TMUX", "/tmp/t")]);
        assert_eq!(tmux, Around::Tmux);
        assert!(said.contains("set-clipboard"), "{said}");
    }

    #[test]
    fn in_tmux_the_terminal_around_it_is_told_as_well() {
        assert_eq!(sequence("hi", Around::Unknown), "\x1b]52;c;aGk=\x07");
        assert_eq!(
            sequence("hi", Around::Tmux),
            "\x1b]52;c;aGk=\x07\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"
        );
    }
}
