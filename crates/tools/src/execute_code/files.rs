//! Calls from a script on another machine: files in a folder there, fetched and answered with commands of the terminal.
//!
//! Each command of ours brings the answer to the last call, waits for the next and prints it, so a call costs one round
//! trip, and one call is answered after the other. Calls are ASCII, so that the terminal's cleaning of output leaves them alone.

use std::convert::Infallible;
use std::time::Duration;

use hermes_core::{CommandExit, Pass, Progress, ShellCommand, Terminal, ToolContext};
use tokio::time::sleep;

use super::rpc::{CALL_BYTES_MAX, ToolRpc};

const POLL: &str = include_str!("poll.sh");

/// What one fetch may take, its own waiting included.
const FETCH_TIME_MAX: Duration = Duration::from_secs(30);

/// How long nothing is fetched after that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Room for the name of a call before it.
const NAME_BYTES_MAX: usize = 256;

/// A folder that the script makes and removes.
pub(super) struct Folder {
    path: String,
}

/// A call and the name it is answered by.
#[derive(Debug, PartialEq, Eq)]
struct Fetched {
    name: String,
    call: Vec<u8>,
}

struct CallAnswer {
    name: String,
    text: Vec<u8>,
}

impl Folder {
    pub(super) fn named_after(rpc: &ToolRpc) -> Self {
        let path = format!("/tmp/hermes_exec_{}", rpc.mark());
        Self { path }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Answers calls for as long as it is polled.
    pub(super) async fn serve(
        &self,
        rpc: &ToolRpc,
        terminal: &dyn Terminal,
        cx: &ToolContext,
    ) -> Infallible {
        let mut answer = None;
        loop {
            match self.fetch(terminal, cx, answer.as_ref()).await {
                Ok(Some(Fetched { name, call })) => {
                    let text = rpc.answer(&call).await;
                    answer = Some(CallAnswer { name, text });
                }
                Ok(None) => answer = None,
                // Nothing is lost: a call stays in its file until its answer is there.
                Err(()) => sleep(PAUSE_AFTER_FAILURE).await,
            }
        }
    }

    async fn fetch(
        &self,
        terminal: &dyn Terminal,
        cx: &ToolContext,
        answer: Option<&CallAnswer>,
    ) -> Result<Option<Fetched>, ()> {
        let (name, stdin) = match answer {
            Some(answer) => (answer.name.as_str(), answer.text.clone()),
            None => ("", Vec::new()),
        };
        let command = ShellCommand {
            session: cx.session.clone(),
            line: format!(
                "exec sh -c '{POLL}' hermes {} '{name}' {CALL_BYTES_MAX}",
                self.path
            ),
            cwd: cx.cwd.clone(),
            workdir: None,
            stdin,
            pty: false,
            timeout: FETCH_TIME_MAX,
            output_bytes_max: CALL_BYTES_MAX + NAME_BYTES_MAX,
            pass: Pass::default(),
            mark: None,
            stop: cx.stop.clone(),
            progress: Progress::default(),
        };
        let output = terminal.run(command).await.map_err(drop)?;
        match output.exit {
            CommandExit::Code(0) => Ok(read(&output.text)),
            _ => Err(()),
        }
    }
}

/// Reads what `poll.sh` printed: a name, and the call on the next line.
fn read(text: &str) -> Option<Fetched> {
    let (name, call) = text.split_once('\n')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_safe = !name.is_empty() && name.chars().all(is_name);
    is_safe.then(|| Fetched {
        name: name.to_owned(),
        call: call.as_bytes().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_comes_with_a_harmless_name() {
        let fetched = read("12-3\n{}").unwrap();
        assert_eq!(
            (fetched.name.as_str(), fetched.call.as_slice()),
            ("12-3", &b"{}"[..])
        );
        for text in ["", "12-3", "\n{}", "../x\n{}", "a b\n{}", "a'; reboot\n{}"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_script_can_be_given_in_quotes() {
        assert!(!POLL.contains('\''));
    }
}
