//! Which models an endpoint has, and which local servers are running.

use std::time::Duration;

use hermes_core::Secret;
use serde_json::Value;
use tokio::time::timeout;

use crate::http::Http;
use crate::providers::{PROVIDERS, Protocol, Provider};
use crate::request::{BadHeader, identity};
use crate::settings::Route;

/// A list is asked for while somebody waits at a prompt.
const LIST_DEADLINE: Duration = Duration::from_secs(10);
/// A server on this machine that does not answer at once is not there.
const PROBE_DEADLINE: Duration = Duration::from_millis(500);
/// Room for thousands of models with their descriptions.
const LIST_BYTES_MAX: usize = 8 << 20;

/// A model an endpoint offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub model: String,
    pub context_length: Option<u64>,
}

/// A local server that answered.
#[derive(Debug, Clone)]
pub struct LocalServer {
    pub provider: &'static Provider,
    pub models: Vec<Offered>,
}

#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    #[error("`{url}` did not answer within {} s", .after.as_secs_f64())]
    Late { url: String, after: Duration },
    #[error("cannot reach `{url}`")]
    Unreachable { url: String, source: reqwest::Error },
    #[error("`{url}` answered with HTTP status {status}")]
    Refused { url: String, status: u16 },
    #[error("`{url}` did not answer with a list of models")]
    NotAList { url: String },
    #[error(transparent)]
    BadHeader(#[from] BadHeader),
}

/// Lists the models of a route's endpoint.
pub async fn list_models(route: &Route) -> Result<Vec<Offered>, DiscoverError> {
    let place = ModelEndpoint {
        base_url: &route.base_url,
        protocol: route.protocol,
        key: route.keys.first(),
        headers: &route.headers,
    };
    list(&place, LIST_DEADLINE).await
}

/// Looks for the local servers we know, all at once.
pub async fn local_servers() -> Vec<LocalServer> {
    let local = PROVIDERS
        .iter()
        .filter(|provider| provider.local && !provider.base_url.is_empty());
    let probes = local.map(|provider| async move {
        let place = ModelEndpoint {
            base_url: provider.base_url,
            protocol: provider.protocol,
            key: None,
            headers: &[],
        };
        let models = list(&place, PROBE_DEADLINE).await.ok()?;
        Some(LocalServer { provider, models })
    });
    let found = futures_util::future::join_all(probes).await;
    found.into_iter().flatten().collect()
}

struct ModelEndpoint<'a> {
    base_url: &'a str,
    protocol: Protocol,
    key: Option<&'a Secret>,
    headers: &'a [(String, Secret)],
}

async fn list(
    place: &ModelEndpoint<'_>,
    deadline: Duration,
) -> Result<Vec<Offered>, DiscoverError> {
    let base_url = place.base_url;
    let url = match place.protocol {
        Protocol::Gemini => format!("{base_url}/models?pageSize=1000"),
        Protocol::Anthropic if !base_url.ends_with("/v1") => {
            format!("{base_url}/v1/models?limit=1000")
        }
        _ => format!("{base_url}/models"),
    };
    match timeout(deadline, fetch(place, &url, deadline)).await {
        Ok(models) => models,
        Err(_) => Err(DiscoverError::Late {
            url,
            after: deadline,
        }),
    }
}

async fn fetch(
    place: &ModelEndpoint<'_>,
    url: &str,
    deadline: Duration,
) -> Result<Vec<Offered>, DiscoverError> {
    let unreachable = |source| DiscoverError::Unreachable {
        url: url.to_owned(),
        source,
    };
    let not_a_list = || DiscoverError::NotAList {
        url: url.to_owned(),
    };
    let http = Http::new(deadline);
    let headers = identity(place.protocol, place.key, place.headers)?;
    let client = http.client(url).map_err(unreachable)?;
    let request = client.get(url).headers(headers);
    let mut response = request.send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(DiscoverError::Refused {
            url: url.to_owned(),
            status: response.status().as_u16(),
        });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&chunk);
        if body.len() > LIST_BYTES_MAX {
            return Err(not_a_list());
        }
    }
    let value: Value = serde_json::from_slice(&body).map_err(|_| not_a_list())?;
    read_list(&value).ok_or_else(not_a_list)
}

/// Reads `{"data": [{"id": …}]}` as most servers send it, or `{"models": [{"name": …}]}` as Gemini and Ollama do.
fn read_list(value: &Value) -> Option<Vec<Offered>> {
    let list = value["data"]
        .as_array()
        .or_else(|| value["models"].as_array())?;
    let read = |entry: &Value| {
        let name = entry["id"].as_str().or_else(|| entry["name"].as_str())?;
        let lengths = ["context_length", "max_model_len", "inputTokenLimit"];
        Some(Offered {
            model: name.strip_prefix("models/").unwrap_or(name).to_owned(),
            context_length: lengths.iter().find_map(|field| entry[*field].as_u64()),
        })
    };
    Some(list.iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_read_in_every_dialect() {
        let check = |value: Value, model: &str, context_length| {
            let expected = Offered {
                model: model.into(),
                context_length,
            };
            assert_eq!(read_list(&value), Some(vec![expected]));
        };
        check(
            json!({"data": [{"id": "a/b", "context_length": 4096}]}),
            "a/b",
            Some(4096),
        );
        check(
            json!({"data": [{"id": "q", "max_model_len": 8}]}),
            "q",
            Some(8),
        );
        check(
            json!({"models": [{"name": "models/gemini-x", "inputTokenLimit": 9}]}),
            "gemini-x",
            Some(9),
        );
        check(
            json!({"models": [{"name": "llama3:8b"}]}),
            "llama3:8b",
            None,
        );
        assert_eq!(read_list(&json!({"error": "no"})), None);
    }
}
