//! Runs a script of ours over a transport: its output is bytes for us, not text for a person.

use std::time::Duration;

use hermes_core::TerminalError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::output::{EndOfOutput, Heard};
use super::{READ_BYTES, RunningScript, Transport};

/// A script that ends by printing its mark and an exit code, as `lifeline.sh` does.
pub(crate) struct Script<'a> {
    /// What follows `sh -c`.
    pub(crate) args: &'a [String],
    pub(crate) mark: &'a str,
    pub(crate) input: &'a [u8],
    pub(crate) output_bytes_max: usize,
    /// From when the place is ready.
    pub(crate) time_max: Duration,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error(transparent)]
    Transport(#[from] TerminalError),
    #[error("{0}")]
    Failed(String),
    #[error("it took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the answer has more than {} MiB", .0 / (1024 * 1024))]
    TooLong(usize),
}

/// Returns what the script printed. What it printed before it failed is the error.
pub(crate) async fn run(
    transport: &dyn Transport,
    script: Script<'_>,
) -> Result<Vec<u8>, ScriptError> {
    let mut open = transport.open(script.args).await?;
    let time_max = script.time_max;
    let talk = timeout(time_max, talk(&mut open, &script));
    let (output, code) = talk.await.map_err(|_| ScriptError::TimedOut(time_max))??;
    let words = || String::from_utf8_lossy(&output).trim().to_owned();
    match code {
        Some(0) => Ok(output),
        Some(_) => Err(ScriptError::Failed(words())),
        None => Err(transport.cut(&words()).into()),
    }
}

/// Returns the output and the code; no code when the connection was cut.
async fn talk(
    running: &mut RunningScript,
    script: &Script<'_>,
) -> Result<(Vec<u8>, Option<i32>), ScriptError> {
    let (input, output) = (&mut running.input, &mut running.output);
    let write = async {
        // A script that fails early does not read it all.
        let _ = input.write_all(script.input).await;
        let _ = input.flush().await;
        std::future::pending::<()>().await;
    };
    let read = async {
        let mut end = EndOfOutput::new(script.mark);
        let mut heard = Vec::new();
        let mut chunk = vec![0; READ_BYTES];
        loop {
            let len = output.read(&mut chunk).await.unwrap_or(0);
            if len == 0 {
                heard.extend_from_slice(end.rest());
                return Ok((heard, None));
            }
            match end.hear(&chunk[..len]) {
                Heard::Output(bytes) => heard.extend(bytes),
                Heard::End(bytes, code) => {
                    heard.extend(bytes);
                    return Ok((heard, Some(code)));
                }
            }
            if heard.len() > script.output_bytes_max {
                return Err(ScriptError::TooLong(script.output_bytes_max));
            }
        }
    };
    tokio::select! {
        heard = read => heard,
        () = write => unreachable!("it waits for ever"),
    }
}
