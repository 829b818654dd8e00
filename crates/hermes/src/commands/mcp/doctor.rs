//! `hermes mcp doctor`: every step on the way to a server, and what to do about the one that fails.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::Random;
use hermes_mcp::{Fault, ServerSettings, SettingsError, Step, diagnose};
use serde_json::{Value, json};

use super::{NONE_YET, already_told, unknown};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{one_line, print_json};
use crate::failure::Outcome;
use crate::mcp::{invalid_sections, ports};
use crate::output::{note, println};
use crate::style::Style;

/// Walks to one server, or to each. Fails when one of them does not work.
pub(super) async fn run(base: &Base, name: Option<&str>, json: &JsonFlag) -> Outcome<()> {
    if let Some(name) = name {
        let report = walk(base, name, json).await?;
        if json.json {
            print_json(&report.as_json(name))?;
        }
        return report.outcome();
    }
    let mut is_well = true;
    let mut reports = Vec::new();
    let names = names(base);
    for (at, name) in names.iter().enumerate() {
        if !json.json {
            let gap = if at > 0 { "\n" } else { "" };
            let style = Style::of(&std::io::stdout(), &base.environment);
            println(&format!("{gap}{}", style.bold(one_line(name))))?;
        }
        let report = walk(base, name, json).await?;
        is_well &= report.is_well;
        reports.push(report.as_json(name));
    }
    // Nothing else tells of a section that is no section.
    let unusable = invalid_sections(base).into_iter();
    for (name, reason) in unusable.filter(|(name, _)| !names.contains(name)) {
        is_well = false;
        note(&format!("error: {reason}"));
        reports.push(json!({ "server": name, "is_well": false, "steps": [] }));
    }
    if json.json {
        print_json(&reports.into())?;
    } else if names.is_empty() && is_well {
        println(NONE_YET)?;
    }
    if is_well { Ok(()) } else { Err(already_told()) }
}

fn names(base: &Base) -> Vec<String> {
    match base.settings.get("mcp_servers") {
        Some(Value::Object(sections)) => sections.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

async fn walk(base: &Base, name: &str, json: &JsonFlag) -> Outcome<Report> {
    let Some(section) = base
        .settings
        .get("mcp_servers")
        .and_then(|all| all.get(name))
    else {
        return Err(unknown(name, &names(base)).into());
    };
    let mut report = Report::new(base, json);
    match ServerSettings::parse(name, section) {
        Ok(settings) => {
            report.add(Finding::settings(base, &settings))?;
            let ports = ports(base, Arc::new(Random::from_system()));
            let mut told = Ok(());
            diagnose(settings, ports, |step| {
                if told.is_ok() {
                    told = report.add(step.into());
                }
            })
            .await;
            told?;
        }
        Err(error) => report.add(Finding::unusable(base, &error))?,
    }
    Ok(report)
}

/// One thing that was looked at.
struct Finding {
    phase: String,
    outcome: Result<String, Fault>,
    elapsed: Option<Duration>,
}

impl Finding {
    fn settings(base: &Base, settings: &ServerSettings) -> Self {
        let place = base
            .settings
            .origin(&format!("mcp_servers.{}", settings.name));
        let place = place.map_or_else(String::new, |origin| origin.to_string());
        let mut notes: Vec<String> = vec![place];
        if !settings.enabled {
            notes.push("it is switched off (`enabled: false`), so no chat uses it".into());
        }
        notes.extend(settings.warnings.iter().cloned());
        Self {
            phase: "settings".into(),
            outcome: Ok(notes.join("; ")),
            elapsed: None,
        }
    }

    fn unusable(base: &Base, error: &SettingsError) -> Self {
        let (phase, advice) = match error {
            SettingsError::MissingVariable { variable, .. } => {
                let file = base.home.dot_env();
                let advice = format!(
                    "write {variable}=VALUE into {}, or set it in the shell",
                    file.display()
                );
                ("variables", advice)
            }
            _ => (
                "settings",
                "correct it with `hermes config edit`".to_owned(),
            ),
        };
        Self {
            phase: phase.into(),
            outcome: Err(Fault {
                cause: error.to_string(),
                advice,
            }),
            elapsed: None,
        }
    }
}

impl From<Step> for Finding {
    fn from(step: Step) -> Self {
        Self {
            phase: step.phase.to_string(),
            outcome: step.outcome,
            elapsed: Some(step.elapsed),
        }
    }
}

/// Shows findings as they come, or keeps them for JSON.
struct Report {
    style: Style,
    is_json: bool,
    is_well: bool,
    findings: Vec<Value>,
}

impl Report {
    fn new(base: &Base, json: &JsonFlag) -> Self {
        Self {
            style: Style::of(&std::io::stdout(), &base.environment),
            is_json: json.json,
            is_well: true,
            findings: Vec::new(),
        }
    }

    fn add(&mut self, finding: Finding) -> Outcome<()> {
        self.is_well &= finding.outcome.is_ok();
        if self.is_json {
            self.findings.push(as_json(&finding));
            return Ok(());
        }
        let time = finding.elapsed.map_or_else(String::new, |time| {
            self.style
                .dim(format!(" ({:.1} ms)", time.as_secs_f64() * 1e3))
        });
        let (mark, text) = match &finding.outcome {
            Ok(text) => (self.style.green("✓"), text),
            Err(fault) => (self.style.red("✗"), &fault.cause),
        };
        println(&format!(
            "{mark} {:<11} {}{time}",
            finding.phase,
            one_line(text)
        ))?;
        match &finding.outcome {
            Ok(_) => Ok(()),
            Err(fault) => println(&format!("    fix: {}", one_line(&fault.advice))),
        }
    }

    fn as_json(&self, name: &str) -> Value {
        json!({
            "server": name,
            "is_well": self.is_well,
            "steps": self.findings,
        })
    }

    fn outcome(&self) -> Outcome<()> {
        if self.is_well {
            Ok(())
        } else {
            Err(already_told())
        }
    }
}

fn as_json(finding: &Finding) -> Value {
    let (found, fault) = match &finding.outcome {
        Ok(found) => (Some(found), None),
        Err(fault) => (None, Some(fault)),
    };
    json!({
        "phase": finding.phase,
        "is_well": fault.is_none(),
        "found": found,
        "cause": fault.map(|fault| &fault.cause),
        "fix": fault.map(|fault| &fault.advice),
        "elapsed_ms": finding.elapsed.map(|time| time.as_secs_f64() * 1e3),
    })
}
