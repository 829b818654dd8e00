//! `tirith`, a scanner for commands that some users install. It is a program of its own; we only ask it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hermes_core::text::shorten;
use hermes_core::{BoxFuture, Scanner};
use hermes_exec::{ProgramOutput, child_environment};
use serde_json::Value;

use crate::base::Base;
use crate::failure::Outcome;
use crate::terminals::variables;

/// A scanner that failed so often in a row is not asked again in this process.
const FAILURES_MAX: u32 = 3;
/// Findings that are looked at.
const FINDINGS_MAX: usize = 50;
/// Enough of what it says to decide on.
const SUMMARY_CHARS_MAX: usize = 500;

pub struct Tirith {
    program: PathBuf,
    timeout: Duration,
    /// Whether a command may run when the scanner does not work.
    fails_open: bool,
    environment: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    failures: AtomicU32,
}

impl Tirith {
    /// Returns the scanner, when the settings want it and it is there.
    pub fn installed(base: &Base) -> Outcome<Option<Self>> {
        let settings = &base.settings;
        if !settings.bool("security.tirith_enabled")? {
            return Ok(None);
        }
        let path = base.environment.get("PATH").unwrap_or_default();
        let program = match settings.optional_string("security.tirith_path")? {
            Some(program) => Some(PathBuf::from(program)),
            None => found_in(path),
        };
        let Some(program) = program else {
            return Ok(None);
        };
        Ok(Some(Self {
            program,
            timeout: settings.seconds("security.tirith_timeout")?,
            fails_open: settings.bool("security.tirith_fail_open")?,
            environment: child_environment(variables(base), &[]),
            cwd: base.cwd.clone(),
            failures: AtomicU32::new(0),
        }))
    }

    async fn look(&self, command: &str) -> Option<String> {
        if self.failures.load(Ordering::Relaxed) >= FAILURES_MAX {
            return self.without("has failed too often");
        }
        let args = [
            "check",
            "--json",
            "--non-interactive",
            "--shell",
            "posix",
            "--",
            command,
        ];
        let program = self.program.to_string_lossy();
        let output =
            hermes_exec::output(&program, args, &self.environment, &self.cwd, self.timeout);
        match output.await {
            Ok(output) => self.verdict(&output),
            Err(error) => self.failed(&error.to_string()),
        }
    }

    fn verdict(&self, output: &ProgramOutput) -> Option<String> {
        let verb = match output.status.code() {
            Some(0) => {
                self.failures.store(0, Ordering::Relaxed);
                return None;
            }
            Some(1) => "blocks it",
            Some(2) => "warns of it",
            code => return self.failed(&format!("ended with {code:?}")),
        };
        self.failures.store(0, Ordering::Relaxed);
        let summary = summary(&output.stdout);
        Some(format!("tirith {verb}{summary}"))
    }

    fn failed(&self, what: &str) -> Option<String> {
        self.failures.fetch_add(1, Ordering::Relaxed);
        tracing::warn!("tirith did not look at a command: {what}");
        self.without("did not look at it")
    }

    /// What to make of a command that was not looked at.
    fn without(&self, why: &str) -> Option<String> {
        (!self.fails_open).then(|| format!("tirith {why}"))
    }
}

impl Scanner for Tirith {
    fn scan<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.look(command))
    }
}

fn found_in(path: &str) -> Option<PathBuf> {
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    folders
        .map(|folder| Path::new(folder).join("tirith"))
        .find(|program| program.is_file())
}

/// Returns what its report says, after a colon.
fn summary(report: &str) -> String {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let text = |value: &Value, names: &[&str]| {
        let found = names.iter().find_map(|name| value[*name].as_str());
        found.map(str::to_owned)
    };
    let findings = report["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let titles = findings
        .iter()
        .take(FINDINGS_MAX)
        .filter_map(|finding| text(finding, &["title", "message", "rule_id"]));
    let said = match text(&report, &["summary"]) {
        Some(summary) => summary,
        None => titles.collect::<Vec<_>>().join("; "),
    };
    if said.is_empty() {
        String::new()
    } else {
        format!(": {}", shorten(&said, SUMMARY_CHARS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_put_in_one_line() {
        assert_eq!(summary("no json"), "");
        assert_eq!(summary(r#"{"summary": "looks bad"}"#), ": looks bad");
        let findings = r#"{"findings": [{"title": "a"}, {"rule_id": "b"}, {}]}"#;
        assert_eq!(summary(findings), ": a; b");
    }
}
