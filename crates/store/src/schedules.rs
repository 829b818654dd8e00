//! Jobs and their runs. What two processes may contend for is decided by comparing what they saw with what there is: the
//! revision of a job, the token of a run.

use hermes_core::{
    ClaimOutcome, Delivery, DeliveryStatus, Job, JobId, JobSpec, JobState, NextRun, Run, RunClaim,
    RunEnd, RunFilter, RunId, RunLease, RunPhase, RunStatus, RunStep, RunTrigger, Timestamp,
    ToldFailure,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::Failure;
use crate::sessions::{count, unsigned};

/// Runs that are kept of one job: half a year of a daily one.
const RUNS_PER_JOB_MAX: i64 = 200;

/// Runs that are kept in all, those of jobs that are gone included.
const RUNS_MAX: i64 = 20_000;

/// No try is put off for longer than this: one that is was written by a clock that was ahead.
const WAIT_MAX_MS: i64 = 60 * 60 * 1000;

/// In the order [`raw_job`] takes it.
const SELECT_JOB: &str = "
    SELECT id, revision, created, spec, state, next_scheduled, next_due, wanted, runs, failures, told_at, told_error
    FROM jobs j";

/// In the order [`raw_run`] takes it.
const SELECT_RUN: &str = "
    SELECT number, job, name, scheduled, by_person, status, attempt, token, holder, lease_until, claimed, ended, phase,
           prompt, session, output, error, hint, cost_micro_usd, missed
    FROM job_runs r";

const OPEN: &str = "status IN ('running', 'waiting')";

/// A run of the job `j` is under way.
const UNDER_WAY: &str =
    "EXISTS (SELECT 1 FROM job_runs o WHERE o.job = j.id AND o.status IN ('running', 'waiting'))";

pub(crate) fn add(conn: &Connection, job: &Job) -> Result<(), Failure> {
    if read_job(conn, &job.id)?.is_some() {
        return Err(Failure::Refused(format!("job `{}` exists already", job.id)));
    }
    insert(conn, job)
}

pub(crate) fn import(conn: &Connection, jobs: &[Job]) -> Result<Vec<JobId>, Failure> {
    let mut added = Vec::new();
    for job in jobs {
        let is_new = conn
            .prepare_cached("INSERT OR IGNORE INTO imported_jobs (id) VALUES (?1)")?
            .execute([job.id.as_str()])?;
        if is_new == 1 && read_job(conn, &job.id)?.is_none() {
            insert(conn, job)?;
            added.push(job.id.clone());
        }
    }
    Ok(added)
}

fn insert(conn: &Connection, job: &Job) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO jobs (id, created, spec, state, next_scheduled, next_due, wanted, runs, failures, told_at,
             told_error)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        job.id.as_str(),
        job.created.as_millis(),
        spec_text(job)?,
        job.state.as_str(),
        job.next.map(|next| next.scheduled.as_millis()),
        job.next.map(|next| next.due.as_millis()),
        job.wanted.map(Timestamp::as_millis),
        job.runs,
        job.failures,
        job.told.as_ref().map(|told| told.at.as_millis()),
        job.told.as_ref().map(|told| told.error.as_str()),
    ])?;
    Ok(())
}

/// Replaces what people decide; how its runs went is the store's.
pub(crate) fn change(conn: &Connection, job: &Job) -> Result<bool, Failure> {
    let changed = conn
        .prepare_cached(
            "UPDATE jobs SET revision = revision + 1, spec = ?3, state = ?4, next_scheduled = ?5, next_due = ?6,
                 wanted = ?7, runs = ?8
             WHERE id = ?1 AND revision = ?2",
        )?
        .execute(params![
            job.id.as_str(),
            count(job.revision),
            spec_text(job)?,
            job.state.as_str(),
            job.next.map(|next| next.scheduled.as_millis()),
            job.next.map(|next| next.due.as_millis()),
            job.wanted.map(Timestamp::as_millis),
            job.runs,
        ])?;
    Ok(changed == 1)
}

pub(crate) fn remove(conn: &Connection, job: &JobId) -> Result<bool, Failure> {
    let removed = conn
        .prepare_cached("DELETE FROM jobs WHERE id = ?1")?
        .execute([job.as_str()])?;
    Ok(removed == 1)
}

pub(crate) fn read_job(conn: &Connection, job: &JobId) -> Result<Option<Job>, Failure> {
    let mut statement = conn.prepare_cached(&format!("{SELECT_JOB} WHERE id = ?1"))?;
    let raw = statement.query_row([job.as_str()], raw_job).optional()?;
    raw.map(RawJob::read).transpose()
}

pub(crate) fn jobs(conn: &Connection) -> Result<Vec<Job>, Failure> {
    let mut statement = conn.prepare_cached(&format!("{SELECT_JOB} ORDER BY number"))?;
    let rows = statement.query_map([], raw_job)?;
    rows.map(|raw| raw?.read()).collect()
}

pub(crate) fn due(conn: &Connection, now: Timestamp) -> Result<Vec<Job>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "{SELECT_JOB} WHERE (next_due <= ?1 OR wanted IS NOT NULL) AND NOT {UNDER_WAY}
         ORDER BY coalesce(wanted, next_due), number"
    ))?;
    let rows = statement.query_map([now.as_millis()], raw_job)?;
    let jobs: Result<Vec<Job>, Failure> = rows.map(|raw| raw?.read()).collect();
    let is_due = |job: &Job| job.next.is_some() || job.wanted.is_some();
    Ok(jobs?.into_iter().filter(is_due).collect())
}

pub(crate) fn next_due(conn: &Connection) -> Result<Option<Timestamp>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT min(at) FROM (
             SELECT min(next_due) AS at FROM jobs j WHERE next_due IS NOT NULL AND NOT {UNDER_WAY}
             UNION ALL SELECT min(wanted) FROM jobs j WHERE wanted IS NOT NULL AND NOT {UNDER_WAY}
             UNION ALL SELECT min(lease_until) FROM job_runs WHERE {OPEN})"
    ))?;
    let at: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(at.map(Timestamp::from_millis))
}

pub(crate) fn claim(conn: &Connection, claim: &RunClaim) -> Result<ClaimOutcome, Failure> {
    let Some(job) = read_job(conn, &claim.job)? else {
        return Ok(ClaimOutcome::Changed);
    };
    if job.revision != claim.revision || is_under_way(conn, &claim.job)? {
        return Ok(ClaimOutcome::Changed);
    }
    advance(conn, &job, claim)?;
    let is_over = claim.skips.is_some();
    let inserted = conn
        .prepare_cached(
            "INSERT OR IGNORE INTO job_runs (job, name, scheduled, by_person, status, holder, lease_until, claimed, ended,
                 phase, error, missed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            claim.job.as_str(),
            job.spec.name,
            claim.scheduled.as_millis(),
            claim.trigger == RunTrigger::Person,
            if is_over { RunStatus::Skipped } else { RunStatus::Running }.as_str(),
            claim.holder,
            if is_over { 0 } else { claim.until.as_millis() },
            claim.now.as_millis(),
            is_over.then(|| claim.now.as_millis()),
            RunPhase::Claimed.as_str(),
            claim.skips,
            claim.missed,
        ])?;
    if inserted == 0 {
        return Ok(ClaimOutcome::RunBefore);
    }
    if claim.trigger == RunTrigger::Schedule {
        count_run(conn, &job)?;
    }
    if is_over {
        prune(conn, &claim.job)?;
    }
    let id = RunId(conn.last_insert_rowid().unsigned_abs());
    let run = read_run(conn, id)?;
    run.map(|run| ClaimOutcome::Claimed(Box::new(run)))
        .ok_or_else(|| Failure::Unreadable("a run that was just written".into()))
}

fn is_under_way(conn: &Connection, job: &JobId) -> Result<bool, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT EXISTS (SELECT 1 FROM job_runs WHERE job = ?1 AND {OPEN})"
    ))?;
    Ok(statement.query_row([job.as_str()], |row| row.get(0))?)
}

/// Moves a job on to its next time, or takes note that a wish is met.
fn advance(conn: &Connection, job: &Job, claim: &RunClaim) -> Result<(), Failure> {
    if claim.trigger == RunTrigger::Person {
        conn.prepare_cached(
            "UPDATE jobs SET revision = revision + 1, wanted = NULL WHERE id = ?1",
        )?
        .execute([job.id.as_str()])?;
        return Ok(());
    }
    let state = match claim.next {
        Some(_) => JobState::Active,
        None => JobState::Completed,
    };
    conn.prepare_cached(
        "UPDATE jobs SET revision = revision + 1, next_scheduled = ?2, next_due = ?3, state = ?4 WHERE id = ?1",
    )?
    .execute(params![
        job.id.as_str(),
        claim.next.map(|next| next.scheduled.as_millis()),
        claim.next.map(|next| next.due.as_millis()),
        state.as_str(),
    ])?;
    Ok(())
}

/// Counts a run by schedule; the last one that is wanted completes its job.
fn count_run(conn: &Connection, job: &Job) -> Result<(), Failure> {
    let runs = job.runs.saturating_add(1);
    conn.prepare_cached("UPDATE jobs SET runs = ?2 WHERE id = ?1")?
        .execute(params![job.id.as_str(), runs])?;
    if job.spec.repeat.is_some_and(|repeat| runs >= repeat) {
        conn.prepare_cached(
            "UPDATE jobs SET state = 'completed', next_scheduled = NULL, next_due = NULL WHERE id = ?1",
        )?
        .execute([job.id.as_str()])?;
    }
    Ok(())
}

pub(crate) fn abandoned(
    conn: &Connection,
    now: Timestamp,
    until_max: Timestamp,
) -> Result<Vec<Run>, Failure> {
    // A try that waits may wait for longer than a lease, but not for ever.
    runs_where(
        conn,
        &format!(
            "WHERE {OPEN} AND (lease_until <= ?1 OR (status = 'running' AND lease_until > ?2)
                 OR lease_until > ?1 + {WAIT_MAX_MS}) ORDER BY lease_until"
        ),
        &[now.as_millis(), until_max.as_millis()],
    )
}

pub(crate) fn take(
    conn: &Connection,
    seen: RunLease,
    holder: &str,
    until: Timestamp,
) -> Result<Option<Run>, Failure> {
    let taken = conn
        .prepare_cached(&format!(
            "UPDATE job_runs SET status = 'running', token = token + 1, attempt = attempt + 1, holder = ?3, lease_until = ?4
             WHERE number = ?1 AND token = ?2 AND {OPEN}"
        ))?
        .execute(params![
            count(seen.run.0),
            count(seen.token),
            holder,
            until.as_millis()
        ])?;
    match taken {
        0 => Ok(None),
        _ => read_run(conn, seen.run),
    }
}

pub(crate) fn renew(conn: &Connection, lease: RunLease, until: Timestamp) -> Result<bool, Failure> {
    let renewed = conn
        .prepare_cached(
            "UPDATE job_runs SET lease_until = ?3 WHERE number = ?1 AND token = ?2 AND status = 'running'",
        )?
        .execute(params![count(lease.run.0), count(lease.token), until.as_millis()])?;
    Ok(renewed == 1)
}

pub(crate) fn note(conn: &Connection, lease: RunLease, step: &RunStep) -> Result<bool, Failure> {
    let (phase, prompt, session) = match step {
        RunStep::Scripting => (RunPhase::Scripting, None, None),
        RunStep::Asking { prompt } => (RunPhase::Asking, Some(prompt.as_str()), None),
        RunStep::In { session } => (RunPhase::Asking, None, Some(session.as_str())),
    };
    let noted = conn
        .prepare_cached(
            "UPDATE job_runs SET phase = ?3, prompt = coalesce(?4, prompt), session = coalesce(?5, session)
             WHERE number = ?1 AND token = ?2 AND status = 'running'",
        )?
        .execute(params![
            count(lease.run.0),
            count(lease.token),
            phase.as_str(),
            prompt,
            session
        ])?;
    Ok(noted == 1)
}

/// What it had come to is forgotten: the next try begins from the beginning.
pub(crate) fn put_off(
    conn: &Connection,
    lease: RunLease,
    until: Timestamp,
    error: &str,
) -> Result<bool, Failure> {
    let put_off = conn
        .prepare_cached(
            "UPDATE job_runs SET status = 'waiting', lease_until = ?3, error = ?4, phase = 'claimed', prompt = NULL,
                 session = NULL
             WHERE number = ?1 AND token = ?2 AND status = 'running'",
        )?
        .execute(params![
            count(lease.run.0),
            count(lease.token),
            until.as_millis(),
            error
        ])?;
    Ok(put_off == 1)
}

pub(crate) fn finish(conn: &Connection, lease: RunLease, end: &RunEnd) -> Result<bool, Failure> {
    let finished = conn
        .prepare_cached(
            "UPDATE job_runs SET status = ?3, ended = ?4, output = ?5, error = ?6, hint = ?7, cost_micro_usd = ?8,
                 lease_until = 0, prompt = NULL
             WHERE number = ?1 AND token = ?2 AND status = 'running'",
        )?
        .execute(params![
            count(lease.run.0),
            count(lease.token),
            end.status.as_str(),
            end.at.as_millis(),
            end.output,
            end.error,
            end.hint,
            end.cost_micro_usd.map(count),
        ])?;
    if finished == 0 {
        return Ok(false);
    }
    let number = count(lease.run.0);
    for (place, delivery) in end.deliveries.iter().enumerate() {
        insert_delivery(conn, number, place, delivery)?;
    }
    let job: String = conn
        .prepare_cached("SELECT job FROM job_runs WHERE number = ?1")?
        .query_row([number], |row| row.get(0))?;
    note_end(conn, &job, end)?;
    prune(conn, &job.into())?;
    Ok(true)
}

fn insert_delivery(
    conn: &Connection,
    run: i64,
    place: usize,
    delivery: &Delivery,
) -> Result<(), Failure> {
    let (proof, why) = status_columns(&delivery.status);
    conn.prepare_cached(
        "INSERT OR IGNORE INTO job_deliveries (run, place, target, text, status, proof, why)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        run,
        place as i64,
        delivery.target,
        delivery.text,
        delivery.status.as_str(),
        proof,
        why
    ])?;
    Ok(())
}

/// What a job remembers of how its last run went. It may be gone.
fn note_end(conn: &Connection, job: &str, end: &RunEnd) -> Result<(), Failure> {
    match end.status {
        RunStatus::Succeeded => {
            conn.prepare_cached(
                "UPDATE jobs SET failures = 0, told_at = NULL, told_error = NULL WHERE id = ?1",
            )?
            .execute([job])?;
        }
        RunStatus::Failed | RunStatus::Unknown => {
            conn.prepare_cached("UPDATE jobs SET failures = failures + 1 WHERE id = ?1")?
                .execute([job])?;
            if end.tells_failure {
                conn.prepare_cached("UPDATE jobs SET told_at = ?2, told_error = ?3 WHERE id = ?1")?
                    .execute(params![job, end.at.as_millis(), end.error])?;
            }
        }
        RunStatus::Skipped | RunStatus::Running | RunStatus::Waiting => {}
    }
    Ok(())
}

/// Forgets the oldest runs, unless something of them is still on its way.
fn prune(conn: &Connection, job: &JobId) -> Result<(), Failure> {
    const SETTLED: &str = "status NOT IN ('running', 'waiting') AND NOT EXISTS (
        SELECT 1 FROM job_deliveries d WHERE d.run = number AND d.status IN ('pending', 'handed'))";
    conn.prepare_cached(&format!(
        "DELETE FROM job_runs WHERE job = ?1 AND {SETTLED} AND number <= (
             SELECT number FROM job_runs WHERE job = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)"
    ))?
    .execute(params![job.as_str(), RUNS_PER_JOB_MAX])?;
    conn.prepare_cached(&format!(
        "DELETE FROM job_runs WHERE {SETTLED} AND number <= (SELECT max(number) FROM job_runs) - ?1"
    ))?
    .execute([RUNS_MAX])?;
    Ok(())
}

pub(crate) fn undelivered(conn: &Connection) -> Result<Vec<Run>, Failure> {
    runs_where(
        conn,
        "WHERE number IN (SELECT run FROM job_deliveries WHERE status IN ('pending', 'handed')) ORDER BY number",
        &[],
    )
}

pub(crate) fn set_delivery(
    conn: &Connection,
    run: RunId,
    target: &str,
    status: &DeliveryStatus,
) -> Result<(), Failure> {
    let (proof, why) = status_columns(status);
    // What is settled stays so, whoever comes late.
    conn.prepare_cached(
        "UPDATE job_deliveries SET status = ?3, proof = coalesce(?4, proof), why = ?5
         WHERE run = ?1 AND target = ?2 AND status IN ('pending', 'handed')",
    )?
    .execute(params![count(run.0), target, status.as_str(), proof, why])?;
    Ok(())
}

pub(crate) fn runs(conn: &Connection, filter: &RunFilter) -> Result<Vec<Run>, Failure> {
    let limit = match filter.limit {
        0 => -1,
        limit => limit as i64,
    };
    let mut statement = conn.prepare_cached(&format!(
        "{SELECT_RUN} WHERE ?1 IS NULL OR job = ?1 ORDER BY number DESC LIMIT ?2"
    ))?;
    let job = filter.job.as_ref().map(JobId::as_str);
    let rows = statement.query_map(params![job, limit], raw_run)?;
    let raws: Vec<RawRun> = rows.collect::<Result<_, _>>()?;
    raws.into_iter().map(|raw| raw.read(conn)).collect()
}

pub(crate) fn read_run(conn: &Connection, run: RunId) -> Result<Option<Run>, Failure> {
    let found = runs_where(conn, "WHERE number = ?1", &[count(run.0)])?;
    Ok(found.into_iter().next())
}

fn runs_where(conn: &Connection, which: &str, values: &[i64]) -> Result<Vec<Run>, Failure> {
    let mut statement = conn.prepare_cached(&format!("{SELECT_RUN} {which}"))?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), raw_run)?;
    let raws: Vec<RawRun> = rows.collect::<Result<_, _>>()?;
    raws.into_iter().map(|raw| raw.read(conn)).collect()
}

fn deliveries(conn: &Connection, run: i64) -> Result<Vec<Delivery>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT target, text, status, proof, why FROM job_deliveries WHERE run = ?1 ORDER BY place",
    )?;
    let mut rows = statement.query([run])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let status: String = row.get(2)?;
        found.push(Delivery {
            target: row.get(0)?,
            text: row.get(1)?,
            status: delivery_status(&status, row.get(3)?, row.get(4)?)?,
        });
    }
    Ok(found)
}

fn status_columns(status: &DeliveryStatus) -> (Option<&str>, Option<&str>) {
    match status {
        DeliveryStatus::Pending => (None, None),
        DeliveryStatus::Handed { id } | DeliveryStatus::Delivered { id } => (Some(id), None),
        DeliveryStatus::Unknown { why } | DeliveryStatus::Failed { error: why } => {
            (None, Some(why))
        }
    }
}

fn delivery_status(
    name: &str,
    proof: Option<String>,
    why: Option<String>,
) -> Result<DeliveryStatus, Failure> {
    let (id, why) = (proof.unwrap_or_default(), why.unwrap_or_default());
    Ok(match name {
        "pending" => DeliveryStatus::Pending,
        "handed" => DeliveryStatus::Handed { id },
        "delivered" => DeliveryStatus::Delivered { id },
        "unknown" => DeliveryStatus::Unknown { why },
        "failed" => DeliveryStatus::Failed { error: why },
        other => return Err(Failure::Unreadable(format!("a delivery that is `{other}`"))),
    })
}

fn spec_text(job: &Job) -> Result<String, Failure> {
    serde_json::to_string(&job.spec)
        .map_err(|error| Failure::Refused(format!("a job cannot be written: {error}")))
}

struct RawJob {
    job: Job,
    spec: String,
    state: String,
}

fn raw_job(row: &Row<'_>) -> rusqlite::Result<RawJob> {
    let time = |at: usize| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_millis))
    };
    let next = time(5)?.zip(time(6)?);
    let told = time(10)?.zip(row.get::<_, Option<String>>(11)?);
    let job = Job {
        id: row.get::<_, String>(0)?.into(),
        revision: unsigned(row, 1)?,
        created: Timestamp::from_millis(row.get(2)?),
        spec: Default::default(),
        state: JobState::Active,
        next: next.map(|(scheduled, due)| NextRun { scheduled, due }),
        wanted: time(7)?,
        runs: row.get(8)?,
        failures: row.get(9)?,
        told: told.map(|(at, error)| ToldFailure { at, error }),
    };
    Ok(RawJob {
        job,
        spec: row.get(3)?,
        state: row.get(4)?,
    })
}

impl RawJob {
    fn read(self) -> Result<Job, Failure> {
        let spec = match serde_json::from_str(&self.spec) {
            Ok(spec) => spec,
            Err(error) => return Ok(unreadable(self.job, &error)),
        };
        let states = [JobState::Active, JobState::Paused, JobState::Completed];
        let state = named(&states, JobState::as_str, &self.state, "a job")?;
        Ok(Job {
            spec,
            state,
            ..self.job
        })
    }
}

/// One job that cannot be read keeps no other from running: it is shown, and waits.
fn unreadable(job: Job, error: &serde_json::Error) -> Job {
    Job {
        spec: JobSpec {
            name: job.id.to_string(),
            paused_because: Some(format!("what is stored of it cannot be read: {error}")),
            ..JobSpec::default()
        },
        state: JobState::Paused,
        next: None,
        wanted: None,
        ..job
    }
}

struct RawRun {
    run: Run,
    status: String,
    phase: String,
}

fn raw_run(row: &Row<'_>) -> rusqlite::Result<RawRun> {
    let trigger = if row.get(4)? {
        RunTrigger::Person
    } else {
        RunTrigger::Schedule
    };
    let run = Run {
        id: RunId(unsigned(row, 0)?),
        job: row.get::<_, String>(1)?.into(),
        name: row.get(2)?,
        scheduled: Timestamp::from_millis(row.get(3)?),
        trigger,
        status: RunStatus::Running,
        attempt: row.get(6)?,
        token: unsigned(row, 7)?,
        holder: row.get(8)?,
        lease_until: Timestamp::from_millis(row.get(9)?),
        claimed: Timestamp::from_millis(row.get(10)?),
        ended: row.get::<_, Option<i64>>(11)?.map(Timestamp::from_millis),
        phase: RunPhase::Claimed,
        prompt: row.get(13)?,
        session: row.get::<_, Option<String>>(14)?.map(Into::into),
        output: row.get(15)?,
        error: row.get(16)?,
        hint: row.get(17)?,
        cost_micro_usd: row.get::<_, Option<i64>>(18)?.map(i64::unsigned_abs),
        missed: row.get(19)?,
        deliveries: Vec::new(),
    };
    Ok(RawRun {
        run,
        status: row.get(5)?,
        phase: row.get(12)?,
    })
}

impl RawRun {
    fn read(self, conn: &Connection) -> Result<Run, Failure> {
        Ok(Run {
            status: named(&RunStatus::ALL, RunStatus::as_str, &self.status, "a run")?,
            phase: named(&RunPhase::ALL, RunPhase::as_str, &self.phase, "a run")?,
            deliveries: deliveries(conn, count(self.run.id.0))?,
            ..self.run
        })
    }
}

fn named<T: Copy>(
    all: &[T],
    name_of: fn(T) -> &'static str,
    name: &str,
    what: &str,
) -> Result<T, Failure> {
    all.iter()
        .copied()
        .find(|one| name_of(*one) == name)
        .ok_or_else(|| Failure::Unreadable(format!("{what} that is `{name}`")))
}
