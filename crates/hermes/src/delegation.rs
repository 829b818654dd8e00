//! From the `delegation` section of the settings to what subagents may do, and to who answers them.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::DelegationSettings;
use hermes_core::{Model, Secret};
use hermes_llm::ModelChoice;

use crate::base::Base;
use crate::failure::Outcome;
use crate::model_settings::model_settings;
use crate::wiring;

/// A subagent with less time than this would never finish.
const TIME_MIN: Duration = Duration::from_secs(30);

pub fn settings(base: &Base) -> Outcome<DelegationSettings> {
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
    })
}

/// The model of subagents, if it is not that of their parent.
pub fn model(base: &Base) -> Outcome<Option<Arc<dyn Model>>> {
    let text = |name: &str| base.settings.optional_string(&format!("delegation.{name}"));
    let (provider, name) = (text("provider")?, text("model")?);
    let (base_url, effort) = (text("base_url")?, text("reasoning_effort")?);
    if [&provider, &name, &base_url, &effort]
        .iter()
        .all(|value| value.is_none())
    {
        return Ok(None);
    }
    let mut settings = model_settings(base)?;
    // An address and a key belong to the provider they stand beside.
    settings.choice = if provider.is_some() || base_url.is_some() {
        ModelChoice {
            provider,
            model: name.or(settings.choice.model),
            base_url,
            api_key: text("api_key")?.map(Secret::new),
            api_mode: None,
        }
    } else {
        ModelChoice {
            model: name.or(settings.choice.model),
            ..settings.choice
        }
    };
    settings.reasoning_effort = effort.or(settings.reasoning_effort);
    let resolved = hermes_llm::resolve(&settings, &|name: &str| base.variable(name))?;
    Ok(Some(Arc::new(wiring::client(base, resolved))))
}
