//! Reads answers: bounded, and always about the request they answer.

use std::time::Duration;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::Response;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::StreamableHttpPostResponse;

use super::HttpFailure;
use crate::failure::{Credentials, Failure, HttpAnswer};
use crate::listed::mended;

pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Whoever wants a longer wait gets this much: the next answer will say so again.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// A larger answer would fill the memory, not the model's context.
pub(super) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Of a refusal, this much is read: enough for a JSON-RPC error, and for a person to recognise a page.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;

pub(super) fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE);
    let text = value.map_or("", |value| value.to_str().unwrap_or("unreadable"));
    match text {
        "" => "no content type".to_owned(),
        text => text.to_ascii_lowercase(),
    }
}

/// Refuses an answer that would have to be unpacked. Nobody asked for that, and what is small packed may be huge.
pub(super) fn unpacked(response: Response) -> Result<Response, HttpFailure> {
    match response.headers().get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(HttpFailure(Failure::Unreadable {
            cause: format!(
                "its answer is compressed ({}), which we did not ask for and will not unpack",
                encoding.to_str().unwrap_or("unreadable")
            ),
        })),
        _ => Ok(response),
    }
}

pub(super) fn is_stream(response: &Response) -> bool {
    response.status().is_success() && content_type(response).starts_with(EVENT_STREAM)
}

/// Reads how long the server wants us to wait. A date is measured against its own clock, not ours.
fn wanted_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let wait = hermes_os::retry_after(text(RETRY_AFTER)?, text(DATE), None)?;
    Some(wait.min(RETRY_AFTER_MAX))
}

/// Reads an answer that is not a success.
pub(super) async fn refusal(mut response: Response, session_sent: bool) -> HttpAnswer {
    let header = |name| {
        let value = response.headers().get(name)?;
        Some(value.to_str().unwrap_or("unreadable").to_owned())
    };
    let status = response.status().as_u16();
    let challenge = header(WWW_AUTHENTICATE);
    let retry_after = wanted_wait(response.headers());
    let redirect = header(LOCATION).filter(|_| (300..400).contains(&status));
    let mut body = Vec::new();
    // An error in the middle of a refusal leaves what was read: the status says enough.
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(REFUSAL_BYTES_MAX - body.len())]);
        if body.len() == REFUSAL_BYTES_MAX {
            break;
        }
    }
    let body = match redirect {
        Some(target) => format!(
            "it points to `{target}`; if that is right, make it the `url`; if that is the sign-in page of a network, \
             sign in there"
        ),
        None => String::from_utf8_lossy(&body).into_owned(),
    };
    HttpAnswer {
        status,
        session_sent,
        credentials: Credentials::default(),
        challenge,
        retry_after,
        rpc: rpc_error(&body),
        body,
    }
}

/// Finds the JSON-RPC error in a body, also one without an id or with fields of the wrong kind.
fn rpc_error(body: &str) -> Option<(i32, String)> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let error = body.get("error")?;
    let code = error.get("code")?.as_i64()?.try_into().ok()?;
    let message = error.get("message").and_then(|message| message.as_str());
    Some((code, message.unwrap_or_default().to_owned()))
}

fn error_data(body: &str) -> Option<serde_json::Value> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    body.get("error")?.get("data").cloned()
}

/// Reads a JSON answer to the end.
pub(super) async fn json_message(response: Response) -> Result<ServerJsonRpcMessage, HttpFailure> {
    let body = body(response).await?;
    serde_json::from_slice(&mended(&body)).map_err(|error| {
        HttpFailure(Failure::Unreadable {
            cause: format!("its answer is not an MCP message: {error}"),
        })
    })
}

/// Reads a body to the end, unless that is too far away.
pub(super) async fn body(mut response: Response) -> Result<Vec<u8>, HttpFailure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(HttpFailure(Failure::Unreadable {
                cause: format!("its answer is larger than {} MiB", BODY_BYTES_MAX >> 20),
            }));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

pub(super) fn request_id(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    }
}

/// Gives an error that came as the answer to `request` that request's id, when it has none or another.
///
/// Middleware that refuses a request before reading it cannot know its id. Returns whether it had to be changed.
pub(super) fn correlate(message: &mut ServerJsonRpcMessage, request: &RequestId) -> bool {
    let JsonRpcMessage::Error(error) = message else {
        return false;
    };
    if error.id.as_ref().is_some_and(|id| is_same(id, request)) {
        return false;
    }
    error.id = Some(request.clone());
    true
}

/// Fails if this is the result of another request: ours has no answer, and waiting would not bring one.
pub(super) fn refuse_stray(
    message: &ServerJsonRpcMessage,
    request: &RequestId,
) -> Result<(), HttpFailure> {
    match message {
        JsonRpcMessage::Response(response) if !is_same(&response.id, request) => {
            let cause = format!("it answered another request (id {})", response.id);
            Err(HttpFailure(Failure::Unreadable { cause }))
        }
        _ => Ok(()),
    }
}

/// Returns whether an answer's id is that of a request. Some servers make a text of it.
pub(super) fn is_same(id: &RequestId, request: &RequestId) -> bool {
    id == request || id.to_string() == request.to_string()
}

/// Turns the refusal of a `server/discover` into the answer that makes the library fall back to `initialize`.
///
/// Credentials and server errors are no sign of an older server; they stay failures.
pub(super) fn discover_refused(
    message: &ClientJsonRpcMessage,
    answer: &HttpAnswer,
) -> Option<StreamableHttpPostResponse> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let is_refusal = matches!(answer.status, 400 | 402 | 404..=499) && answer.status != 429;
    if !is_refusal || !matches!(request.request, ClientRequest::DiscoverRequest(_)) {
        return None;
    }
    let error = match &answer.rpc {
        // The data says which versions the server speaks, if it is only about the version.
        Some((code, text)) => {
            let code = rmcp::model::ErrorCode(*code);
            ErrorData::new(code, text.clone(), error_data(&answer.body))
        }
        None => ErrorData::invalid_request(answer.to_string(), None),
    };
    let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Some(StreamableHttpPostResponse::Json(message, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(json: &str) -> ServerJsonRpcMessage {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_error_without_an_id_belongs_to_the_request_it_answers() {
        let request = RequestId::Number(7);
        for (json, changed) in [
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-1,"message":"no"}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"no"}}"#,
                false,
            ),
            (r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, false),
        ] {
            assert_eq!(correlate(&mut message(json), &request), changed, "{json}");
        }
    }

    #[test]
    fn an_error_is_found_in_a_body_with_or_without_an_id() {
        let found = Some((-32000, "gone".to_owned()));
        assert_eq!(
            rpc_error(r#"{"error":{"code":-32000,"message":"gone"}}"#),
            found
        );
        assert_eq!(
            rpc_error(r#"{"id":null,"error":{"code":-32000,"message":"gone"}}"#),
            found
        );
        assert_eq!(rpc_error("Session not found"), None);
        assert_eq!(rpc_error(r#"{"error":"text"}"#), None);
    }
}
