//! Logs in where nobody is there to do it: the suite's authorisation servers approve whoever visits them.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::auth::{Callback, Login};
use crate::client::McpPorts;
use crate::settings::ServerSettings;

/// The servers are on this machine and wait for nobody.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A login takes two.
const REDIRECTS_MAX: usize = 5;

/// Logs in as `hermes mcp login` does, in the place of its person and of their browser.
pub(super) async fn log_in(
    server: &ServerSettings,
    ports: &McpPorts,
    scopes: &[String],
) -> Result<(), String> {
    let failed = |error: String| format!("cannot log in: {error}");
    let callback = Callback::open(server, ports).await;
    let callback = callback.map_err(|error| failed(error.to_string()))?;
    let login = Login::begin(server, ports, callback.redirect_uri(), scopes).await;
    let login = login.map_err(|error| failed(error.to_string()))?;
    let answer = visit(login.url()).await;
    let answer = answer.map_err(|error| failed(format!("nobody approved: {error}")))?;
    let answer = answer.ok_or_else(|| failed("nobody was sent back".to_owned()))?;
    let finished = login.finish(&answer).await;
    finished.map_err(|error| failed(error.to_string()))
}

/// Opens an address as a browser does: follows it to where it leads, which is back to us after a login.
pub(super) async fn open(url: &str) -> io::Result<()> {
    let mut url = url.to_owned();
    for _ in 0..REDIRECTS_MAX {
        match visit(&url).await? {
            Some(next) => url = next,
            None => return Ok(()),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Visits a page, and returns where it sends the browser, if it does.
async fn visit(url: &str) -> io::Result<Option<String>> {
    let visited = timeout(PAGE_TIMEOUT, read_page(url)).await;
    let page = visited.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let location = page.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    Ok(location)
}

async fn read_page(url: &str) -> io::Result<String> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let address = url.strip_prefix("http://").ok_or_else(invalid)?;
    let (host, path) = address.split_at(address.find('/').ok_or_else(invalid)?);
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}
