//! What a job may be: limits, and words that must not be in what runs by itself later.

use std::path::{Path, PathBuf};

use hermes_core::schedule::{LOCAL_TARGET, ORIGIN_TARGET};
use hermes_core::text::{nearest, shorten};
use hermes_core::{Job, JobDraft, JobError, JobId, JobSpec, SessionOptions, Timestamp};
use hermes_learning::threats;
use hermes_os::paths::within;

use super::PlatformStanding;
use crate::base::Base;
use crate::layout::one_line;
use crate::models::settings::model_settings;
use crate::models::{Models, is_priced};

/// A prompt that is longer belongs into a skill or a file.
const PROMPT_BYTES_MAX: usize = 64 * 1024;

/// As much of a prompt names a job that has no name.
const NAME_CHARS: usize = 50;
const NAME_CHARS_MAX: usize = 100;

/// Targets that are no platform's.
const NO_PLATFORMS: [&str; 4] = [LOCAL_TARGET, ORIGIN_TARGET, "all", "log"];

const TARGETS_MAX: usize = 10;
const TARGET_CHARS_MAX: usize = 200;
const LIST_MAX: usize = 20;
const RETRIES_MAX: u32 = 10;
const DAY_S: u32 = 24 * 60 * 60;

/// What a gateway would do to itself.
const OF_GATEWAY: &[&str] = &["restart", "stop", "uninstall", "start", "run"];

/// A job with what a draft says. Nothing of it is checked yet.
pub(super) fn applied(
    mut job: Job,
    draft: &JobDraft,
    context: Vec<JobId>,
    now: Timestamp,
) -> Result<Job, JobError> {
    let spec = &mut job.spec;
    set(&mut spec.name, &draft.name);
    set(&mut spec.prompt, &draft.prompt);
    if let Some(schedule) = &draft.schedule {
        spec.schedule = schedule.trim().to_owned();
        spec.said_ms = now.as_millis();
    }
    set(&mut spec.skills, &draft.skills);
    set_or_none(&mut spec.model, &draft.model);
    set_or_none(&mut spec.provider, &draft.provider);
    set(&mut spec.toolsets, &draft.toolsets);
    if let Some(workdir) = &draft.workdir {
        spec.workdir = Some(workdir.clone()).filter(|path| !path.as_os_str().is_empty());
    }
    set_or_none(&mut spec.script, &draft.script);
    set(&mut spec.no_agent, &draft.no_agent);
    if draft.context_from.is_some() {
        spec.context_from = context;
    }
    if let Some(deliver) = &draft.deliver {
        spec.deliver = targets(deliver)?;
    }
    set_or_none(&mut spec.origin, &draft.origin);
    if draft.created_in.is_some() {
        spec.created_in.clone_from(&draft.created_in);
    }
    if let Some(repeat) = draft.repeat {
        spec.repeat = u32::try_from(repeat).ok().filter(|repeat| *repeat > 0);
    }
    set(&mut spec.misfire, &draft.misfire);
    set(&mut spec.jitter_s, &draft.jitter_s);
    set(&mut spec.retries, &draft.retries);
    if let Some(seconds) = draft.time_max_s {
        spec.time_max_s = Some(seconds).filter(|seconds| *seconds > 0);
    }
    if let Some(cost) = draft.cost_max_micro_usd {
        spec.cost_max_micro_usd = Some(cost).filter(|cost| *cost > 0);
    }
    set(&mut spec.silent, &draft.silent);
    Ok(job)
}

fn set<T: Clone>(value: &mut T, wanted: &Option<T>) {
    if let Some(wanted) = wanted {
        value.clone_from(wanted);
    }
}

/// An empty text takes it away.
fn set_or_none(value: &mut Option<String>, wanted: &Option<String>) {
    if let Some(wanted) = wanted {
        *value = Some(wanted.trim().to_owned()).filter(|text| !text.is_empty());
    }
}

/// Places where results go, parted by commas.
fn targets(text: &str) -> Result<Vec<String>, JobError> {
    let mut targets: Vec<String> = Vec::new();
    for target in text.split(',').map(str::trim) {
        // Names of chats have blanks in them.
        let is_plain = !target.chars().any(char::is_control);
        if target.is_empty() || !is_plain || target.chars().count() > TARGET_CHARS_MAX {
            return Err(JobError::asked(
                format!("`{}` is no place to deliver to", shorten(target, 60)),
                format!(
                    "write `{LOCAL_TARGET}` for a file, `origin`, a platform, or PLATFORM:CHAT"
                ),
            ));
        }
        if !targets.iter().any(|known| known == target) {
            targets.push(target.to_owned());
        }
    }
    Ok(targets)
}

/// Checks that results go to platforms that there are.
pub(super) fn check_targets(
    targets: &[String],
    platforms: &[PlatformStanding],
) -> Result<(), JobError> {
    let is_known = |target: &&String| standing(target, platforms).is_ok();
    let Some(unknown) = targets.iter().find(|target| !is_known(target)) else {
        return Ok(());
    };
    let platform = platform_of(unknown);
    let names = platforms.iter().map(|platform| platform.name.as_str());
    let hint = match nearest(platform, names.clone().chain(NO_PLATFORMS)).first() {
        Some(near) => format!("did you mean `{}`?", unknown.replacen(platform, near, 1)),
        None => format!(
            "there are {}; without a platform: {}",
            names.collect::<Vec<_>>().join(", "),
            NO_PLATFORMS.join(", ")
        ),
    };
    let message = format!("there is no platform `{platform}` to deliver to");
    Err(JobError::asked(message, hint))
}

/// What whoever reads of a job should know of where its results go.
pub(super) fn notes_on_targets(spec: &JobSpec, platforms: &[PlatformStanding]) -> Vec<String> {
    let origin = spec.origin.as_deref();
    let targets = spec
        .targets()
        .into_iter()
        .filter_map(|target| match target {
            ORIGIN_TARGET => origin,
            target => Some(target),
        });
    let note = |target: &str| {
        let platform = platform_of(target);
        match standing(target, platforms) {
            Err(()) => Some(format!(
                "results do not arrive at `{target}`: there is no platform `{platform}`"
            )),
            Ok(false) => Some(format!(
                "results do not arrive at `{target}` until `{platform}` is set up (`hermes gateway setup`)"
            )),
            Ok(true) => None,
        }
    };
    targets.filter_map(note).collect()
}

/// A limit of money that no run can keep, so that none is made.
pub(super) fn note_on_cost(spec: &JobSpec, base: &Base) -> Option<String> {
    let limit = spec.cost_max_micro_usd.map(|_| "--max-cost 0").or_else(|| {
        let max = base.settings.f64("cron.max_cost_usd").ok()?;
        (max > 0.0).then_some("`cron.max_cost_usd: 0` in the settings")
    });
    let limit = limit.filter(|_| !spec.no_agent)?;
    let options = SessionOptions {
        model: spec.model.clone(),
        provider: spec.provider.clone(),
        ..SessionOptions::default()
    };
    let base = base.with_options(&options).ok()?;
    let settings = model_settings(&base).ok()?;
    let model = Models::default().of_settings(&base, &settings).ok()?.model;
    let name = model.name();
    (!is_priced(model.as_ref())).then(|| {
        format!(
            "runs are refused: it is not known what {name}, or a model that stands in for it, costs, so the limit of money cannot be kept ({limit} takes it away)"
        )
    })
}

/// Whether the platform of a target is set up. An error when there is none.
fn standing(target: &str, platforms: &[PlatformStanding]) -> Result<bool, ()> {
    let name = platform_of(target);
    if NO_PLATFORMS.contains(&target) {
        return Ok(true);
    }
    let mut platforms = platforms.iter();
    let found = platforms.find(|platform| platform.name.eq_ignore_ascii_case(name));
    found.map(|platform| platform.is_set_up).ok_or(())
}

fn platform_of(target: &str) -> &str {
    target.split(':').next().unwrap_or_default().trim()
}

/// Checks all of a job, and names it if nobody did.
pub(super) fn check(spec: &mut JobSpec, scripts_folder: &Path) -> Result<(), JobError> {
    check_words(spec)?;
    check_files(spec, scripts_folder)
}

/// Checks what a job needs of this machine.
pub(super) fn check_files(spec: &JobSpec, scripts_folder: &Path) -> Result<(), JobError> {
    check_script(spec, scripts_folder)?;
    check_workdir(spec.workdir.as_ref())
}

/// Checks what a job says of itself, and names it if nobody did.
pub(super) fn check_words(spec: &mut JobSpec) -> Result<(), JobError> {
    check_prompt(spec)?;
    name(spec);
    let limits = [
        (
            spec.deliver.len() > TARGETS_MAX,
            "places to deliver to",
            TARGETS_MAX,
        ),
        (spec.skills.len() > LIST_MAX, "skills", LIST_MAX),
        (spec.toolsets.len() > LIST_MAX, "toolsets", LIST_MAX),
        (
            spec.context_from.len() > LIST_MAX,
            "jobs whose results it is told",
            LIST_MAX,
        ),
        (spec.retries > RETRIES_MAX, "retries", RETRIES_MAX as usize),
        (spec.jitter_s > DAY_S, "seconds of jitter", DAY_S as usize),
        (
            spec.time_max_s > Some(DAY_S),
            "seconds for a run",
            DAY_S as usize,
        ),
    ];
    match limits.into_iter().find(|(is_beyond, ..)| *is_beyond) {
        None => Ok(()),
        Some((_, what, max)) => Err(JobError::asked(
            format!("a job has at most {max} {what}"),
            "ask for less",
        )),
    }
}

fn check_prompt(spec: &JobSpec) -> Result<(), JobError> {
    let is_script_alone = spec.no_agent && spec.script.is_some();
    if spec.no_agent && spec.script.is_none() {
        return Err(JobError::asked(
            "without the agent there must be a script",
            "name one of `scripts/` in the home, or leave `no_agent` out",
        ));
    }
    if spec.prompt.trim().is_empty() && !is_script_alone {
        return Err(JobError::asked(
            "a job needs a prompt: what the agent is to do",
            "for example: hermes cron add \"every weekday at 9\" \"Summarise my unread mail\"",
        ));
    }
    if spec.prompt.len() > PROMPT_BYTES_MAX {
        return Err(JobError::asked(
            format!(
                "the prompt has {} bytes; a job has at most {PROMPT_BYTES_MAX}",
                spec.prompt.len()
            ),
            "put the text into a file or a skill, and name that in the prompt",
        ));
    }
    refuse_threats(&spec.prompt)?;
    refuse_threats(&spec.name)
}

/// It runs when nobody looks: what steers a model is refused beforehand.
fn refuse_threats(text: &str) -> Result<(), JobError> {
    if let Some(threat) = threats::find(text) {
        return Err(JobError::asked(
            format!("the prompt {threat}, which no job may have"),
            "say in other words what is to be done",
        ));
    }
    refuse_gateway(text)
}

/// A job that stops the process it runs in ends every other with it.
fn refuse_gateway(text: &str) -> Result<(), JobError> {
    let words = threats::words(text);
    let is_command = |three: &[String]| {
        three[0] == "hermes" && three[1] == "gateway" && OF_GATEWAY.contains(&three[2].as_str())
    };
    if words.windows(3).any(is_command) {
        return Err(JobError::asked(
            "a job may not start or stop the gateway that runs it",
            "do that by hand, or with the service manager of the machine",
        ));
    }
    Ok(())
}

fn check_script(spec: &JobSpec, folder: &Path) -> Result<(), JobError> {
    let Some(script) = &spec.script else {
        return Ok(());
    };
    let Some(path) = within(folder, script) else {
        return Err(JobError::asked(
            format!("there is no script `{script}` in `{}`", folder.display()),
            "scripts of jobs lie in that folder; `.sh` runs with bash, the others with python3",
        ));
    };
    // One that cannot be read as text fails when it runs, and says so.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    refuse_gateway(&text)
}

fn check_workdir(workdir: Option<&PathBuf>) -> Result<(), JobError> {
    match workdir {
        Some(path) if !path.is_absolute() || !path.is_dir() => Err(JobError::asked(
            format!("`{}` is no folder", path.display()),
            "write the whole path of a folder that is there",
        )),
        _ => Ok(()),
    }
}

fn name(spec: &mut JobSpec) {
    let named = one_line(&spec.name);
    spec.name = match (named.is_empty(), &spec.script) {
        (false, _) => shorten(&named, NAME_CHARS_MAX),
        (true, Some(script)) if spec.prompt.trim().is_empty() => shorten(script, NAME_CHARS),
        (true, _) => shorten(&one_line(&spec.prompt), NAME_CHARS),
    };
}
