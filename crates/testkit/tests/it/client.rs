//! A raw HTTP client that shows exactly what came over the socket, also when it broke off.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use hermes_testkit::server::ScriptedServer;
use serde_json::Value;

/// Long enough for an answer on loopback, short enough to wait for one that never comes.
const SILENCE_MAX: Duration = Duration::from_millis(1500);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The HTTP chunks of the body; a body of known length is one.
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) end: End,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The body came to its end.
    Complete,
    /// The connection was closed before the end of the body.
    Truncated,
    /// The connection was reset.
    Reset,
    /// Nothing more came.
    Silence,
}

impl Response {
    pub(crate) fn body(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    /// Returns the first header of this (lowercase) name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.chunks.concat()).unwrap()
    }
}

pub(crate) fn post(server: &ScriptedServer, path: &str, body: &Value) -> Response {
    request(server.address(), "POST", path, &body.to_string())
}

pub(crate) fn get(server: &ScriptedServer, path: &str) -> Response {
    request(server.address(), "GET", path, "")
}

pub(crate) fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Response {
    request_with(address, method, path, &[], body)
}

pub(crate) fn request_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
    let length = body.len();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\
         Connection: close\r\n"
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    write!(stream, "{head}\r\n{body}").unwrap();
    let (bytes, end) = read_to_end(&mut stream);
    parse(&bytes, end)
}

fn read_to_end(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    let end = match stream.read_to_end(&mut bytes) {
        Ok(_) => End::Truncated,
        Err(error) => match error.kind() {
            ErrorKind::ConnectionReset => End::Reset,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => End::Silence,
            _ => panic!("{error}"),
        },
    };
    (bytes, end)
}

fn parse(bytes: &[u8], end: End) -> Response {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(head_end) = head_end else {
        return Response {
            status: 0,
            head: String::new(),
            chunks: Vec::new(),
            end,
        };
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = &bytes[head_end + 4..];
    let (chunks, is_complete) = if head.contains("transfer-encoding: chunked") {
        unchunk(body)
    } else {
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let is_complete = length.is_none_or(|length: usize| length == body.len());
        (vec![body.to_vec()], is_complete)
    };
    let end = if is_complete { End::Complete } else { end };
    Response {
        status,
        head,
        chunks,
        end,
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    headers.find_map(|(header, value)| (header == name).then_some(value))
}

/// Returns the HTTP chunks that came whole, and whether the last, empty one did.
fn unchunk(mut rest: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut chunks = Vec::new();
    while let Some(line_end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line_end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (chunks, true);
        }
        let start = line_end + 2;
        chunks.push(rest[start..start + size].to_vec());
        rest = &rest[start + size + 2..];
    }
    (chunks, false)
}
