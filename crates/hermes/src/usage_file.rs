//! `--usage-file`: what a run cost, for scripts.

use std::path::Path;

use hermes_core::report::Report;
use hermes_core::{Cost, ModelName, SessionId};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};

/// Writes the report of a run, complete or not.
pub fn write(path: &Path, report: &Report) -> Outcome<()> {
    let usage = report.usage;
    let problem = report.problem();
    let (cost_status, cost_source) = match report.cost {
        Some(Cost::Estimated(_)) => ("estimated", "price_table"),
        Some(Cost::Included) => ("included", "none"),
        Some(Cost::Unknown) | None => ("unknown", "none"),
    };
    let mut fields = json!({
        "estimated_cost_usd": report.cost.and_then(Cost::micro_usd).map(|micro_usd| micro_usd as f64 / 1e6),
        "cost_status": cost_status,
        "cost_source": cost_source,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
        "total_tokens": usage.total(),
        "api_calls": report.requests,
        "model": report.model.model,
        "provider": report.model.provider,
        "session_id": report.session.as_str(),
        "completed": report.end.is_success(),
        "failed": problem.is_some(),
        "service_tier": Value::Null,
    });
    if let Some((message, _)) = problem {
        fields["failure"] = json!(message);
    }
    save(path, &fields)
}

/// Writes the report of a run that did not get as far as a session.
pub fn write_failure(path: &Path, failure: &Failure) -> Outcome<()> {
    let nobody = ModelName {
        provider: String::new(),
        model: String::new(),
    };
    let mut report = Report::new(SessionId::from(""), nobody);
    report.end = hermes_core::TurnEnd::Broken {
        error: failure.message.clone(),
        hint: failure.hint.clone().unwrap_or_default(),
    };
    write(path, &report)
}

fn save(path: &Path, fields: &Value) -> Outcome<()> {
    let text = serde_json::to_string_pretty(fields).unwrap_or_default() + "\n";
    std::fs::write(path, text).map_err(|error| {
        Failure::new(format!(
            "cannot write the usage report to `{}`: {error}",
            path.display()
        ))
        .hint("the folder must exist and be writable")
    })
}
