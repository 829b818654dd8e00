//! As much of a browser as a login needs: pages, forms, cookies, and redirects one at a time.

use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug, Default)]
pub struct Browser {
    cookies: BTreeMap<String, String>,
}

#[derive(Debug)]
pub struct Page {
    pub status: u16,
    /// Where the page sends the browser, if it does; complete.
    pub location: Option<String>,
    pub text: String,
}

impl Page {
    /// Returns where the page sends the browser.
    ///
    /// # Panics
    /// If it sends it nowhere.
    pub fn leads_to(&self) -> &str {
        let location = self.location.as_deref();
        location.unwrap_or_else(|| panic!("this page leads nowhere: {self:?}"))
    }
}

impl Browser {
    /// Visits a page.
    ///
    /// # Panics
    /// If nobody answers with one.
    pub async fn get(&mut self, url: &str) -> Page {
        self.send("GET", url, "").await
    }

    /// Sends a form that is encoded already.
    ///
    /// # Panics
    /// If nobody answers with a page.
    pub async fn post(&mut self, url: &str, form: &str) -> Page {
        self.send("POST", url, form).await
    }

    async fn send(&mut self, method: &str, url: &str, form: &str) -> Page {
        let address = url.strip_prefix("http://").expect("a plain address");
        let (host, path) = match address.find('/') {
            Some(at) => address.split_at(at),
            None => (address, "/"),
        };
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\naccept: text/html\r\ncookie: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            cookies.join("; "),
            form.len()
        );
        let mut stream = TcpStream::connect(host).await.expect("somebody listens");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("somebody reads");
        let mut answer = Vec::new();
        stream
            .read_to_end(&mut answer)
            .await
            .expect("somebody answers");
        self.read(&String::from_utf8_lossy(&answer), host)
    }

    fn read(&mut self, answer: &str, host: &str) -> Page {
        let (head, text) = answer.split_once("\r\n\r\n").expect("a whole answer");
        let mut location = None;
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            match name.to_ascii_lowercase().as_str() {
                "location" if value.starts_with('/') => {
                    location = Some(format!("http://{host}{value}"));
                }
                "location" => location = Some(value.to_owned()),
                "set-cookie" => self.keep(value),
                _ => {}
            }
        }
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Page {
            status: status.expect("a status"),
            location,
            text: text.to_owned(),
        }
    }

    fn keep(&mut self, cookie: &str) {
        let pair = cookie.split(';').next().unwrap_or_default();
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match value {
            "" => self.cookies.remove(name),
            value => self.cookies.insert(name.to_owned(), value.to_owned()),
        };
    }
}
