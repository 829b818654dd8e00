//! Questions at a terminal, one line each. Ctrl-C and Ctrl-D leave at every one.

mod menu;

use std::io::{self, Read as _, Write as _};

use hermes_config::Environment;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use super::confirm::is_anybody_there;
use crate::failure::{Failure, Outcome, code};
use crate::output::note;
use crate::style::Style;
use menu::Menu;

/// What a terminal sends for Ctrl-C and Ctrl-D when it does not act on them itself.
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
/// Switches off what a key does (`_POSIX_VDISABLE`).
const NO_KEY: u8 = 0;

pub(super) struct Interview {
    pub(super) style: Style,
    /// The command that asks again.
    command: &'static str,
    /// The terminal can move its cursor.
    is_drawn: bool,
}

/// Something to choose, and the words for it.
pub(super) struct Choice<T> {
    pub(super) value: T,
    pub(super) text: String,
}

impl Interview {
    /// Begins to ask, if somebody is there to answer; on behalf of this command.
    pub(super) fn begin(environment: &Environment, command: &'static str) -> Option<Self> {
        is_anybody_there().then(|| Self {
            style: Style::of(&io::stderr(), environment),
            command,
            is_drawn: environment.get("TERM").is_some_and(|term| term != "dumb"),
        })
    }

    pub(super) fn title(&self, text: &str) {
        note(&format!("\n{}", self.style.bold(text)));
    }

    pub(super) fn good(&self, text: &str) {
        note(&self.style.green(format!("✓ {text}")));
    }

    pub(super) fn bad(&self, text: &str) {
        note(&self.style.yellow(format!("! {text}")));
    }

    /// Asks for a line. Enter alone takes `usual`.
    pub(super) fn line(&mut self, question: &str, usual: &str) -> Outcome<String> {
        let shown = match usual {
            "" => String::new(),
            usual => self.style.dim(format!(" [{usual}]")),
        };
        let _manner = Manner::leaving_by_ctrl_c()?;
        prompt(&format!("{question}{shown}: "))?;
        let mut typed: Vec<u8> = Vec::new();
        for byte in io::stdin().lock().bytes() {
            match byte.map_err(unreadable)? {
                b'\n' => {
                    return Ok(match String::from_utf8_lossy(&typed).trim() {
                        "" => usual.to_owned(),
                        line => line.to_owned(),
                    });
                }
                CTRL_C => break,
                byte => typed.push(byte),
            }
        }
        note("");
        Err(self.left())
    }

    /// Asks until one of the options is chosen, with the arrow keys or by its number. Enter alone takes the first; `q`
    /// leaves.
    pub(super) fn choose<T>(&mut self, options: Vec<Choice<T>>) -> Outcome<T> {
        self.choose_or_keep(options, 0)
    }

    /// The same, with Enter alone for the option at this index, such as the one that holds now.
    pub(super) fn choose_or_keep<T>(
        &mut self,
        mut options: Vec<Choice<T>>,
        usual: usize,
    ) -> Outcome<T> {
        let index = if self.is_drawn {
            self.pick(&options, usual)?
        } else {
            self.number(&options, usual)?
        };
        Ok(options.swap_remove(index).value)
    }

    fn pick<T>(&self, options: &[Choice<T>], usual: usize) -> Outcome<usize> {
        let menu = Menu {
            rows: options.iter().map(|option| option.text.as_str()).collect(),
            style: self.style,
            at: usual,
            typed: String::new(),
        };
        menu.run()?.ok_or_else(|| self.left())
    }

    /// Asks for the number of one of the options, on a terminal that writes line after line.
    fn number<T>(&mut self, options: &[Choice<T>], usual: usize) -> Outcome<usize> {
        for (index, option) in options.iter().enumerate() {
            let number = self.style.cyan(index + 1);
            note(&format!("  {number}  {}", option.text));
        }
        note(&format!("  {}  leave", self.style.cyan("q")));
        loop {
            let answer = self.line("choose", &(usual + 1).to_string())?;
            if matches!(answer.as_str(), "q" | "quit" | "exit") {
                return Err(self.left());
            }
            match answer.parse::<usize>() {
                Ok(number) if (1..=options.len()).contains(&number) => {
                    return Ok(number - 1);
                }
                _ => self.bad(&format!("write a number from 1 to {}, or q", options.len())),
            }
        }
    }

    /// Asks for something nobody else should see: dots appear in its place.
    pub(super) fn secret(&mut self, question: &str) -> Outcome<String> {
        // Before the question is seen: nobody's first key may meet a terminal that still shows what is typed.
        let _manner = Manner::hiding()?;
        prompt(&format!("{question}: "))?;
        let mut typed: Vec<u8> = Vec::new();
        for byte in io::stdin().lock().bytes() {
            match byte.map_err(unreadable)? {
                b'\r' | b'\n' => break,
                CTRL_C | CTRL_D => {
                    note("");
                    return Err(self.left());
                }
                // Backspace, in both of its codes, and Ctrl-U
                8 | 127 if typed.pop().is_some() => prompt("\x08 \x08")?,
                8 | 127 => {}
                21 => {
                    prompt(&"\x08 \x08".repeat(typed.len()))?;
                    typed.clear();
                }
                byte if byte >= b' ' => {
                    typed.push(byte);
                    prompt("•")?;
                }
                _ => {}
            }
        }
        note("");
        Ok(String::from_utf8_lossy(&typed).trim().to_owned())
    }

    fn left(&self) -> Failure {
        Failure {
            code: code::INTERRUPTED,
            ..Failure::new("left; what was saved before stays saved")
        }
        .hint(format!("`{}` goes on whenever you like", self.command))
    }
}

/// Things to choose, each with its words.
pub(super) fn options<T, const N: usize>(options: [(T, &str); N]) -> Vec<Choice<T>> {
    let option = |(value, text): (T, &str)| Choice {
        value,
        text: text.to_owned(),
    };
    options.map(option).into()
}

/// Has the terminal behave otherwise until this is dropped; holds how it was.
struct Manner(Termios);

impl Manner {
    /// The terminal hands over every key and shows none.
    fn hiding() -> Outcome<Self> {
        Self::begin(|modes| {
            modes.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        })
    }

    /// Ctrl-C ends a line instead of us, so that there is time for a word.
    fn leaving_by_ctrl_c() -> Outcome<Self> {
        Self::begin(|modes| {
            modes.special_codes[SpecialCodeIndex::VINTR] = NO_KEY;
            modes.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        })
    }

    fn begin(change: impl FnOnce(&mut Termios)) -> Outcome<Self> {
        let before = tcgetattr(io::stdin()).map_err(|error| unreadable(error.into()))?;
        let mut changed = before.clone();
        change(&mut changed);
        tcsetattr(io::stdin(), OptionalActions::Now, &changed)
            .map_err(|error| unreadable(error.into()))?;
        Ok(Self(before))
    }
}

impl Drop for Manner {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

fn prompt(text: &str) -> Outcome<()> {
    let mut stderr = io::stderr().lock();
    stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush())
        .map_err(unreadable)
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(format!("cannot ask at the terminal: {error}"))
}
