//! One question to one service that speaks JSON: not MCP, but with the same proxies and the same care.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::answer::{body, refusal};
use super::client::{Address, HttpFailure, client};
use super::streamable::JSON;
use crate::failure::Failure;
use crate::settings::TlsSettings;

/// Sends `question` to a service and returns its answer.
pub(crate) async fn fetch_json(
    url: &str,
    question: &Value,
    environment: &[(String, String)],
) -> Result<Value, Failure> {
    let client = client(&Address {
        url,
        headers: &BTreeMap::new(),
        tls: &TlsSettings::default(),
        environment,
    })
    .await?;
    let request = client.post(url).header(CONTENT_TYPE, JSON);
    let response = request.body(question.to_string()).send().await;
    let response = response.map_err(|error| HttpFailure::from(error).0)?;
    if !response.status().is_success() {
        return Err(Failure::Http(refusal(response, false).await));
    }
    let answer = body(response).await.map_err(|failure| failure.0)?;
    serde_json::from_slice(&answer).map_err(|error| Failure::Unreadable {
        cause: format!("its answer is not JSON: {error}"),
    })
}
