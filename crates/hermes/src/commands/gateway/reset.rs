//! When conversations of chats begin anew by themselves, as the settings say.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_gateway::chat::{ResetPolicy, ResetRule};
use serde_json::Value;

use crate::base::Base;
use crate::failure::{Failure, Outcome, code};

const IDLE_MINUTES: f64 = 1440.0;
const AT_HOUR: u64 = 4;
/// Nobody reads notices there.
const UNTOLD_ON: [&str; 2] = ["api_server", "webhook"];

/// `session_reset`, `reset_by_platform` and `reset_by_type`; also below `gateway`.
pub(super) fn policy(base: &Base) -> Outcome<ResetPolicy> {
    let section = |name: &str| {
        let found = base.settings.get(name);
        let is_said = |value: &&Value| value.as_object().is_some_and(|said| !said.is_empty());
        found
            .filter(is_said)
            .or_else(|| base.settings.get(&format!("gateway.{name}")))
    };
    let said = section("session_reset").unwrap_or(&Value::Null);
    let mut rule = rule("session_reset", said, None)?;
    by_variables(base, &mut rule);
    let rules = |name: &str| -> Outcome<BTreeMap<String, ResetRule>> {
        let Some(Value::Object(rules)) = section(name) else {
            return Ok(BTreeMap::new());
        };
        let read = rules.iter().map(|(key, value)| {
            Ok((
                key.clone(),
                self::rule(&format!("{name}.{key}"), value, Some(said))?,
            ))
        });
        read.collect()
    };
    let untold_on = match &said["notify_exclude_platforms"] {
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        }
        _ => UNTOLD_ON.map(str::to_owned).to_vec(),
    };
    Ok(ResetPolicy {
        rule,
        by_platform: rules("reset_by_platform")?,
        by_kind: rules("reset_by_type")?,
        is_told: said["notify"].as_bool().unwrap_or(true),
        untold_on,
        zone: hermes_runtime::zone_or_system(base),
    })
}

/// What one section says; what it leaves open is as in the general one.
fn rule(name: &str, said: &Value, general: Option<&Value>) -> Outcome<ResetRule> {
    let value = |key: &str| match &said[key] {
        Value::Null => general.map_or(&Value::Null, |general| &general[key]),
        value => value,
    };
    let idle = value("idle_minutes").as_f64().unwrap_or(IDLE_MINUTES) * 60.0;
    let idle = Duration::try_from_secs_f64(idle).unwrap_or(Duration::MAX);
    let hour = value("at_hour").as_u64().unwrap_or(AT_HOUR);
    let hour = u8::try_from(hour).ok().filter(|hour| *hour < 24);
    let hour = hour.ok_or_else(|| {
        wrong(
            &format!("{name}.at_hour"),
            value("at_hour"),
            "an hour, from 0 to 23",
        )
    })?;
    let (is_idle, is_daily) = match value("mode").as_str() {
        None | Some("none" | "off") => (false, false),
        Some("idle") => (true, false),
        Some("daily") => (false, true),
        Some("both") => (true, true),
        Some(_) => {
            let expected = "`none`, `idle`, `daily` or `both`";
            return Err(wrong(&format!("{name}.mode"), value("mode"), expected));
        }
    };
    Ok(ResetRule {
        idle: is_idle.then_some(idle),
        daily_hour: is_daily.then_some(hour),
    })
}

/// Variables of Hermes Agent say the numbers, too.
fn by_variables(base: &Base, rule: &mut ResetRule) {
    let number = |name: &str| base.environment.get(name)?.trim().parse::<u64>().ok();
    if let (Some(_), Some(minutes)) = (rule.idle, number("SESSION_IDLE_MINUTES")) {
        rule.idle = Some(Duration::from_secs(minutes.saturating_mul(60)));
    }
    if let (Some(_), Some(hour @ 0..24)) = (rule.daily_hour, number("SESSION_RESET_HOUR")) {
        rule.daily_hour = u8::try_from(hour).ok();
    }
}

fn wrong(name: &str, found: &Value, expected: &str) -> Failure {
    Failure {
        code: code::SETTINGS,
        ..Failure::new(format!("`{name}` is {found}"))
    }
    .hint(format!("it takes {expected}"))
}
