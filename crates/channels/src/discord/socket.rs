//! The socket to Discord: frames in and out. Knows nothing of what they mean.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use hermes_core::{ChannelError, Random, Trouble};
use reqwest::Upgraded;
use reqwest::header::{CONNECTION, UPGRADE};
use serde_json::{Value, json};
use tokio_websockets::{ClientBuilder, CloseCode, Limits, Message, WebSocketStream};

use super::api::Api;
use crate::http::innermost;

/// What Discord tells of a large server is a few megabytes.
const FRAME_BYTES_MAX: usize = 32 * 1024 * 1024;
const CONNECT_MAX: Duration = Duration::from_secs(20);
const SEND_MAX: Duration = Duration::from_secs(10);
/// What the protocol adds to a key, so that only who speaks it can answer.
const PROTOCOL: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Any other code but 1000 and 1001, which would end the session.
const RESUMABLE: u16 = 4000;

/// One frame of Discord's.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    pub(super) op: u64,
    pub(super) data: Value,
    pub(super) seq: Option<u64>,
    pub(super) event: String,
}

pub(super) enum Received {
    Frame(Frame),
    /// Discord hung up; with a code if it said one.
    Closed(Option<u16>, String),
}

pub(super) struct Socket {
    stream: WebSocketStream<Upgraded>,
}

impl Socket {
    pub(super) async fn connect(
        api: &Api,
        address: &str,
        random: &Random,
    ) -> Result<Self, ChannelError> {
        let lost = |words: String| {
            ChannelError::new(Trouble::Passing, words)
                .with_hint("is this machine online? it is tried again and again")
        };
        let mut key = [0; 16];
        for half in key.chunks_mut(8) {
            half.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        let key = STANDARD.encode(key);
        let request = api.socket(&http_address(address))?;
        let request = request
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", &key);
        let answer = tokio::time::timeout(CONNECT_MAX, request.send()).await;
        let answer = answer
            .map_err(|_| lost("Discord's gateway does not answer".to_owned()))?
            .map_err(|error| lost(format!("no socket to Discord: {}", innermost(&error))))?;
        let status = answer.status().as_u16();
        let accepted = answer.headers().get("sec-websocket-accept").cloned();
        if status != 101 || accepted.is_none_or(|value| value != accept_of(&key)) {
            let words = format!("Discord's gateway answers {status} instead of a socket");
            return Err(lost(words));
        }
        let upgraded = answer
            .upgrade()
            .await
            .map_err(|error| lost(format!("no socket to Discord: {}", innermost(&error))))?;
        let limits = Limits::default().max_payload_len(Some(FRAME_BYTES_MAX));
        let stream = ClientBuilder::new().limits(limits).take_over(upgraded);
        Ok(Self { stream })
    }

    pub(super) async fn receive(&mut self) -> Result<Received, ChannelError> {
        loop {
            let message = self.stream.next().await;
            if let Some(received) = read(message)? {
                return Ok(received);
            }
        }
    }

    /// What has come already; `None` if nothing has.
    pub(super) fn received(&mut self) -> Result<Option<Received>, ChannelError> {
        while let Some(message) = self.stream.next().now_or_never() {
            if let Some(received) = read(message)? {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    pub(super) async fn send(&mut self, op: u64, data: Value) -> Result<(), ChannelError> {
        let frame = json!({"op": op, "d": data}).to_string();
        let sending = self.stream.send(Message::text(frame));
        match tokio::time::timeout(SEND_MAX, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(broken(&error)),
            Err(_) => Err(ChannelError::new(
                Trouble::Passing,
                "Discord does not take what is sent to its socket",
            )),
        }
    }

    /// Hangs up so that the session stays.
    pub(super) async fn leave(&mut self) {
        let code = CloseCode::try_from(RESUMABLE).ok();
        let leaving = self.stream.send(Message::close(code, ""));
        // Whoever does not hear it notices anyway.
        let _ = tokio::time::timeout(Duration::from_secs(1), leaving).await;
    }
}

fn read(
    message: Option<Result<Message, tokio_websockets::Error>>,
) -> Result<Option<Received>, ChannelError> {
    let message = match message {
        Some(message) => message.map_err(|error| broken(&error))?,
        None => return Ok(Some(Received::Closed(None, String::new()))),
    };
    if let Some((code, words)) = message.as_close() {
        return Ok(Some(Received::Closed(Some(code.into()), words.to_owned())));
    }
    Ok(message.as_text().and_then(frame).map(Received::Frame))
}

/// What cannot be read is passed over: it cannot be read when it comes again either.
fn frame(text: &str) -> Option<Frame> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    Some(Frame {
        op: value["op"].as_u64()?,
        seq: value["s"].as_u64(),
        event: value["t"].as_str().unwrap_or_default().to_owned(),
        data: value.get_mut("d").map(Value::take).unwrap_or_default(),
    })
}

fn broken(error: &tokio_websockets::Error) -> ChannelError {
    ChannelError::new(
        Trouble::Passing,
        format!("the socket to Discord broke: {error}"),
    )
}

/// Sockets begin as requests.
fn http_address(address: &str) -> String {
    match address.strip_prefix("ws") {
        Some(rest) => format!("http{rest}"),
        None => address.to_owned(),
    }
}

fn accept_of(key: &str) -> String {
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{PROTOCOL}").as_bytes(),
    );
    STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        let answer = accept_of("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn frames_that_are_none_are_passed_over() {
        for text in ["", "[]", "{}", "{\"op\": \"x\"}", "\u{0}"] {
            assert!(frame(text).is_none(), "{text:?}");
        }
        let frame = frame(r#"{"op": 0, "s": 3, "t": "READY", "d": {"v": 10}}"#);
        assert_eq!(frame.map(|frame| frame.seq), Some(Some(3)));
    }
}
