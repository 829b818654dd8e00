//! A web site on this machine that does what a test wants, well-behaved or not.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Longest request that is read.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// What a site does when it is asked for something.
#[derive(Debug, Clone)]
pub enum Reaction {
    /// Sends these bytes, a whole response, and closes.
    Send(Vec<u8>),
    /// Sends the first bytes, and then the second ones for ever.
    Repeat(Vec<u8>, Vec<u8>),
    /// Sends these bytes, and then nothing for ever.
    Stall(Vec<u8>),
}

impl Reaction {
    /// A page of a type.
    pub fn page(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::with_headers(&[("content-type", content_type)], body)
    }

    pub fn html(body: impl AsRef<[u8]>) -> Self {
        Self::page("text/html; charset=utf-8", body)
    }

    pub fn redirect(to: &str) -> Self {
        let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        Self::Send(head.into_bytes())
    }

    pub fn status(status: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        Self::Send(head.into_bytes())
    }

    pub fn with_headers(headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut sent = b"HTTP/1.1 200 OK\r\n".to_vec();
        for (name, value) in headers {
            sent.extend(format!("{name}: {value}\r\n").bytes());
        }
        sent.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        sent.extend(body);
        Self::Send(sent)
    }
}

/// The site; it is gone when this is dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Site {
    /// Opens a site on a free port of 127.0.0.1. `react` gets the path that was asked for.
    pub async fn open(react: impl Fn(&str) -> Reaction + Send + Sync + 'static) -> Self {
        let opened = Self::open_at(([127, 0, 0, 1], 0).into(), react).await;
        opened.unwrap_or_else(|error| panic!("no site on loopback: {error}"))
    }

    pub async fn open_at(
        address: SocketAddr,
        react: impl Fn(&str) -> Reaction + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut serving = JoinSet::new();
        let requests = Arc::clone(&asked);
        serving.spawn(serve(listener, Arc::new(react), requests));
        Ok(Self {
            address,
            asked,
            _serving: serving,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

type React = dyn Fn(&str) -> Reaction + Send + Sync;

async fn serve(listener: TcpListener, react: Arc<React>, asked: Arc<Mutex<Vec<String>>>) {
    let mut visits = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (react, asked) = (Arc::clone(&react), Arc::clone(&asked));
        visits.spawn(async move {
            // A visitor who leaves early is part of some tests.
            let _ = visit(stream, &*react, &asked).await;
        });
    }
}

async fn visit(mut stream: TcpStream, react: &React, asked: &Mutex<Vec<String>>) -> io::Result<()> {
    let head = read_head(&mut stream).await?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(head);
    match react(&path) {
        Reaction::Send(bytes) => stream.write_all(&bytes).await?,
        Reaction::Repeat(first, again) => {
            stream.write_all(&first).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
        Reaction::Stall(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending::<()>().await;
        }
    }
    stream.shutdown().await
}

async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < REQUEST_BYTES_MAX {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
