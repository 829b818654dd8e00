//! Where a request goes and which headers it has. What is in it is the business of `encode`.

use hermes_core::Secret;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::providers::Protocol;
use crate::settings::Route;

const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Subscription tokens, unlike API keys, are bearer tokens and need to be announced.
const ANTHROPIC_SUBSCRIPTION_PREFIX: &str = "sk-ant-oat";
const ANTHROPIC_SUBSCRIPTION_BETA: &str = "oauth-2025-04-20";

/// A header that HTTP cannot carry. Its value may be a secret and is not part of the message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the header `{name}` cannot be sent: its name or value has characters that HTTP does not allow"
)]
pub struct BadHeader {
    name: String,
}

/// The address requests are posted to.
pub(crate) fn url(route: &Route) -> String {
    let base = &route.base_url;
    match route.protocol {
        Protocol::OpenAiChat => format!("{base}/chat/completions"),
        Protocol::OpenAiResponses => format!("{base}/responses"),
        Protocol::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Protocol::Anthropic => format!("{base}/v1/messages"),
        Protocol::Gemini => {
            let model = &route.name.model;
            format!("{base}/models/{model}:streamGenerateContent?alt=sse")
        }
    }
}

/// All headers of a request. The user's own replace ours.
pub(crate) fn headers(route: &Route, key: Option<&Secret>) -> Result<HeaderMap, BadHeader> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.extend(identity(route.protocol, key, &route.headers)?);
    Ok(headers)
}

/// The headers that say who asks, and those of the user's own.
pub(crate) fn identity(
    protocol: Protocol,
    key: Option<&Secret>,
    own: &[(String, Secret)],
) -> Result<HeaderMap, BadHeader> {
    let mut headers = HeaderMap::new();
    for (name, value) in auth_headers(protocol, key).iter().chain(own) {
        let bad = || BadHeader { name: name.clone() };
        let field: HeaderName = name.parse().map_err(|_| bad())?;
        let mut value: HeaderValue = value.expose().parse().map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(field, value);
    }
    Ok(headers)
}

fn auth_headers(protocol: Protocol, key: Option<&Secret>) -> Vec<(String, Secret)> {
    let header = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
    let bearer = |key: &str| header("authorization", &format!("Bearer {key}"));
    let mut headers = Vec::new();
    if protocol == Protocol::Anthropic {
        headers.push(header("anthropic-version", ANTHROPIC_VERSION));
    }
    let Some(key) = key.map(Secret::expose) else {
        return headers;
    };
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses => headers.push(bearer(key)),
        Protocol::Gemini => headers.push(header("x-goog-api-key", key)),
        Protocol::Anthropic if key.starts_with(ANTHROPIC_SUBSCRIPTION_PREFIX) => {
            headers.push(bearer(key));
            headers.push(header("anthropic-beta", ANTHROPIC_SUBSCRIPTION_BETA));
        }
        Protocol::Anthropic => headers.push(header("x-api-key", key)),
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{ModelChoice, ModelSettings, ProviderOptions};

    fn route(headers: &[(&str, &str)]) -> Route {
        let options = ProviderOptions {
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).into(), Secret::new(*value)))
                .collect(),
            ..ProviderOptions::default()
        };
        let settings = ModelSettings {
            choice: ModelChoice {
                provider: Some("openrouter".into()),
                model: Some("m".into()),
                api_key: Some(Secret::new("k")),
                ..ModelChoice::default()
            },
            provider_options: [("openrouter".to_owned(), options)].into(),
            ..ModelSettings::default()
        };
        crate::resolve(&settings, &|_| None).unwrap().primary
    }

    #[test]
    fn headers_of_the_user_replace_ours() {
        let route = route(&[("Authorization", "mine"), ("x-title", "t")]);
        let headers = headers(&route, route.keys.first()).unwrap();
        assert_eq!(headers["authorization"], "mine");
        assert_eq!(headers["x-title"], "t");
        assert!(!format!("{headers:?} {route:?}").contains("mine"));
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let route = route(&[("x-title", "a\nb")]);
        let error = headers(&route, None).unwrap_err().to_string();
        assert!(
            error.contains("`x-title`") && !error.contains("a\nb"),
            "{error}"
        );
    }
}
