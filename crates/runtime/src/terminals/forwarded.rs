//! What goes along to where commands run: the variables and credential files the settings name, and the skills.

use std::time::Duration;

use hermes_exec::{CredentialError, CredentialFile, Forwarded, ForwardedFiles, is_secret_name};
use serde_json::Value;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::skills::grants;

const VARIABLES: &str = "terminal.env_passthrough";
const CREDENTIALS: &str = "terminal.credential_files";

/// How often the home is looked at for changes: a person who edits a skill does not notice, and a busy session does not wait.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// What the settings let through.
pub(crate) fn packed(base: &Base) -> Result<Forwarded> {
    let named = base.settings.strings(VARIABLES)?;
    let variables = base.environment.iter();
    let variables = variables.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let credentials = credential_files(base)?.into_iter().filter_map(Result::ok);
    Ok(Forwarded {
        variables: hermes_exec::named_variables(variables, &named),
        granted: grants::granted(base),
        files: Some(ForwardedFiles {
            home: base.home.directory().to_owned(),
            folder: folder(base.home.profile()),
            credentials: credentials.chain(grants::granted_files(base)).collect(),
            look_interval: LOOK_INTERVAL,
        }),
    })
}

/// What the settings name and what does not go along nevertheless.
pub(crate) fn warnings(base: &Base) -> Result<Vec<String>> {
    let named = base.settings.strings(VARIABLES)?;
    let mut warnings: Vec<String> = named
        .iter()
        .filter(|name| is_secret_name(name))
        .map(|name| refused_variable(name))
        .collect();
    // Commands on this machine find the files where they are.
    if base.settings.string("terminal.backend")? == "local" {
        return Ok(warnings);
    }
    let home = base.home.directory();
    let problems = credential_files(base)?.into_iter();
    let problems = problems.filter_map(|file| file.and_then(|file| file.find(home)).err());
    warnings.extend(problems.map(|problem| {
        format!("a file of `{CREDENTIALS}` does not go along with commands: {problem}")
    }));
    Ok(warnings)
}

fn refused_variable(name: &str) -> String {
    format!(
        "`{VARIABLES}` names `{name}`, which looks like a key and is never passed on to commands; put what a command needs \
         into a file and name that in `{CREDENTIALS}`, or allow it to a skill that asks for it: `hermes skills allow SKILL {name}`"
    )
}

/// Where the home of Hermes is over there: as it usually is here.
fn folder(profile: Option<&str>) -> String {
    match profile {
        None => "~/.hermes".to_owned(),
        Some(name) => format!("~/.hermes/profiles/{name}"),
    }
}

/// Reads a list of paths; each is a text, or a mapping with a `path`.
fn credential_files(base: &Base) -> Result<Vec<Result<CredentialFile, CredentialError>>> {
    let entries = match base.settings.get(CREDENTIALS) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(value) => value.as_array(),
    };
    let path = |entry: &Value| {
        let path = entry.as_str().or_else(|| entry["path"].as_str())?;
        Some(CredentialFile::new(path))
    };
    let files = entries.and_then(|entries| entries.iter().map(path).collect());
    files.ok_or_else(|| {
        Error::asked(format!("`{CREDENTIALS}` must be a list of paths")).with_hint(
            "write it as `credential_files: [google_token.json]`, below the home of Hermes",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_no_provider_is_ever_passed_on() {
        for provider in hermes_llm::providers::PROVIDERS {
            for name in provider.key_envs {
                assert!(is_secret_name(name), "{name}");
            }
        }
    }
}
