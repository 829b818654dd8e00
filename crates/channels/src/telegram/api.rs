//! The Bot API over HTTP: calls, uploads, files. Knows deadlines and doubt, and nothing of what the calls mean.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{ChannelError, Secret, Trouble};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use reqwest::multipart::Form;
use reqwest::{Client, Response};
use serde_json::Value;

use super::refusal::{Answer, Cause, Failure, classify, in_doubt};
use super::settings::Server;
use crate::http::{self, innermost};

/// Telegram answers in well under a second; a bad line takes longer.
const CALL_MAX: Duration = Duration::from_secs(20);
/// Fifty megabytes over a slow line.
const UPLOAD_MAX: Duration = Duration::from_secs(300);
/// A hundred updates are a megabyte or two.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) struct Api {
    token: Secret,
    server: Server,
    /// Made when it is needed: reading the system's certificates takes milliseconds.
    client: Mutex<Option<Client>>,
}

impl Api {
    pub(super) fn new(token: Secret, server: Server) -> Self {
        Self {
            token,
            server,
            client: Mutex::default(),
        }
    }

    /// Begins with fresh connections: those of before a sleep, or of another network, may hang for minutes.
    pub(super) fn renew(&self) {
        *self.lock() = None;
    }

    pub(super) async fn call(&self, method: &str, body: &Value) -> Result<Value, Failure> {
        self.call_within(method, body, CALL_MAX).await
    }

    pub(super) async fn call_within(
        &self,
        method: &str,
        body: &Value,
        deadline: Duration,
    ) -> Result<Value, Failure> {
        let request = self.client()?.post(self.address(method)).timeout(deadline);
        let request = request.header(CONTENT_TYPE, "application/json");
        let answer = request.body(body.to_string()).send().await;
        self.read(method, answer).await
    }

    pub(super) async fn upload(&self, method: &str, form: Form) -> Result<Value, Failure> {
        let request = self
            .client()?
            .post(self.address(method))
            .timeout(UPLOAD_MAX);
        let answer = request.multipart(form).send().await;
        self.read(method, answer).await
    }

    /// Begins to fetch a file that `getFile` gave a path for.
    pub(super) async fn file(&self, path: &str) -> Result<Response, ChannelError> {
        let base = &self.server.file_base;
        let address = format!(
            "{base}{}/{}",
            self.token.expose(),
            path.trim_start_matches('/')
        );
        let asked = self.client()?.get(address).send();
        let answer = match tokio::time::timeout(CALL_MAX, asked).await {
            Ok(answer) => answer.map_err(|error| self.unreached("the file", &error).error)?,
            Err(_) => {
                return Err(ChannelError::new(
                    Trouble::Passing,
                    "Telegram does not begin to send the file",
                ));
            }
        };
        match answer.status().as_u16() {
            200 => Ok(answer),
            404 => Err(ChannelError::new(
                Trouble::NotFound,
                "Telegram has the file no more",
            )),
            status => Err(ChannelError::new(
                Trouble::Passing,
                format!("Telegram answers {status} instead of the file"),
            )),
        }
    }

    fn client(&self) -> Result<Client, ChannelError> {
        let mut client = self.lock();
        match &*client {
            Some(client) => Ok(client.clone()),
            None => Ok(client.insert(self::client(&self.server)?).clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, method: &str) -> String {
        format!("{}{}/{method}", self.server.base, self.token.expose())
    }

    async fn read(
        &self,
        method: &str,
        answer: reqwest::Result<Response>,
    ) -> Result<Value, Failure> {
        let answer = answer.map_err(|error| self.unreached(method, &error))?;
        let status = answer.status().as_u16();
        let bytes = self.body(method, answer).await?;
        let Ok(answer) = serde_json::from_slice::<Answer>(&bytes) else {
            return Err(self.not_telegram(method, status, &bytes));
        };
        if answer.ok {
            Ok(answer.result.unwrap_or_default())
        } else {
            Err(self.without_token(classify(method, status, &answer)))
        }
    }

    async fn body(&self, method: &str, mut answer: Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() <= ANSWER_BYTES_MAX => {
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    let words =
                        format!("the answer to `{method}` is longer than {ANSWER_BYTES_MAX} bytes");
                    return Err(ChannelError::new(in_doubt(method), words).into());
                }
                Ok(None) => return Ok(bytes),
                Err(error) => return Err(self.unreached(method, &error)),
            }
        }
    }

    /// A request that got no answer, or half of one.
    fn unreached(&self, method: &str, error: &reqwest::Error) -> Failure {
        let trouble = if error.is_connect() || error.is_builder() {
            Trouble::Passing
        } else {
            in_doubt(method)
        };
        let what = if error.is_timeout() {
            "no answer in time"
        } else {
            "no answer"
        };
        let reason = innermost(error);
        let error = ChannelError::new(
            trouble,
            format!("{what} from Telegram to `{method}`: {reason}"),
        );
        self.without_token(
            error
                .with_hint("is this machine online? it is tried again and again")
                .into(),
        )
    }

    /// An answer that is not JSON: of something between Telegram and us.
    fn not_telegram(&self, method: &str, status: u16, bytes: &[u8]) -> Failure {
        let text = String::from_utf8_lossy(bytes);
        let text = hermes_core::text::shorten(text.trim(), 200);
        let trouble = match status {
            400..500 => Trouble::Passing,
            _ => in_doubt(method),
        };
        let words =
            format!("something that is not Telegram answered `{method}` ({status}): {text}");
        self.without_token(ChannelError::new(trouble, words).into())
    }

    /// The token is part of every address: it must not be part of what people read.
    fn without_token(&self, failure: Failure) -> Failure {
        let Failure { cause, mut error } = failure;
        error.message = error.message.replace(self.token.expose(), "***");
        Failure { cause, error }
    }
}

impl Failure {
    pub(super) fn is(&self, cause: Cause) -> bool {
        self.cause == cause
    }
}

fn client(server: &Server) -> Result<Client, ChannelError> {
    let addresses = [server.base.as_str(), server.file_base.as_str()];
    let mut builder = http::client("Telegram", server.proxy.as_ref(), &addresses)?;
    if let Some(host) = http::host(&server.base).filter(|_| !server.fallbacks.is_empty()) {
        let fallbacks = server.fallbacks.clone();
        builder = builder.dns_resolver(Arc::new(Resolver { host, fallbacks }));
    }
    http::build(builder)
}

/// Resolves names as the system does, and knows further addresses of one host: tried when the others lead nowhere.
struct Resolver {
    host: String,
    fallbacks: Vec<IpAddr>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let fallbacks = if name == self.host {
            self.fallbacks.clone()
        } else {
            Vec::new()
        };
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let (mut addresses, error) = match found {
                Ok(found) => (found.collect::<Vec<_>>(), None),
                Err(error) => (Vec::new(), Some(error)),
            };
            for ip in fallbacks {
                let address = SocketAddr::new(ip, 0);
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            match error {
                Some(error) if addresses.is_empty() => Err(error.into()),
                _ => Ok(Box::new(addresses.into_iter()) as Addrs),
            }
        })
    }
}
