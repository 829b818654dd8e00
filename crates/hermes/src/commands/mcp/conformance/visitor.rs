//! Logs in where nobody is there to do it: the suite's authorisation servers approve whoever visits them.

use hermes_mcp::{Callback, Login, McpPorts, ServerSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::failure::{Failure, Outcome};

/// Logs in as `hermes mcp login` does, in the place of its person and of their browser.
pub(super) async fn log_in(
    server: &ServerSettings,
    ports: &McpPorts,
    scopes: &[String],
) -> Outcome<()> {
    let failed = |error: String| Failure::new(format!("cannot log in: {error}"));
    let callback = Callback::open(server, ports).await;
    let callback = callback.map_err(|error| failed(error.to_string()))?;
    let login = Login::begin(server, ports, callback.redirect_uri(), scopes).await;
    let login = login.map_err(|error| failed(error.to_string()))?;
    let answer = visit(login.url()).await;
    let answer = answer.map_err(|error| failed(format!("nobody approved: {error}")))?;
    let finished = login.finish(&answer).await;
    finished.map_err(|error| failed(error.to_string()))
}

/// Visits a page, and returns where it sends the browser.
async fn visit(url: &str) -> std::io::Result<String> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let address = url.strip_prefix("http://").ok_or_else(invalid)?;
    let (host, path) = address.split_at(address.find('/').ok_or_else(invalid)?);
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    let location = page.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    location.ok_or_else(invalid)
}
