//! The fault matrix: everything that is known to go wrong with MCP servers, one test per row.
//!
//! Each test judges what the client did, and records how the fault was detected, how long healing took and how often the
//! call was executed. `scripts/mcp-report` runs them and puts the records into `docs/mcp-reliability.md`.

mod answers;
mod connections;
mod life;
mod lists;
mod programs;
mod sessions;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_core::ToolError;
use serde_json::{Value, json};

use crate::client::Client;

/// The folder for the records, if somebody wants them.
const RECORDS: &str = "HERMES_MCP_MATRIX";

/// One row, as it is told in the report.
struct Record {
    row: u8,
    fault: &'static str,
    detected: &'static str,
    /// What the caller got.
    outcome: &'static str,
    /// From the fault, or the end of the outage, to a connection that works.
    healed: Option<Duration>,
    /// How often the call that met the fault was executed.
    executions: Option<usize>,
}

impl Record {
    fn keep(self) {
        let row = json!({
            "row": self.row,
            "fault": self.fault,
            "detected": self.detected,
            "outcome": self.outcome,
            "healed_ms": self.healed.map(|time| time.as_secs_f64() * 1e3),
            "executions": self.executions,
        });
        if let Some(folder) = records_folder() {
            let file = Path::new(&folder).join(format!("{:02}.json", self.row));
            fs::write(file, row.to_string()).unwrap();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever wants records says so this way"
)]
fn records_folder() -> Option<String> {
    std::env::var(RECORDS).ok()
}

/// Makes a call that has to succeed, and returns how long it took.
async fn succeeds(client: &Client, word: &str) -> Duration {
    let started = Instant::now();
    let answer = client.append(word).await;
    assert!(answer.is_ok(), "{word}: {answer:?}");
    started.elapsed()
}

/// Makes a call whose outcome nobody can know, and returns how long it took to say so.
async fn ends_unknown(client: &Client, word: &str) -> Duration {
    let started = Instant::now();
    let error = client.append(word).await.unwrap_err();
    assert!(
        matches!(error, ToolError::OutcomeUnknown(_)),
        "{word}: {error:?}"
    );
    started.elapsed()
}

/// Makes a call that is refused with these words, and returns how long that took.
async fn is_refused(client: &Client, word: &str, words: &str) -> Duration {
    let started = Instant::now();
    let error = client.append(word).await.unwrap_err();
    assert!(matches!(error, ToolError::Answer(_)), "{word}: {error:?}");
    assert!(error.to_string().contains(words), "{word}: {error}");
    started.elapsed()
}

fn no_settings() -> Value {
    json!({})
}

const SECOND: Duration = Duration::from_secs(1);
