//! Logging in at a provider and out again: a person confirms a code in a browser, here or on any other machine.

use hermes_config::{AuthFile, StoredLogin, UsedLogin, used_logins};
use hermes_core::{Clock as _, LoginTokens};
use hermes_llm::Provider;
use hermes_llm::login::{DeviceFlow, DeviceLogin, LoginServer, Pace, Prompt, revoke};
use hermes_llm::{LoginError, providers};

use crate::base::Base;
use crate::commands::browser::open_browser;
use crate::commands::interview::{Choice, Interview};
use crate::failure::{Failure, Outcome, code};
use crate::output::{note, println};
use crate::signals::Signals;
use hermes_runtime::SystemClock;
use hermes_runtime::models::chosen::key_variables;
use hermes_runtime::models::keys::provider_of;
use hermes_runtime::models::settings::model_settings;

/// Whether the address is opened or only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenBrowser {
    IfThereIsOne,
    Never,
}

/// Logs in, until Ctrl-C calls it off.
pub(super) async fn run(
    base: &Base,
    provider: &'static Provider,
    login: &'static DeviceLogin,
    browser: OpenBrowser,
) -> Outcome<()> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        done = log_in(base, provider, login, browser) => done?,
        _ = signals.interrupted() => return Err(called_off(&signals)),
    }
    what_next(base, provider)
}

/// Logs in and keeps the tokens. Dropped before it is done, it keeps nothing.
///
/// Does not listen for signals: who asks questions afterwards wants Ctrl-C to leave at each of them.
pub(crate) async fn log_in(
    base: &Base,
    provider: &'static Provider,
    login: &'static DeviceLogin,
    browser: OpenBrowser,
) -> Outcome<()> {
    // Before anybody confirms a code: a file that cannot take the tokens is told first.
    AuthFile::open(base.home.directory())?;
    let server = LoginServer::of(provider.id, login, &|name| base.variable(name))
        .map_err(hermes_llm::ResolveError::from)?;
    let tokens = tokens(base, provider, server, browser).await?;
    save(base, provider, &tokens)?;
    println(&format!(
        "logged in at {}; the login is in `{}` and renews itself",
        provider.label,
        base.home.auth_json().display()
    ))
}

async fn tokens(
    base: &Base,
    provider: &Provider,
    server: LoginServer,
    browser: OpenBrowser,
) -> Outcome<LoginTokens> {
    let flow = DeviceFlow::begin(server, Pace::default()).await?;
    let Prompt { url, code } = flow.prompt();
    println(&format!(
        "Log in at {} with your browser, on this machine or any other:\n\n  {url}\n\nIt should show this code: {code}\n\nWaiting until you have confirmed it; Ctrl-C calls it off.",
        provider.label
    ))?;
    if browser == OpenBrowser::IfThereIsOne {
        open_browser(base, url);
    }
    let told = |error: &LoginError| note(&format!("{error}; still waiting"));
    Ok(flow.wait(&SystemClock, told).await?)
}

fn save(base: &Base, provider: &Provider, tokens: &LoginTokens) -> Outcome<()> {
    let now = SystemClock.now();
    AuthFile::change(base.home.directory(), now, |file| {
        file.keep_login(provider.id, tokens, now);
        file.prefer_login(provider.id);
        Ok::<(), Failure>(())
    })
}

/// Says what stands between the login and its use.
fn what_next(base: &Base, provider: &Provider) -> Outcome<()> {
    let settings = model_settings(base)?;
    let mut in_front = key_variables(base, provider.id);
    if settings.stored_keys.contains_key(provider.id) {
        in_front.push("a key in auth.json");
    }
    if !in_front.is_empty() {
        note(&format!(
            "{} goes before the login, and is used as long as it is there",
            in_front.join(", ")
        ));
    }
    let chosen = settings
        .choice
        .provider
        .as_deref()
        .and_then(providers::find);
    if chosen.is_none_or(|chosen| chosen.id != provider.id) {
        note(&format!(
            "`hermes model set {}:{}` chooses a model of it",
            provider.id, provider.default_model
        ));
    }
    Ok(())
}

fn called_off(signals: &Signals) -> Failure {
    let code = if signals.was_terminated() {
        code::TERMINATED
    } else {
        code::INTERRUPTED
    };
    Failure {
        code,
        ..Failure::new("the login was called off; nothing was saved")
    }
}

/// Asks where to log in.
pub(super) fn ask_where_in(base: &Base) -> Outcome<&'static str> {
    let offered = providers::PROVIDERS
        .iter()
        .filter(|provider| provider.login.is_some());
    let offered = offered.map(|provider| (provider.id, provider.label));
    ask_where(
        base,
        "hermes login",
        "Where do you want to log in?",
        offered,
    )
}

/// Finds out which login is meant: the only one, or the one that is chosen.
pub(super) fn ask_where_out(base: &Base) -> Outcome<String> {
    let used = used_logins(&base.home)?;
    match used.as_slice() {
        [] => Err(Failure::new("nobody is logged in anywhere")
            .hint("`hermes auth` shows all keys and logins")),
        [only] => Ok(only.provider.clone()),
        several => {
            let label = |id| providers::find(id).map_or(id, |provider| provider.label);
            let ids = several.iter().map(|used| used.provider.as_str());
            let logins = ids.map(|id| (id, label(id)));
            let question = "Which login should be forgotten?";
            ask_where(base, "hermes logout", question, logins).map(str::to_owned)
        }
    }
}

/// Asks for one of these ids, each with a label. Without anybody to answer, says how to name it.
fn ask_where<'a>(
    base: &Base,
    command: &'static str,
    question: &str,
    places: impl Iterator<Item = (&'a str, &'a str)>,
) -> Outcome<&'a str> {
    let places: Vec<_> = places.collect();
    let Some(mut interview) = Interview::begin(&base.environment, command) else {
        let ids: Vec<&str> = places.iter().map(|(id, _)| *id).collect();
        return Err(Failure::usage(format!("{command} needs to know where"))
            .hint(format!("`{command} PROVIDER`, one of: {}", ids.join(", "))));
    };
    interview.title(question);
    interview.choose(
        places
            .into_iter()
            .map(|(id, label)| Choice {
                value: id,
                text: format!("{id:<12} {label}"),
            })
            .collect(),
    )
}

/// Forgets a login, and ends it at the provider where that is possible.
pub(super) async fn log_out(base: &Base, name: &str) -> Outcome<()> {
    let provider = provider_of(base, name)?;
    let used = used_logins(&base.home)?;
    let used = used.iter().find(|used| used.provider == provider);
    let UsedLogin { folder, .. } = used.ok_or_else(|| not_logged_in(&provider))?;
    let removed = AuthFile::change(folder, SystemClock.now(), |file| {
        Ok::<_, Failure>(file.remove_login(&provider))
    })?;
    println(&format!("logged out of {provider}"))?;
    let known = providers::find(&provider);
    let login = known.and_then(|known| Some((known.id, known.login?)));
    let Some(((id, login), StoredLogin::Open(tokens))) = login.zip(removed) else {
        return Ok(());
    };
    let server = LoginServer::of(id, login, &|name| base.variable(name));
    let server = server.map_err(hermes_llm::ResolveError::from)?;
    let revoked = match &tokens.refresh {
        Some(refresh) => revoke(&server, refresh).await,
        None => Ok(false),
    };
    match revoked {
        Ok(true) => {}
        Ok(false) => note(&format!(
            "{} has no way to end the login from here; it ends by itself, or at {}",
            provider, login.page
        )),
        Err(error) => note(&format!(
            "{error}; the login is forgotten here, and can be ended at {}",
            login.page
        )),
    }
    Ok(())
}

fn not_logged_in(provider: &str) -> Failure {
    Failure::new(format!("nobody is logged in at {provider}"))
        .hint("stored keys are forgotten with `hermes auth remove`; `hermes auth` shows everything")
}
