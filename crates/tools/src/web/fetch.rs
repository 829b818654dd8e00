//! Fetches what a URL names, within the rules.
//!
//! Nothing is sent along that could be worth stealing: no cookies, no keys, no referrer. The system's proxy is not used:
//! it would resolve names itself, and connect to addresses that nobody judged.

use std::error::Error;
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION,
};
use reqwest::{Client, Response, StatusCode, Url};

use super::WebSettings;
use super::destination::{PrivateUrls, Refusal};
use super::names::{JudgedNames, Names};
use super::website::{Block, Websites};

/// Sites need two or three: to https, to `www.`, to a language.
const REDIRECTS_MAX: usize = 5;

/// The others of a host's addresses are tried when one does not answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

const USER_AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; hermes/",
    env!("CARGO_PKG_VERSION"),
    ")"
);
const WANTED: &str = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/json;q=0.9, \
                      application/pdf;q=0.9, */*;q=0.5";

/// What a server sent.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Where it was at last.
    pub(crate) url: Url,
    /// In lower case, with its parameters.
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// Whether there was more of it than is read.
    pub(crate) is_cut: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the user does not want `{}` to be visited (rule `{}` of {}); do without it", .0.host, .0.rule, .0.source)]
    Blocked(Block),
    #[error("more than {REDIRECTS_MAX} redirects; the last leads to `{url}`")]
    Redirects { url: Url },
    #[error("the server redirects without saying where to")]
    RedirectToNowhere,
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("the page is packed with `{0}`, which was not asked for and is not understood")]
    Packing(String),
    #[error("the packed page is damaged: {0}")]
    Unpacking(std::io::Error),
    #[error("cannot set up TLS: {0}")]
    Client(String),
    #[error("the page did not come: {0} (pages are fetched directly, not through a proxy)")]
    Network(String),
}

pub(crate) struct Fetcher {
    private: PrivateUrls,
    names: Arc<dyn Names>,
    body_bytes_max: usize,
    /// Made when it is first needed.
    client: OnceLock<Client>,
}

impl Fetcher {
    pub(crate) fn new(settings: &WebSettings) -> Self {
        Self {
            private: settings.private_urls,
            names: Arc::clone(&settings.names),
            body_bytes_max: settings.page_bytes_max,
            client: OnceLock::new(),
        }
    }

    /// Fetches a page. Every address on the way to it is judged, and every site.
    pub(crate) async fn fetch(
        &self,
        address: &str,
        websites: &Websites,
    ) -> Result<Fetched, FetchError> {
        let mut url = self.private.parse(address)?;
        for _ in 0..=REDIRECTS_MAX {
            if let Some(block) = websites.block(&url) {
                return Err(FetchError::Blocked(block));
            }
            let response = self.ask(url.clone()).await?;
            if !is_redirect(response.status()) {
                return self.take(url, response).await;
            }
            url = target(&url, response.headers())?;
            self.private.judge_url(&url)?;
        }
        Err(FetchError::Redirects { url })
    }

    async fn ask(&self, url: Url) -> Result<Response, FetchError> {
        let client = self.client().await?;
        let request = client
            .get(url)
            .header(ACCEPT, WANTED)
            .header(ACCEPT_ENCODING, "gzip");
        request.send().await.map_err(|error| unanswered(&error))
    }

    async fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let names = JudgedNames {
            names: Arc::clone(&self.names),
            private: self.private,
        };
        let made = tokio::task::spawn_blocking(move || client(names)).await;
        let made = made.map_err(|error| FetchError::Client(error.to_string()))?;
        let made = made.map_err(|error| FetchError::Client(root_cause(&error)))?;
        Ok(self.client.get_or_init(|| made))
    }

    async fn take(&self, url: Url, response: Response) -> Result<Fetched, FetchError> {
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status()));
        }
        let content_type = header(response.headers(), CONTENT_TYPE).to_ascii_lowercase();
        let packing = header(response.headers(), CONTENT_ENCODING).to_ascii_lowercase();
        let (sent, is_cut) = self.read(response).await?;
        let (body, is_cut) = match packing.as_str() {
            "" | "identity" => (sent, is_cut),
            "gzip" | "x-gzip" => unpack(&sent, is_cut, self.body_bytes_max)?,
            _ => return Err(FetchError::Packing(packing)),
        };
        Ok(Fetched {
            url,
            content_type,
            body,
            is_cut,
        })
    }

    /// Reads a body as it comes, and no more of it than is allowed: what a server says of its length is not believed.
    async fn read(&self, mut response: Response) -> Result<(Vec<u8>, bool), FetchError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unanswered(&error))? {
            let room = self.body_bytes_max - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return Ok((body, true));
            }
        }
        Ok((body, false))
    }
}

/// Makes a client that connects only to addresses that were judged. Reads the system's certificates, which takes a while.
fn client(names: JudgedNames) -> Result<Client, reqwest::Error> {
    hermes_os::http::client()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIME_MAX)
        .no_proxy()
        .referer(false)
        // Each request resolves its host, and has it judged.
        .pool_max_idle_per_host(0)
        .dns_resolver(Arc::new(names))
        .build()
}

/// Unpacks no more than is allowed; a few kilobytes can hold gigabytes.
fn unpack(sent: &[u8], is_cut: bool, bytes_max: usize) -> Result<(Vec<u8>, bool), FetchError> {
    let mut body = Vec::new();
    let mut unpacker = MultiGzDecoder::new(sent).take(bytes_max as u64 + 1);
    match unpacker.read_to_end(&mut body) {
        Ok(_) => {}
        // What was cut ends too early; what came before is good.
        Err(_) if is_cut && !body.is_empty() => {}
        Err(error) => return Err(FetchError::Unpacking(error)),
    }
    let is_too_long = body.len() > bytes_max;
    body.truncate(bytes_max);
    Ok((body, is_cut || is_too_long))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn target(url: &Url, headers: &HeaderMap) -> Result<Url, FetchError> {
    let location = headers.get(LOCATION).ok_or(FetchError::RedirectToNowhere)?;
    let location = String::from_utf8_lossy(location.as_bytes());
    let target = url.join(&location).map_err(|error| Refusal::Malformed {
        reason: error.to_string(),
    })?;
    Ok(target)
}

fn header(headers: &HeaderMap, name: HeaderName) -> &str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim()
}

/// Says why nothing came. A host that is refused when its name is resolved looks like one that cannot be reached.
fn unanswered(error: &reqwest::Error) -> FetchError {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return FetchError::Refused(refusal.clone());
        }
        next = cause.source();
    }
    FetchError::Network(root_cause(error))
}

/// The innermost cause: the outer layers only say that something failed.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
