//! Forgetting: a stored key, or that a provider refused something, so that it is tried again.

use hermes_config::{AuthFile, StoredKey, StoredLogin, used_keys, used_logins};
use hermes_core::Clock as _;

use super::keys::{named, provider_of};
use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::layout::{count, one_line};

/// Forgets a stored key, which its label, its id or its number names. Returns what to tell of it.
pub fn forget_key(base: &Base, provider: &str, name: &str) -> Result<String> {
    let provider = provider_of(base, provider)?;
    let folder = base.home.directory();
    let removed = AuthFile::change(folder, SystemClock.now(), |file| {
        let mut keys = file.keys();
        keys.retain(|key| key.provider == provider);
        let key = find(base, &provider, &keys, name)?;
        file.remove(key);
        Ok::<StoredKey, Error>(key.clone())
    })?;
    Ok(format!(
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
) -> Result<&'a StoredKey> {
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
            Err(Error::asked(format!(
                "{provider} has several keys called `{}`",
                one_line(name)
            ))
            .with_hint(format!("name one by its id: {}", ids.join(", "))))
        }
    }
}

fn not_found(base: &Base, provider: &str, keys: &[StoredKey], name: &str) -> Error {
    let failure = Error::failed(format!(
        "there is no stored key `{}` of {provider}",
        one_line(name)
    ));
    if !keys.is_empty() {
        return failure.with_hint(format!("`hermes auth list {provider}` shows them"));
    }
    let elsewhere = used_keys(&base.home).unwrap_or_default();
    let is_roots = elsewhere.iter().any(|(_, key)| key.provider == provider);
    failure.with_hint(if is_roots {
        format!(
            "the keys this profile uses are the default one's: `hermes -p default auth remove {provider} …`"
        )
    } else {
        "keys in variables and settings are removed where they stand; `hermes auth` shows where".to_owned()
    })
}

/// Forgets that a provider refused its stored keys and its login. Returns what to tell of it, line by line.
pub fn forget_refusals(base: &Base, provider: &str) -> Result<String> {
    let provider = provider_of(base, provider)?;
    let told: Vec<String> = [keys(base, &provider)?, login(base, &provider)?]
        .into_iter()
        .flatten()
        .collect();
    if told.is_empty() {
        Err(Error::failed(format!(
            "there is no stored key of {provider}, and no login"
        ))
        .with_hint("only those rest for longer than a conversation; `hermes auth` shows all"))
    } else {
        Ok(told.join("\n"))
    }
}

/// Wakes the stored keys; nothing to tell when there are none.
fn keys(base: &Base, provider: &str) -> Result<Option<String>> {
    let used = used_keys(&base.home)?;
    let Some((folder, _)) = used.iter().find(|(_, key)| key.provider == provider) else {
        return Ok(None);
    };
    let woken = AuthFile::change(folder, SystemClock.now(), |file| {
        Ok::<usize, Error>(file.wake(provider))
    })?;
    Ok(Some(match woken {
        0 => format!("no key of {provider} rests"),
        woken => format!(
            "{} of {provider} no longer rest{}; conversations that begin now use {}",
            count(woken as u64, "key"),
            if woken == 1 { "s" } else { "" },
            if woken == 1 { "it" } else { "them" },
        ),
    }))
}

/// Forgets that the login has ended; nothing to tell when there is none.
fn login(base: &Base, provider: &str) -> Result<Option<String>> {
    let used = used_logins(&base.home)?;
    let Some(used) = used.iter().find(|used| used.provider == provider) else {
        return Ok(None);
    };
    let (was_over, login) = AuthFile::change(&used.folder, SystemClock.now(), |file| {
        let was_over = file.forget_end(provider);
        Ok::<_, Error>((was_over, file.login(provider)))
    })?;
    Ok(Some(match (was_over, login) {
        (true, Some(StoredLogin::Open(_))) => {
            format!("the login at {provider} is tried again at the next request")
        }
        (true, _) => format!(
            "forgot that the login at {provider} has ended; nothing of it is left: `hermes login {provider}` begins another"
        ),
        (false, _) => format!(
            "the login at {provider} was not refused; `hermes auth status {provider}` shows how it stands"
        ),
    }))
}
