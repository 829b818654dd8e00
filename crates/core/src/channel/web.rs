//! Requests that platforms make of us.

/// Where a platform sends its requests to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookPlace {
    pub host: String,
    pub port: u16,
    /// With its slash.
    pub path: String,
    pub body_bytes_max: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    pub method: String,
    /// Behind the question mark, as it came.
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl WebRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(other, _)| other == name);
        named.next().map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl WebResponse {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            content_type: "text/plain",
            body: Vec::new(),
        }
    }
}
