//! As much HTTP/1.1 as a test server needs: requests with `Content-Length`, keep-alive, and
//! responses of known length. Chunked responses are written by `play`, which may break them off.

use std::{collections::BTreeMap, io};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

pub(crate) type Connection = BufReader<TcpStream>;

/// More than any client sends: enough for long tokens and cookies.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Enough for a full context window with a few images.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request as it was received.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// In the order they came, with lowercase names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body as JSON; `Null` if it is not.
    pub json: Value,
}

impl Request {
    /// Returns the first header of this (lowercase) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the path without its query.
    pub fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or(&self.path)
    }

    pub(crate) fn wants_close(&self) -> bool {
        let connection = self.header("connection").unwrap_or_default();
        connection.eq_ignore_ascii_case("close")
    }

    fn content_length(&self) -> io::Result<usize> {
        let length = match self.header("content-length") {
            Some(length) => length.parse().map_err(|_| malformed("a content-length"))?,
            None if self.header("transfer-encoding").is_some() => {
                return Err(malformed("a body without content-length"));
            }
            None => 0,
        };
        if length > BODY_BYTES_MAX {
            return Err(malformed("a body beyond the limit"));
        }
        Ok(length)
    }
}

/// Reads one request; `None` if the client has closed the connection instead.
pub(crate) async fn read_request(connection: &mut Connection) -> io::Result<Option<Request>> {
    let Some(mut request) = read_head(connection).await? else {
        return Ok(None);
    };
    let length = request.content_length()?;
    if request.header("expect").is_some() {
        connection
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await?;
    }
    request.body = vec![0; length];
    connection.read_exact(&mut request.body).await?;
    request.json = serde_json::from_slice(&request.body).unwrap_or_default();
    Ok(Some(request))
}

/// Renders the head of a response, up to and with its empty line.
pub(crate) fn head(status: u16, headers: &BTreeMap<String, String>) -> String {
    let reason = if status < 400 { "OK" } else { "Refused" };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head
}

/// Writes a response that is sent in one go.
pub(crate) async fn write_response(
    connection: &mut Connection,
    status: u16,
    mut headers: BTreeMap<String, String>,
    body: &Value,
) -> io::Result<()> {
    let (content_type, body) = match body {
        Value::String(text) => ("text/plain; charset=utf-8", text.clone()),
        json => ("application/json", json.to_string()),
    };
    headers
        .entry("content-type".into())
        .or_insert_with(|| content_type.into());
    headers.insert("content-length".into(), body.len().to_string());
    let response = head(status, &headers) + &body;
    connection.write_all(response.as_bytes()).await
}

async fn read_head(connection: &mut Connection) -> io::Result<Option<Request>> {
    let mut bytes_left = HEAD_BYTES_MAX;
    let Some(start) = read_line(connection, &mut bytes_left).await? else {
        return Ok(None);
    };
    let mut words = start.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(malformed("a request line"));
    };
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        json: Value::Null,
    };
    loop {
        let line = read_line(connection, &mut bytes_left).await?;
        let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            return Ok(Some(request));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header"))?;
        let header = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        request.headers.push(header);
    }
}

/// Reads a line without its ending; `None` at the end of the stream.
async fn read_line(
    connection: &mut Connection,
    bytes_left: &mut usize,
) -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut limited = connection.take(*bytes_left as u64);
    let read = limited.read_line(&mut line).await?;
    if read == 0 && *bytes_left > 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') {
        return Err(malformed("a head that is cut off or beyond the limit"));
    }
    *bytes_left -= read;
    line.truncate(line.trim_end().len());
    Ok(Some(line))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the client sent {what} that this server does not take"),
    )
}
