//! `hermes cron`: jobs that run by themselves, made, changed and looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    CancellationToken, Clock as _, JobDesk as _, JobDraft, JobReading, Misfire, Random,
    Schedules as _,
};
use hermes_gateway::Shutdown;
use hermes_gateway::deliver::{Deliver, ToLog};
use hermes_gateway::presence;
use hermes_gateway::schedules::Scheduler;
use hermes_runtime::schedules::{Desk, are_run, shown};
use hermes_runtime::{Runtime, SystemClock, open_store, zone_problem};
use serde_json::Value;
use tokio::time::Instant;

use super::gateway::chats::{self, standings};

use super::layout::print_json;
use crate::args::{CronArgs, CronCommand, JobOptions, JsonFlag, MisfireName};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};

/// How long `tick` waits for results to arrive that are on their way; a gateway takes them up later.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn run(base: &Arc<Base>, args: CronArgs) -> Outcome<()> {
    let by_default = CronCommand::List {
        all: false,
        json: JsonFlag { json: false },
    };
    let command = args.command.unwrap_or(by_default);
    if matches!(command, CronCommand::Tick) {
        return tick(base).await;
    }
    let store = Arc::new(open_store(base)?);
    let random = Arc::new(Random::from_system());
    let desk = Desk::new(Arc::clone(base), store, Arc::new(SystemClock), random);
    let settings = Arc::clone(base);
    let desk = desk.knowing(Arc::new(move || standings(&settings)));
    import(&desk, matches!(command, CronCommand::Import)).await?;
    let tells = matches!(
        command,
        CronCommand::List { .. }
            | CronCommand::Add { .. }
            | CronCommand::Resume { .. }
            | CronCommand::Run { .. }
    );
    // What shows a job tells it there.
    let shows_times = matches!(command, CronCommand::List { .. } | CronCommand::Next { .. });
    if let Some(problem) = zone_problem(&base.settings).filter(|_| shows_times) {
        note(&problem);
    }
    act(base, &desk, command).await?;
    if tells && !are_run(base) {
        note(shown::NOT_RUN);
    }
    Ok(())
}

async fn act(base: &Base, desk: &Desk, command: CronCommand) -> Outcome<()> {
    match command {
        CronCommand::List { all, json } => {
            let jobs = desk.list().await.map_err(told)?;
            if json.json {
                return print_json(&Value::from_iter(jobs.iter().map(shown::job_json)));
            }
            println(&shown::listed(&jobs, all))
        }
        CronCommand::Show { job, json } => told_of(desk.find(&job.job).await, &json),
        CronCommand::Add {
            schedule,
            prompt,
            options,
            json,
        } => {
            let draft = JobDraft {
                schedule: Some(schedule),
                prompt: Some(prompt.join(" ")),
                ..draft(base, *options)?
            };
            told_of(desk.add(draft).await, &json)
        }
        edit @ CronCommand::Edit { .. } => change(base, desk, edit).await,
        CronCommand::Pause { job } => told_of(desk.pause(&job.job).await, &NOT_JSON),
        CronCommand::Resume { job } => told_of(desk.resume(&job.job).await, &NOT_JSON),
        CronCommand::Run { job } => told_of(desk.run(&job.job).await, &NOT_JSON),
        CronCommand::Remove { job } => {
            let removed = desk.remove(&job.job).await.map_err(told)?;
            println(&shown::removed(&removed))
        }
        CronCommand::History { job, limit, json } => {
            let runs = desk.history(job.as_deref(), limit).await.map_err(told)?;
            if json.json {
                return print_json(&Value::from_iter(runs.iter().map(shown::run_json)));
            }
            println(&shown::history(&runs, SystemClock.now()))
        }
        CronCommand::Next { what } => next(desk, &what.join(" ")).await,
        CronCommand::Import | CronCommand::Tick => Ok(()),
    }
}

const NOT_JSON: JsonFlag = JsonFlag { json: false };

fn told_of(reading: Result<JobReading, hermes_core::JobError>, json: &JsonFlag) -> Outcome<()> {
    let reading = reading.map_err(told)?;
    if json.json {
        return print_json(&shown::job_json(&reading));
    }
    println(&shown::shown(&reading))
}

fn told(error: hermes_core::JobError) -> Failure {
    hermes_runtime::Error::from(error).into()
}

async fn next(desk: &Desk, what: &str) -> Outcome<()> {
    if let Ok(reading) = desk.find(what).await {
        return println(&shown::shown(&reading));
    }
    let (words, upcoming) = desk.read(what).map_err(told)?;
    println(&shown::read(&words, &upcoming))
}

async fn change(base: &Base, desk: &Desk, command: CronCommand) -> Outcome<()> {
    let CronCommand::Edit {
        job,
        schedule,
        prompt,
        options,
        add_skill,
        remove_skill,
        clear_skills,
        agent,
        json,
    } = command
    else {
        return Ok(());
    };
    let mut draft = JobDraft {
        schedule,
        prompt,
        ..draft(base, *options)?
    };
    if clear_skills || !add_skill.is_empty() || !remove_skill.is_empty() {
        let mut skills = desk.find(&job.job).await.map_err(told)?.job.spec.skills;
        skills.retain(|skill| !clear_skills && !remove_skill.contains(skill));
        skills.extend(add_skill);
        draft.skills = Some(skills);
    }
    if agent {
        draft.no_agent = Some(false);
    }
    if draft == JobDraft::default() {
        return Err(Failure::usage("nothing is said that should change")
            .hint("for example: hermes cron edit JOB --schedule \"every day at 9\""));
    }
    told_of(desk.edit(&job.job, draft).await, &json)
}

fn draft(base: &Base, options: JobOptions) -> Outcome<JobDraft> {
    let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
    let micro_usd = |usd: f64| {
        if usd.is_finite() && usd >= 0.0 {
            Ok((usd * 1e6) as u64)
        } else {
            Err(Failure::usage("--max-cost takes an amount in US dollars")
                .hint("for example --max-cost 0.50"))
        }
    };
    let without_empty = |list: Vec<String>| list.into_iter().filter(|name| !name.is_empty());
    Ok(JobDraft {
        name: options.name,
        deliver: options.deliver,
        repeat: options.repeat,
        skills: some(options.skills),
        model: options.job_model,
        toolsets: options
            .job_toolsets
            .map(|list| without_empty(list).collect()),
        script: options.script,
        no_agent: options.no_agent.then_some(true),
        context_from: some(options.context_from),
        workdir: options.workdir.map(|path| absolute(base, &path)),
        misfire: options.misfire.map(misfire),
        jitter_s: options.jitter,
        retries: options.retries,
        time_max_s: options.max_time,
        cost_max_micro_usd: options.max_cost.map(micro_usd).transpose()?,
        silent: options.silent,
        ..JobDraft::default()
    })
}

/// Relative to where the person is; an empty one stays so.
fn absolute(base: &Base, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        return PathBuf::new();
    }
    let home = base.environment.user_home();
    hermes_os::paths::absolute(&path.to_string_lossy(), &base.cwd, home.as_deref())
}

fn misfire(name: MisfireName) -> Misfire {
    match name {
        MisfireName::Once => Misfire::Once,
        MisfireName::Skip => Misfire::Skip,
        MisfireName::All => Misfire::All,
    }
}

/// Takes over what the Python program had, and says what came. Whoever asks for it hears also what did not.
async fn import(desk: &Desk, is_asked: bool) -> Outcome<()> {
    let imported = desk.import().await.map_err(told)?;
    if !imported.added.is_empty() || (is_asked && !imported.text().is_empty()) {
        note(&imported.text());
    } else if is_asked {
        return println("there is nothing to take over");
    }
    Ok(())
}

/// Runs what is due. While no gateway runs, nobody else sends what comes of it: this process does.
async fn tick(base: &Arc<Base>) -> Outcome<()> {
    let runtime = Runtime::start(Arc::clone(base))?;
    let wanted = chats::wanted(base);
    let ran = if wanted.is_empty() {
        ticked(&runtime, Arc::new(ToLog)).await
    } else {
        let gateway = chats::sender(base, &runtime, wanted, Shutdown::default())?;
        let ticked = ticked(&runtime, Arc::new(gateway.outbound()));
        match presence::alone(base.home.directory()).ok().flatten() {
            None => ticked.await,
            Some(_alone) => tokio::select! {
                ran = ticked => ran,
                () = gateway.deliver() => Err(Failure::new("results could not be sent")),
            },
        }
    };
    runtime.stop().await;
    println(&hermes_runtime::layout::count(ran? as u64, "run"))
}

async fn ticked(runtime: &Arc<Runtime>, deliver: Arc<dyn Deliver>) -> Outcome<usize> {
    let scheduler = Scheduler::new(crate::schedules::parts(runtime, deliver).await?);
    let stop = CancellationToken::new();
    let mut ran = 0;
    let deadline = Instant::now() + DELIVERY_PATIENCE;
    loop {
        let more = scheduler.tick(&stop).await;
        ran += more.map_err(hermes_runtime::Error::from)?;
        let left = runtime.store().undelivered().await;
        let left = left.map_err(hermes_runtime::Error::from)?;
        if left.is_empty() || Instant::now() > deadline {
            return Ok(ran);
        }
        tokio::time::sleep(LOOK).await;
    }
}
