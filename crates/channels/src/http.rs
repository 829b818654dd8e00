//! What platforms with an API over HTTP share: how a client is made, what its errors say, how files come in.

use std::error::Error as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{ChannelError, FileBytes, Secret, Trouble};
use reqwest::{Client, ClientBuilder, Proxy, Url};

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Servers close connections that rest for a minute; one that they just closed would leave a send in doubt.
const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(20);
/// A download that brings nothing for this long is dead.
const CHUNK_MAX: Duration = Duration::from_secs(30);

/// Begins a client for the addresses of a platform, the first of which decides whether a proxy leads there.
pub(crate) fn client(
    platform: &str,
    proxy: Option<&Secret>,
    addresses: &[&str],
) -> Result<ClientBuilder, ChannelError> {
    // A socket cannot begin on HTTP/2.
    let mut builder = hermes_os::http::client()
        .connect_timeout(CONNECT_MAX)
        .pool_idle_timeout(IDLE_CONNECTION_MAX)
        .http1_only();
    if let Some(proxy) = proxy {
        let proxy = Proxy::all(proxy.expose()).map_err(|error| {
            let what = format!("the proxy for {platform} is not an address");
            unusable(&what, &error).with_hint(PROXY_HINT)
        })?;
        builder = builder.proxy(proxy);
    } else if addresses.first().is_some_and(|address| is_near(address)) {
        builder = builder.no_proxy();
    }
    let is_plain = |address: &&str| address.starts_with("http://") || address.starts_with("ws://");
    if addresses.iter().all(is_plain) {
        builder = hermes_os::http::without_tls(builder);
    }
    Ok(builder)
}

pub(crate) fn build(builder: ClientBuilder) -> Result<Client, ChannelError> {
    builder
        .build()
        .map_err(|error| unusable("no HTTP client can be made", &error))
}

/// How a proxy is written.
pub(crate) const PROXY_HINT: &str = "write it as `http://HOST:PORT` or `socks5://HOST:PORT`";

fn unusable(what: &str, error: &reqwest::Error) -> ChannelError {
    let words = format!("{what}: {}", innermost(error));
    ChannelError::new(Trouble::NotAuthorised, words)
}

/// What lies at the bottom of an error: its address, which may have a token in it, is left out on the way.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    let mut said = if error.is_timeout() {
        "timed out".to_owned()
    } else {
        "the connection failed".to_owned()
    };
    while let Some(inner) = cause {
        said = inner.to_string();
        cause = inner.source();
    }
    said
}

pub(crate) fn host(address: &str) -> Option<String> {
    Some(Url::parse(address).ok()?.host_str()?.to_owned())
}

/// Whether a server is on this machine, where no proxy leads.
fn is_near(address: &str) -> bool {
    let host = host(address).unwrap_or_default();
    let is_loopback = |ip: IpAddr| ip.is_loopback();
    host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(is_loopback)
}

/// Ends a stream with an error when it is longer than it may be, or stalls.
pub(crate) fn limited(chunks: FileBytes, bytes_max: u64, platform: &'static str) -> FileBytes {
    let limited = futures_util::stream::try_unfold(
        (chunks, bytes_max),
        move |(mut chunks, left)| async move {
            let next = tokio::time::timeout(CHUNK_MAX, chunks.next()).await;
            let Ok(next) = next else {
                let words = "the file does not go on coming";
                return Err(ChannelError::new(Trouble::Passing, words));
            };
            let Some(chunk) = next.transpose()? else {
                return Ok(None);
            };
            let Some(left) = left.checked_sub(chunk.len() as u64) else {
                let words = format!("the file is longer than {platform} said");
                return Err(ChannelError::new(Trouble::TooLong, words));
            };
            Ok(Some((chunk, (chunks, left))))
        },
    );
    limited.boxed()
}

/// A file of ours that was to be sent.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> ChannelError {
    let words = format!("`{}` cannot be read: {error}", path.display());
    ChannelError::new(Trouble::Refused, words)
}
