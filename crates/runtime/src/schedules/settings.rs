//! What the settings say of schedules: the section `cron`.

use std::path::PathBuf;
use std::time::Duration;

use hermes_core::ConsentOption;
use hermes_os::calendar::Zone;
use serde_json::Value;

use crate::base::Base;
use crate::error::Result;
use crate::zones::zone_or_system;

/// Runs at once where `cron.max_parallel_jobs` is empty.
const PARALLEL: usize = 4;

/// What whoever runs schedules goes by.
#[derive(Debug, Clone)]
pub struct CronSettings {
    pub zone: Zone,
    pub parallel_max: usize,
    pub output_folder: PathBuf,
    pub output_kept_max: usize,
    pub scripts_folder: PathBuf,
    /// Where jobs work that name no folder.
    pub cwd: PathBuf,
    pub wraps_response: bool,
    pub consent: ConsentOption,
    pub script_time_max: Duration,
    pub idle_max: Duration,
    pub time_max: Duration,
    pub cost_max_micro_usd: Option<u64>,
}

impl CronSettings {
    pub fn read(base: &Base) -> Result<Self> {
        let settings = &base.settings;
        let home = base.home.directory();
        let parallel_max = match settings.get("cron.max_parallel_jobs") {
            None | Some(Value::Null) => PARALLEL,
            Some(_) => settings.u64("cron.max_parallel_jobs")? as usize,
        };
        let cost = settings.f64("cron.max_cost_usd")?;
        let consent = match settings.string("approvals.cron_mode")?.as_str() {
            "approve" | "allow" | "off" | "yes" => ConsentOption::Allow,
            _ => ConsentOption::Ask,
        };
        Ok(Self {
            zone: zone_or_system(base),
            parallel_max: parallel_max.max(1),
            output_folder: home.join("cron").join("output"),
            output_kept_max: settings.u64("cron.output_retention")? as usize,
            scripts_folder: home.join("scripts"),
            cwd: base
                .environment
                .user_home()
                .unwrap_or_else(|| base.cwd.clone()),
            wraps_response: settings.bool("cron.wrap_response")?,
            consent,
            script_time_max: some_time(settings.seconds("cron.script_timeout_seconds")?),
            idle_max: some_time(settings.seconds("cron.inactivity_timeout_seconds")?),
            time_max: some_time(settings.seconds("cron.max_run_seconds")?),
            cost_max_micro_usd: (cost > 0.0).then_some((cost * 1e6) as u64),
        })
    }
}

/// 0 means "no limit" to people; a year is as good.
fn some_time(time: Duration) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    if time.is_zero() { YEAR } else { time }
}
