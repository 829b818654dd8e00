//! Where a browser comes back to after a login on this machine: one address on loopback, for as long as it takes.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::login::{LoginError, Resource};
use super::store::Store;
use crate::client::McpPorts;
use crate::settings::{OAuthSettings, ServerSettings};

/// A browser sends its request at once, or it only keeps a connection in stock.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Longer than the longest code and state; a head beyond it is not read.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Listens for the browser's return.
pub struct Callback {
    listener: TcpListener,
    redirect_uri: String,
    reading: JoinSet<Option<Returned>>,
}

/// A browser that has come back, and waits for a page.
#[derive(Debug)]
pub struct Returned {
    /// What it asked for: the path and its query, which is the answer of the login.
    pub answer: String,
    connection: TcpStream,
}

#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error("cannot listen for the browser on port {port}: {source}")]
    Port { port: u16, source: io::Error },
}

impl Callback {
    /// Listens on the port of the settings, else on the one that we are registered with, else on a free one.
    pub async fn open(server: &ServerSettings, ports: &McpPorts) -> Result<Self, CallbackError> {
        let settings = Resource::of(server, ports)?.settings;
        let listener = match settings.redirect_port {
            Some(port) => listen(settings, port).await,
            None => match registered_port(server, ports) {
                // Somebody else may have it: then we register anew, with another.
                Some(port) => match listen(settings, port).await {
                    Err(_) => listen(settings, 0).await,
                    listener => listener,
                },
                None => listen(settings, 0).await,
            },
        }?;
        let port = listener.local_addr().map_or(0, |address| address.port());
        let redirect_uri = match &settings.redirect_uri {
            Some(uri) => uri.clone(),
            None => format!("http://{}:{port}/callback", settings.redirect_host),
        };
        Ok(Self {
            listener,
            redirect_uri,
            reading: JoinSet::new(),
        })
    }

    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for a browser to come back, for ever: whoever waits has a deadline. Cancel-safe.
    pub async fn returned(&mut self) -> Returned {
        loop {
            tokio::select! {
                Ok((connection, _)) = self.listener.accept() => {
                    self.reading.spawn(read(connection));
                }
                Some(Ok(Some(returned))) = self.reading.join_next() => return returned,
                // The machine is out of descriptors, perhaps; nobody is being read.
                else => sleep(ACCEPT_AGAIN_AFTER).await,
            }
        }
    }
}

impl Returned {
    /// Tells the person at the browser what came of it.
    pub async fn show(self, outcome: &Result<(), LoginError>) {
        let (status, title, text) = match outcome {
            Ok(()) => (
                "200 OK",
                "You are logged in",
                "You can close this page and go back to Hermes.".to_owned(),
            ),
            Err(error) => ("400 Bad Request", "The login failed", error.to_string()),
        };
        // A browser that has gone needs no page.
        let _ = timeout(PAGE_TIMEOUT, reply(self.connection, status, title, &text)).await;
    }
}

async fn listen(settings: &OAuthSettings, port: u16) -> Result<TcpListener, CallbackError> {
    let host: Option<IpAddr> = settings.redirect_host.parse().ok();
    // Never for the whole network to reach: a name, or a proxy's address, leads to loopback too.
    let host = host.filter(IpAddr::is_loopback);
    let address = (host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port);
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| CallbackError::Port { port, source })
}

fn registered_port(server: &ServerSettings, ports: &McpPorts) -> Option<u16> {
    let store = Store::new(&ports.token_folder, &server.name);
    let client = store.client().ok()??;
    Url::parse(client.redirect_uris.first()?).ok()?.port()
}

/// Reads a request, and answers it if it is none of ours.
async fn read(mut connection: TcpStream) -> Option<Returned> {
    let head = timeout(REQUEST_TIMEOUT, read_head(&mut connection)).await;
    let head = head.ok()?.ok()?;
    let mut words = head.split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some(path)) if path.contains("state=") => Some(Returned {
            answer: path.to_owned(),
            connection,
        }),
        _ => {
            let text = "This address only takes the answer to a login.";
            let _ = timeout(
                PAGE_TIMEOUT,
                reply(connection, "404 Not Found", "Nothing here", text),
            )
            .await;
            None
        }
    }
}

async fn read_head(connection: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = connection.read(&mut chunk).await?;
        if count == 0 || head.len() + count > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&chunk[..count]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

async fn reply(mut connection: TcpStream, status: &str, title: &str, text: &str) -> io::Result<()> {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let page = format!(
        "<!doctype html><meta charset=utf-8><title>{title}</title>\
         <body style=\"font-family:sans-serif;margin:4em auto;max-width:40em\"><h1>{title}</h1><p>{text}</p>"
    );
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    connection.write_all(response.as_bytes()).await?;
    connection.shutdown().await
}
