//! The terminal's own settings: taken over at the start, given back however the interface ends.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::{execute, queue, terminal};

use crate::screen::Size;

/// Panics that are reported at the end; who needs more reads the log.
const REPORTS_MAX: usize = 8;

/// The terminal in raw mode. Dropping it gives the terminal back.
pub(crate) struct RawTerminal {
    _private: (),
}

impl RawTerminal {
    pub(crate) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let terminal = Self { _private: () };
        // Terminals that do not know the second one ignore it; it tells Shift-Enter from Enter.
        let keys = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
        execute!(
            io::stdout(),
            EnableBracketedPaste,
            PushKeyboardEnhancementFlags(keys)
        )?;
        Ok(terminal)
    }

    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// A terminal that does not know its size is an ordinary one.
    pub(crate) fn size(&self) -> Size {
        let (columns, rows) = match terminal::size() {
            Ok((columns @ 1.., rows @ 1..)) => (columns, rows),
            _ => (80, 24),
        };
        Size {
            columns: columns.into(),
            rows: rows.into(),
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. Nothing can be done about a terminal that is gone.
fn restore() {
    let mut stdout = io::stdout();
    let _ = queue!(stdout, PopKeyboardEnhancementFlags, DisableBracketedPaste);
    let _ = stdout.write_all(b"\x1b[?2026l\x1b[?7h\x1b[0m\x1b[?25h");
    let _ = stdout.flush();
    let _ = terminal::disable_raw_mode();
}

/// As long as it lives, a panic is not reported into the screen. Most are caught, as those of tools are, and the
/// conversation goes on; all of them are in the log, and on the terminal once it is given back.
pub(crate) struct PanicGuard {
    reports: Arc<Mutex<Vec<String>>>,
}

impl PanicGuard {
    pub(crate) fn install() -> Self {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&reports);
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!("{panic}");
            let mut reports = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if reports.len() < REPORTS_MAX {
                reports.push(panic.to_string());
            }
        }));
        Self { reports }
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        // A thread that panics may not change the hook.
        if !std::thread::panicking() {
            let _ = std::panic::take_hook();
        }
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        for report in reports.iter() {
            let _ = writeln!(io::stderr(), "{report}");
        }
    }
}
