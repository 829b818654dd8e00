//! `hermes status`: what is configured and what is going on.

use hermes_core::{Archive as _, Clock as _, StoreStats};
use hermes_runtime::SystemClock;
use hermes_store::SqliteStore;
use serde_json::{Value, json};

use super::gateway::standing::{self, Standing};
use super::layout::{OnTerminal as _, Table, count, print_json, size};
use crate::args::JsonFlag;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::former_home;
use crate::output::note;
use crate::style::Style;
use crate::terminals::{FenceState, fence_state};
use hermes_core::SessionOptions;
use hermes_runtime::models::chosen::ChosenModel;
use hermes_runtime::toolkit::built_in_tools;
use hermes_runtime::user_model::{Provider, honcho_standing};

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
    fence: Outcome<FenceState>,
    /// How the provider of the model of the user is, where one was chosen.
    user_model: Option<Result<String, String>>,
    gateway: Standing,
}

impl Status {
    async fn gather(base: &Base) -> Self {
        let names = |tools: Vec<std::sync::Arc<dyn hermes_core::Tool>>| {
            tools.iter().map(|tool| tool.spec().name.clone()).collect()
        };
        Self {
            model: ChosenModel::of(base).map_err(Failure::from),
            tools: built_in_tools(base, &SessionOptions::default())
                .map(names)
                .map_err(Failure::from),
            store: stats(base).await,
            fence: fence_state(base).map_err(Failure::from),
            user_model: user_model(base).await,
            gateway: standing::of(base.home.directory()).await,
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
        match &self.fence {
            Ok(fence) => row("fence", fence.sentence()),
            Err(failure) => row("fence", told(failure)),
        }
        match &self.tools {
            Ok(names) if names.is_empty() => row("tools", "none".to_owned()),
            Ok(names) => row("tools", names.join(", ")),
            Err(failure) => row("tools", told(failure)),
        }
        row("gateway", self.gateway.line(SystemClock.now()));
        if let Some(Ok(text) | Err(text)) = &self.user_model {
            row("user model", text.clone());
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
        let idle = former_home::idle(&base.home);
        if !idle.is_empty() {
            let names: Vec<_> = idle.iter().map(|idle| idle.name).collect();
            let names = names.join(", ");
            table.row([
                "not used yet".to_owned(),
                format!("{names} (of Hermes Agent; `hermes config migrate`)"),
            ]);
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
            "fence": self.fence.as_ref().ok().map(FenceState::sentence),
            "tools": self.tools.as_ref().ok(),
            "user_model": self.user_model.as_ref().map(|standing| match standing {
                Ok(text) => json!({"works": true, "text": text}),
                Err(text) => json!({"works": false, "text": text}),
            }),
            "gateway": self.gateway.json(),
            "sessions": self.store.as_ref().ok(),
            "not_used": former_home::idle(&base.home).iter().map(|idle| idle.name).collect::<Vec<_>>(),
            "problems": base.settings.problems().iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

async fn user_model(base: &Base) -> Option<Result<String, String>> {
    match Provider::chosen(base) {
        Ok(Provider::Honcho) => Some(honcho_standing(base).await),
        _ => None,
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
