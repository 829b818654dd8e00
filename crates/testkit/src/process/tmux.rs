//! A process in tmux: a real terminal, with a scrollback, that breaks its rows anew when its size changes. Type, paste,
//! resize, and wait for what is on the screen.

use std::{
    ffi::OsStr,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How often the screen is looked at: every look starts a program.
const LOOK: Duration = Duration::from_millis(30);

/// A tmux server with one window, on a socket of its own; dropping it ends the server and what runs in it.
#[derive(Debug)]
pub struct Tmux {
    socket: PathBuf,
    /// Keeps the home as long as the process runs.
    _folder: Arc<TempDir>,
}

impl Tmux {
    /// Starts a server whose window runs `program`, and gives the window the server's environment. `tmux` is the
    /// command that starts it.
    pub(super) fn start(mut tmux: Command, program: &[&OsStr], folder: Arc<TempDir>) -> Self {
        let server = TempDir::new_in(folder.path()).expect("a temporary folder");
        let socket = server.keep().join("tmux");
        tmux.arg("-S").arg(&socket).args(["-u", "-f", "/dev/null"]);
        // Escape is a key of its own, at once; what ended stays on the screen.
        tmux.args(["start-server", ";", "set", "-s", "escape-time", "0", ";"]);
        tmux.args(["set", "-g", "remain-on-exit", "on", ";"]);
        tmux.args(["set", "-g", "history-limit", "20000", ";"]);
        // `env`, since a single word would be given to a shell.
        tmux.args(["new-session", "-d", "-x", "80", "-y", "24", "env"]);
        tmux.args(program);
        let started = tmux.output().expect("tmux starts");
        assert!(started.status.success(), "{started:?}");
        Self {
            socket,
            _folder: folder,
        }
    }

    /// Types text, as it is.
    pub fn write(&self, text: &str) {
        self.run(&["send-keys", "-l", "--", text]);
    }

    /// Presses a key by its name: `Enter`, `C-c`, `Escape`, `Up`.
    pub fn press(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    /// Pastes text, in brackets if the process wants them.
    pub fn paste(&self, text: &str) {
        let mut load = self.command();
        let mut child = load
            .args(["load-buffer", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("tmux runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("tmux reads");
        drop(stdin);
        assert!(child.wait().expect("tmux ends").success());
        self.run(&["paste-buffer", "-p"]);
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let (rows, columns) = (rows.to_string(), columns.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Returns the rows of the screen as they are now, without spaces at their ends.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Returns everything one can scroll back to, and the screen; lines that the terminal broke are whole.
    pub fn scrollback(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// Waits until `text` is on the screen.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn expect_screen(&self, text: &str, timeout: Duration) {
        self.expect(&format!("no `{text}`"), timeout, |screen| {
            screen.contains(text)
        });
    }

    /// Waits until the screen is as it should be.
    ///
    /// # Panics
    /// If that does not happen in time: `wrong` says what is then wrong.
    pub fn expect(&self, wrong: &str, timeout: Duration, is_right: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + timeout;
        loop {
            let screen = self.screen();
            if is_right(&screen) {
                return;
            }
            if Instant::now() >= deadline {
                panic!("{wrong} within {timeout:?}; the terminal shows\n{screen}");
            }
            thread::sleep(LOOK);
        }
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.command().args(args).output().expect("tmux runs");
        assert!(output.status.success(), "tmux {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "tests look at a terminal from outside"
    )]
    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).env_remove("TMUX");
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Fails only if the server has already ended.
        let ended = self.command().arg("kill-server").output();
        drop(ended);
    }
}
