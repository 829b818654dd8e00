//! Speaks HTTP to an engine over its socket, one connection per request.

use std::io::{Read, Write};
use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

/// The oldest version of the API that has all we ask for; newer engines still speak it.
const VERSION: &str = "/v1.41";

#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    #[error("nobody answers at `{}`: {source}; is the engine running, and may we talk to it?", socket.display())]
    Unreachable {
        socket: PathBuf,
        source: std::io::Error,
    },
    #[error("the engine says: {message}")]
    Refused { status: u16, message: String },
    #[error("the connection to the engine failed: {0}")]
    Cut(#[from] hyper::Error),
    #[error("the engine gave an odd answer: {0}")]
    Odd(String),
}

pub(super) struct Engine {
    socket: PathBuf,
}

impl Engine {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, EngineError> {
        self.ask(request(Method::GET, path, &Value::Null)?).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, EngineError> {
        self.ask(request(Method::POST, path, body)?).await
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> Result<Value, EngineError> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(self.connect().await?)).await?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            Ok((status, body))
        };
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(answer);
        let answered: Result<_, hyper::Error> = tokio::select! {
            answered = &mut answer => answered,
            // Its end is seen by the answer, which knows whether it came too early.
            _ = &mut connection => answer.await,
        };
        let (status, body) = answered?;
        read(status, &body)
    }

    /// Asks for a connection that carries bytes both ways from then on.
    pub(super) async fn hijack(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<TokioIo<hyper::upgrade::Upgraded>, EngineError> {
        let mut request = request(Method::POST, path, body)?;
        let headers = request.headers_mut();
        headers.insert(
            CONNECTION,
            hyper::header::HeaderValue::from_static("Upgrade"),
        );
        headers.insert(UPGRADE, hyper::header::HeaderValue::from_static("tcp"));
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(self.connect().await?)).await?;
        let connection = connection.with_upgrades();
        let upgraded = async {
            let response = sender.send_request(request).await?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                read(status, &body)?;
                return Err(EngineError::Odd(format!(
                    "{status} instead of a connection"
                )));
            }
            Ok(hyper::upgrade::on(response).await?)
        };
        let mut connection = std::pin::pin!(connection);
        let mut upgraded = std::pin::pin!(upgraded);
        let upgraded = tokio::select! {
            upgraded = &mut upgraded => upgraded,
            _ = &mut connection => upgraded.await,
        };
        upgraded.map(TokioIo::new)
    }

    /// Removes a container without waiting for a runtime: for the end of the program.
    pub(super) fn remove_now(&self, id: &str) -> std::io::Result<()> {
        let mut stream = std::os::unix::net::UnixStream::connect(&self.socket)?;
        let path = format!("{VERSION}/containers/{id}?force=true");
        write!(
            stream,
            "DELETE {path} HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n"
        )?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }

    async fn connect(&self) -> Result<UnixStream, EngineError> {
        let connected = UnixStream::connect(&self.socket).await;
        connected.map_err(|source| EngineError::Unreachable {
            socket: self.socket.clone(),
            source,
        })
    }
}

/// Escapes a value for a query.
pub(super) fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escape = |byte: u8| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(escape).collect()
}

fn request(method: Method, path: &str, body: &Value) -> Result<Request<Full<Bytes>>, EngineError> {
    let body = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    Request::builder()
        .method(method)
        .uri(format!("{VERSION}{path}"))
        .header(HOST, "docker")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| EngineError::Odd(error.to_string()))
}

/// Reads an answer. One that is no JSON, such as the progress of a download, is as good as none.
fn read(status: StatusCode, body: &[u8]) -> Result<Value, EngineError> {
    let value = serde_json::from_slice(body).unwrap_or(Value::Null);
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(value);
    }
    let message = value["message"].as_str().map_or_else(
        || String::from_utf8_lossy(body).trim().to_owned(),
        str::to_owned,
    );
    Err(EngineError::Refused {
        status: status.as_u16(),
        message: format!("{message} ({status})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(escaped("a:b/{\"c\"}"), "a%3Ab%2F%7B%22c%22%7D");
    }

    #[test]
    fn a_refusal_carries_the_words_of_the_engine() {
        let error = read(StatusCode::NOT_FOUND, br#"{"message":"no such image"}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the engine says: no such image (404 Not Found)"
        );
    }
}
