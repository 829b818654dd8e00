//! Who looks at commands before they run, as the settings say: `approvals`, `command_allowlist`, `auxiliary.approval`,
//! `security.tirith_*`; and which keys no model sees: `security.redact_secrets`.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{ConsentPolicy, Reviewer, Safety};
use hermes_config::{ChangeError, ConfigFile, Home, Key};
use hermes_core::{AllowList, BoxFuture, HiddenKeys, Model, Secret};
use hermes_llm::ModelChoice;
use hermes_tools::{CommandLists, EditReview};
use serde_json::{Value, json};

use crate::base::Base;
use crate::failure::Outcome;
use crate::model_settings::model_settings;
use crate::tirith::Tirith;
use crate::wiring::{self, Audience};

/// `approvals.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Manual,
    Smart,
    Off,
}

impl Mode {
    /// What is no mode asks: a slip of the pen opens nothing.
    fn of(base: &Base) -> Self {
        match base.settings.get("approvals.mode") {
            Some(Value::String(mode)) if mode == "smart" => Self::Smart,
            Some(Value::String(mode)) if mode == "off" => Self::Off,
            // YAML reads a bare `off` as false.
            Some(Value::Bool(false)) => Self::Off,
            _ => Self::Manual,
        }
    }
}

/// What happens to calls that need consent.
pub fn consent_policy(base: &Base, audience: Audience) -> Outcome<ConsentPolicy> {
    Ok(match audience {
        _ if Mode::of(base) == Mode::Off => ConsentPolicy::Allow,
        Audience::Script => ConsentPolicy::Allow,
        Audience::Nobody => ConsentPolicy::Refuse,
        Audience::Person => {
            let timeout = base.settings.seconds("approvals.timeout")?;
            ConsentPolicy::Ask {
                timeout: timeout.max(Duration::from_secs(1)),
            }
        }
    })
}

/// Which commands the user refused or allowed for good.
pub fn command_lists(base: &Base) -> Outcome<CommandLists> {
    let settings = &base.settings;
    let deny = settings.strings("approvals.deny")?;
    let allow = settings.strings("command_allowlist")?;
    Ok(CommandLists::new(deny, allow))
}

/// Which changes of files are looked at before they are made. What is no choice asks about every one: a slip of the pen
/// opens nothing.
pub fn edit_review(base: &Base) -> EditReview {
    match base.settings.get("approvals.edits") {
        Some(Value::String(edits)) if edits == "auto" => EditReview::Sensitive,
        _ => EditReview::Every,
    }
}

/// Puts together who looks at commands. `model` is the session's own.
pub fn safety(base: &Base, model: &Arc<dyn Model>, commands: Arc<CommandLists>) -> Outcome<Safety> {
    let reviewer = match Mode::of(base) {
        Mode::Smart => Some(reviewer(base, model)?),
        Mode::Manual | Mode::Off => None,
    };
    let home = base.home.clone();
    Ok(Safety {
        scanner: Tirith::installed(base)?.map(|tirith| Arc::new(tirith) as _),
        reviewer,
        allow_list: Some(Arc::new(SavedAllowList { commands, home })),
        hidden_keys: hidden_keys(base)?.map(Arc::new),
    })
}

/// The keys that Hermes was given and that no model sees, unless the settings want that.
fn hidden_keys(base: &Base) -> Outcome<Option<HiddenKeys>> {
    if !base.settings.bool("security.redact_secrets")? {
        return Ok(None);
    }
    let stored = hermes_config::stored_keys(&base.home)?.unwrap_or_default();
    let stored = stored.into_values().flatten();
    let named = [base.environment.secrets(), base.settings.secrets()].concat();
    Ok(Some(HiddenKeys::own(stored.chain(named))))
}

fn reviewer(base: &Base, model: &Arc<dyn Model>) -> Outcome<Reviewer> {
    let settings = &base.settings;
    let text = |name: &str| settings.optional_string(&format!("auxiliary.approval.{name}"));
    let choice = ModelChoice {
        provider: text("provider")?.filter(|provider| provider != "auto"),
        model: text("model")?,
        base_url: text("base_url")?,
        api_key: text("api_key")?.map(Secret::new),
        api_mode: None,
    };
    let timeout = settings.seconds("auxiliary.approval.timeout")?;
    let is_main = choice.provider.is_none() && choice.model.is_none() && choice.base_url.is_none();
    let model = match is_main {
        true => Arc::clone(model),
        false => auxiliary(base, choice)?,
    };
    Ok(Reviewer { model, timeout })
}

/// A model for side work. What is not said about it is as for the main one.
fn auxiliary(base: &Base, choice: ModelChoice) -> Outcome<Arc<dyn Model>> {
    let mut settings = model_settings(base)?;
    settings.choice = match choice.provider.is_some() || choice.base_url.is_some() {
        true => choice,
        false => ModelChoice {
            model: choice.model,
            ..settings.choice
        },
    };
    let environment = |name: &str| base.variable(name);
    let resolved = hermes_llm::resolve(&settings, &environment)?;
    Ok(Arc::new(wiring::client(base, resolved)))
}

/// `command_allowlist` in the user's `config.yaml`.
struct SavedAllowList {
    commands: Arc<CommandLists>,
    home: Home,
}

impl AllowList for SavedAllowList {
    fn allow<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<(), String>> {
        let entry = self.commands.allow(command);
        let home = self.home.clone();
        Box::pin(async move {
            let saved = tokio::task::spawn_blocking(move || append(&home, &entry)).await;
            let not_saved = |error: String| {
                format!("`{command}` is allowed until Hermes ends, but not saved: {error}")
            };
            match saved {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(not_saved(format!("{error} ({})", error.hint()))),
                Err(error) => Err(not_saved(error.to_string())),
            }
        })
    }
}

/// Adds an entry to the list in the file as it is now, unless it is there.
fn append(home: &Home, entry: &str) -> Result<(), ChangeError> {
    let key: Key = "command_allowlist".parse()?;
    let mut file = ConfigFile::open(&home.config_yaml())?;
    let mut list = match file.get(&key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    if list.contains(&json!(entry)) {
        return Ok(());
    }
    list.push(json!(entry));
    file.set(&key, &Value::Array(list))?;
    file.save()
}
