//! The jobs of the Python program: `cron/jobs.json`. It is read, never written, and each of its jobs comes once.

use std::fs;

use hermes_core::schedule::{LOCAL_TARGET, jittered};
use hermes_core::{Job, JobError, JobId, JobSpec, JobState, Timestamp};
use hermes_os::schedule::Schedule;
use serde_json::Value;

use super::{Desk, check};

/// Larger ones are not what that program writes.
const FILE_BYTES_MAX: u64 = 8 << 20;

const ID_CHARS_MAX: usize = 64;

/// What came of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// Names and ids of the jobs that came.
    pub added: Vec<(JobId, String)>,
    /// Which could not be taken over, and why.
    pub bad: Vec<String>,
    /// What is not quite as it was.
    pub notes: Vec<String>,
}

impl Imported {
    /// What the user should hear of it; nothing when nothing came.
    pub fn text(&self) -> String {
        let count = self.added.len() as u64;
        let mut lines = Vec::new();
        if count > 0 {
            let jobs = crate::layout::count(count, "job");
            lines.push(format!(
                "took over {jobs} of Hermes Agent from cron/jobs.json, which stays as it is; stop its gateway, or they run there too:"
            ));
            lines.extend(
                self.added
                    .iter()
                    .map(|(id, name)| format!("  {id}  {name}")),
            );
        }
        lines.extend(self.bad.iter().map(|bad| format!("not taken over: {bad}")));
        lines.extend(self.notes.iter().cloned());
        lines.join("\n")
    }
}

pub(super) async fn import(desk: &Desk) -> Result<Imported, JobError> {
    let mut imported = Imported::default();
    let Some(entries) = entries(desk, &mut imported) else {
        return Ok(imported);
    };
    let mut jobs = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        match job(desk, entry, &mut imported.notes) {
            Ok(job) => jobs.push(job),
            Err(why) => imported.bad.push(format!("{}: {why}", title(entry, place))),
        }
    }
    let names: Vec<(JobId, String)> = jobs
        .iter()
        .map(|job| (job.id.clone(), job.spec.name.clone()))
        .collect();
    let added = desk.schedules.import_jobs(jobs).await?;
    imported.added = names
        .into_iter()
        .filter(|(id, _)| added.contains(id))
        .collect();
    let is_new = |note: &String| added.iter().any(|id| note.contains(id.as_str()));
    imported.notes.retain(is_new);
    Ok(imported)
}

/// The entries of the file; none when it is not there.
fn entries(desk: &Desk, imported: &mut Imported) -> Option<Vec<Value>> {
    let path = desk.base.home.directory().join("cron").join("jobs.json");
    let size = fs::metadata(&path).ok()?.len();
    let mut bad = |why: String| {
        imported.bad.push(format!("{}: {why}", path.display()));
        None
    };
    if size > FILE_BYTES_MAX {
        return bad(format!("it has {size} bytes"));
    }
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return bad(error.to_string()),
    };
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Array(jobs)) => Some(jobs),
        Ok(Value::Object(mut file)) => match file.remove("jobs") {
            Some(Value::Array(jobs)) => Some(jobs),
            _ => bad("it has no list `jobs`".to_owned()),
        },
        Ok(_) => bad("it is no list of jobs".to_owned()),
        Err(error) => bad(error.to_string()),
    }
}

fn title(entry: &Value, place: usize) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let name = text("name").or(text("id"));
    match name {
        Some(name) => format!("`{}`", crate::layout::one_line(name)),
        None => format!("entry {}", place + 1),
    }
}

fn job(desk: &Desk, entry: &Value, notes: &mut Vec<String>) -> Result<Job, String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let flag = |key: &str| entry.get(key).and_then(Value::as_bool);
    let id = text("id").ok_or("it has no id")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.is_empty() || id.len() > ID_CHARS_MAX || !id.chars().all(is_name) {
        return Err(format!("its id `{id}` is not one"));
    }
    let created = text("created_at").and_then(|at| time(desk, &at));
    let created = created.unwrap_or_else(|| desk.now());
    let (schedule, said_ms) = schedule(desk, entry, created)?;
    let mut skills = texts(entry, "skills");
    skills.extend(text("skill").filter(|skill| !skills.contains(skill)));
    let mut spec = JobSpec {
        name: text("name").unwrap_or_default(),
        prompt: text("prompt").unwrap_or_default(),
        schedule,
        said_ms,
        skills,
        model: text("model").filter(|model| !model.is_empty()),
        provider: text("provider").filter(|provider| !provider.is_empty()),
        toolsets: toolsets(desk, entry, &id, notes),
        workdir: text("workdir")
            .filter(|path| !path.is_empty())
            .map(Into::into),
        script: text("script").filter(|script| !script.is_empty()),
        no_agent: flag("no_agent").unwrap_or(false),
        context_from: texts(entry, "context_from")
            .into_iter()
            .map(Into::into)
            .collect(),
        deliver: deliver(entry),
        origin: origin(entry),
        repeat: repeat(entry, "times"),
        silent: flag("silent").unwrap_or(false),
        ..JobSpec::default()
    };
    let scripts = desk.scripts_folder();
    if let (Some(script), Ok(folder)) = (&spec.script, scripts.canonicalize()) {
        // Whole paths into the folder are what that program has.
        let relative = std::path::Path::new(script).strip_prefix(&folder).ok();
        spec.script = relative
            .and_then(|path| path.to_str())
            .map(str::to_owned)
            .or(spec.script);
    }
    check::check_words(&mut spec).map_err(|error| error.to_string())?;
    if text("base_url").is_some_and(|url| !url.is_empty()) {
        notes.push(format!(
            "job {id} had an address of its own for its model, which jobs here do not have: check its model"
        ));
    }
    let missing = check::check_files(&spec, &scripts).err();
    let mut job = settled(desk, entry, id.into(), created, spec);
    if let (Some(missing), true) = (missing, job.state == JobState::Active) {
        pause(&mut job, format!("{missing}; {}", missing.hint()));
    }
    if let Some(why) = &job.spec.paused_because {
        notes.push(format!("job {} is paused: {why}", job.id));
    }
    Ok(job)
}

/// A job that cannot run as it is comes all the same, and says why it waits.
fn pause(job: &mut Job, why: String) {
    job.spec.paused_because = Some(why);
    job.state = JobState::Paused;
    job.next = None;
}

/// The job with how far it had come.
fn settled(desk: &Desk, entry: &Value, id: JobId, created: Timestamp, spec: JobSpec) -> Job {
    let is_off = entry.get("enabled") == Some(&Value::Bool(false));
    let state = match entry.get("state").and_then(Value::as_str) {
        Some("completed") => JobState::Completed,
        Some("paused") => JobState::Paused,
        _ if is_off => JobState::Paused,
        _ => JobState::Active,
    };
    let runs = repeat(entry, "completed").unwrap_or(0);
    let now_ms = desk.now().as_millis();
    let schedule = Schedule::read_at(&spec.schedule, spec.said_ms, &desk.zone).ok();
    let next = schedule.and_then(|schedule| schedule.next_after(now_ms));
    let next = next
        .filter(|_| state == JobState::Active)
        .filter(|_| spec.repeat.is_none_or(|repeat| runs < repeat))
        .map(|at| jittered(&id, Timestamp::from_millis(at), 0));
    let is_done = spec.repeat.is_some_and(|repeat| runs >= repeat);
    let is_overdue = state == JobState::Active && next.is_none() && !is_done;
    let mut job = Job {
        state: match (state, next) {
            (JobState::Active, None) => JobState::Completed,
            (state, _) => state,
        },
        id,
        revision: 1,
        created,
        spec,
        next,
        wanted: None,
        runs,
        failures: 0,
        told: None,
    };
    if is_overdue {
        let (id, at) = (&job.id, &job.spec.schedule);
        let why = format!(
            "its time ({at}) passed while nothing ran it; `hermes cron run {id}` runs it now, `hermes cron edit {id} --schedule \"tomorrow at 9\"` gives it another"
        );
        pause(&mut job, why);
    }
    job
}

/// The schedule in words of ours, and when those are said.
fn schedule(desk: &Desk, entry: &Value, created: Timestamp) -> Result<(String, i64), String> {
    let missing = || "it has no schedule".to_owned();
    let schedule = entry.get("schedule").ok_or_else(missing)?;
    let part = |key: &str| schedule.get(key).and_then(Value::as_str);
    let said_ms = created.as_millis();
    let text = match (schedule, part("kind")) {
        (Value::String(text), _) => text.clone(),
        (_, Some("cron")) => part("expr").ok_or_else(missing)?.to_owned(),
        (_, Some("interval")) => {
            let minutes = schedule.get("minutes").and_then(Value::as_u64);
            let minutes = minutes.ok_or_else(missing)?;
            // Counted from when it would run next, so that the beat stays.
            let next = entry.get("next_run_at").and_then(Value::as_str);
            let from = next.and_then(|at| time(desk, at)).unwrap_or(created);
            return read(desk, format!("every {minutes}m"), from.as_millis());
        }
        (_, Some("once")) => part("run_at").ok_or_else(missing)?.to_owned(),
        _ => part("display").ok_or_else(missing)?.to_owned(),
    };
    read(desk, text, said_ms)
}

fn read(desk: &Desk, text: String, said_ms: i64) -> Result<(String, i64), String> {
    match Schedule::read_at(&text, said_ms, &desk.zone) {
        Ok(_) => Ok((text, said_ms)),
        Err(error) => Err(error.to_string()),
    }
}

/// `2026-11-18T09:00:00+01:00`, or without an offset in the zone of the settings.
fn time(desk: &Desk, text: &str) -> Option<Timestamp> {
    Timestamp::from_iso(text).or_else(|| {
        // From long ago: what has passed can be read too.
        let schedule = Schedule::read_at(text, 0, &desk.zone).ok()?;
        schedule.next_after(0).map(Timestamp::from_millis)
    })
}

fn texts(entry: &Value, key: &str) -> Vec<String> {
    match entry.get(key) {
        Some(Value::String(text)) if !text.is_empty() => vec![text.clone()],
        Some(Value::Array(texts)) => {
            let texts = texts.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Those that are known here; bundles of that program are everything.
fn toolsets(desk: &Desk, entry: &Value, id: &str, notes: &mut Vec<String>) -> Vec<String> {
    let mut toolsets = texts(entry, "enabled_toolsets");
    if toolsets.iter().any(|name| name.starts_with("hermes-")) {
        return Vec::new();
    }
    toolsets.retain(|name| {
        let is_known = desk.check_toolsets(std::slice::from_ref(name)).is_ok();
        if !is_known {
            notes.push(format!(
                "job {id} goes without the toolset `{name}`, which is not here"
            ));
        }
        is_known
    });
    toolsets
}

fn deliver(entry: &Value) -> Vec<String> {
    let targets = match entry.get("deliver") {
        Some(Value::String(text)) => text
            .split(',')
            .map(|target| target.trim().to_owned())
            .collect(),
        _ => texts(entry, "deliver"),
    };
    let targets: Vec<String> = targets
        .into_iter()
        .filter(|target| !target.is_empty())
        .collect();
    if targets.is_empty() {
        return vec![LOCAL_TARGET.to_owned()];
    }
    targets
}

/// The chat it was made in, as a target.
fn origin(entry: &Value) -> Option<String> {
    let origin = entry.get("origin")?;
    let part = |key: &str| match origin.get(key)? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let target = format!("{}:{}", part("platform")?, part("chat_id")?);
    Some(match part("thread_id") {
        Some(thread) => format!("{target}:{thread}"),
        None => target,
    })
}

fn repeat(entry: &Value, key: &str) -> Option<u32> {
    let count = match entry.get("repeat")? {
        Value::Object(repeat) => repeat.get(key)?.as_u64()?,
        Value::Number(count) if key == "times" => count.as_u64()?,
        _ => return None,
    };
    u32::try_from(count).ok().filter(|count| *count > 0)
}
