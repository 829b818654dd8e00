//! Who looks at commands before they run, as the settings say: `approvals`, `command_allowlist`, `auxiliary.approval`,
//! `security.tirith_*`; and which keys no model sees: `security.redact_secrets`.

mod tirith;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{ConsentPolicy, Reviewer, Safety};
use hermes_config::{ChangeError, ConfigFile, Home, Key};
use hermes_core::{
    AllowList, Audience, BoxFuture, ConsentOption, HiddenKeys, Model, SessionOptions,
};
use hermes_policy::{AllowRule, CommandLists};
use serde_json::{Value, json};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::{Models, Purpose};
use tirith::Tirith;

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
pub fn consent_policy(base: &Base, options: &SessionOptions) -> Result<ConsentPolicy> {
    let allows_all = match options.consent {
        ConsentOption::Allow => true,
        ConsentOption::Ask => false,
        ConsentOption::AsSet => Mode::of(base) == Mode::Off,
    };
    Ok(match options.audience {
        _ if allows_all => ConsentPolicy::Allow,
        Audience::Nobody if options.consent != ConsentOption::Ask && allows_headless(base) => {
            ConsentPolicy::Allow
        }
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
pub fn command_lists(base: &Base) -> Result<CommandLists> {
    let settings = &base.settings;
    let deny = settings.strings("approvals.deny")?;
    let allow = settings.strings("command_allowlist")?;
    Ok(CommandLists::new(deny, allow, allow_rules(base)?))
}

/// `approvals.allow`: what was allowed for good, each in its folder.
fn allow_rules(base: &Base) -> Result<Vec<AllowRule>> {
    let Some(Value::Array(rules)) = base.settings.get("approvals.allow") else {
        return Ok(Vec::new());
    };
    let read = |rule: &Value| {
        let text = |name: &str| rule.get(name).and_then(Value::as_str);
        let (pattern, folder) = text("pattern").zip(text("folder")).ok_or_else(|| {
            Error::asked(format!("`approvals.allow` has an entry that is no rule: {rule}")).with_hint(
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
pub fn safety(
    base: &Base,
    models: &Models,
    model: &Arc<dyn Model>,
    commands: Arc<CommandLists>,
) -> Result<Safety> {
    let reviewer = match Mode::of(base) {
        Mode::Smart => Some(reviewer(base, models, model)?),
        Mode::Manual | Mode::Off => None,
    };
    let home = base.home.clone();
    let is_owner = base.person.is_none();
    Ok(Safety {
        scanner: Tirith::installed(base)?.map(|tirith| Arc::new(tirith) as _),
        reviewer,
        // What is allowed for good is the owner's to say.
        allow_list: is_owner.then(|| Arc::new(SavedAllowList { commands, home }) as _),
        hidden_keys: hidden_keys(base)?.map(Arc::new),
        keeps_inside: !is_owner,
    })
}

/// The keys that Hermes was given and that no model sees, unless the settings want that.
fn hidden_keys(base: &Base) -> Result<Option<HiddenKeys>> {
    if !base.settings.bool("security.redact_secrets")? {
        return Ok(None);
    }
    own_keys(base).map(Some)
}

/// The keys that Hermes was given.
pub fn own_keys(base: &Base) -> Result<HiddenKeys> {
    let stored = hermes_config::stored_keys(&base.home)?.unwrap_or_default();
    let stored = stored.into_values().flatten();
    let named = [base.environment.secrets(), base.settings.secrets()].concat();
    Ok(HiddenKeys::own(stored.chain(named)))
}

fn reviewer(base: &Base, models: &Models, main: &Arc<dyn Model>) -> Result<Reviewer> {
    let model = models.get(base, Purpose::Approval)?;
    Ok(Reviewer {
        model: model.unwrap_or_else(|| Arc::clone(main)),
        timeout: base.settings.seconds("auxiliary.approval.timeout")?,
    })
}

/// `approvals.allow` in the user's `config.yaml`.
struct SavedAllowList {
    commands: Arc<CommandLists>,
    home: Home,
}

impl AllowList for SavedAllowList {
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
