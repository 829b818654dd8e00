//! Jobs and runs in words, for commands of every surface.

use hermes_core::schedule::ORIGIN_TARGET;
use hermes_core::text::shorten;
use hermes_core::{
    DeliveryStatus, JobReading, JobSpec, JobState, Removed, Run, RunStatus, RunTrigger, Timestamp,
};
use serde_json::{Value, json};

use crate::layout::{Table, age, one_line, printable};

/// Enough of a name or an error to recognise it in a list.
const CELL_CHARS_MAX: usize = 40;

/// Said where nobody runs them.
pub const NOT_RUN: &str = "jobs run only while `hermes gateway run` does; it does not run now (`hermes cron tick` runs what is due, once)";

pub fn listed(jobs: &[JobReading], all: bool) -> String {
    let is_shown = |job: &&JobReading| all || job.job.state != JobState::Completed;
    let mut table = Table::new(["ID", "NAME", "WHEN", "NEXT", "STATE"]);
    let shown: Vec<&JobReading> = jobs.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return "there are no jobs; `hermes cron add \"every weekday at 9\" \"PROMPT\"` makes one"
            .to_owned();
    }
    let because = shown.iter().filter_map(|job| {
        let why = job.job.spec.paused_because.as_deref()?;
        Some(format!("{} is paused: {}", job.job.id, one_line(why)))
    });
    let because: Vec<String> = because.collect();
    for job in shown {
        table.row([
            job.job.id.to_string(),
            cell(&job.job.spec.name),
            cell(
                job.reading
                    .as_ref()
                    .map_or("not understood any more", |words| words),
            ),
            job.upcoming
                .first()
                .cloned()
                .unwrap_or_else(|| "-".to_owned()),
            state(job),
        ]);
    }
    let mut lines = vec![table.text()];
    lines.extend(because);
    lines.join("\n")
}

fn state(job: &JobReading) -> String {
    let job = &job.job;
    match job.failures {
        _ if job.wanted.is_some() => "wanted now".to_owned(),
        0 => job.state.as_str().to_owned(),
        failures => format!("{}, failed {failures}x", job.state.as_str()),
    }
}

/// A job as it was understood: the reading and the next times first.
pub fn shown(job: &JobReading) -> String {
    let mut lines = vec![format!(
        "{}  {} ({})",
        job.job.id,
        one_line(&job.job.spec.name),
        state(job)
    )];
    match &job.reading {
        Ok(words) => lines.push(format!("  runs     {words}")),
        Err(why) => lines.push(format!("  runs     never: {why}")),
    }
    let because = job.job.spec.paused_because.as_deref();
    lines.extend(because.map(|why| format!("  paused   {}", one_line(why))));
    lines.extend(next_times(&job.upcoming));
    lines.extend(details(job));
    lines.extend(job.notes.iter().map(|note| format!("  note     {note}")));
    lines.join("\n")
}

/// What a schedule means.
pub fn read(words: &str, upcoming: &[String]) -> String {
    let mut lines = vec![words.to_owned()];
    lines.extend(next_times(upcoming));
    lines.join("\n")
}

fn next_times(upcoming: &[String]) -> impl Iterator<Item = String> {
    let label = |place: usize| if place == 0 { "next" } else { "then" };
    let times = upcoming.iter().enumerate();
    times.map(move |(place, at)| format!("  {:<8} {at}", label(place)))
}

fn details(job: &JobReading) -> Vec<String> {
    let spec = &job.job.spec;
    let list = |values: &[String]| Some(values.join(", ")).filter(|text| !text.is_empty());
    let context: Vec<String> = spec.context_from.iter().map(ToString::to_string).collect();
    let dollars = |cost: u64| format!("${:.4}", cost as f64 / 1e6);
    let rows = [
        (
            "asks",
            Some(cell_of(&spec.prompt, 200)).filter(|_| !spec.prompt.is_empty()),
        ),
        ("script", spec.script.clone()),
        (
            "agent",
            spec.no_agent.then(|| "no: the script alone".to_owned()),
        ),
        ("skills", list(&spec.skills)),
        ("model", spec.model.clone()),
        ("toolsets", list(&spec.toolsets)),
        (
            "folder",
            spec.workdir.as_ref().map(|path| path.display().to_string()),
        ),
        ("context", list(&context)),
        ("deliver", Some(places(spec))),
        (
            "silent",
            spec.silent
                .then(|| "only what you must know is delivered".to_owned()),
        ),
        (
            "repeat",
            spec.repeat
                .map(|times| format!("{} of {times}", job.job.runs)),
        ),
        (
            "missed",
            Some(spec.misfire.as_str().to_owned()).filter(|name| name != "once"),
        ),
        (
            "jitter",
            Some(format!("up to {} s", spec.jitter_s)).filter(|_| spec.jitter_s > 0),
        ),
        (
            "retries",
            Some(spec.retries.to_string()).filter(|_| spec.retries > 0),
        ),
        (
            "max time",
            spec.time_max_s.map(|seconds| format!("{seconds} s")),
        ),
        ("max cost", spec.cost_max_micro_usd.map(dollars)),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?)));
    rows.map(|(label, text)| format!("  {label:<8} {}", one_line(&text)))
        .collect()
}

/// Where results go; the chat that `origin` means is named.
fn places(spec: &JobSpec) -> String {
    let named = |target: &str| match &spec.origin {
        Some(origin) if target == ORIGIN_TARGET => format!("{target} ({origin})"),
        _ => target.to_owned(),
    };
    let places: Vec<String> = spec.targets().into_iter().map(named).collect();
    places.join(", ")
}

pub fn removed(removed: &Removed) -> String {
    format!("removed {}  {}", removed.id, one_line(&removed.name))
}

pub fn history(runs: &[Run], now: Timestamp) -> String {
    if runs.is_empty() {
        return "nothing has run yet".to_owned();
    }
    let mut table = Table::new(["WHEN", "JOB", "RUN", "DELIVERY", "WHAT"]);
    for run in runs {
        table.row([
            age(run.claimed, now),
            cell(&run.name),
            status(run),
            deliveries(run),
            what(run),
        ]);
    }
    table.text()
}

fn status(run: &Run) -> String {
    let by_hand = match run.trigger {
        RunTrigger::Person => ", by hand",
        RunTrigger::Schedule => "",
    };
    let tries = match run.attempt {
        1 => String::new(),
        tries => format!(", try {tries}"),
    };
    format!("{}{tries}{by_hand}", run.status.as_str())
}

fn deliveries(run: &Run) -> String {
    if run.deliveries.is_empty() {
        return "-".to_owned();
    }
    let one = |delivery: &hermes_core::Delivery| {
        format!(
            "{} {}",
            one_line(&delivery.target),
            delivery.status.as_str()
        )
    };
    run.deliveries
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(", ")
}

/// What went wrong, and what to do; where the conversation is, otherwise.
fn what(run: &Run) -> String {
    let undelivered = run
        .deliveries
        .iter()
        .find_map(|delivery| match &delivery.status {
            DeliveryStatus::Failed { error } => Some(error),
            DeliveryStatus::Unknown { why } => Some(why),
            _ => None,
        });
    match (&run.error, undelivered, &run.session) {
        (Some(error), _, _) if run.status != RunStatus::Succeeded => match &run.hint {
            Some(hint) => one_line(&format!("{error}; {hint}")),
            None => one_line(error),
        },
        (_, Some(why), _) => one_line(why),
        (_, _, Some(session)) => format!("session {session}"),
        _ => String::new(),
    }
}

pub fn job_json(job: &JobReading) -> Value {
    json!({
        "id": job.job.id,
        "state": job.job.state.as_str(),
        "reading": job.reading.as_ref().ok(),
        "problem": job.reading.as_ref().err(),
        "next": job.upcoming,
        "next_run_ms": job.job.next.map(|next| next.due.as_millis()),
        "runs": job.job.runs,
        "failures": job.job.failures,
        "job": job.job.spec,
    })
}

pub fn run_json(run: &Run) -> Value {
    let deliveries = run.deliveries.iter();
    let deliveries: Vec<Value> = deliveries
        .map(|delivery| json!({"target": delivery.target, "status": delivery.status.as_str()}))
        .collect();
    json!({
        "run": run.id,
        "job": run.job,
        "name": run.name,
        "scheduled": run.scheduled.to_iso(),
        "status": run.status.as_str(),
        "attempt": run.attempt,
        "missed": run.missed,
        "session": run.session,
        "output": run.output,
        "error": run.error,
        "hint": run.hint,
        "cost_micro_usd": run.cost_micro_usd,
        "deliveries": deliveries,
    })
}

fn cell(text: &str) -> String {
    cell_of(text, CELL_CHARS_MAX)
}

fn cell_of(text: &str, chars_max: usize) -> String {
    shorten(&one_line(&printable(text)), chars_max)
}
