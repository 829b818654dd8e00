//! A process in a pseudo-terminal: type, and wait for what appears.

use std::{
    io::{Read, Write},
    process::{Child, Command},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pty_process::{
    Size,
    blocking::{self, Pty},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use super::{POLL, exit_status, kill_group};

/// How often it is looked whether the terminal is to hang up.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A process and its terminal; dropping it kills the process and its group.
pub struct Terminal {
    child: Child,
    /// None when the terminal is closed.
    pty: Option<Arc<Pty>>,
    screen: Arc<Screen>,
    /// How much of the output earlier calls of [`Terminal::expect`] have used up, in bytes.
    seen_bytes: usize,
    /// Keeps the home as long as the process runs.
    _folder: Arc<TempDir>,
}

/// What the process has written, filled in by a thread that reads along.
struct Screen {
    written: Mutex<Written>,
    has_changed: Condvar,
    /// Nobody looks any more: the terminal is to be let go.
    is_closing: AtomicBool,
}

struct Written {
    /// Everything, escape sequences included.
    output: Vec<u8>,
    /// What a person sees of it.
    emulator: vt100::Parser,
}

impl Terminal {
    pub(super) fn spawn(
        command: Command,
        (rows, columns): (u16, u16),
        folder: Arc<TempDir>,
    ) -> pty_process::Result<Self> {
        let (pty, pts) = blocking::open()?;
        pty.resize(Size::new(rows, columns))?;
        let child = blocking::Command::from(command).spawn(pts)?;
        let pty = Arc::new(pty);
        let screen = Arc::new(Screen::new(rows, columns));
        thread::spawn({
            let (pty, screen) = (Arc::clone(&pty), Arc::clone(&screen));
            move || screen.fill_from(&pty)
        });
        Ok(Self {
            child,
            pty: Some(pty),
            screen,
            seen_bytes: 0,
            _folder: folder,
        })
    }

    /// Types text; Enter is `\r`, Ctrl-C is `\x03`.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn send(&self, text: &str) {
        let sent = self.pty().write_all(text.as_bytes());
        sent.expect("a terminal takes what is typed");
    }

    /// Changes the size of the terminal.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn resize(&self, rows: u16, columns: u16) {
        let mut written = self.screen.written();
        written.emulator.screen_mut().set_size(rows, columns);
        let resized = self.pty().resize(Size::new(rows, columns));
        resized.expect("a terminal can be resized");
    }

    /// Waits until `text` appears after what earlier calls found.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn expect(&mut self, text: &str, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut written = self.screen.written();
        loop {
            if let Some(start) = find(&written.output[self.seen_bytes..], text.as_bytes()) {
                self.seen_bytes += start + text.len();
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let shown = String::from_utf8_lossy(&written.output);
                panic!("no `{text}` within {timeout:?}; the terminal shows\n{shown}");
            }
            written = self.screen.wait(written, left);
        }
    }

    /// Waits until `text` is on the screen, whatever came before.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn expect_screen(&self, text: &str, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut written = self.screen.written();
        loop {
            let shown = written.emulator.screen().contents();
            if shown.contains(text) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                panic!("no `{text}` within {timeout:?}; the terminal shows\n{shown}");
            }
            written = self.screen.wait(written, left);
        }
    }

    /// Returns what a person sees: the rows of the screen as it is now.
    pub fn screen(&self) -> String {
        self.screen.written().emulator.screen().contents()
    }

    fn pty(&self) -> &Pty {
        self.pty.as_deref().expect("the terminal is open")
    }

    /// Returns everything written so far, escape sequences included.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.screen.written().output).into_owned()
    }

    /// The process, for sending it signals.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the terminal, as when its window is closed, and waits for the process to end by itself. Returns its exit
    /// code; `None` after a signal.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn hang_up(mut self, timeout: Duration) -> Option<i32> {
        self.screen.is_closing.store(true, Ordering::Relaxed);
        self.pty = None;
        self.wait(timeout)
    }

    /// Waits for the process to end by itself and returns its exit code; `None` after a signal.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn wait(mut self, timeout: Duration) -> Option<i32> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = exit_status(&mut self.child) {
                return status.code();
            }
            if Instant::now() >= deadline {
                panic!(
                    "still running after {timeout:?}; the terminal shows\n{}",
                    self.output()
                );
            }
            thread::sleep(POLL);
        }
    }

    /// Kills the process at once, without a chance to clean up. Its children are left alone.
    pub fn kill_9(mut self) {
        // Fails only if the process has already ended.
        self.child.kill().ok();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

impl Screen {
    fn new(rows: u16, columns: u16) -> Self {
        Self {
            written: Mutex::new(Written {
                output: Vec::new(),
                emulator: vt100::Parser::new(rows, columns, 0),
            }),
            has_changed: Condvar::new(),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Reads until the process has closed its side, which reads as an error on Linux.
    fn fill_from(&self, mut pty: &Pty) {
        let mut bytes = [0; 4096];
        while !self.is_closing.load(Ordering::Relaxed) {
            let mut readable = [PollFd::new(&pty, PollFlags::IN)];
            if matches!(poll(&mut readable, Some(&LOOK)), Ok(0)) {
                continue;
            }
            let Ok(count @ 1..) = pty.read(&mut bytes) else {
                return;
            };
            let mut written = self.written();
            written.output.extend_from_slice(&bytes[..count]);
            written.emulator.process(&bytes[..count]);
            self.has_changed.notify_all();
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        written: MutexGuard<'a, Written>,
        timeout: Duration,
    ) -> MutexGuard<'a, Written> {
        let waited = self.has_changed.wait_timeout(written, timeout);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn find(output: &[u8], text: &[u8]) -> Option<usize> {
    output.windows(text.len()).position(|window| window == text)
}
