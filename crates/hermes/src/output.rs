//! Writing to standard output and error, and what to do when nobody reads it.

use std::io::{self, Write as _};

use crate::failure::{Failure, Outcome};

/// Writes to standard output at once.
pub fn print(text: &str) -> Outcome<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| closed(&error))
}

pub fn println(text: &str) -> Outcome<()> {
    print(&format!("{text}\n"))
}

/// Writes a line to standard error. There is nowhere to report that this failed.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How wide the terminal is; whatever tells no width is an ordinary one.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0).unwrap_or(80)
}

/// A reader that went away, as in `hermes sessions list | head`, is no news to anybody: nothing is left to say.
fn closed(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new("");
    }
    Failure::new(format!("cannot write to standard output: {error}"))
        .hint("check where the output goes")
}
