//! The exact reading of a line: what bash runs and writes, or that we do not know.
//!
//! The reader next door (`shell`) makes the best of any text, and what it makes may be less than what bash makes. This
//! one refuses instead. A line is understood only when every character and every construct of it is on the list below, and
//! then bash runs no program, and creates no file, that [`Reading`] does not name. A test compares the two on random lines
//! (`tests/it/shell_against_bash.rs`).
//!
//! Understood are:
//!
//! - printable ASCII, tabs and new lines; other letters and signs where nobody can take them for a blank or a character
//!   of the shell (`odd`)
//! - simple commands, pipelines, `&&`, `||`, `;`, `&`, new lines, comments, a backslash at the end of a line between words
//! - `'…'`, `"…"`, `\x`, `$'…'` with `\n`, `\t`, `\\`, `\'`, `\"`
//! - `$name`, `${name}`, `$1`, `$@`, `$?`, `$#`; `${name:-word}` and its kin, `${name%pattern}` and its kin, `${#name}`,
//!   `${name[@]}`, `${name[0]}`, all with plain words; `$(…)`, backticks without backslashes, `<(…)`, `>(…)`
//! - `$((…))` and `((…))` over whole numbers and names that the line itself set to such
//! - `~`, `*`, `?`, `[…]`, `{a,b}`, `{1..3}`
//! - `<`, `>`, `>>`, `>|`, `&>`, `&>>`, `2>&1`, `<<<`, `<<` and `<<-` with a plain or wholly quoted end of letters
//! - `( )`, `{ }`, `if`, `for`, `while`, `until`, `case`, `[[ … ]]`, `name() { …; }`, `!`, `time`
//! - assignments to names that decide nothing (`names`), lists `name=(…)`
//! - the built-in commands of `builtins`, in the forms named there
//!
//! A program's name must be literal, or the value of a variable that the line set to a literal on every way there.

mod arithmetic;
mod braces;
mod builtins;
mod commands;
mod compounds;
mod conditions;
mod cursor;
mod documents;
mod expansions;
mod names;
mod odd;
mod reading;
mod tree;
mod values;
mod walk;
mod words;

pub(crate) use names::why_decides;
pub(crate) use reading::{Arg, Input, Origin, Piece, Reading, Run};

/// Levels of constructs inside each other. What is deeper nobody reads.
const DEPTH_MAX: usize = 24;

/// Why a line is not understood. Completes "this command …".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotUnderstood {
    pub(crate) why: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl std::fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { why, line, column } = self;
        match (line, column) {
            (0, _) => write!(f, "{why}"),
            (1, _) => write!(f, "{why} at column {column}"),
            _ => write!(f, "{why} at line {line}, column {column}"),
        }
    }
}

type Outcome<T> = Result<T, NotUnderstood>;

/// Says what is not understood where no place can be named.
fn not_understood<T>(why: impl Into<String>) -> Outcome<T> {
    Err(NotUnderstood {
        why: why.into(),
        line: 0,
        column: 0,
    })
}

/// Reads a line exactly.
pub(crate) fn read(line: &str) -> Outcome<Reading> {
    let mut parser = words::Parser::new(line);
    let script = parser.whole()?;
    walk::walk(&script, parser.documents())
}

/// Says why what is typed into a program is not understood, whatever the program makes of it: keys that edit the line, and
/// `!`, which brings back earlier lines.
pub(crate) fn why_not_typed(raw: &str) -> Option<NotUnderstood> {
    let raw = raw.replace('\r', "\n");
    let mut cursor = cursor::Cursor::new(&raw);
    loop {
        match cursor.next(odd::Quoted::Text) {
            Err(why) => return Some(why),
            Ok(None) => return None,
            Ok(Some('!')) => {
                let is_plain = |c: char| matches!(c, ' ' | '\t' | '\n' | '=' | '"');
                if cursor.peek().is_some_and(|c| !is_plain(c)) {
                    return Some(cursor.not_understood("may bring back an earlier line with `!`"));
                }
            }
            Ok(Some(_)) => {}
        }
    }
}
