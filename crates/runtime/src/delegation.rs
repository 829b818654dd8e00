//! From the `delegation` section of the settings to what subagents may do.

use std::time::Duration;

use hermes_agent::DelegationSettings;
use hermes_agent::prompt::Wording;

use crate::base::Base;
use crate::error::Result;

/// A subagent with less time than this would never finish.
const TIME_MIN: Duration = Duration::from_secs(30);

pub fn settings(base: &Base) -> Result<DelegationSettings> {
    let number = |name: &str| base.settings.u64(&format!("delegation.{name}"));
    let is_on = |name: &str| base.settings.bool(&format!("delegation.{name}"));
    let time = base.settings.seconds("delegation.child_timeout_seconds")?;
    Ok(DelegationSettings {
        depth: 0,
        depth_max: number("max_spawn_depth")?.clamp(1, 10) as u32,
        subagents_max: number("max_concurrent_children")?.clamp(1, 100) as usize,
        steps_max: number("max_iterations")?.clamp(1, 10_000) as u32,
        time_max: (!time.is_zero()).then(|| time.max(TIME_MIN)),
        summary_chars_max: number("max_summary_chars")?.clamp(1_000, 1_000_000) as usize,
        may_orchestrate: is_on("orchestrator_enabled")?,
        inherits_mcp_tools: is_on("inherit_mcp_toolsets")?,
        allows_everything: is_on("subagent_auto_approve")?,
        // Their model is not known here.
        wording: Wording::Full,
    })
}
