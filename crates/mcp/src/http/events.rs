//! Event streams: bounded events, and errors correlated to the request whose answer the stream is.

use std::borrow::Cow;
use std::future::ready;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt, try_unfold};
use reqwest::Response;
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sse_stream::{Sse, SseStream};

use super::answer::{correlate, is_same};
use crate::listed::mended;
use crate::message;

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Decodes a stream of events, none of them larger than `event_bytes_max`.
pub(super) fn events(response: Response, event_bytes_max: usize) -> Events {
    SseStream::from_bytes_stream(bounded(response, event_bytes_max)).boxed()
}

/// Reads the body, and ends it at an event that is too large.
fn bounded(
    response: Response,
    event_bytes_max: usize,
) -> impl Stream<Item = Result<Bytes, StreamError>> {
    let start = (response, EventBytes::default());
    try_unfold(start, move |(mut response, mut event_bytes)| async move {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| StreamError::Cut(error.without_url()))? {
            None => Ok(None),
            Some(chunk) if event_bytes.add(&chunk) <= event_bytes_max => {
                Ok(Some((chunk, (response, event_bytes))))
            }
            Some(_) => Err(StreamError::TooLarge(event_bytes_max)),
        }
    })
}

/// As [`events`], for the answer to one request: one that is too large becomes an error of that request, and what
/// answers another is left out.
pub(super) fn answering(events: Events, request: RequestId) -> Events {
    let answer = move |event| {
        ready(match event {
            Ok(event) if is_stray(&event, &request) => None,
            Ok(event) => Some(Ok(correlated(readable(event), &request))),
            Err(error) => Some(match too_large(&error) {
                Some(cause) => refused(&request, cause).ok_or(error),
                None => Err(error),
            }),
        })
    };
    events.filter_map(answer).boxed()
}

/// Returns whether an event has the result of another request. The library would take it for the end of this one.
fn is_stray(event: &Sse, request: &RequestId) -> bool {
    #[derive(Deserialize)]
    struct RpcAnswer {
        id: RequestId,
        #[serde(rename = "result")]
        _result: IgnoredAny,
    }
    // Looking for the word is much cheaper than parsing every event twice.
    let data = event
        .data
        .as_deref()
        .filter(|data| data.contains("\"result\""));
    let answer = data.and_then(|data| serde_json::from_str::<RpcAnswer>(data).ok());
    answer.is_some_and(|answer| !is_same(&answer.id, request))
}

fn too_large(error: &SseError) -> Option<String> {
    let SseError::Body(error) = error else {
        return None;
    };
    let error = error.downcast_ref::<StreamError>()?;
    matches!(error, StreamError::TooLarge(_)).then(|| error.to_string())
}

fn refused(request: &RequestId, cause: String) -> Option<Sse> {
    let message = message::unusable(request.clone(), cause);
    let data = serde_json::to_string(&message).ok()?;
    Some(Sse::default().data(data))
}

/// Makes a list of tools readable that is not quite right.
fn readable(mut event: Sse) -> Sse {
    let mended = event.data.as_deref().map(|data| mended(data.as_bytes()));
    if let Some(Cow::Owned(mended)) = mended {
        event.data = String::from_utf8(mended).ok();
    }
    event
}

fn correlated(mut event: Sse, request: &RequestId) -> Sse {
    let data = event
        .data
        .as_deref()
        .filter(|data| data.contains("\"error\""));
    if let Some(data) = data
        && let Ok(mut message) = serde_json::from_str::<ServerJsonRpcMessage>(data)
        && correlate(&mut message, request)
        && let Ok(data) = serde_json::to_string(&message)
    {
        event.data = Some(data);
    }
    event
}

#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("the stream broke: {0}")]
    Cut(reqwest::Error),
    #[error("{}", message::too_large(*.0))]
    TooLarge(usize),
}

/// Counts the bytes since the last blank line, which ends an event.
#[derive(Default)]
struct EventBytes {
    event: usize,
    line_is_empty: bool,
}

impl EventBytes {
    /// Returns the size of the largest unfinished or finished event in the chunk.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for byte in chunk {
            self.event += 1;
            largest = largest.max(self.event);
            match byte {
                b'\n' if self.line_is_empty => self.event = 0,
                b'\n' => self.line_is_empty = true,
                b'\r' => {}
                _ => self.line_is_empty = false,
            }
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_counted_across_chunks_and_starts_again_at_a_blank_line() {
        let mut bytes = EventBytes::default();
        assert_eq!(bytes.add(b"data: 12345\n"), 12);
        assert_eq!(bytes.add(b"data: 12345\r\n\r\n"), 27);
        assert_eq!(bytes.add(b"data: 1\n\n"), 9);
    }

    #[test]
    fn an_error_event_without_an_id_gets_the_id_of_its_request() {
        let event =
            Sse::default().data(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#);
        let data = correlated(event, &RequestId::Number(5)).data.unwrap();
        assert!(data.contains(r#""id":5"#), "{data}");
        let other = Sse::default().data(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        assert_eq!(correlated(other.clone(), &RequestId::Number(5)), other);
    }

    #[test]
    fn the_result_of_another_request_is_stray_and_ours_is_not_in_whatever_shape() {
        let is_stray = |data: &str| is_stray(&Sse::default().data(data), &RequestId::Number(5));
        assert!(is_stray(r#"{"jsonrpc":"2.0","id":6,"result":{}}"#));
        for id in ["5", "\"5\"", "5.0"] {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            assert!(!is_stray(&answer), "{id}");
        }
        let question = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\"result\""}}"#;
        assert!(!is_stray(question));
    }
}
