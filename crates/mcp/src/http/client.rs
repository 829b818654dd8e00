//! The HTTP client of one connection: made anew for each, so that addresses and certificates are looked up again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_core::Secret;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};

use super::proxy::with_proxy;
use super::tls::{self, with_certificates};
use crate::auth::ServerToken;
use crate::classify::SessionUse;
use crate::failure::{Failure, with_sources};
use crate::settings::TlsSettings;
use crate::signal::Reporter;

/// A server that does not take a connection in this time is away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Finds out that a peer is gone while a tool works in silence: asks after this long, and this often.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// What was sent must arrive within this time, or the connection is given up. The system alone would try for a quarter
/// of an hour.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// Shorter than the five seconds after which common servers close an idle connection: a request that crosses such a
/// close on its way is lost, and nobody can tell whether it ran.
const POOL_IDLE: Duration = Duration::from_secs(3);
const REDIRECTS_MAX: usize = 5;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpFailure(pub(crate) Failure);

#[derive(Clone)]
pub(crate) struct HttpClient {
    pub(super) client: reqwest::Client,
    pub(super) headers: HeaderMap,
    pub(super) reporter: Reporter,
    pub(super) tokens: Option<Arc<ServerToken>>,
    session_seen: Arc<AtomicBool>,
    stream_seen: Arc<AtomicBool>,
}

/// Where a server is, and how it is spoken to.
pub(crate) struct Address<'a> {
    pub(crate) url: &'a str,
    pub(crate) headers: &'a BTreeMap<String, Secret>,
    pub(crate) tls: &'a TlsSettings,
    /// Ours: it names proxies.
    pub(crate) environment: &'a [(String, String)],
}

impl HttpClient {
    pub(crate) async fn new(
        address: Address<'_>,
        reporter: Reporter,
        tokens: Option<Arc<ServerToken>>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            client: client(&address).await?,
            headers: header_map(address.headers)?,
            reporter,
            tokens,
            session_seen: Arc::default(),
            stream_seen: Arc::default(),
        })
    }

    /// Returns whether the server gave us a session.
    pub(crate) fn session_use(&self) -> SessionUse {
        if self.session_seen.load(Ordering::Relaxed) {
            SessionUse::Session
        } else {
            SessionUse::Sessionless
        }
    }

    pub(super) fn note_session(&self) {
        self.session_seen.store(true, Ordering::Relaxed);
    }

    /// Notes that the server's own stream was opened.
    pub(super) fn note_stream(&self) {
        self.stream_seen.store(true, Ordering::Relaxed);
    }

    pub(super) fn had_stream(&self) -> bool {
        self.stream_seen.load(Ordering::Relaxed)
    }
}

pub(super) async fn client(address: &Address<'_>) -> Result<reqwest::Client, Failure> {
    let builder = client_builder(address).await?;
    builder.build().map_err(|error| Failure::Misconfigured {
        cause: with_sources(&error),
    })
}

/// Begins a client with the settings that all our connections to this address have.
pub(crate) async fn client_builder(
    address: &Address<'_>,
) -> Result<reqwest::ClientBuilder, Failure> {
    let misconfigured = |cause: String| Failure::Misconfigured { cause };
    let url = reqwest::Url::parse(address.url)
        .map_err(|error| misconfigured(format!("its `url` is not an address: {error}")))?;
    let builder = hermes_os::http::client()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(TCP_KEEPALIVE)
        .tcp_keepalive_interval(TCP_KEEPALIVE_INTERVAL)
        .tcp_keepalive_retries(TCP_KEEPALIVE_RETRIES)
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE)
        .redirect(Policy::custom(same_origin_only));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let builder = builder.tcp_user_timeout(TCP_USER_TIMEOUT);
    let (builder, has_proxy) = with_proxy(builder, &url, address.environment)?;
    match url.scheme() {
        // No TLS will be spoken, so the system's certificates need not be loaded.
        "http" if !has_proxy => Ok(hermes_os::http::without_tls(builder)),
        "http" | "https" => {
            let home = address.environment.iter().find(|(name, _)| name == "HOME");
            let home = home.map(|(_, home)| home.as_str());
            with_certificates(builder, address.tls, home).await
        }
        other => {
            let cause = format!("its `url` begins with `{other}:`, not with `http:` or `https:`");
            Err(misconfigured(cause))
        }
    }
}

/// Follows redirects that keep method, body and origin. Another origin must not see our headers.
fn same_origin_only(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
    let same_origin = attempt
        .previous()
        .last()
        .is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps_body && same_origin && attempt.previous().len() <= REDIRECTS_MAX {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn header_map(headers: &BTreeMap<String, Secret>) -> Result<HeaderMap, Failure> {
    let misconfigured = |name: &str| Failure::Misconfigured {
        cause: format!("its header `{name}` has a name or a value that HTTP does not allow"),
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| misconfigured(name))?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| misconfigured(name))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

impl From<reqwest::Error> for HttpFailure {
    fn from(error: reqwest::Error) -> Self {
        // The address may hold a key.
        let error = error.without_url();
        let cause = with_sources(&error);
        if let Some(advice) = tls::advice(&cause) {
            // Without a handshake, nothing was sent.
            let cause = format!("{advice} ({cause})");
            return Self(Failure::Misconfigured { cause });
        }
        Self(if error.is_builder() {
            Failure::Misconfigured { cause }
        } else if error.is_connect() {
            Failure::Unreachable { cause }
        } else {
            Failure::Cut { cause }
        })
    }
}
