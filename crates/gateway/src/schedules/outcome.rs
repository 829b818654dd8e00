//! What a run came to, and what is told of it.

use hermes_core::schedule::ORIGIN_TARGET;
use hermes_core::text::shorten;
use hermes_core::{Delivery, DeliveryStatus, Job, Run, RunEnd, RunStatus, Timestamp};

use crate::silence::is_silence;

/// The same failure is told again after a day: once is easily overlooked, every minute is noise.
const TOLD_AGAIN_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// What is kept of an answer; all of it is in the file.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// An error is a line or a few, not a document.
const ERROR_CHARS_MAX: usize = 2000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) error: String,
    /// What to do next.
    pub(crate) hint: String,
}

impl Problem {
    pub(crate) fn new(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            hint: hint.into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answer {
        text: String,
        cost_micro_usd: Option<u64>,
        /// Calls that nobody was there to allow.
        refused: u32,
        /// What it had to do without.
        missing: Vec<String>,
    },
    /// What a script printed, as it is.
    Printed(String),
    /// There was nothing to do.
    Nothing { why: String },
    Failed {
        problem: Problem,
        cost_micro_usd: Option<u64>,
        may_retry: bool,
    },
    /// Hermes stopped in the middle of what must not be done twice.
    Unknown(Problem),
    /// The process ends: the next one goes on with it.
    Stopped,
}

/// The end of a run, as it is written down and delivered. `None` for one that goes on elsewhere.
pub(crate) fn end(
    outcome: Outcome,
    job: &Job,
    run: &Run,
    now: Timestamp,
    wraps: bool,
) -> Option<RunEnd> {
    let blank = RunEnd {
        status: RunStatus::Succeeded,
        at: now,
        output: None,
        error: None,
        hint: None,
        cost_micro_usd: None,
        deliveries: Vec::new(),
        tells_failure: false,
    };
    Some(match outcome {
        Outcome::Stopped => return None,
        Outcome::Nothing { why } => RunEnd {
            status: RunStatus::Skipped,
            error: Some(why),
            ..blank
        },
        Outcome::Printed(text) if text.trim().is_empty() || is_silence(&text) => blank,
        Outcome::Printed(text) => RunEnd {
            deliveries: deliveries(job, &wrapped(job, text.trim(), wraps)),
            output: Some(kept(&text)),
            ..blank
        },
        Outcome::Answer {
            text,
            cost_micro_usd,
            refused,
            missing,
        } => {
            let blank = RunEnd {
                cost_micro_usd,
                ..blank
            };
            match text.trim() {
                "" if !job.spec.silent => failed(nothing_said(), job, run, blank),
                _ => answered(&text, &remarks(refused, missing), job, wraps, blank),
            }
        }
        Outcome::Failed {
            problem,
            cost_micro_usd,
            ..
        } => failed(
            problem,
            job,
            run,
            RunEnd {
                cost_micro_usd,
                ..blank
            },
        ),
        Outcome::Unknown(problem) => RunEnd {
            status: RunStatus::Unknown,
            ..failed(problem, job, run, blank)
        },
    })
}

/// What whoever reads an answer should know of how it came about.
fn remarks(refused: u32, missing: Vec<String>) -> Vec<String> {
    let calls = if refused == 1 { "call" } else { "calls" };
    let refused = (refused > 0).then(|| {
        format!("{refused} {calls} needed somebody's consent and did not run: nobody is asked in scheduled runs")
    });
    missing.into_iter().chain(refused).collect()
}

fn answered(text: &str, remarks: &[String], job: &Job, wraps: bool, blank: RunEnd) -> RunEnd {
    if is_silence(text) || (job.spec.silent && text.is_empty()) {
        return RunEnd {
            output: Some(kept(text)),
            ..blank
        };
    }
    let mut told = text.to_owned();
    for remark in remarks {
        told.push_str(&format!("\n\n({remark})"));
    }
    RunEnd {
        deliveries: deliveries(job, &wrapped(job, &told, wraps)),
        output: Some(kept(text)),
        ..blank
    }
}

fn nothing_said() -> Problem {
    Problem::new(
        "the agent answered nothing",
        "see the conversation of the run: `hermes cron history JOB` names it",
    )
}

fn failed(problem: Problem, job: &Job, run: &Run, blank: RunEnd) -> RunEnd {
    let problem = Problem {
        error: shorten(&problem.error, ERROR_CHARS_MAX),
        hint: shorten(&problem.hint, ERROR_CHARS_MAX),
    };
    let was_told = job.told.as_ref().is_some_and(|told| {
        // A clock that was ahead must not silence it until then.
        let since_ms = blank.at.as_millis() - told.at.as_millis();
        is_same_failure(&told.error, &problem.error) && (0..TOLD_AGAIN_AFTER_MS).contains(&since_ms)
    });
    let tells = !was_told;
    let deliveries = if tells {
        deliveries(job, &failure_text(job, &problem, run.attempt - 1))
    } else {
        Vec::new()
    };
    RunEnd {
        status: RunStatus::Failed,
        deliveries,
        tells_failure: tells,
        error: Some(problem.error),
        hint: Some(problem.hint),
        ..blank
    }
}

/// Whether two errors say the same but for what is another every time: the number of a request, an amount, a time.
fn is_same_failure(left: &str, right: &str) -> bool {
    left == right || lasting(left).eq(lasting(right))
}

/// The words of an error that say what kind of failure it is.
fn lasting(error: &str) -> impl Iterator<Item = &str> {
    /// Longer words of letters and digits are names that programs gave.
    const WORD_CHARS_MAX: usize = 24;
    let mut before = "";
    error.split_whitespace().map(move |word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let number: Option<u16> = bare.parse().ok();
        let is_code = matches!(before, "code" | "status" | "signal" | "HTTP" | "error")
            || number.is_some_and(|number| (400..600).contains(&number));
        let is_number = bare.chars().any(|c| c.is_ascii_digit()) && !(is_code && number.is_some());
        let is_name =
            bare.chars().count() > WORD_CHARS_MAX && bare.chars().all(char::is_alphanumeric);
        before = bare;
        if is_number || is_name { "…" } else { word }
    })
}

fn failure_text(job: &Job, problem: &Problem, earlier_tries: u32) -> String {
    let tries = match earlier_tries {
        0 => String::new(),
        tries => format!(" after {} tries", tries + 1),
    };
    format!(
        "The job “{}” failed{tries}: {}\nWhat to do: {}\n(job {}; the same failure is not told again for a day)",
        job.spec.name, problem.error, problem.hint, job.id
    )
}

fn wrapped(job: &Job, text: &str, wraps: bool) -> String {
    if !wraps {
        return text.to_owned();
    }
    format!("Job “{}” ({})\n\n{text}", job.spec.name, job.id)
}

fn kept(text: &str) -> String {
    hermes_core::text::head(text, OUTPUT_BYTES_MAX).to_owned()
}

/// One for each place. A chat it was made in is a place of its own.
fn deliveries(job: &Job, text: &str) -> Vec<Delivery> {
    let targets = targets(job);
    let delivery = |target: String| Delivery {
        target,
        text: text.to_owned(),
        status: DeliveryStatus::Pending,
    };
    targets.into_iter().map(delivery).collect()
}

/// Where nothing is said, a job that was made in a chat tells its results there, any other one into a file.
fn targets(job: &Job) -> Vec<String> {
    let spec = &job.spec;
    let mut targets: Vec<String> = Vec::new();
    for target in spec.targets() {
        let target = match &spec.origin {
            Some(origin) if target == ORIGIN_TARGET => origin,
            _ => target,
        };
        if !targets.iter().any(|known| known == target) {
            targets.push(target.to_owned());
        }
    }
    targets
}

/// Whether a result went there only because the job was made there: another place will do when that one is gone.
pub(super) fn is_origin(job: &Job, target: &str) -> bool {
    let is_meant = job.spec.targets().contains(&ORIGIN_TARGET);
    is_meant && job.spec.origin.as_deref() == Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_the_same_when_only_their_numbers_differ() {
        let same = |left: &str, right: &str| is_same_failure(left, right);
        assert!(same(
            "openai/gpt: the server is overloaded (request req_011CSHoEeqs5C35K2UUqR7Fy)",
            "openai/gpt: the server is overloaded (request req_011Dxj2Pd4Ww6A77M3VVrQ8Gz)",
        ));
        assert!(same(
            "the run had cost $0.1234, and may cost $0.1000",
            "the run had cost $0.1301, and may cost $0.1000",
        ));
        assert!(same("try again in 12 s", "try again in 7 s"));
        assert!(!same(
            "the provider answers 401",
            "the provider answers 503"
        ));
        assert!(!same(
            "the script ended with code 1",
            "the script ended with code 127"
        ));
        assert!(!same("no such file", "no such folder"));
        assert!(!same("no such file", "no such file at all"));
    }
}
