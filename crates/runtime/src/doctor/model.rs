//! Whether there is a model that would answer.

use std::time::Duration;

use futures_util::future::join_all;
use hermes_config::used_logins;
use hermes_core::Clock as _;
use hermes_llm::discover::{DiscoverError, Offered, list_models};
use hermes_llm::settings::Route;

use super::Check;
use crate::SystemClock;
use crate::base::Base;
use crate::layout::one_line;
use crate::models::chosen::{ChosenModel, KeySource};
use crate::models::settings::model_settings;
use crate::models::standing::Standing;
use crate::models::stated_windows;
use crate::models::with_token;

/// A provider that needs longer to list its models is no fun to talk to.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

pub(super) async fn checks(base: &Base, is_offline: bool) -> Vec<Check> {
    let chosen = match ChosenModel::of(base) {
        Ok(chosen) => chosen,
        Err(error) => {
            const ASK: &str = "`hermes setup model` asks for what is needed and tries it";
            let fix = match error.hint() {
                Some(hint) if hint.contains("hermes setup") => hint,
                Some(hint) => format!("{ASK}; or {hint}"),
                None => ASK.to_owned(),
            };
            return vec![Check::broken("model", error.to_string(), fix)];
        }
    };
    let mut checks = vec![
        Check::good("model", chosen.route.name.to_string()),
        key(&chosen),
    ];
    let advised = chosen.mixture.as_ref();
    checks.extend(advised.map(|mixture| Check::good("mixture", mixture.to_string())));
    let fallbacks = fallbacks(base);
    if !is_offline {
        let references = advised.map_or(&[][..], |mixture| &mixture.references);
        let routes = std::iter::once(&chosen.route)
            .chain(references)
            .chain(&fallbacks);
        let routes = routes.map(|route| provider(base, route));
        checks.extend(join_all(routes).await);
    }
    checks
}

/// Logins that ended, with the way to begin them again.
pub(super) fn logins(base: &Base) -> Vec<Check> {
    let now = SystemClock.now();
    // A file that cannot be read is told elsewhere, or by whoever needs it.
    let used = used_logins(&base.home).unwrap_or_default();
    let checks = used.into_iter().filter_map(|used| {
        let standing = Standing::of(&used.provider, &used.login, now);
        let provider = one_line(&used.provider);
        let text = format!("{provider}: {}", standing.text(now));
        match standing {
            Standing::Over { .. } => Some(Check::doubtful(
                "login",
                text,
                format!("`hermes auth add {provider}`"),
            )),
            Standing::Renewed { .. } | Standing::Passing { .. } => Some(Check::good("login", text)),
            Standing::Foreign => None,
        }
    });
    checks.collect()
}

/// The models that are asked when the chosen one fails. Those that cannot be are told of when a conversation starts.
fn fallbacks(base: &Base) -> Vec<Route> {
    let resolved = model_settings(base)
        .ok()
        .and_then(|settings| hermes_llm::resolve(&settings, &|name| base.variable(name)).ok());
    resolved.map_or(Vec::new(), |resolved| resolved.fallbacks)
}

fn key(chosen: &ChosenModel) -> Check {
    match &chosen.key {
        KeySource::Missing => Check::doubtful("key", "none", chosen.route.key_hint.clone()),
        source => Check::good("key", source.to_string()),
    }
}

/// Asks for the list of models: the smallest request that needs the network, the address and the key.
async fn provider(base: &Base, route: &Route) -> Check {
    const NAME: &str = "provider";
    let url = &route.base_url;
    let asked = match with_token(base, route.clone()).await {
        Ok(asked) => asked,
        Err(error) => return Check::broken(NAME, error.to_string(), error.hint()),
    };
    match tokio::time::timeout(ANSWER_DEADLINE, list_models(&asked)).await {
        Ok(Ok(models)) => {
            stated_windows::remember(&base.home, url, &models);
            listed(route, &models)
        }
        Ok(Err(DiscoverError::Refused {
            status: status @ (401 | 403),
            ..
        })) => Check::broken(
            NAME,
            format!("`{url}` refuses the key (HTTP status {status})"),
            route.key_hint.clone(),
        ),
        Ok(Err(DiscoverError::Refused { status, .. })) if status < 500 => Check::good(
            NAME,
            format!("`{url}` answers, but lists no models (HTTP status {status})"),
        ),
        Ok(Err(error)) => Check::broken(NAME, with_cause(&error), reach(route)),
        Err(_) => Check::broken(
            NAME,
            format!(
                "`{url}` did not answer within {} s",
                ANSWER_DEADLINE.as_secs()
            ),
            reach(route),
        ),
    }
}

fn listed(route: &Route, models: &[Offered]) -> Check {
    const NAME: &str = "provider";
    let model = &route.name.model;
    let is_listed = models.iter().any(|offered| offered.model == *model);
    if is_listed || models.is_empty() {
        Check::good(NAME, format!("`{}` answers", route.base_url))
    } else {
        Check::doubtful(
            NAME,
            format!("`{}` answers, but does not list `{model}`", route.base_url),
            "`hermes model list` shows what it has, `hermes model set MODEL` chooses one",
        )
    }
}

/// The error and what is at its bottom, which is what can be mended: a name, a port, a certificate.
fn with_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    match causes.last() {
        Some(cause) => format!("{error}: {}", one_line(&cause.to_string())),
        None => error.to_string(),
    }
}

fn reach(route: &Route) -> String {
    let url = &route.base_url;
    if route.local {
        format!("start the server at {url}, or `hermes config set model.base_url ADDRESS`")
    } else {
        format!(
            "`curl -sS {url}` has to reach it from here: look at the network, at the proxy (HTTPS_PROXY), and at \
             `hermes config get model.base_url`"
        )
    }
}
