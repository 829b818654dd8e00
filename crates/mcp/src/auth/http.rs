//! HTTP to authorisation servers, with the settings of all our HTTP: deadlines, bounded answers, no redirects.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Request, Response};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use tokio::time::timeout;

use crate::client::McpPorts;
use crate::failure::{Failure, with_sources};
use crate::http::{Address, HttpFailure, client_builder};
use crate::settings::TlsSettings;

/// For one request, from the first packet to the last. Somebody waits for it, or a lock is held for it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Metadata and tokens are small.
const BODY_BYTES_MAX: usize = 1024 * 1024;

type LibraryResponse = http::Response<Vec<u8>>;

/// How authorisation servers are reached: as the server they are for, with the same certificates and proxies.
#[derive(Debug, Clone)]
pub(super) struct Web {
    tls: TlsSettings,
    environment: Vec<(String, String)>,
}

impl Web {
    pub(super) fn new(tls: &TlsSettings, ports: &McpPorts) -> Self {
        Self {
            tls: tls.clone(),
            environment: ports.environment.clone(),
        }
    }

    /// Makes a client for one address. Made anew each time: these requests are rare, and go to more than one place.
    pub(super) async fn client(&self, url: &str) -> Result<Client, Failure> {
        let address = Address {
            url,
            headers: &BTreeMap::new(),
            tls: &self.tls,
            environment: &self.environment,
        };
        let builder = client_builder(&address).await?.redirect(Policy::none());
        builder.build().map_err(|error| HttpFailure::from(error).0)
    }
}

/// Sends a request and reads its answer, whatever its status is.
pub(super) async fn exchange(
    client: &Client,
    request: Request,
) -> Result<LibraryResponse, Failure> {
    let exchanged = timeout(TIMEOUT, async {
        let response = client.execute(request).await?;
        read(response).await
    });
    match exchanged.await {
        Ok(answer) => answer.map_err(|failure| failure.0),
        Err(_) => Err(Failure::Timeout { after: TIMEOUT }),
    }
}

async fn read(mut response: Response) -> Result<LibraryResponse, HttpFailure> {
    let mut answer = LibraryResponse::default();
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    let content_type = answer.headers().get(CONTENT_TYPE);
    if content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        // A resource that was asked without its token and streams: it has no end, and nothing to say to us.
        return Ok(answer);
    }
    while let Some(chunk) = response.chunk().await? {
        if answer.body().len() + chunk.len() > BODY_BYTES_MAX {
            let cause = format!("its answer is larger than {} MiB", BODY_BYTES_MAX >> 20);
            return Err(HttpFailure(Failure::Unreadable { cause }));
        }
        answer.body_mut().extend_from_slice(&chunk);
    }
    Ok(answer)
}

/// Gives the library our HTTP, and remembers the last failure: the library's errors do not tell it.
pub(super) struct LibraryHttp {
    pub(super) web: Web,
    last_failure: Mutex<Option<String>>,
}

impl LibraryHttp {
    pub(super) fn new(web: Web) -> Self {
        Self {
            web,
            last_failure: Mutex::default(),
        }
    }

    /// Returns why the last request failed, if it did.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl OAuthHttpClient for LibraryHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let boxed = |text: String| Box::<dyn Error + Send + Sync>::from(text);
            let request =
                Request::try_from(request.request).map_err(|error| boxed(with_sources(&error)))?;
            let host = request.url().host_str().unwrap_or_default().to_owned();
            let client = self.web.client(request.url().as_str()).await;
            let answer = match client {
                Ok(client) => exchange(&client, request).await,
                Err(failure) => Err(failure),
            };
            *self.lock() = answer
                .as_ref()
                .err()
                .map(|failure| format!("`{host}`: {failure}"));
            answer.map_err(|failure| boxed(failure.to_string()))
        })
    }
}
