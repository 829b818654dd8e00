//! Just enough gRPC: a call is a POST over HTTP/2, messages come in frames, and the trailers say how it went.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use prost::Message;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Body, Client, StatusCode};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest answer to a plain call.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How long connecting may take, and the answer of a connection that is asked whether it still is one.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How often it is asked. Servers turn away who asks more often than their own clients do.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Far more than any message we know of.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Before each message: whether it is compressed, and its length.
const FRAME_HEADER_BYTES: usize = 5;

/// A request that a service understands.
pub(super) trait Call: Message {
    const PATH: &'static str;
    type Response: Message + Default;
}

#[derive(Debug, thiserror::Error)]
pub(super) enum GrpcError {
    #[error("cannot ask Modal: {0}")]
    Unreachable(#[from] reqwest::Error),
    #[error("cannot ask Modal: no answer within {} s", ANSWER_TIME_MAX.as_secs())]
    Silent,
    #[error("cannot ask Modal: its answer ends in the middle")]
    Cut,
    #[error("Modal says: {message} (code {code})")]
    Refused { code: u32, message: String },
    #[error("Modal gave an odd answer: {0}")]
    Odd(String),
}

/// Codes of gRPC that mean something to us.
pub(super) mod code {
    pub(super) const CANCELLED: u32 = 1;
    pub(super) const UNKNOWN: u32 = 2;
    pub(in super::super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const DEADLINE_EXCEEDED: u32 = 4;
    pub(in super::super) const NOT_FOUND: u32 = 5;
    pub(in super::super) const FAILED_PRECONDITION: u32 = 9;
    pub(super) const INTERNAL: u32 = 13;
    pub(super) const UNAVAILABLE: u32 = 14;
    pub(in super::super) const UNAUTHENTICATED: u32 = 16;

    /// Those that come of overload and of restarts.
    pub(super) const PASSING: [u32; 5] =
        [CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE];
}

impl GrpcError {
    /// Whether asking again may help.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Silent | Self::Cut => true,
            Self::Refused { .. } => self.has_code(&code::PASSING),
            Self::Odd(_) => false,
        }
    }

    pub(super) fn has_code(&self, codes: &[u32]) -> bool {
        matches!(self, Self::Refused { code, .. } if codes.contains(code))
    }
}

/// A server, and what it is shown with every call.
#[derive(Clone)]
pub(super) struct Channel {
    http: Client,
    address: String,
    headers: HeaderMap,
}

impl Channel {
    /// Connections are made when they are needed.
    pub(super) fn new(address: &str) -> Result<Self, GrpcError> {
        let http = hermes_os::http::client()
            .http2_prior_knowledge()
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(CONNECT_TIME_MAX)
            .connect_timeout(CONNECT_TIME_MAX)
            .build()?;
        Ok(Self::over(http, address))
    }

    /// Another server, which is shown nothing yet.
    pub(super) fn to(&self, address: &str) -> Self {
        Self::over(self.http.clone(), address)
    }

    fn over(http: Client, address: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            HeaderValue::from_static("application/grpc+proto"),
        );
        headers.insert("te", HeaderValue::from_static("trailers"));
        Self {
            http,
            address: address.trim_end_matches('/').to_owned(),
            headers,
        }
    }

    pub(super) fn showing(mut self, name: &'static str, value: &str) -> Result<Self, GrpcError> {
        let value = HeaderValue::from_str(value);
        let mut value = value
            .map_err(|_| GrpcError::Odd(format!("what belongs into `{name}` is no header")))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Makes a call that has one answer.
    pub(super) async fn ask<C: Call>(&self, call: &C) -> Result<C::Response, GrpcError> {
        let asked = async {
            let mut answers = self.listen(call).await?;
            let mut last = None;
            while let Some(answer) = answers.next().await? {
                last = Some(answer);
            }
            last.ok_or_else(|| GrpcError::Odd(format!("none at all to `{}`", C::PATH)))
        };
        let asked = timeout(ANSWER_TIME_MAX, asked).await;
        asked.unwrap_or(Err(GrpcError::Silent))
    }

    /// Makes a call that is answered bit by bit.
    pub(super) async fn listen<C: Call>(
        &self,
        call: &C,
    ) -> Result<Answers<C::Response>, GrpcError> {
        let request = self.http.post(format!("{}{}", self.address, C::PATH));
        let request = request.headers(self.headers.clone()).body(framed(call));
        let response: http::Response<Body> = request.send().await?.into();
        match response.status() {
            StatusCode::OK => {}
            // What stands before the service says that it is not there now.
            status if status.is_server_error() => {
                return Err(GrpcError::Refused {
                    code: code::UNAVAILABLE,
                    message: status.to_string(),
                });
            }
            status => return Err(GrpcError::Odd(status.to_string())),
        }
        // A refusal may come at once, without a body.
        if response.headers().contains_key("grpc-status") {
            outcome(response.headers())?;
        }
        Ok(Answers {
            body: response.into_body(),
            heard: BytesMut::new(),
            kind: PhantomData,
        })
    }
}

/// Calls that go on when nobody waits for them any more.
#[derive(Default)]
pub(super) struct DetachedCalls(Mutex<JoinSet<()>>);

impl DetachedCalls {
    /// Makes a call, whatever the answer.
    pub(super) fn send<C: Call + 'static>(&self, channel: Channel, call: C) {
        self.run(async move { drop(channel.ask(&call).await) });
    }

    /// Runs to its end, unless there is no runtime to do so.
    pub(super) fn run(&self, detached_call: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            let mut detached_calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            while detached_calls.try_join_next().is_some() {}
            detached_calls.spawn_on(detached_call, &runtime);
        }
    }
}

/// The messages of an answer, as they come.
pub(super) struct Answers<M> {
    body: Body,
    heard: BytesMut,
    kind: PhantomData<M>,
}

impl<M: Message + Default> Answers<M> {
    /// Returns the next message, or none when the call went well to its end.
    pub(super) async fn next(&mut self) -> Result<Option<M>, GrpcError> {
        loop {
            if let Some(message) = take_frame(&mut self.heard)? {
                let message = M::decode(message);
                return message
                    .map(Some)
                    .map_err(|error| GrpcError::Odd(error.to_string()));
            }
            let Some(frame) = self.body.frame().await.transpose()? else {
                return Err(GrpcError::Cut);
            };
            match frame.into_data() {
                Ok(data) => self.heard.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return outcome(&trailers).map(|()| None);
                }
            }
        }
    }
}

fn framed(message: &impl Message) -> Vec<u8> {
    let mut framed = Vec::with_capacity(FRAME_HEADER_BYTES + message.encoded_len());
    framed.put_u8(0);
    framed.put_u32(message.encoded_len() as u32);
    framed.extend(message.encode_to_vec());
    framed
}

/// Takes a message off what was heard, once it is whole.
fn take_frame(heard: &mut BytesMut) -> Result<Option<Bytes>, GrpcError> {
    let Some([is_compressed, a, b, c, d]) = heard.first_chunk().copied() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if is_compressed != 0 || len > MESSAGE_BYTES_MAX {
        let words = "a message that is compressed or too long";
        return Err(GrpcError::Odd(words.to_owned()));
    }
    if heard.len() < FRAME_HEADER_BYTES + len {
        return Ok(None);
    }
    heard.advance(FRAME_HEADER_BYTES);
    Ok(Some(heard.split_to(len).freeze()))
}

/// Reads how a call went.
fn outcome(headers: &HeaderMap) -> Result<(), GrpcError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").map(str::parse) {
        Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => Err(GrpcError::Refused {
            code,
            message: unescaped(text("grpc-message").unwrap_or("nothing more")),
        }),
        _ => Err(GrpcError::Odd("it does not say how it went".to_owned())),
    }
}

/// Undoes `%41` for `A`. What is no such thing stays.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modal::messages::App;

    #[test]
    fn frames_are_whole_wherever_the_bytes_are_cut() {
        let app = App {
            app_id: "ap-1".into(),
        };
        let bytes = [framed(&app), framed(&App::default())].concat();
        for cut in 0..bytes.len() {
            let mut heard = BytesMut::from(&bytes[..cut]);
            let mut found = Vec::new();
            for more in [&bytes[cut..], &[]] {
                while let Some(message) = take_frame(&mut heard).unwrap() {
                    found.push(App::decode(message).unwrap());
                }
                heard.extend_from_slice(more);
            }
            assert_eq!(found, [app.clone(), App::default()], "cut at {cut}");
        }
    }

    #[test]
    fn a_message_that_cannot_be_is_refused() {
        let mut heard = BytesMut::from(&[0, 0xff, 0xff, 0xff, 0xff][..]);
        assert!(take_frame(&mut heard).is_err());
        let mut heard = BytesMut::from(&[1, 0, 0, 0, 0][..]);
        assert!(take_frame(&mut heard).is_err());
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let mut headers = HeaderMap::new();
        assert!(matches!(outcome(&headers), Err(GrpcError::Odd(_))));
        headers.insert("grpc-status", HeaderValue::from_static("5"));
        headers.insert(
            "grpc-message",
            HeaderValue::from_static("%C3%A9t%C3%A9 100%"),
        );
        let error = outcome(&headers).unwrap_err();
        assert_eq!(error.to_string(), "Modal says: été 100% (code 5)");
        assert!(error.has_code(&[code::NOT_FOUND]) && !error.is_passing());
    }
}
