//! Adding a key, read unseen, tried with a real request, then stored; or a login, where the provider has one.

use std::io::{self, IsTerminal as _, Read as _};

use hermes_config::{AuthFile, StoredKey};
use hermes_core::{Clock as _, Secret};
use hermes_llm::login::DeviceLogin;
use hermes_llm::providers::{self, PROVIDERS, Provider};
use hermes_llm::settings::ModelSettings;

use super::{OpenBrowser, login};
use crate::args::{AuthAddArgs, AuthKind};
use crate::base::Base;
use crate::commands::interview::{Interview, options};
use crate::commands::layout::{count, one_line};
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};
use hermes_runtime::SystemClock;
use hermes_runtime::models::choice::known;
use hermes_runtime::models::keys::named;
use hermes_runtime::models::settings::model_settings;
use hermes_runtime::models::try_out::{Candidate, try_out};

/// Longer than any key; some are whole signed tokens.
const KEY_BYTES_MAX: u64 = 16 * 1024;

pub(super) async fn run(base: &Base, args: AuthAddArgs) -> Outcome<()> {
    let settings = model_settings(base)?;
    let provider = known(&settings, &args.provider)?;
    if let Some((provider, login)) = login_wanted(base, &args, &provider)? {
        if args.label.is_some() {
            return Err(
                Failure::usage("a login has no label: there is one for each provider")
                    .hint("leave --label out"),
            );
        }
        let browser = if args.no_browser {
            OpenBrowser::Never
        } else {
            OpenBrowser::IfThereIsOne
        };
        return login::run(base, provider, login, browser).await;
    }
    let label = args.label.as_deref().map(checked_label).transpose()?;
    // Before anybody types a key: a file that cannot take it is told first.
    let file = AuthFile::open(base.home.directory())?;
    refuse_taken_label(&file, &provider, label)?;
    let key = read_key(base, &args, &provider)?;
    if let Some(twin) = twin(&file, &provider, &key) {
        return already_there(&provider, &twin);
    }
    if args.no_check {
        note("not tried, as asked");
    } else {
        check(base, &settings, &provider, &key).await?;
    }
    save(base, &provider, &key, label)
}

/// Returns the login that is wanted rather than a key: as the flags say or, where both are possible, the person.
fn login_wanted(
    base: &Base,
    args: &AuthAddArgs,
    provider: &str,
) -> Outcome<Option<(&'static Provider, &'static DeviceLogin)>> {
    let known = PROVIDERS.iter().find(|known| known.id == provider);
    let login = known.and_then(|known| Some((known, known.login?)));
    let Some((known, _)) = login else {
        return match args.kind {
            Some(AuthKind::Oauth) => Err(no_login(provider)),
            _ => Ok(None),
        };
    };
    let takes_keys = !known.key_envs.is_empty();
    let is_wanted = match args.kind {
        Some(AuthKind::Oauth) => true,
        Some(AuthKind::ApiKey) => false,
        None if args.api_key.is_some() => false,
        None if !takes_keys => true,
        None => ask_how(base, known)?,
    };
    if is_wanted || takes_keys {
        Ok(login.filter(|_| is_wanted))
    } else {
        Err(Failure::usage(format!("{provider} takes no keys"))
            .hint(format!("log in with `hermes auth add {provider}`")))
    }
}

fn no_login(provider: &str) -> Failure {
    let has_login = PROVIDERS.iter().filter(|known| known.login.is_some());
    let ids: Vec<&str> = has_login.map(|known| known.id).collect();
    Failure::usage(format!("{provider} has no login that this version knows")).hint(format!(
        "logins are at {}; `hermes auth add {provider}` takes a key",
        ids.join(", ")
    ))
}

/// Asks whoever is there; a key may come from a pipe, a login may not.
fn ask_how(base: &Base, provider: &Provider) -> Outcome<bool> {
    let Some(mut interview) = Interview::begin(&base.environment, "hermes auth add") else {
        return Ok(false);
    };
    interview.title(&format!("How do you want to use {}?", provider.label));
    interview.choose(options([
        (true, "log in with a browser"),
        (false, "paste an API key"),
    ]))
}

fn checked_label(label: &str) -> Outcome<&str> {
    let label = label.trim();
    if label.is_empty() || one_line(label) != label {
        Err(Failure::usage("a label is a few words in one line").hint("--label work"))
    } else {
        Ok(label)
    }
}

fn refuse_taken_label(file: &AuthFile, provider: &str, label: Option<&str>) -> Outcome<()> {
    let is_taken = |key: &StoredKey| key.provider == provider && Some(key.label.as_str()) == label;
    match file.keys().iter().find(|key| is_taken(key)) {
        Some(key) => Err(
            Failure::usage(format!("{provider} has {} already", named(key)))
                .hint("choose another --label"),
        ),
        None => Ok(()),
    }
}

/// The key from the flag, from a person who types it unseen, or from whatever stands before us in a pipe.
fn read_key(base: &Base, args: &AuthAddArgs, provider: &str) -> Outcome<Secret> {
    let text = match &args.api_key {
        Some(key) => {
            note("a key on the command line may be seen by others, and your shell remembers it");
            key.clone()
        }
        None if io::stdin().is_terminal() => ask(base, provider)?,
        None => read_input()?,
    };
    let key = text.trim();
    if key.is_empty() {
        return Err(Failure::usage("no key was given; nothing was saved").hint(format!(
            "run `hermes auth add {provider}` in a terminal, or put the key into standard input: \
             `hermes auth add {provider} < key.txt`"
        )));
    }
    if key.contains(|sign: char| sign.is_whitespace() || sign.is_control()) {
        return Err(
            Failure::usage("a key is one word without spaces; nothing was saved")
                .hint("check what was copied"),
        );
    }
    Ok(Secret::new(key))
}

fn ask(base: &Base, provider: &str) -> Outcome<String> {
    let mut interview =
        Interview::begin(&base.environment, "hermes auth add").ok_or_else(|| {
            Failure::usage(
                "the question for the key would not be seen: standard error goes elsewhere",
            )
            .hint("let it go to the terminal, or put the key into standard input")
        })?;
    if let Some(provider) = providers::find(provider)
        && !provider.key_page.is_empty()
    {
        note(&format!(
            "keys of {} are at {}",
            provider.label, provider.key_page
        ));
    }
    interview.secret("paste the key")
}

fn read_input() -> Outcome<String> {
    let mut text = String::new();
    let mut input = io::stdin().take(KEY_BYTES_MAX + 1);
    let bytes = input.read_to_string(&mut text).map_err(|error| {
        Failure::new(format!("cannot read the key from standard input: {error}"))
            .hint("a key is plain text in one line")
    })?;
    if bytes as u64 > KEY_BYTES_MAX {
        Err(
            Failure::usage("what is in standard input is too long for a key; nothing was saved")
                .hint("a key is one line"),
        )
    } else {
        Ok(text)
    }
}

/// Asks the provider something with this key: the only proof that it is good.
async fn check(base: &Base, settings: &ModelSettings, provider: &str, key: &Secret) -> Outcome<()> {
    let candidate = candidate(settings, provider, key);
    note(&format!("asking {provider} …"));
    match try_out(base, &candidate).await.map_err(Failure::from) {
        Ok(elapsed) => {
            note(&format!("it answered in {:.1} s", elapsed.as_secs_f64()));
            Ok(())
        }
        Err(failure) => {
            let hint = failure.hint.as_deref().unwrap_or("try again");
            let hint = format!("{hint}; nothing was saved, --no-check saves it untried");
            // The provider may repeat what it was sent, and short keys look like ordinary words.
            let message = failure.message.replace(key.expose(), "***");
            Err(Failure { message, ..failure }.hint(hint))
        }
    }
}

/// The model that is chosen when it is this provider's, or else the provider's usual one.
fn candidate(settings: &ModelSettings, provider: &str, key: &Secret) -> Candidate {
    let choice = &settings.choice;
    let chosen = choice.provider.as_deref();
    let is_chosen = chosen.is_some_and(|name| known(settings, name).is_ok_and(|id| id == provider));
    let candidate = Candidate {
        provider: provider.to_owned(),
        key: Some(key.clone()),
        ..Candidate::default()
    };
    if is_chosen {
        Candidate {
            model: choice.model.clone().unwrap_or_default(),
            base_url: choice.base_url.clone(),
            api_mode: choice.api_mode.clone(),
            ..candidate
        }
    } else {
        candidate
    }
}

/// Stores the key, unless another process was faster.
fn save(base: &Base, provider: &str, key: &Secret, label: Option<&str>) -> Outcome<()> {
    let folder = base.home.directory();
    let saved = AuthFile::change(folder, SystemClock.now(), |file| {
        if let Some(twin) = twin(file, provider, key) {
            return Ok(Err(twin));
        }
        refuse_taken_label(file, provider, label)?;
        let added = file.add(provider, key, label);
        let keys = file.keys();
        let number = keys.iter().filter(|key| key.provider == provider).count();
        Ok::<_, Failure>(Ok((added, number)))
    })?;
    match saved {
        Err(twin) => already_there(provider, &twin),
        Ok((added, 1)) => println(&format!(
            "added {} to {provider}, in `{}`",
            named(&added),
            base.home.auth_json().display()
        )),
        Ok((added, number)) => println(&format!(
            "added {} to {provider}, which has {} now",
            named(&added),
            count(number as u64, "stored key")
        )),
    }
}

fn twin(file: &AuthFile, provider: &str, key: &Secret) -> Option<StoredKey> {
    let mut keys = file.keys().into_iter();
    keys.find(|known| known.provider == provider && known.secret == *key)
}

fn already_there(provider: &str, twin: &StoredKey) -> Outcome<()> {
    println(&format!("{provider} has it already: it is {}", named(twin)))
}
