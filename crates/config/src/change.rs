//! Changing one setting, as `hermes config set` and `unset` do.
//!
//! Decides where the value belongs (keys of services go to `.env`), what type it has, and who may change it.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    aliases,
    choices::{choices, is_refused},
    config_file::ConfigFile,
    disk::{ReadError, WriteError},
    dotenv::{DotEnv, VariableError},
    home::Home,
    key::{Key, KeyError},
    layer::LoadError,
    origin::{Origin, Source},
    settings::Settings,
    suggest,
    typed::{describe, misfit, truth},
    unused::is_unused,
    yaml::{self, Content, Position},
};

/// Why a setting was not changed. Every file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Variable(#[from] VariableError),
    #[error("`{key}` is managed by your administrator ({origin})")]
    Managed { key: Key, origin: Origin },
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        key: Key,
        expected: &'static str,
        found: String,
    },
    #[error("`{key}` must be {choices}, not `{found}`")]
    NotAChoice {
        key: Key,
        choices: String,
        found: String,
    },
    #[error("`{key}` holds a single value, so nothing can be set below it ({}:{at})", file.display())]
    NotASection {
        key: String,
        file: PathBuf,
        at: Position,
    },
    #[error("the list `{key}` has {length} items, so the next index is {length} ({}:{at})", file.display())]
    NoSuchItem {
        key: String,
        length: usize,
        file: PathBuf,
        at: Position,
    },
    #[error("`{key}` is an alias of a value that stands elsewhere ({}:{at})", file.display())]
    Shared {
        key: String,
        file: PathBuf,
        at: Position,
    },
    #[error("`{key}` is written in `{}` in a way that cannot be changed without touching other settings", file.display())]
    Unsupported { key: String, file: PathBuf },
    #[error("`{}` was changed by someone else in the meantime", path.display())]
    ChangedMeanwhile { path: PathBuf },
}

impl ChangeError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Key(error) => error.hint(),
            Self::Load(error) => error.hint(),
            Self::Read(error) => error.hint(),
            Self::Write(error) => error.hint(),
            Self::Variable(_) => "choose another name",
            Self::Managed { .. } => "ask your administrator to change it",
            Self::WrongType { .. } => {
                "lists and sections are written like `[a, b]` and `{a: 1}`, in quotes for the shell"
            }
            Self::NotAChoice { .. } => "write one of these words",
            Self::NoSuchItem { .. } => "use the index of an existing item, or the next one",
            Self::NotASection { .. } | Self::Shared { .. } | Self::Unsupported { .. } => {
                "change it by hand with `hermes config edit`"
            }
            Self::ChangedMeanwhile { .. } => "run the command again",
        }
    }
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The setting or variable that was changed.
    pub name: String,
    pub file: PathBuf,
    /// A warning: the name is unknown or without effect, or something stronger hides the new value.
    pub warning: Option<String>,
}

/// Sets a setting to what a user typed.
pub fn set(
    home: &Home,
    settings: &Settings,
    key: &str,
    text: &str,
) -> Result<Changed, ChangeError> {
    if let Some(variable) = variable_name(key) {
        return set_variable(home, variable, text);
    }
    let key = target(key)?;
    refuse_managed(settings, &key)?;
    let default = settings
        .built_in()
        .find(key.segments())
        .map(yaml::Node::to_value);
    let value = coerce(text, default.as_ref());
    if let Some(expected) = default.and_then(|default| misfit(&default, &value)) {
        let found = describe(&key.to_string(), &value);
        return Err(ChangeError::WrongType {
            key,
            expected,
            found,
        });
    }
    // A variable that stands for the word is looked at when it is read.
    if is_refused(&key.to_string(), &value) && !text.contains("${") {
        let choices = choices(&key.to_string()).unwrap_or_default();
        let found = text.to_owned();
        return Err(ChangeError::NotAChoice {
            key,
            choices,
            found,
        });
    }
    let mut file = ConfigFile::open(&home.config_yaml())?;
    set_in_file(&mut file, &key, &value)?;
    file.save()?;
    Ok(Changed {
        name: key.to_string(),
        file: file.path().to_path_buf(),
        warning: warning(settings, &key),
    })
}

/// Removes a setting, so that the default counts again; `None` when the user's settings do not have it.
pub fn unset(home: &Home, settings: &Settings, key: &str) -> Result<Option<Changed>, ChangeError> {
    if let Some(variable) = variable_name(key) {
        return unset_variable(home, variable);
    }
    let key = target(key)?;
    refuse_managed(settings, &key)?;
    let mut file = ConfigFile::open(&home.config_yaml())?;
    let mut is_changed = false;
    // The file may have the setting under an older name as well.
    for path in aliases::spellings(file.root(), &key) {
        is_changed |= file.unset_path(&path)?;
    }
    if !is_changed {
        return Ok(None);
    }
    file.save()?;
    Ok(Some(Changed {
        name: key.to_string(),
        file: file.path().to_path_buf(),
        warning: None,
    }))
}

/// Returns the variable that a key of a service is kept in: `openai_api_key` is `OPENAI_API_KEY` in `.env`.
fn variable_name(key: &str) -> Option<String> {
    let name = key.to_ascii_uppercase();
    let endings = ["_API_KEY", "_TOKEN", "_TOKEN_ID", "_TOKEN_SECRET"];
    let is_key = endings.iter().any(|ending| name.ends_with(ending));
    (is_key && !key.contains('.')).then_some(name)
}

fn set_variable(home: &Home, name: String, value: &str) -> Result<Changed, ChangeError> {
    let mut file = DotEnv::open(&home.dot_env())?;
    file.set(&name, value)?;
    file.save()?;
    Ok(Changed {
        name,
        file: home.dot_env(),
        warning: None,
    })
}

fn unset_variable(home: &Home, name: String) -> Result<Option<Changed>, ChangeError> {
    let mut file = DotEnv::open(&home.dot_env())?;
    if !file.unset(&name) {
        return Ok(None);
    }
    file.save()?;
    Ok(Some(Changed {
        name,
        file: home.dot_env(),
        warning: None,
    }))
}

fn target(key: &str) -> Result<Key, KeyError> {
    let key = if key == "model" { "model.default" } else { key };
    key.parse().map(aliases::canonical)
}

fn refuse_managed(settings: &Settings, key: &Key) -> Result<(), ChangeError> {
    match settings.managed(key) {
        Some(origin) => Err(ChangeError::Managed {
            key: key.clone(),
            origin,
        }),
        None => Ok(()),
    }
}

fn set_in_file(file: &mut ConfigFile, key: &Key, value: &Value) -> Result<(), ChangeError> {
    let spelling = aliases::spellings(file.root(), key).into_iter().next();
    let path = spelling.unwrap_or_else(|| key.segments().to_vec());
    let is_below_short_model =
        path.len() > 1 && path[0] == "model" && file.root().is_some_and(aliases::is_short_model);
    if is_below_short_model {
        let model = path[..1].to_vec();
        let name = file
            .root()
            .and_then(|root| root.find(&model))
            .map(yaml::Node::to_value);
        file.set_path(&model, &serde_json::json!({ "default": name }))?;
    }
    file.set_path(&path, value)
}

/// Reads what a user typed, with the default's type as the guide: text stays text where text is expected.
fn coerce(text: &str, default: Option<&Value>) -> Value {
    if matches!(default, Some(Value::String(_))) {
        return text.into();
    }
    let trimmed = text.trim();
    if let Some(flag) = truth(trimmed) {
        return flag.into();
    }
    if trimmed.starts_with(['[', '{']) {
        let node = yaml::parse(trimmed).ok().flatten();
        let collection = node.filter(|node| !matches!(node.content, Content::Scalar(_)));
        return collection.map_or_else(|| text.into(), |node| node.to_value());
    }
    match yaml::resolve_scalar(trimmed) {
        Value::String(_) => text.into(),
        Value::Null if trimmed.is_empty() => text.into(),
        value => value,
    }
}

fn warning(settings: &Settings, key: &Key) -> Option<String> {
    if !settings.is_known(key) {
        let (section, name) = key.segments().split_at(key.segments().len() - 1);
        let near = suggest::nearest(settings.built_in(), section, &name[0]);
        let question = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Some(format!(
            "`{key}` is not a setting we know; it is saved as it is{question}"
        ));
    }
    if is_unused(key, settings.built_in()) {
        return Some(format!(
            "`{key}` is saved, and has no effect in this version"
        ));
    }
    let hidden_by = settings.origin(&key.to_string()).filter(|origin| {
        matches!(
            origin.source,
            Source::Project(_) | Source::Variable(_) | Source::Flags
        )
    });
    hidden_by.map(|origin| format!("`{key}` is saved, but another value is in effect: {origin}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_user_types_takes_the_type_it_looks_like() {
        for (text, default, expected) in [
            ("yes", Some(json!(false)), json!(true)),
            ("off", None, json!(false)),
            ("off", Some(json!("smart")), json!("off")),
            ("42", Some(json!(90)), json!(42)),
            ("42", Some(json!("")), json!("42")),
            ("0.5", None, json!(0.5)),
            ("null", Some(json!(null)), json!(null)),
            ("", None, json!("")),
            ("[a, {b: 1}]", Some(json!([])), json!(["a", {"b": 1}])),
            ("[broken", None, json!("[broken")),
            ("two words", None, json!("two words")),
        ] {
            assert_eq!(coerce(text, default.as_ref()), expected, "{text}");
        }
    }

    #[test]
    fn keys_of_services_belong_into_the_env_file() {
        assert_eq!(
            variable_name("openai_api_key").as_deref(),
            Some("OPENAI_API_KEY")
        );
        assert_eq!(
            variable_name("SLACK_BOT_TOKEN").as_deref(),
            Some("SLACK_BOT_TOKEN")
        );
        assert_eq!(
            variable_name("modal_token_id").as_deref(),
            Some("MODAL_TOKEN_ID")
        );
        assert_eq!(variable_name("auxiliary.vision.api_key"), None);
        assert_eq!(variable_name("max_tokens"), None);
    }
}
