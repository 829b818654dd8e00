//! `hermes gateway status|list`: how gateways are, asked of the processes that serve.

use std::path::{Path, PathBuf};

use hermes_core::{Clock as _, Timestamp};
use hermes_gateway::presence;
use hermes_gateway::report::{PlatformState, Report};
use hermes_runtime::SystemClock;
use serde_json::json;

use super::{lifecycle, service};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::{OnTerminal as _, Table, age, print_json};
use crate::failure::{Failure, Outcome, code};
use crate::output::{note, println};
use crate::style::Style;

/// What is known of the gateway of a home.
pub(in crate::commands) enum Standing {
    Serves(Box<Report>),
    /// It is there, and does not answer.
    Silent {
        pid: u32,
        why: String,
    },
    None,
}

pub(in crate::commands) async fn of(home: &Path) -> Standing {
    match presence::ask(home).await {
        Ok(report) => Standing::Serves(Box::new(report)),
        Err(error) => match presence::holder(home).await {
            Ok(Some(holder)) => Standing::Silent {
                pid: holder.pid,
                why: error.to_string(),
            },
            _ => Standing::None,
        },
    }
}

impl Standing {
    /// In one line.
    pub(in crate::commands) fn line(&self, now: Timestamp) -> String {
        match self {
            Self::Serves(report) => {
                let state = &report.rows(now)[0].1;
                match platforms(report).as_str() {
                    "" => state.clone(),
                    platforms => format!("{state}; {platforms}"),
                }
            }
            Self::Silent { pid, why } => format!("pid {pid} does not answer: {why}"),
            Self::None => "not running (`hermes gateway start`)".to_owned(),
        }
    }

    pub(in crate::commands) fn json(&self) -> serde_json::Value {
        match self {
            Self::Serves(report) => {
                let mut value = json!(report);
                value["running"] = true.into();
                value
            }
            Self::Silent { pid, why } => json!({"running": true, "pid": pid, "error": why}),
            Self::None => json!({"running": false}),
        }
    }
}

/// Everything, for a conversation at a terminal.
pub(crate) async fn told(home: &Path) -> String {
    let now = SystemClock.now();
    match of(home).await {
        Standing::Serves(report) => report.lines(now),
        standing => format!("the gateway: {}", standing.line(now)),
    }
}

/// Which platforms, and how they are.
fn platforms(report: &Report) -> String {
    let platforms = report.platforms.iter().map(|one| {
        let state = match one.state {
            PlatformState::Connected => "connected",
            PlatformState::Connecting => "connecting",
            PlatformState::Waiting => "not connected",
            PlatformState::Refused => "refused",
        };
        format!("{} {state}", one.platform)
    });
    platforms.collect::<Vec<_>>().join(", ")
}

pub(super) async fn status(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let standing = of(base.home.directory()).await;
    if json.json {
        print_json(&standing.json())?;
    } else {
        show(base, &standing)?;
    }
    match standing {
        Standing::Serves(_) => Ok(()),
        Standing::Silent { .. } => Err(Failure::new("")),
        Standing::None => Err(Failure {
            code: code::NOT_RUNNING,
            ..Failure::new("")
        }),
    }
}

fn show(base: &Base, standing: &Standing) -> Outcome<()> {
    let now = SystemClock.now();
    let Standing::Serves(report) = standing else {
        println(&format!("gateway  {}", standing.line(now)))?;
        if let Some(service) = service::installed(base) {
            note(&format!("it is installed as a service: {}", service.name()));
        }
        let log = lifecycle::log_file(base);
        if log.exists() {
            note(&format!("what it said last is in `{}`", log.display()));
        }
        return Ok(());
    };
    let mut table = Table::without_heading();
    for (name, words) in report.rows(now) {
        table.row([name, words]);
    }
    table.row(["home".to_owned(), report.home.display().to_string()]);
    table.print(Style::PLAIN)
}

pub(super) async fn list(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let now = SystemClock.now();
    let mut table = Table::new(["PROFILE", "PID", "SINCE", "PLATFORMS"]);
    let mut listed = Vec::new();
    for (profile, home) in homes(base) {
        let standing = of(&home).await;
        if json.json {
            let mut value = standing.json();
            value["profile"] = profile.into();
            value["home"] = home.display().to_string().into();
            listed.push(value);
            continue;
        }
        table.row(match &standing {
            Standing::Serves(report) => [
                profile,
                report.pid.to_string(),
                age(report.started, now),
                platforms(report),
            ],
            Standing::Silent { pid, .. } => {
                let words = "does not answer".to_owned();
                [profile, pid.to_string(), "-".to_owned(), words]
            }
            Standing::None => {
                let none = "-".to_owned();
                [profile, none.clone(), none, "not running".to_owned()]
            }
        });
    }
    if json.json {
        return print_json(&listed.into());
    }
    table.print(Style::of(&std::io::stdout(), &base.environment))
}

/// The homes of all profiles, the default one first.
fn homes(base: &Base) -> Vec<(String, PathBuf)> {
    let root = base.home.root();
    let mut homes = vec![("default".to_owned(), root.to_owned())];
    for name in base.home.profiles() {
        let home = root.join("profiles").join(&name);
        homes.push((name, home));
    }
    homes
}
