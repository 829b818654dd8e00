//! Every key and login there is, masked: where it comes from and whether it is used.

use std::io;
use std::path::Path;

use hermes_config::{DotEnv, KeyState, StoredKey, used_keys, used_logins};
use hermes_core::{Clock as _, Secret, Timestamp};
use hermes_llm::providers::{self, PROVIDERS};
use hermes_llm::settings::ModelSettings;
use serde_json::{Value, json};

use super::{Standing, masked, provider_of};
use crate::base::Base;
use crate::commands::layout::{
    OnTerminal as _, Table, duration, one_line, print_json, seconds_between,
};
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::SystemClock;
use hermes_runtime::models::chosen::key_variables;
use hermes_runtime::models::settings::model_settings;

/// One key.
struct Row {
    provider: String,
    /// What `remove` takes; only stored keys have it.
    stored: Option<Stored>,
    key: String,
    from: String,
    state: State,
}

struct Stored {
    number: usize,
    id: String,
    label: String,
}

enum State {
    Known(KeyState),
    Login(Standing),
    /// Nobody asks with it, for this reason.
    Unused(&'static str),
}

pub(super) fn run(base: &Base, provider: Option<&str>, as_json: bool) -> Outcome<()> {
    let provider = provider.map(|name| provider_of(base, name)).transpose()?;
    let now = SystemClock.now();
    let settings = model_settings(base)?;
    let mut rows = from_variables(base);
    rows.extend(from_settings(base, &settings));
    let logins = from_logins(base, now)?;
    rows.extend(from_store(base, &settings, &logins, now)?);
    rows.extend(logins);
    rows.retain(|row| provider.as_ref().is_none_or(|name| row.provider == *name));
    // Stable: the keys of a provider stay in the order in which they are used.
    rows.sort_by(|left, right| left.provider.cmp(&right.provider));
    if as_json {
        return print_json(&rows.iter().map(|row| row.to_json(now)).collect());
    }
    if rows.is_empty() {
        let whose = provider.unwrap_or_else(|| "PROVIDER".to_owned());
        return println(&format!(
            "no keys yet, and no logins; `hermes auth add {whose}` adds one, `hermes model list` shows the providers"
        ));
    }
    let mut table = Table::new(["PROVIDER", "N", "LABEL", "ID", "KEY", "FROM", "STATE"]);
    for row in &rows {
        table.row(row.cells(now));
    }
    table.print(Style::of(&io::stdout(), &base.environment))
}

fn from_variables(base: &Base) -> Vec<Row> {
    let file = DotEnv::open(&base.home.dot_env()).ok();
    let is_in_file = |name: &str| {
        let mut pairs = file.iter().flat_map(DotEnv::pairs);
        pairs.any(|(known, _)| known == name)
    };
    let row = |provider: &str, name: &str| {
        let key = base.variable(name)?;
        let from = if is_in_file(name) {
            format!("{name} in .env")
        } else {
            name.to_owned()
        };
        Some(plain(provider, &key, from))
    };
    let variables = PROVIDERS.iter().flat_map(|provider| {
        let names = key_variables(base, provider.id).into_iter();
        names.map(|name| (provider.id, name))
    });
    variables
        .filter_map(|(provider, name)| row(provider, name))
        .collect()
}

fn from_settings(base: &Base, settings: &ModelSettings) -> Vec<Row> {
    let mut rows = Vec::new();
    if let (Some(key), Some(provider)) = (&settings.choice.api_key, &settings.choice.provider) {
        let id = providers::find(provider).map_or(provider.as_str(), |known| known.id);
        let place = base.settings.origin("model.api_key");
        let place = place.map_or_else(|| "model.api_key".to_owned(), |place| place.to_string());
        rows.push(plain(id, key, place));
    }
    for (name, endpoint) in &settings.endpoints {
        if let Some(key) = &endpoint.api_key {
            rows.push(plain(name, key, format!("providers.{name}.api_key")));
        }
        if let Some(variable) = &endpoint.key_env
            && let Some(key) = base.variable(variable)
        {
            rows.push(plain(name, &key, variable.clone()));
        }
    }
    rows
}

fn plain(provider: &str, key: &Secret, from: String) -> Row {
    Row {
        provider: provider.to_owned(),
        stored: None,
        key: masked(key),
        from,
        state: State::Known(KeyState::Good),
    }
}

fn from_logins(base: &Base, now: Timestamp) -> Outcome<Vec<Row>> {
    let rows = used_logins(&base.home)?.into_iter().map(|used| Row {
        key: "login".to_owned(),
        from: kept_in(base, &used.folder).to_owned(),
        state: State::Login(Standing::of(&used.provider, &used.login, now)),
        stored: None,
        provider: used.provider,
    });
    Ok(rows.collect())
}

/// The file in a folder, as people know it.
pub(super) fn kept_in(base: &Base, folder: &Path) -> &'static str {
    if folder == base.home.directory() {
        "auth.json"
    } else {
        "auth.json of the default profile"
    }
}

fn from_store(
    base: &Base,
    settings: &ModelSettings,
    logins: &[Row],
    now: Timestamp,
) -> Outcome<Vec<Row>> {
    let used = used_keys(&base.home)?;
    let mut rows: Vec<Row> = Vec::new();
    for (folder, key) in used {
        let of_provider = rows.iter().filter(|row| row.provider == key.provider);
        let number = of_provider.count() + 1;
        let file = kept_in(base, &folder);
        let has_login = logins.iter().any(|row| row.provider == key.provider);
        let from = match key.source.as_str() {
            "" | "manual" => file.to_owned(),
            source => format!("{file} ({})", one_line(source)),
        };
        rows.push(Row {
            key: masked(&key.secret),
            from,
            state: state(&key, settings, has_login, now),
            stored: Some(Stored {
                number,
                id: one_line(&key.id),
                label: one_line(&key.label),
            }),
            provider: key.provider,
        });
    }
    Ok(rows)
}

fn state(key: &StoredKey, settings: &ModelSettings, has_login: bool, now: Timestamp) -> State {
    let is_known = providers::find(&key.provider).is_some_and(|known| known.id == key.provider)
        || settings.endpoints.contains_key(&key.provider);
    if !key.is_api_key && has_login {
        State::Unused("a copy of the login")
    } else if !key.is_api_key {
        State::Unused("a login, which this version cannot renew")
    } else if !is_known {
        State::Unused("no such provider")
    } else {
        State::Known(key.state(now))
    }
}

impl Row {
    fn cells(&self, now: Timestamp) -> [String; 7] {
        let stored = self.stored.as_ref();
        let text = |part: fn(&Stored) -> String| stored.map(part).unwrap_or_default();
        [
            one_line(&self.provider),
            text(|stored| stored.number.to_string()),
            text(|stored| stored.label.clone()),
            text(|stored| stored.id.clone()),
            self.key.clone(),
            self.from.clone(),
            self.state.shown(now),
        ]
    }

    fn to_json(&self, now: Timestamp) -> Value {
        let stored = self.stored.as_ref();
        let (state, until, reason) = match &self.state {
            State::Known(KeyState::Good) => ("ok", None, None),
            State::Known(KeyState::Resting { until, reason }) => {
                ("resting", Some(*until), Some(reason.as_str()))
            }
            State::Known(KeyState::Dead { reason }) => ("dead", None, Some(reason.as_str())),
            State::Login(standing) => (standing.name(), None, None),
            State::Unused(why) => ("unused", None, Some(*why)),
        };
        json!({
            "provider": self.provider,
            "id": stored.map(|stored| &stored.id),
            "label": stored.map(|stored| &stored.label),
            "key": self.key,
            "from": self.from,
            "state": state,
            "rests_seconds": until.map(|until| seconds_between(now, until)),
            "reason": reason,
        })
    }
}

impl State {
    fn shown(&self, now: Timestamp) -> String {
        let because = |reason: &str| match one_line(reason).as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        match self {
            Self::Known(KeyState::Good) => "good".to_owned(),
            Self::Known(KeyState::Resting { until, reason }) => {
                let left = duration(seconds_between(now, *until));
                format!("rests for {left}{}", because(reason))
            }
            Self::Known(KeyState::Dead { reason }) => {
                format!("refused for good{}", because(reason))
            }
            Self::Login(standing) => standing.text(now),
            Self::Unused(why) => format!("not used: {why}"),
        }
    }
}
