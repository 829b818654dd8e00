//! A client that sends exactly what a test wants, and reads what comes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) authority: String,
    key: String,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The events of a stream: their names, and their data.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        events(&self.body)
    }

    /// What a stream of chunks says.
    pub(crate) fn content(&self) -> String {
        let chunks = self
            .events()
            .into_iter()
            .filter(|(_, data)| data != "[DONE]");
        let chunks = chunks.map(|(_, data)| serde_json::from_str::<Value>(&data).unwrap());
        chunks
            .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
            .collect()
    }

    /// The last chunk before the end.
    pub(crate) fn last_chunk(&self) -> Value {
        let events = self.events();
        let at = events.iter().position(|(_, data)| data == "[DONE]");
        let at = at.unwrap_or_else(|| panic!("{self:?}"));
        serde_json::from_str(&events[at - 1].1).unwrap()
    }
}

pub(crate) fn events(body: &str) -> Vec<(String, String)> {
    let blocks = body
        .split("\n\n")
        .filter(|block| !block.is_empty() && !block.starts_with(':'));
    let read = blocks.map(|block| {
        let field = |name: &str| {
            let lines = block.lines().filter_map(|line| line.strip_prefix(name));
            lines.collect::<Vec<_>>().join("\n")
        };
        (field("event: "), field("data: "))
    });
    read.collect()
}

impl Client {
    pub(crate) fn new(url: &str, key: &str) -> Self {
        Self {
            authority: url.strip_prefix("http://").unwrap().to_owned(),
            key: key.to_owned(),
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.authority).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &[], Some(body))
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response {
        read(self.open(method, path, headers, body))
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> TcpStream {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            self.authority,
            body.len()
        );
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            request.push_str(&format!("authorization: Bearer {}\r\n", self.key));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = self.connect();
        stream
            .write_all(format!("{request}\r\n{body}").as_bytes())
            .unwrap();
        stream
    }

    pub(crate) fn chat(&self, body: &Value) -> Response {
        self.post("/v1/chat/completions", body)
    }

    pub(crate) fn chat_with(&self, headers: &[(&str, &str)], body: &Value) -> Response {
        self.send("POST", "/v1/chat/completions", headers, Some(body))
    }
}

/// Reads an answer to its end.
pub(crate) fn read(stream: TcpStream) -> Response {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {line:?}"));
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let mut body = Vec::new();
    if is_chunked {
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                break;
            }
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else {
        // A server may close before everything was sent; what it said counts.
        let _ = reader.read_to_end(&mut body);
    }
    Response {
        status,
        headers,
        body: String::from_utf8(body).unwrap(),
    }
}
