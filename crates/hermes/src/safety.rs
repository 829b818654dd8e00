//! Who looks at commands before they run, as the settings say: `approvals`, `command_allowlist`, `auxiliary.approval`,
//! `security.tirith_*`; and which keys no model sees: `security.redact_secrets`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{ConsentPolicy, Reviewer, Safety};
use hermes_config::{ChangeError, ConfigFile, Home, Key};
use hermes_core::{AllowList, BoxFuture, HiddenKeys, Model, Secret};
use hermes_llm::ModelChoice;
use hermes_tools::{AllowRule, CommandLists};
use serde_json::{Value, json};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
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
        Audience::Nobody if allows_headless(base) => ConsentPolicy::Allow,
        Audience::Nobody => ConsentPolicy::Refuse,
        Audience::Person => {
            let timeout = base.settings.seconds("approvals.timeout")?;
            ConsentPolicy::Ask {
                timeout: timeout.max(Duration::from_secs(1)),
            }
        }
    })
}

/// `approvals.headless`: whether what a person would be asked about runs where nobody is. What is no choice does not.
fn allows_headless(base: &Base) -> bool {
    base.settings.get("approvals.headless") == Some(&json!("allow"))
}

/// Which commands the user refused or allowed for good.
pub fn command_lists(base: &Base) -> Outcome<CommandLists> {
    let settings = &base.settings;
    let deny = settings.strings("approvals.deny")?;
    let allow = settings.strings("command_allowlist")?;
    Ok(CommandLists::new(deny, allow, allow_rules(base)?))
}

/// `approvals.allow`: what was allowed for good, each in its folder.
fn allow_rules(base: &Base) -> Outcome<Vec<AllowRule>> {
    let Some(Value::Array(rules)) = base.settings.get("approvals.allow") else {
        return Ok(Vec::new());
    };
    let read = |rule: &Value| {
        let text = |name: &str| rule.get(name).and_then(Value::as_str);
        let (pattern, folder) = text("pattern").zip(text("folder")).ok_or_else(|| {
            Failure::usage(format!("`approvals.allow` has an entry that is no rule: {rule}")).hint(
                "write it as {pattern: …, folder: …}; what runs in every folder goes to `command_allowlist`",
            )
        })?;
        Ok(AllowRule {
            pattern: pattern.to_owned(),
            folder: folder.into(),
        })
    };
    rules.iter().map(read).collect()
}

/// Which changes of files are looked at before they are made. What is no choice asks about every one: a slip of the pen
/// opens nothing.
pub fn mode(base: &Base) -> hermes_core::Mode {
    match base.settings.get("approvals.edits") {
        Some(Value::String(edits)) if edits == "auto" => hermes_core::Mode::AcceptEdits,
        _ => hermes_core::Mode::Ask,
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
    own_keys(base).map(Some)
}

/// The keys that Hermes was given.
pub fn own_keys(base: &Base) -> Outcome<HiddenKeys> {
    let stored = hermes_config::stored_keys(&base.home)?.unwrap_or_default();
    let stored = stored.into_values().flatten();
    let named = [base.environment.secrets(), base.settings.secrets()].concat();
    Ok(HiddenKeys::own(stored.chain(named)))
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
    let model = if is_main {
        Arc::clone(model)
    } else {
        auxiliary(base, choice)?
    };
    Ok(Reviewer { model, timeout })
}

/// A model for side work. What is not said about it is as for the main one.
fn auxiliary(base: &Base, choice: ModelChoice) -> Outcome<Arc<dyn Model>> {
    let mut settings = model_settings(base)?;
    settings.choice = if choice.provider.is_some() || choice.base_url.is_some() {
        choice
    } else {
        ModelChoice {
            model: choice.model,
            ..settings.choice
        }
    };
    let environment = |name: &str| base.variable(name);
    let resolved = hermes_llm::resolve(&settings, &environment)?;
    Ok(Arc::new(wiring::client(base, resolved)))
}

/// `approvals.allow` in the user's `config.yaml`.
struct SavedAllowList {
    commands: Arc<CommandLists>,
    home: Home,
}

impl AllowList for SavedAllowList {
    fn allows(&self, command: &str, folder: &Path) -> bool {
        self.commands.allows(command, folder)
    }

    fn allow<'a>(
        &'a self,
        command: &'a str,
        pattern: Option<&'a str>,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<(), String>> {
        let rule = self.commands.allow(command, pattern, folder);
        let home = self.home.clone();
        Box::pin(async move {
            let saved = tokio::task::spawn_blocking(move || append(&home, &rule)).await;
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

/// Adds a rule to the list in the file as it is now, unless it is there.
fn append(home: &Home, rule: &AllowRule) -> Result<(), ChangeError> {
    let key: Key = "approvals.allow".parse()?;
    let entry = json!({"pattern": rule.pattern, "folder": rule.folder.to_string_lossy()});
    let mut file = ConfigFile::open(&home.config_yaml())?;
    let mut list = match file.get(&key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    if list.contains(&entry) {
        return Ok(());
    }
    list.push(entry);
    file.set(&key, &Value::Array(list))?;
    file.save()
}
