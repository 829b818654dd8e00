//! The same server over streamable HTTP.
//!
//! It keeps no sessions: every request stands for itself, so there is nothing a restart could lose. Web pages are kept
//! out (a browser sends `Origin`), and so are names that an attacker's DNS points at this machine.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hermes_core::{CancellationToken, Secret};
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::handler::Handler;
use super::{REQUEST_BYTES_MAX, ServeError, Served};

const PATH: &str = "/mcp";
/// Clients that wait for events hold one each; further ones wait in the backlog.
const CONNECTIONS_MAX: usize = 64;
/// A client that has not said what it wants by then wants nothing.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// When connections cannot be accepted (too many open files), trying at once again would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Service = StreamableHttpService<Handler, NeverSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Secret>,
}

impl HttpServer {
    /// Listens on `HOST:PORT`; port 0 takes a free one. An address that other machines can reach needs a token.
    pub async fn bind(address: &str, token: Option<Secret>) -> Result<Self, ServeError> {
        let told = |error: std::io::Error| error.to_string();
        let resolved: Vec<SocketAddr> = tokio::net::lookup_host(address)
            .await
            .map_err(|error| ServeError::Address {
                address: address.to_owned(),
                cause: told(error),
            })?
            .collect();
        let token = token.filter(|token| !token.is_empty());
        if token.is_none() && !resolved.iter().all(|address| address.ip().is_loopback()) {
            let address = address.to_owned();
            return Err(ServeError::Unprotected { address });
        }
        let listen = |error| ServeError::Listen {
            address: address.to_owned(),
            cause: told(error),
        };
        let listener = TcpListener::bind(resolved.as_slice())
            .await
            .map_err(listen)?;
        Ok(Self {
            address: listener.local_addr().map_err(listen)?,
            listener,
            token,
        })
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Answers every client until `stop` is cancelled.
    pub async fn run(self, served: Served, stop: CancellationToken) {
        let guarded = Arc::new(GuardedService {
            service: service(served, self.address, stop.clone()),
            token: self.token,
        });
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&self.listener, &permits) => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let guarded = Arc::clone(&guarded);
                    connections.spawn(async move {
                        guarded.serve(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        connections.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

fn service(served: Served, address: SocketAddr, stop: CancellationToken) -> Service {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(REQUEST_BYTES_MAX)
        .with_cancellation_token(stop)
        .enforce_origin_validation();
    // Beyond loopback nobody knows under which names we are reached; there the token is what keeps strangers out.
    let config = if address.ip().is_loopback() {
        config
    } else {
        config.disable_allowed_hosts()
    };
    let handler = Handler::new(served);
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config)
}

/// The service behind its bearer token.
struct GuardedService {
    service: Service,
    token: Option<Secret>,
}

impl GuardedService {
    async fn serve(&self, stream: TcpStream) {
        let answer =
            service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), answer);
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path().trim_end_matches('/') != PATH {
            return refusal(StatusCode::NOT_FOUND, "the MCP endpoint is /mcp");
        }
        if !self.admits(&request) {
            let mut response = refusal(StatusCode::UNAUTHORIZED, "a bearer token is needed");
            let challenge = http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            return response;
        }
        self.service.handle(request).await
    }

    fn admits<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = request.headers().get(AUTHORIZATION);
        given
            .and_then(|value| value.as_bytes().split_first_chunk::<7>())
            .is_some_and(|(scheme, given)| {
                scheme.eq_ignore_ascii_case(b"bearer ") && is_same(given, token.expose().as_bytes())
            })
    }
}

/// Compares without telling by its duration where the difference is.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differences = given.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}

fn refusal(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_loopback_needs_no_token() {
        let bind = async |address: &str, token: Option<&str>| {
            let token = token.map(Secret::new);
            HttpServer::bind(address, token)
                .await
                .map(|server| server.url())
        };
        assert!(
            bind("127.0.0.1:0", None)
                .await
                .is_ok_and(|url| url.ends_with("/mcp"))
        );
        for token in [None, Some("")] {
            let refused = bind("0.0.0.0:0", token).await;
            assert!(
                matches!(refused, Err(ServeError::Unprotected { .. })),
                "{refused:?}"
            );
        }
        assert!(bind("0.0.0.0:0", Some("t")).await.is_ok());
        for nonsense in ["", "127.0.0.1", "127.0.0.1:99999", "no such host:1"] {
            let refused = bind(nonsense, None).await;
            assert!(
                matches!(refused, Err(ServeError::Address { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_token_is_compared_whole() {
        assert!(is_same(b"secret", b"secret"));
        for given in [&b"secre"[..], b"secret2", b"Secret", b""] {
            assert!(!is_same(given, b"secret"));
        }
    }
}
