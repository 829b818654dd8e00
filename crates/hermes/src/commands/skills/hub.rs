//! `hermes skills` for skills from elsewhere: nothing is installed before it was shown and agreed to.

use std::sync::Arc;

use hermes_core::LearningLog;
use hermes_learning::skills::guard::{ScanReport, Severity};
use hermes_learning::skills::hub::{Candidate, Force, Hits, Hub, Updated};
use hermes_runtime::{open_store, skills};
use serde_json::json;

use super::told;
use crate::args::{InstallArgs, TapCommand};
use crate::base::Base;
use crate::commands::confirm::{Enter, confirm, is_anybody_there};
use crate::commands::layout::{Table, count, one_line, print_json};
use crate::failure::{Failure, Outcome};
use crate::output::println;
use hermes_runtime::layout::printable;

/// Findings that are shown: the worst come first.
const FINDINGS_SHOWN: usize = 30;

fn hub(base: &Base) -> Outcome<Hub> {
    Ok(skills::hub(base, None)?)
}

/// With the log that installations are written down in.
fn logged(base: &Base) -> Outcome<Hub> {
    let log: Arc<dyn LearningLog> = Arc::new(open_store(base)?);
    Ok(skills::hub(base, Some(log))?)
}

pub(super) async fn search(base: &Base, words: &str, as_json: bool) -> Outcome<()> {
    let hub = hub(base)?;
    let taps = hub.taps().map_err(told)?;
    let hits = hub.search(words, &taps).await.map_err(told)?;
    if as_json {
        let found = hits.hits.iter().map(|hit| {
            json!({"name": hit.name, "identifier": hit.identifier, "description": hit.description})
        });
        let found: Vec<_> = found.collect();
        return print_json(&json!({"skills": found, "problems": hits.problems}));
    }
    println(&listed(&hits))
}

fn listed(hits: &Hits) -> String {
    let mut table = Table::new(["SKILL", "INSTALL AS", "FOR"]);
    for hit in &hits.hits {
        table.row([
            one_line(&hit.name),
            one_line(&hit.identifier),
            hermes_core::text::shorten(&one_line(&hit.description), 120),
        ]);
    }
    let mut told = match hits.hits.len() {
        0 => "no skill was found".to_owned(),
        _ => table.text(),
    };
    for problem in &hits.problems {
        told.push_str(&format!("\nwarning: {}", printable(problem)));
    }
    told
}

pub(super) async fn inspect(base: &Base, identifier: &str) -> Outcome<()> {
    let candidate = hub(base)?.fetch(identifier).await.map_err(told)?;
    println(&shown(&candidate))?;
    let text = candidate.files.iter().find(|file| file.path == "SKILL.md");
    let text = text.map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    println(&format!("\n{}", printable(&text.unwrap_or_default())))
}

pub(super) async fn install(base: &Base, args: InstallArgs) -> Outcome<()> {
    let hub = logged(base)?;
    let candidate = hub.fetch(&args.identifier).await.map_err(told)?;
    agree_and_install(&hub, &candidate, args.force, args.yes).await
}

async fn agree_and_install(
    hub: &Hub,
    candidate: &Candidate,
    force: bool,
    yes: bool,
) -> Outcome<()> {
    println(&shown(candidate))?;
    let force = if force { Force::Yes } else { Force::No };
    if let Some(why) = candidate.refusal(force) {
        return Err(Failure::new(format!(
            "`{}` is not installed: {why}",
            candidate.name
        )));
    }
    if !yes && !is_anybody_there() {
        return Err(Failure::usage("nobody is there to agree to it").hint("--yes agrees"));
    }
    if !yes && !confirm("Install it?", Enter::MeansNo)? {
        return println("nothing was installed");
    }
    let place = hub.install(candidate, force).await.map_err(told)?;
    println(&format!(
        "installed: {} (in {})",
        candidate.name,
        place.display()
    ))
}

/// What a person sees before they agree.
fn shown(candidate: &Candidate) -> String {
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("skill", one_line(&candidate.name));
    row("for", one_line(&candidate.description));
    row(
        "from",
        format!(
            "{} ({})",
            one_line(&candidate.identifier),
            candidate.trust.as_str()
        ),
    );
    row("files", count(candidate.files.len() as u64, "file"));
    format!("{}\n{}", table.text(), findings(&candidate.report))
}

pub(super) fn findings(report: &ScanReport) -> String {
    let verdict = report.verdict().as_str();
    if report.findings.is_empty() {
        return format!("scan: {verdict}; nothing was found, which is no proof");
    }
    let mut lines = vec![format!(
        "scan: {verdict}; {}",
        count(report.findings.len() as u64, "finding")
    )];
    for finding in report.findings.iter().take(FINDINGS_SHOWN) {
        let severity = match finding.severity {
            Severity::Critical => "critical",
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        };
        lines.push(format!(
            "  {severity} {}: {} ({}:{}) {}",
            finding.category.as_str(),
            finding.what,
            one_line(&finding.file),
            finding.line,
            one_line(&finding.excerpt)
        ));
    }
    lines.join("\n")
}

pub(super) async fn update(base: &Base, name: Option<&str>, force: bool, yes: bool) -> Outcome<()> {
    let hub = logged(base)?;
    let names: Vec<String> = match name {
        Some(name) => vec![name.to_owned()],
        None => hub
            .installed()
            .map_err(told)?
            .installed
            .into_keys()
            .collect(),
    };
    if names.is_empty() {
        return println("no skill was installed from elsewhere");
    }
    let mut failures = Vec::new();
    for name in &names {
        if let Err(failure) = update_one(&hub, name, force, yes).await {
            failures.push((name, failure));
        }
    }
    match (failures.len(), names.len()) {
        (0, _) => Ok(()),
        (1, 1) => Err(failures.swap_remove(0).1),
        (failed, all) => {
            for (name, failure) in &failures {
                println(&format!(
                    "{}: not updated: {}",
                    printable(name),
                    printable(&failure.message)
                ))?;
            }
            Err(Failure::new(format!(
                "{failed} of {all} skills were not updated"
            )))
        }
    }
}

async fn update_one(hub: &Hub, name: &str, force: bool, yes: bool) -> Outcome<()> {
    match hub.newer(name).await.map_err(told)? {
        Updated::UpToDate => println(&format!("{}: up to date", printable(name))),
        Updated::Newer(candidate) => agree_and_install(hub, &candidate, force, yes).await,
    }
}

pub(super) async fn uninstall(base: &Base, name: &str) -> Outcome<()> {
    logged(base)?.uninstall(name).await.map_err(told)?;
    println(&format!(
        "{}: uninstalled; its files are in skills/.archive",
        printable(name)
    ))
}

pub(super) async fn audit(base: &Base, name: Option<&str>) -> Outcome<()> {
    let audited = hub(base)?.audit(name).await.map_err(told)?;
    if audited.is_empty() {
        return println("no skill was installed from elsewhere");
    }
    for one in audited {
        let changed = if one.is_changed {
            "changed since it was installed"
        } else {
            "as it was installed"
        };
        println(&format!(
            "{}: {changed}\n{}",
            printable(&one.name),
            findings(&one.report)
        ))?;
    }
    Ok(())
}

pub(super) fn tap(base: &Base, command: Option<TapCommand>) -> Outcome<()> {
    let hub = hub(base)?;
    match command {
        None | Some(TapCommand::List) => println(&hub.taps().map_err(told)?.join("\n")),
        Some(TapCommand::Add { place }) => {
            let is_new = hub.set_tap(&place, true).map_err(told)?;
            println(if is_new {
                "added"
            } else {
                "it is there already"
            })
        }
        Some(TapCommand::Remove { place }) => {
            let is_gone = hub.set_tap(&place, false).map_err(told)?;
            println(if is_gone {
                "removed"
            } else {
                "you have not added it"
            })
        }
    }
}
