//! Discord's API over HTTP: calls, uploads, files, and the beginning of the socket. Knows deadlines, limits and doubt, and
//! nothing of what the calls mean.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{ChannelError, Secret, Trouble};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::multipart::Form;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;

use super::limits::{Limits, Route, Told};
use super::refusal::{Failure, classify, throttled};
use super::settings::Server;
use crate::http::{self, innermost};

/// Discord answers in well under a second; a bad line takes longer.
const CALL_MAX: Duration = Duration::from_secs(20);
/// Ten megabytes over a slow line.
const UPLOAD_MAX: Duration = Duration::from_secs(300);
/// A hundred messages with what they show are a few megabytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// An empty bucket that fills within this time is waited for here: edits come in bursts of five.
const PAUSE_MAX: Duration = Duration::from_secs(3);

pub(super) struct Api {
    token: Secret,
    server: Server,
    limits: Limits,
    /// Made when it is needed: reading the system's certificates takes milliseconds.
    client: Mutex<Option<Client>>,
}

impl Api {
    pub(super) fn new(token: Secret, server: Server) -> Self {
        Self {
            token,
            server,
            limits: Limits::default(),
            client: Mutex::default(),
        }
    }

    /// Begins with fresh connections: those of before a sleep, or of another network, may hang for minutes.
    pub(super) fn renew(&self) {
        *self.lock() = None;
    }

    pub(super) fn token(&self) -> &Secret {
        &self.token
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let write = |request: RequestBuilder| match body {
            Some(body) => request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string()),
            // Discord wants to be told that there is nothing.
            None if method != Method::GET => request.header("content-length", "0"),
            None => request,
        };
        self.ask(&method, path, CALL_MAX, write).await
    }

    pub(super) async fn upload(
        &self,
        method: Method,
        path: &str,
        form: Form,
    ) -> Result<Value, Failure> {
        self.ask(&method, path, UPLOAD_MAX, |request| request.multipart(form))
            .await
    }

    async fn ask(
        &self,
        method: &Method,
        path: &str,
        deadline: Duration,
        write: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Value, Failure> {
        let route = Route::of(method.as_str(), path);
        self.pace(&route, method, path).await?;
        let address = format!("{}{path}", self.server.base);
        let request = self.client()?.request(method.clone(), address);
        let request = request
            .timeout(deadline)
            .header(AUTHORIZATION, format!("Bot {}", self.token.expose()));
        let asked = Asked::new(method, path);
        let answer = write(request).send().await;
        self.read(&asked, &route, answer).await
    }

    /// Waits a little where a bucket is empty; longer waits are for whoever calls.
    async fn pace(&self, route: &Route, method: &Method, path: &str) -> Result<(), ChannelError> {
        match self.limits.wait(route) {
            None => Ok(()),
            Some(wait) if wait <= PAUSE_MAX => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Some(wait) => {
                let call = Asked::new(method, path).name;
                let words = format!("Discord takes no `{call}` for another {} s", wait.as_secs());
                Err(ChannelError::new(Trouble::Throttled { wait }, words))
            }
        }
    }

    /// Begins to fetch a file; its address is Discord's own, and needs no token.
    pub(super) async fn file(&self, address: &str) -> Result<Response, ChannelError> {
        let asked = self.client()?.get(address).send();
        let answer = match tokio::time::timeout(CALL_MAX, asked).await {
            Ok(answer) => {
                let asked = Asked::new(&Method::GET, "/attachments");
                answer.map_err(|error| self.unreached(&asked, &error).error)?
            }
            Err(_) => {
                let words = "Discord does not begin to send the file";
                return Err(ChannelError::new(Trouble::Passing, words));
            }
        };
        match answer.status().as_u16() {
            200 => Ok(answer),
            404 | 403 => Err(ChannelError::new(
                Trouble::NotFound,
                "Discord has the file no more",
            )),
            status => Err(ChannelError::new(
                Trouble::Passing,
                format!("Discord answers {status} instead of the file"),
            )),
        }
    }

    /// Begins a socket; whoever does sees to it that it comes about in time.
    pub(super) fn socket(&self, address: &str) -> Result<RequestBuilder, ChannelError> {
        Ok(self.client()?.get(address))
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

    async fn read(
        &self,
        asked: &Asked,
        route: &Route,
        answer: reqwest::Result<Response>,
    ) -> Result<Value, Failure> {
        let answer = answer.map_err(|error| self.unreached(asked, &error))?;
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let bytes = self.body(asked, answer).await?;
        let read = serde_json::from_slice::<Value>(&bytes);
        let value = match read {
            Ok(value) => value,
            Err(_) if status == 429 => Value::Null,
            Err(_) if status < 300 && bytes.is_empty() => Value::Null,
            Err(_) => return Err(self.not_discord(asked, status, &bytes)),
        };
        self.learn(route, status, &headers, &value);
        match status {
            200..300 => Ok(value),
            429 if value["retry_after"].is_null() => {
                let mut said = value;
                if !said.is_object() {
                    said = serde_json::json!({"message": "something in front of Discord says that it is too much"});
                }
                said["retry_after"] = header(&headers, "retry-after").into();
                Err(classify(&asked.name, status, &said, asked.is_doubtful))
            }
            _ => Err(self.without_token(classify(&asked.name, status, &value, asked.is_doubtful))),
        }
    }

    fn learn(&self, route: &Route, status: u16, headers: &HeaderMap, answer: &Value) {
        let number = |name: &str| header(headers, name)?.parse::<f64>().ok();
        let seconds = |secs: f64| Duration::try_from_secs_f64(secs).ok();
        let refused = match throttled(&answer["retry_after"]) {
            Trouble::Throttled { wait } if status == 429 => Some(wait),
            _ => None,
        };
        let told = Told {
            bucket: header(headers, "x-ratelimit-bucket"),
            remaining: number("x-ratelimit-remaining").map(|count| count as u64),
            reset_after: number("x-ratelimit-reset-after").and_then(seconds),
            refused,
            is_global: answer["global"] == true
                || header(headers, "x-ratelimit-scope").as_deref() == Some("global"),
        };
        self.limits.learn(route, &told);
    }

    async fn body(&self, asked: &Asked, mut answer: Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() <= ANSWER_BYTES_MAX => {
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    let call = &asked.name;
                    let words =
                        format!("the answer to `{call}` is longer than {ANSWER_BYTES_MAX} bytes");
                    return Err(ChannelError::new(asked.in_doubt(), words).into());
                }
                Ok(None) => return Ok(bytes),
                Err(error) => return Err(self.unreached(asked, &error)),
            }
        }
    }

    /// A request that got no answer, or half of one.
    fn unreached(&self, asked: &Asked, error: &reqwest::Error) -> Failure {
        let trouble = if error.is_connect() || error.is_builder() {
            Trouble::Passing
        } else {
            asked.in_doubt()
        };
        let what = if error.is_timeout() {
            "no answer in time"
        } else {
            "no answer"
        };
        let words = format!(
            "{what} from Discord to `{}`: {}",
            asked.name,
            innermost(error)
        );
        let error = ChannelError::new(trouble, words)
            .with_hint("is this machine online? it is tried again and again");
        self.without_token(error.into())
    }

    /// An answer that is not JSON: of something between Discord and us.
    fn not_discord(&self, asked: &Asked, status: u16, bytes: &[u8]) -> Failure {
        let text = String::from_utf8_lossy(bytes);
        let text = hermes_core::text::shorten(text.trim(), 200);
        let trouble = match status {
            400..500 => Trouble::Passing,
            _ => asked.in_doubt(),
        };
        let call = &asked.name;
        let words = format!("something that is not Discord answered `{call}` ({status}): {text}");
        self.without_token(ChannelError::new(trouble, words).into())
    }

    /// Whatever answers, the token is not for people to read.
    fn without_token(&self, failure: Failure) -> Failure {
        let Failure { cause, mut error } = failure;
        error.message = error.message.replace(self.token.expose(), "***");
        Failure { cause, error }
    }
}

/// What was asked, in words, and whether doing it twice is something else than doing it once.
struct Asked {
    name: String,
    is_doubtful: bool,
}

impl Asked {
    fn new(method: &Method, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or(path);
        // Interactions have a secret of their own in their address.
        let is_secret = path.starts_with("/webhooks/") || path.starts_with("/interactions/");
        let shown = if is_secret {
            path.split('/').take(3).collect::<Vec<_>>().join("/") + "/…"
        } else {
            path.to_owned()
        };
        let makes = path.ends_with("/messages") || path.ends_with("/threads") || is_secret;
        Self {
            name: format!("{method} {shown}"),
            is_doubtful: *method == Method::POST && makes,
        }
    }

    fn in_doubt(&self) -> Trouble {
        if self.is_doubtful {
            Trouble::Ambiguous
        } else {
            Trouble::Passing
        }
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

fn client(server: &Server) -> Result<Client, ChannelError> {
    let mut addresses = vec![server.base.as_str()];
    addresses.extend(server.gateway.as_deref());
    http::build(http::client("Discord", server.proxy.as_ref(), &addresses)?)
}
