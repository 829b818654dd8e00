//! The older HTTP+SSE transport: one stream down, one POST per message up.
//!
//! A GET opens the stream. Its first event, `endpoint`, says where messages are to be sent; their answers come over the
//! stream. When the stream ends, the connection has ended: the supervisor makes another.

use std::time::Duration;

use futures_util::StreamExt;
use http::header::CONTENT_TYPE;
use reqwest::Url;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::timeout;

use super::answer::{BODY_BYTES_MAX, content_type, is_stream, refusal, unpacked};
use super::events::{Events, events};
use super::streamable::{Headers, JSON};
use super::{HttpClient, HttpFailure};
use crate::failure::{Failure, HttpAnswer};
use crate::message;

/// Servers name the endpoint as soon as the stream is open.
const ENDPOINT_WAIT: Duration = Duration::from_secs(10);

/// An address longer than this is not one.
const ENDPOINT_BYTES_MAX: usize = 8 * 1024;

pub(crate) struct SseTransport {
    client: HttpClient,
    events: Events,
    /// Where messages are sent. It names our session.
    endpoint: Url,
    /// For servers that take a message only when they are done with it.
    post_timeout: Duration,
}

impl SseTransport {
    /// Opens the stream and learns where to send messages.
    pub(crate) async fn open(
        client: HttpClient,
        url: &str,
        post_timeout: Duration,
    ) -> Result<Self, Failure> {
        let request = client.dressed(client.client.get(url), None, Headers::new());
        let response = client.send(request, false).await;
        let response = response.map_err(|failure| failure.0)?;
        if !response.status().is_success() {
            return Err(not_opened(refusal(response, false).await));
        }
        if !is_stream(&response) {
            let content_type = content_type(&response);
            return Err(Failure::NotMcp { content_type });
        }
        let response = unpacked(response).map_err(|failure| failure.0)?;
        let base = response.url().clone();
        let mut events = events(response, BODY_BYTES_MAX);
        let named = timeout(ENDPOINT_WAIT, first_endpoint(&mut events));
        let endpoint = named.await.unwrap_or_else(|_| {
            let wait = ENDPOINT_WAIT.as_secs();
            Err(no_endpoint(&format!("within {wait} s")))
        })?;
        Ok(Self {
            endpoint: resolve(&base, &endpoint)?,
            client,
            events,
            post_timeout,
        })
    }
}

/// Says what a refusal of the stream means. Streamable servers refuse it in one of two ways.
fn not_opened(answer: HttpAnswer) -> Failure {
    match answer.status {
        400 | 405 => Failure::Unreadable {
            cause: format!("{answer}; if it speaks streamable HTTP, remove `transport: sse`"),
        },
        _ => Failure::Http(answer),
    }
}

fn no_endpoint(when: &str) -> Failure {
    Failure::Unreadable {
        cause: format!(
            "its stream did not say {when} where to send messages (no `endpoint` event); \
             if it speaks streamable HTTP, remove `transport: sse`"
        ),
    }
}

/// Reads up to the `endpoint` event. Whatever comes before it is not for us.
async fn first_endpoint(events: &mut Events) -> Result<String, Failure> {
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| Failure::Cut {
            cause: error.to_string(),
        })?;
        if event.event.as_deref() == Some("endpoint") {
            let data = event.data.unwrap_or_default();
            return if data.len() <= ENDPOINT_BYTES_MAX {
                Ok(data)
            } else {
                Err(no_endpoint("in a sensible length"))
            };
        }
    }
    Err(no_endpoint("before it ended"))
}

/// Finds the address that the server named. Another origin must not see our headers, nor our messages.
fn resolve(base: &Url, endpoint: &str) -> Result<Url, Failure> {
    let unreadable = |cause| Failure::Unreadable { cause };
    let resolved = base.join(endpoint.trim()).map_err(|error| {
        unreadable(format!(
            "it wants messages at `{endpoint}`, which is not an address: {error}"
        ))
    })?;
    if resolved.origin() == base.origin() {
        Ok(resolved)
    } else {
        Err(unreadable(format!(
            "it wants messages at another origin, `{}`, which will not be trusted with them; \
             if that is right, make it the `url`",
            resolved.origin().ascii_serialization()
        )))
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = HttpFailure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), HttpFailure>> + Send + 'static {
        let request = self.client.client.post(self.endpoint.clone());
        let request = self.client.dressed(request, None, Headers::new());
        let request = request.header(CONTENT_TYPE, JSON);
        let (client, post_timeout) = (self.client.clone(), self.post_timeout);
        async move {
            let body = serde_json::to_vec(&message).map_err(|error| {
                HttpFailure(Failure::Unreachable {
                    cause: format!("the message cannot be written as JSON: {error}"),
                })
            })?;
            let taken = timeout(post_timeout, async {
                let response = client.send(request.body(body), true).await?;
                if response.status().is_success() {
                    Ok(())
                } else {
                    // The endpoint names our session, so every refusal may be about it.
                    Err(HttpFailure(Failure::Http(refusal(response, true).await)))
                }
            });
            taken.await.unwrap_or(Err(HttpFailure(Failure::Timeout {
                after: post_timeout,
            })))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => {
                    tracing::debug!(%error, "the event stream ended");
                    return None;
                }
            };
            // The default kind of an event is `message`.
            if event.event.is_some_and(|kind| kind != "message") {
                continue;
            }
            let data = event.data.unwrap_or_default();
            match message::read(data.as_bytes()) {
                Some(message) => return Some(message),
                None => tracing::debug!(bytes = data.len(), "skipped an event that is no message"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), HttpFailure> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(endpoint: &str) -> Result<String, String> {
        let base = Url::parse("https://example.com/a/sse").unwrap();
        let resolved = resolve(&base, endpoint).map(|url| url.to_string());
        resolved.map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_endpoint_is_relative_to_the_stream() {
        let at = |path: &str| Ok(format!("https://example.com{path}"));
        assert_eq!(resolved("/messages?session=1"), at("/messages?session=1"));
        assert_eq!(resolved("messages/1"), at("/a/messages/1"));
        assert_eq!(resolved("https://example.com:443/m\n"), at("/m"));
    }

    #[test]
    fn an_endpoint_of_another_origin_is_refused() {
        for foreign in [
            "https://evil.example/m",
            "//evil.example/m",
            "http://example.com/m",
            "https://example.com:8443/m",
            "javascript:alert(1)",
        ] {
            let error = resolved(foreign).unwrap_err();
            assert!(error.contains("another origin"), "{foreign}: {error}");
        }
    }
}
