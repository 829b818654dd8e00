//! `hermes status`: what is configured and what is going on.

use hermes_core::{Archive as _, StoreStats};
use hermes_store::SqliteStore;
use serde_json::{Value, json};

use super::chosen_model::ChosenModel;
use super::layout::{Table, count, print_json, size};
use crate::args::{JsonFlag, RunFlags};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;
use crate::style::Style;
use crate::wiring::built_in_tools;

pub(crate) async fn run(base: &Base, args: &JsonFlag) -> Outcome<()> {
    let status = Status::gather(base).await;
    if args.json {
        return print_json(&status.to_json(base));
    }
    status.print(base)
}

/// Everything that can be told; what cannot says why.
struct Status {
    model: Outcome<ChosenModel>,
    tools: Outcome<Vec<String>>,
    store: Outcome<StoreStats>,
}

impl Status {
    async fn gather(base: &Base) -> Self {
        let names = |tools: Vec<std::sync::Arc<dyn hermes_core::Tool>>| {
            tools.iter().map(|tool| tool.spec().name.clone()).collect()
        };
        Self {
            model: ChosenModel::of(base),
            tools: built_in_tools(base, &RunFlags::default()).map(names),
            store: stats(base).await,
        }
    }

    fn print(&self, base: &Base) -> Outcome<()> {
        let mut table = Table::without_heading();
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("version", env!("CARGO_PKG_VERSION").to_owned());
        row("home", base.home.directory().display().to_string());
        row(
            "profile",
            base.home.profile().unwrap_or("default").to_owned(),
        );
        match &self.model {
            Ok(chosen) => {
                row("model", chosen.route.name.to_string());
                row("key", chosen.key.to_string());
            }
            Err(failure) => row("model", told(failure)),
        }
        match &self.tools {
            Ok(names) if names.is_empty() => row("tools", "none".to_owned()),
            Ok(names) => row("tools", names.join(", ")),
            Err(failure) => row("tools", told(failure)),
        }
        match &self.store {
            Ok(stats) => {
                let (sessions, messages) = (stats.sessions, count(stats.messages, "message"));
                row("sessions", format!("{sessions} ({messages})"));
                row("unfinished", unfinished(stats.unfinished_turns));
                row("database", size(stats.database_bytes));
            }
            Err(failure) => row("sessions", told(failure)),
        }
        table.print(Style::PLAIN)?;
        for problem in base.settings.problems() {
            note(&format!("warning: {problem}"));
        }
        Ok(())
    }

    fn to_json(&self, base: &Base) -> Value {
        let model = match &self.model {
            Ok(chosen) => json!({
                "provider": chosen.route.name.provider,
                "model": chosen.route.name.model,
                "base_url": chosen.route.base_url,
                "key": chosen.key.to_string(),
            }),
            Err(failure) => json!({"error": failure.message, "hint": failure.hint}),
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "home": base.home.directory(),
            "profile": base.home.profile().unwrap_or("default"),
            "model": model,
            "tools": self.tools.as_ref().ok(),
            "sessions": self.store.as_ref().ok(),
            "problems": base.settings.problems().iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

async fn stats(base: &Base) -> Outcome<StoreStats> {
    let path = base.home.database();
    if !path.try_exists().unwrap_or(true) {
        return Ok(StoreStats::default());
    }
    Ok(SqliteStore::open_read_only(path)?.stats().await?)
}

fn unfinished(turns: u64) -> String {
    match turns {
        0 => "none".to_owned(),
        turns => format!("{} (`hermes sessions recover`)", count(turns, "turn")),
    }
}

fn told(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}; {hint}", failure.message),
        None => failure.message.clone(),
    }
}
