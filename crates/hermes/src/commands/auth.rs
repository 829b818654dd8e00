//! `hermes auth`: the keys of providers, several of which can take turns, and the logins. Nothing here ever prints a
//! secret.

mod add;
mod list;
mod login;
mod reset;
mod status;

use hermes_config::{AuthFile, StoredKey, used_keys, used_logins};
use hermes_core::{Clock as _, Secret};

use super::layout::one_line;
use crate::args::{AuthAddArgs, AuthArgs, AuthCommand, AuthKind, LoginArgs, LoginPlace};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use hermes_runtime::SystemClock;
use hermes_runtime::models::choice::known;
use hermes_runtime::models::settings::model_settings;

use hermes_runtime::models::standing::Standing;
pub(super) use login::{OpenBrowser, log_in};

/// Of a key this long, its end tells it from others and gives nothing away.
const SHOWN_KEY_CHARS_MIN: usize = 20;
const SHOWN_END_CHARS: usize = 4;

pub(crate) async fn run(base: &Base, args: AuthArgs) -> Outcome<()> {
    match args.command {
        None => list::run(base, None, false),
        Some(AuthCommand::List { provider, json }) => {
            list::run(base, provider.as_deref(), json.json)
        }
        Some(AuthCommand::Add(args)) => add::run(base, args).await,
        Some(AuthCommand::Remove { provider, key }) => remove(base, &provider, &key),
        Some(AuthCommand::Reset { provider }) => reset::run(base, &provider),
        Some(AuthCommand::Status { provider, json }) => {
            status::run(base, provider.as_deref(), json.json)
        }
        Some(AuthCommand::Logout(place)) => log_out(base, &place).await,
    }
}

/// `hermes login`: `hermes auth add --type oauth` under the name people look for.
pub(crate) async fn log_in_at(base: &Base, args: LoginArgs) -> Outcome<()> {
    let provider = match args.place.provider() {
        Some(provider) => provider.to_owned(),
        None => login::ask_where_in(base)?.to_owned(),
    };
    let args = AuthAddArgs {
        provider,
        kind: Some(AuthKind::Oauth),
        no_browser: args.no_browser,
        ..AuthAddArgs::default()
    };
    add::run(base, args).await
}

/// `hermes logout`, and `hermes auth logout`.
pub(crate) async fn log_out(base: &Base, place: &LoginPlace) -> Outcome<()> {
    match place.provider() {
        Some(provider) => login::log_out(base, provider).await,
        None => login::log_out(base, &login::ask_where_out(base)?).await,
    }
}

fn remove(base: &Base, provider: &str, name: &str) -> Outcome<()> {
    let provider = provider_of(base, provider)?;
    let folder = base.home.directory();
    let removed = AuthFile::change(folder, SystemClock.now(), |file| {
        let mut keys = file.keys();
        keys.retain(|key| key.provider == provider);
        let key = find(base, &provider, &keys, name)?;
        file.remove(key);
        Ok::<StoredKey, Failure>(key.clone())
    })?;
    println(&format!(
        "forgot {} of {provider}; it is still valid there until you revoke it",
        named(&removed)
    ))
}

/// Finds a key of the home by its label, its id or its number.
fn find<'a>(
    base: &Base,
    provider: &str,
    keys: &'a [StoredKey],
    name: &str,
) -> Outcome<&'a StoredKey> {
    let called: Vec<&StoredKey> = keys
        .iter()
        .filter(|key| key.label == name || key.id == name)
        .collect();
    match called.as_slice() {
        [key] => Ok(*key),
        [] => {
            let number = name.parse::<usize>().ok();
            let position = number.and_then(|number| number.checked_sub(1));
            let key = position.and_then(|position| keys.get(position));
            key.ok_or_else(|| not_found(base, provider, keys, name))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|key| key.id.as_str()).collect();
            Err(Failure::usage(format!(
                "{provider} has several keys called `{}`",
                one_line(name)
            ))
            .hint(format!("name one by its id: {}", ids.join(", "))))
        }
    }
}

fn not_found(base: &Base, provider: &str, keys: &[StoredKey], name: &str) -> Failure {
    let failure = Failure::new(format!(
        "there is no stored key `{}` of {provider}",
        one_line(name)
    ));
    if !keys.is_empty() {
        return failure.hint(format!("`hermes auth list {provider}` shows them"));
    }
    let elsewhere = used_keys(&base.home).unwrap_or_default();
    let is_roots = elsewhere.iter().any(|(_, key)| key.provider == provider);
    failure.hint(if is_roots {
        format!(
            "the keys this profile uses are the default one's: `hermes -p default auth remove {provider} …`"
        )
    } else {
        "keys in variables and settings are removed where they stand; `hermes auth` shows where".to_owned()
    })
}

/// The name a provider's keys and login are stored under. Other programs may have stored some for one we do not know.
fn provider_of(base: &Base, name: &str) -> Outcome<String> {
    let keys = used_keys(&base.home)?;
    let logins = used_logins(&base.home)?;
    let is_stored = keys.iter().any(|(_, key)| key.provider == name)
        || logins.iter().any(|login| login.provider == name);
    if is_stored {
        return Ok(name.to_owned());
    }
    Ok(known(&model_settings(base)?, name)?)
}

/// A key as people know it.
fn named(key: &StoredKey) -> String {
    let masked = masked(&key.secret);
    match one_line(&key.label).as_str() {
        "" => format!("the key {masked}"),
        label => format!("the key `{label}` ({masked})"),
    }
}

/// The end of a long key, and nothing of a short one.
fn masked(key: &Secret) -> String {
    let chars = key.expose().chars().count();
    if chars < SHOWN_KEY_CHARS_MIN {
        return "***".to_owned();
    }
    let end = key.expose().chars().skip(chars - SHOWN_END_CHARS);
    format!("…{}", one_line(&end.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shows_the_end_of_a_long_key_and_nothing_of_a_short_one() {
        assert_eq!(masked(&Secret::new("sk-0123456789abcdefwxyz")), "…wxyz");
        assert_eq!(masked(&Secret::new("0123456789abcdefghi")), "***");
        assert_eq!(masked(&Secret::new("")), "***");
    }
}
