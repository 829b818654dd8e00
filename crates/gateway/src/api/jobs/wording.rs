//! How jobs and their runs read, with the names that the known program has for what they hold.

use hermes_core::redact::redact;
use hermes_core::{Delivery, DeliveryStatus, JobReading, JobState, Run, RunStatus};
use serde_json::{Value, json};

/// A job, and the run that it had last.
pub(super) fn job(reading: &JobReading, last: Option<&Run>) -> Value {
    let (job, spec) = (&reading.job, &reading.job.spec);
    let words = reading.reading.as_ref();
    let display = words.map_or_else(|_| spec.schedule.as_str(), String::as_str);
    let deliver = spec.deliver.join(",");
    let mut told = json!({
        "id": job.id,
        "object": "hermes.job",
        "name": spec.name,
        "prompt": spec.prompt,
        "schedule": {"expr": spec.schedule, "display": display},
        "schedule_display": display,
        "skills": spec.skills,
        "skill": spec.skills.first(),
        "model": spec.model,
        "provider": spec.provider,
        "script": spec.script,
        "no_agent": spec.no_agent,
        "context_from": spec.context_from,
        "repeat": {"times": spec.repeat, "completed": job.runs},
        "enabled": job.state == JobState::Active,
        "state": state(reading),
        "created_at": job.created.to_iso(),
        "next_run_at": job.next.map(|next| next.due.to_iso()),
        "deliver": if deliver.is_empty() { "local" } else { &deliver },
        "origin": spec.origin,
        "enabled_toolsets": spec.toolsets,
        "workdir": spec.workdir,
        "misfire": spec.misfire.as_str(),
        "jitter_s": spec.jitter_s,
        "retries": spec.retries,
        "time_max_s": spec.time_max_s,
        "cost_max_usd": spec.cost_max_micro_usd.map(|cost| cost as f64 / 1e6),
        "silent": spec.silent,
        "upcoming": reading.upcoming,
        "notes": reading.notes,
        "is_wanted_now": job.wanted.is_some(),
        "failed_in_a_row": job.failures,
    });
    told["last_run_at"] = last.map(|run| run.claimed.to_iso()).into();
    told["last_status"] = last.and_then(status).into();
    told["last_error"] = last.and_then(error).into();
    told["last_delivery_error"] = last.and_then(delivery_error).into();
    told
}

fn state(reading: &JobReading) -> &'static str {
    match reading.job.state {
        _ if reading.reading.is_err() => "error",
        JobState::Active => "scheduled",
        JobState::Paused => "paused",
        JobState::Completed => "completed",
    }
}

/// `ok` or `error`; a run that is under way is neither.
fn status(run: &Run) -> Option<&'static str> {
    match run.status {
        RunStatus::Running | RunStatus::Waiting => None,
        RunStatus::Succeeded | RunStatus::Skipped => Some("ok"),
        RunStatus::Failed | RunStatus::Unknown => Some("error"),
    }
}

fn error(run: &Run) -> Option<String> {
    run.error.as_deref().map(redact)
}

fn delivery_error(run: &Run) -> Option<String> {
    let failed = |delivery: &Delivery| match &delivery.status {
        DeliveryStatus::Failed { error } => Some(format!("{}: {error}", delivery.target)),
        DeliveryStatus::Unknown { why } => Some(format!("{}: {why}", delivery.target)),
        _ => None,
    };
    run.deliveries.iter().find_map(failed)
}

/// One time that a job ran.
pub(super) fn run(run: &Run) -> Value {
    let deliveries = run.deliveries.iter();
    let deliveries = deliveries
        .map(|delivery| json!({"target": delivery.target, "status": delivery.status.as_str()}));
    json!({
        "id": run.id,
        "job_id": run.job,
        "status": run.status.as_str(),
        "scheduled_at": run.scheduled.to_iso(),
        "started_at": run.claimed.to_iso(),
        "ended_at": run.ended.map(|at| at.to_iso()),
        "attempt": run.attempt,
        "session_id": run.session,
        "output": run.output,
        "error": error(run),
        "hint": run.hint,
        "deliveries": deliveries.collect::<Vec<_>>(),
    })
}
