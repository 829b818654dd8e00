//! Wires the schedules of the gateway to the runtime.

use std::sync::Arc;

use hermes_core::schedule::CRON_SOURCE;
use hermes_core::{JobDesk as _, SessionOptions};
use hermes_gateway::Gateway;
use hermes_gateway::deliver::Deliver;
use hermes_gateway::schedules::{Scheduler, SchedulerParts, SchedulerSettings};
use hermes_runtime::schedules::lock_file;
use hermes_runtime::schedules::settings::CronSettings;
use hermes_runtime::{Runtime, zone_problem};

use crate::failure::{Failure, Outcome};
use crate::output::note;

/// Takes over what Hermes Agent had, and says so. Returns how many jobs there are.
pub(crate) async fn take_over(runtime: &Runtime) -> Outcome<usize> {
    let desk = runtime.desk();
    let imported = desk.import().await.map_err(hermes_runtime::Error::from)?;
    let told = imported.text();
    if !told.is_empty() {
        tracing::warn!("jobs of Hermes Agent: {told}");
        note(&told);
    }
    let jobs = desk.list().await.map_err(hermes_runtime::Error::from)?;
    Ok(jobs.len())
}

/// Adds schedules to a gateway.
pub(crate) async fn add(
    gateway: &mut Gateway,
    runtime: &Arc<Runtime>,
    jobs: usize,
    deliver: Arc<dyn Deliver>,
) -> Outcome<String> {
    if let Some(problem) = zone_problem(&runtime.base().settings) {
        tracing::warn!("{problem}");
        note(&format!("gateway: {problem}"));
    }
    let scheduler = Scheduler::new(parts(runtime, deliver).await?);
    let shutdown = gateway.shutdown().clone();
    let (woken, runtime) = (scheduler.clone(), Arc::clone(runtime));
    let wake = async move {
        loop {
            runtime.jobs_changed().await;
            woken.wake();
        }
    };
    gateway.add("schedules", async move {
        tokio::select! {
            () = scheduler.serve(shutdown) => {}
            () = wake => {}
        }
    });
    Ok(hermes_runtime::layout::count(jobs as u64, "job"))
}

/// What a scheduler of this process works with.
pub(crate) async fn parts(
    runtime: &Arc<Runtime>,
    deliver: Arc<dyn Deliver>,
) -> Outcome<SchedulerParts> {
    let settings = CronSettings::read(runtime.base())?;
    let options = SessionOptions {
        cwd: Some(settings.cwd.clone()),
        source: CRON_SOURCE.to_owned(),
        surface: Some(CRON_SOURCE.to_owned()),
        ..SessionOptions::default()
    };
    let terminal = Arc::clone(runtime.set_up(&options).await?.terminal());
    let lock_file = lock_file(runtime.base());
    if let Some(folder) = lock_file.parent() {
        hermes_os::make_private_folder(folder).map_err(|error| {
            Failure::new(format!("cannot make `{}`: {error}", folder.display()))
        })?;
    }
    Ok(SchedulerParts {
        schedules: runtime.store().clone(),
        sessions: runtime.clone(),
        deliver,
        terminal,
        clock: Arc::clone(runtime.clock()),
        random: Arc::clone(runtime.random()),
        settings: SchedulerSettings {
            zone: settings.zone,
            parallel_max: settings.parallel_max,
            output_folder: settings.output_folder,
            output_kept_max: settings.output_kept_max,
            scripts_folder: settings.scripts_folder,
            cwd: settings.cwd,
            lock_file,
            wraps_response: settings.wraps_response,
            consent: settings.consent,
            script_time_max: settings.script_time_max,
            idle_max: settings.idle_max,
            time_max: settings.time_max,
            cost_max_micro_usd: settings.cost_max_micro_usd,
        },
    })
}
