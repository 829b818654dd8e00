//! A listener for routers: connections are capped, and a client that does not say what it wants is let go.

mod arriving;
mod seats;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::shutdown::Shutdown;
use arriving::Arriving;
use seats::{Seat, Seats};

/// More than the clients of one household or team have open; beyond it those that ask nothing have to go. Each may take two
/// files (its own, and one of what it does), of which systems often allow 1,024.
const CONNECTIONS_MAX: usize = 256;
/// A client that has not said what it wants by then wants nothing.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Names and values of all headers: our own need a tenth of it.
const HEADERS_BYTES_MAX: usize = 32 * 1024;
/// When connections cannot be accepted (too many open files), trying at once again would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long answers that are complete may take on their way out when everything ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("`{address}` is not an address to listen on: {cause}")]
    Address { address: String, cause: String },
    #[error("port {port} of `{host}` is in use by another program")]
    Busy { host: String, port: u16 },
    #[error("cannot listen on `{address}`: {cause}")]
    Listen { address: String, cause: String },
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Listens; port 0 takes a free one.
    pub async fn bind(host: &str, port: u16) -> Result<Self, ListenError> {
        let shown = || format!("{host}:{port}");
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let resolved: Vec<SocketAddr> = tokio::net::lookup_host((bare, port))
            .await
            .map_err(|error| ListenError::Address {
                address: shown(),
                cause: error.to_string(),
            })?
            .collect();
        let listen = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::Busy {
                host: host.to_owned(),
                port,
            },
            _ => ListenError::Listen {
                address: shown(),
                cause: error.to_string(),
            },
        };
        let listener = TcpListener::bind(resolved.as_slice())
            .await
            .map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self { listener, address })
    }

    /// Listens on every address of this machine, of both kinds where there are both.
    pub async fn bind_everywhere(port: u16) -> Result<Self, ListenError> {
        match Self::bind("::", port).await {
            Err(ListenError::Listen { .. }) => Self::bind("0.0.0.0", port).await,
            bound => bound,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers clients until everything is to end at once, or nothing is left to do after nothing new was to be taken:
    /// `is_done` says so. Clients that come while draining are answered too; the router tells them to come back.
    pub async fn run(self, router: Router, shutdown: Shutdown, is_done: impl Future<Output = ()>) {
        let seats = Seats::new(CONNECTIONS_MAX);
        let connections = TaskTracker::new();
        let ending = Shutdown::default();
        let accepting = async {
            loop {
                match accept(&self.listener, &seats).await {
                    Ok((stream, seat)) => {
                        let (router, ending) = (router.clone(), ending.clone());
                        connections.spawn(async move {
                            tokio::select! {
                                () = serve(stream, router, ending, &seat) => {}
                                () = seat.must_leave() => {}
                            }
                            seat.give_back();
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        let drained = async {
            shutdown.draining().await;
            is_done.await;
        };
        tokio::select! {
            () = accepting => {}
            () = drained => {}
            () = shutdown.stopped() => {}
        }
        ending.drain();
        connections.close();
        if tokio::time::timeout(LAST_WORDS, connections.wait())
            .await
            .is_err()
        {
            ending.stop();
            connections.wait().await;
        }
    }
}

async fn accept(listener: &TcpListener, seats: &Arc<Seats>) -> io::Result<(TcpStream, Arc<Seat>)> {
    let (stream, _) = listener.accept().await?;
    let seat = seats.take().await;
    let seat = seat.ok_or_else(|| io::Error::other("nobody is let in any more"))?;
    // Small pieces of an answer must not wait for each other.
    let _ = stream.set_nodelay(true);
    Ok((stream, seat))
}

async fn serve(stream: TcpStream, router: Router, ending: Shutdown, seat: &Arc<Seat>) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let request = request.map(|body| Arriving::new(body, seat));
        let asked = Arc::clone(&request.body().asked);
        let answer = hyper::service::Service::call(&router, request.map(Body::new));
        async move {
            let answer = answer.await.map_err(|never: Infallible| never)?;
            // Some answers need no more of the request than what is here.
            asked.note();
            // Until the last piece of it has gone out.
            Ok::<_, Infallible>(answer.map(|body| {
                body.map_frame(move |frame| {
                    let _asked = &asked;
                    frame
                })
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = ending.draining() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = ending.stopped() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
