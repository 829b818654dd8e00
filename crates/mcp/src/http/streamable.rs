//! The three requests of the streamable HTTP transport: POST a message, GET the server's stream, DELETE the session.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::answer::{
    BODY_BYTES_MAX, EVENT_STREAM, content_type, correlate, discover_refused, is_stream,
    json_message, refusal, refuse_stray, request_id, unpacked,
};
use super::events::{Events, answering, events};
use super::{HttpClient, HttpFailure};
use crate::failure::{Credentials, Failure, HttpAnswer};

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
pub(super) const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";

type HttpError = StreamableHttpError<HttpFailure>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

impl From<HttpFailure> for HttpError {
    fn from(failure: HttpFailure) -> Self {
        Self::Client(failure)
    }
}

impl HttpClient {
    /// Adds what every request carries. The user's headers come last, so that they can replace ours.
    pub(super) fn dressed(
        &self,
        request: RequestBuilder,
        session: Option<&str>,
        headers: Headers,
    ) -> RequestBuilder {
        let mut request = request.header(ACCEPT, BOTH);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            self.note_session();
            request = request.header(SESSION_ID, session);
        }
        request.headers(self.headers.clone())
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let body = serde_json::to_vec(&message)?;
        let request = self.dressed(self.client.post(&*uri), session.as_deref(), headers);
        let request = request.header(CONTENT_TYPE, JSON).body(body);
        let response = self.send(request, session.is_some()).await?;
        if !response.status().is_success() {
            let mut answer = refusal(response, session.is_some()).await;
            if is_bare_refusal(&answer) && !self.accepts_credentials(&uri).await {
                answer.credentials = Credentials::Refused;
            }
            return match discover_refused(&message, &answer) {
                Some(response) => Ok(response),
                None => Err(HttpFailure(Failure::Http(answer)).into()),
            };
        }
        match request_id(&message) {
            // Nobody waits for an answer to a notification: whatever came with the success is fine.
            None => Ok(StreamableHttpPostResponse::Accepted),
            Some(_) if response.status() == StatusCode::ACCEPTED => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            Some(id) => {
                let response = unpacked(response)?;
                let session = new_session(&response);
                let kind = content_type(&response);
                if kind.starts_with(EVENT_STREAM) {
                    let events = events(response, BODY_BYTES_MAX);
                    let events = answering(events, id.clone());
                    Ok(StreamableHttpPostResponse::Sse(events, session))
                } else if kind.starts_with(JSON) {
                    let mut answer = json_message(response).await?;
                    correlate(&mut answer, id);
                    refuse_stray(&answer, id)?;
                    Ok(StreamableHttpPostResponse::Json(answer, session))
                } else {
                    Err(HttpFailure(Failure::NotMcp { content_type: kind }).into())
                }
            }
        }
    }

    async fn open_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        let mut request = self.dressed(self.client.get(&*uri), session.as_deref(), headers);
        if let Some(id) = &last_event_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        let opened = match self.send(request, session.is_some()).await {
            Ok(response) if is_stream(&response) => Ok(events(response, BODY_BYTES_MAX)),
            Ok(response) => Err(refusal(response, session.is_some()).await),
            Err(failure) if self.had_stream() => {
                self.reporter.doubt();
                return Err(failure.into());
            }
            Err(failure) => return Err(failure.into()),
        };
        match opened {
            Ok(events) => {
                self.note_stream();
                Ok(events)
            }
            // It was there before: the server, or our session, has gone. A probe will tell.
            Err(answer) if self.had_stream() => {
                self.reporter.doubt();
                Err(HttpFailure(Failure::Http(answer)).into())
            }
            // Many servers have no stream of their own, and say so in many ways.
            Err(_) => Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
    }
}

/// Returns whether a refusal may be about our credentials or about our session, and does not say which.
fn is_bare_refusal(answer: &HttpAnswer) -> bool {
    answer.status == 401 && answer.challenge.is_none() && answer.session_sent
}

pub(super) fn new_session(response: &Response) -> Option<String> {
    let session = response.headers().get(SESSION_ID)?;
    Some(session.to_str().ok()?.to_owned())
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post(uri, message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpError> {
        let request = self.client.delete(&*uri);
        let request = self.dressed(request, Some(&session_id), custom_headers);
        // A session that the server will not delete, or has forgotten, ends all the same.
        self.send(request, true).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, HttpError> {
        self.open_stream(uri, session_id, last_event_id, custom_headers)
            .await
    }
}
