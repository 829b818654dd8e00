//! `hermes auth reset`: forgets that a provider refused something, so that it is tried again.

use hermes_config::{AuthFile, StoredLogin, used_keys, used_logins};
use hermes_core::Clock as _;

use super::provider_of;
use crate::base::Base;
use crate::commands::layout::count;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use hermes_runtime::SystemClock;

pub(super) fn run(base: &Base, provider: &str) -> Outcome<()> {
    let provider = provider_of(base, provider)?;
    let told: Vec<String> = [keys(base, &provider)?, login(base, &provider)?]
        .into_iter()
        .flatten()
        .collect();
    if told.is_empty() {
        Err(Failure::new(format!(
            "there is no stored key of {provider}, and no login"
        ))
        .hint("only those rest for longer than a conversation; `hermes auth` shows all"))
    } else {
        println(&told.join("\n"))
    }
}

/// Wakes the stored keys; nothing to tell when there are none.
fn keys(base: &Base, provider: &str) -> Outcome<Option<String>> {
    let used = used_keys(&base.home)?;
    let Some((folder, _)) = used.iter().find(|(_, key)| key.provider == provider) else {
        return Ok(None);
    };
    let woken = AuthFile::change(folder, SystemClock.now(), |file| {
        Ok::<usize, Failure>(file.wake(provider))
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
fn login(base: &Base, provider: &str) -> Outcome<Option<String>> {
    let used = used_logins(&base.home)?;
    let Some(used) = used.iter().find(|used| used.provider == provider) else {
        return Ok(None);
    };
    let (was_over, login) = AuthFile::change(&used.folder, SystemClock.now(), |file| {
        let was_over = file.forget_end(provider);
        Ok::<_, Failure>((was_over, file.login(provider)))
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
