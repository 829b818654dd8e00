//! What every place that runs commands must do, checked from outside with nothing but commands.
//!
//! The place needs `bash` and the usual small programs. Each case has a session of its own. Start at [`check`].

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

mod ending;
mod output;
mod shell;

use std::path::PathBuf;
use std::time::Duration;

use hermes_core::{
    CancellationToken, CommandExit, CommandOutput, Pass, Progress, ShellCommand, Terminal,
    TerminalError,
};

/// Long enough that a case which waits for it has failed.
const NEVER: Duration = Duration::from_secs(60);

/// Output a case asks for unless it says otherwise.
const OUTPUT_BYTES_MAX: usize = 50_000;

/// Runs the whole suite. `cwd` is a folder there that commands may write to.
pub async fn check(terminal: &dyn Terminal, cwd: impl Into<PathBuf>) {
    let place = Place {
        terminal,
        cwd: cwd.into(),
    };
    output::check(&place).await;
    shell::check(&place).await;
    ending::check(&place).await;
}

/// Where the cases run.
struct Place<'a> {
    terminal: &'a dyn Terminal,
    cwd: PathBuf,
}

impl Place<'_> {
    /// Makes a command of the session that is named like its case.
    fn command(&self, case: &str, line: &str) -> ShellCommand {
        ShellCommand {
            session: format!("contract-{}-{case}", std::process::id()).into(),
            line: line.to_owned(),
            cwd: self.cwd.clone(),
            workdir: None,
            stdin: Vec::new(),
            pty: false,
            timeout: NEVER,
            output_bytes_max: OUTPUT_BYTES_MAX,
            pass: Pass::default(),
            mark: None,
            stop: CancellationToken::new(),
            progress: Progress::default(),
        }
    }

    async fn try_run(&self, command: ShellCommand) -> Result<CommandOutput, TerminalError> {
        self.terminal.run(command).await
    }

    async fn run(&self, command: ShellCommand) -> CommandOutput {
        let line = command.line.chars().take(200).collect::<String>();
        let output = self.try_run(command).await;
        output.unwrap_or_else(|error| panic!("`{line}`: {error}"))
    }

    async fn say(&self, case: &str, line: &str) -> CommandOutput {
        self.run(self.command(case, line)).await
    }

    /// Says lines one after the other to one shell, and checks what each printed and its exit code.
    async fn dialogue(&self, case: &str, lines: &[(&str, &str, i32)]) {
        for (line, text, code) in lines {
            let output = self.say(case, line).await;
            assert_eq!(output.text, *text, "{case}: `{line}`");
            assert_eq!(output.exit, CommandExit::Code(*code), "{case}: `{line}`");
        }
    }

    /// Waits until a command there succeeds, for half a minute.
    async fn wait_for(&self, case: &str, condition: &str) {
        let line = format!(
            "for i in $(seq 600); do if {condition}; then exit 0; fi; sleep 0.05; done; exit 1"
        );
        let output = self.say(&format!("{case}-wait"), &line).await;
        assert_eq!(
            output.exit,
            CommandExit::Code(0),
            "{case}: never: {condition}"
        );
    }
}
