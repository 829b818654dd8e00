//! HTTP clients, made when the first request needs them: loading the system's certificates takes milliseconds that a
//! local server should not cost.

use std::sync::OnceLock;
use std::time::Duration;

use crate::address::is_local;

/// Finds out that a peer is gone while a model thinks in silence.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Shorter than the minute after which many servers close an idle connection on their side.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// One client for servers nearby, one for all others.
#[derive(Debug)]
pub(crate) struct Http {
    connect: Duration,
    near: OnceLock<reqwest::Client>,
    far: OnceLock<reqwest::Client>,
}

enum Reach {
    /// Plain HTTP without a proxy: an empty set of roots, so no file is read and nothing could be trusted.
    Near,
    /// TLS with the system's roots, and the system's proxy if it has one.
    Far,
}

impl Http {
    pub(crate) fn new(connect: Duration) -> Self {
        Self {
            connect,
            near: OnceLock::new(),
            far: OnceLock::new(),
        }
    }

    /// Returns the client for a URL. Fails when the system's certificates cannot be loaded.
    pub(crate) fn client(&self, url: &str) -> Result<reqwest::Client, reqwest::Error> {
        let (slot, reach) = if url.starts_with("http:") && is_local(url) {
            (&self.near, Reach::Near)
        } else {
            (&self.far, Reach::Far)
        };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = build(self.connect, reach)?;
        Ok(slot.get_or_init(|| client).clone())
    }
}

fn build(connect: Duration, reach: Reach) -> Result<reqwest::Client, reqwest::Error> {
    let builder = hermes_os::http::client()
        .connect_timeout(connect)
        .tcp_keepalive(KEEPALIVE)
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE);
    match reach {
        Reach::Far => builder.build(),
        Reach::Near => hermes_os::http::without_tls(builder.no_proxy()).build(),
    }
}
