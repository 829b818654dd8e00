//! What is to be done about a job that is due: which of its times runs, which were missed, and which comes next. Pure.

use hermes_core::{Job, Misfire, NextRun, RunClaim, RunTrigger, Timestamp};
use hermes_os::schedule::Schedule;

/// Whoever skips what was missed still runs what is no later than this: a machine takes a while to start.
const LATE_MS: i64 = 120_000;

/// Times that are counted as missed: of a job that comes every ten seconds, there are many in a night.
const MISSED_MAX: u32 = 1000;

/// Missed times that are run one after another, for jobs that want each of them.
const ALL_MAX: u32 = 24;

/// The claim that is to be made now for a job that is due.
pub(crate) fn claim(job: &Job, schedule: &Schedule, now: Timestamp, holder: &str) -> RunClaim {
    let blank = RunClaim {
        job: job.id.clone(),
        revision: job.revision,
        trigger: RunTrigger::Schedule,
        scheduled: now,
        next: None,
        missed: 0,
        skips: None,
        holder: holder.to_owned(),
        now,
        until: now,
    };
    match (job.wanted, job.next) {
        (Some(wanted), _) => RunClaim {
            trigger: RunTrigger::Person,
            scheduled: wanted,
            ..blank
        },
        (None, Some(next)) => by_schedule(job, schedule, next, blank),
        (None, None) => blank,
    }
}

fn by_schedule(job: &Job, schedule: &Schedule, due: NextRun, blank: RunClaim) -> RunClaim {
    let now_ms = blank.now.as_millis();
    let (first, late_ms) = (due.scheduled.as_millis(), now_ms - due.due.as_millis());
    let (last, missed) = skipped(schedule, first, now_ms, MISSED_MAX);
    let next = |after_ms: i64| next_run(job, schedule, after_ms);
    match job.spec.misfire {
        Misfire::All => {
            let (from, missed) = skipped(schedule, first, now_ms, missed.saturating_sub(ALL_MAX));
            RunClaim {
                scheduled: Timestamp::from_millis(from),
                next: next(from),
                missed,
                ..blank
            }
        }
        Misfire::Skip if late_ms > LATE_MS && now_ms - last > LATE_MS => RunClaim {
            scheduled: Timestamp::from_millis(last),
            next: next(now_ms),
            missed,
            skips: Some("Hermes was not running at that time".to_owned()),
            ..blank
        },
        Misfire::Once | Misfire::Skip => RunClaim {
            scheduled: Timestamp::from_millis(last),
            next: next(now_ms),
            missed,
            ..blank
        },
    }
}

/// Goes on from a time to the last one that is not after now, over so many at most. Says how many it left behind.
fn skipped(schedule: &Schedule, first_ms: i64, now_ms: i64, count_max: u32) -> (i64, u32) {
    let (mut at, mut count) = (first_ms, 0);
    while count < count_max
        && let Some(next) = schedule.next_after(at)
        && next <= now_ms
    {
        (at, count) = (next, count + 1);
    }
    (at, count)
}

/// The first time after a moment, and when it really begins.
pub(crate) fn next_run(job: &Job, schedule: &Schedule, after_ms: i64) -> Option<NextRun> {
    let scheduled = Timestamp::from_millis(schedule.next_after(after_ms)?);
    Some(hermes_core::schedule::jittered(
        &job.id,
        scheduled,
        job.spec.jitter_s,
    ))
}
