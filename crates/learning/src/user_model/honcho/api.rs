//! The calls of Honcho's HTTP API, version 3, that Hermes makes. Each has a deadline; what fails says why in words.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hermes_core::redact::redact;
use hermes_core::text::shorten;
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::settings::{HonchoSettings, Level, Observation};

/// How long a server that failed is left alone by those who need not ask it.
const COOLDOWN: Duration = Duration::from_secs(30);

/// Bytes of an answer. A representation is a few kilobytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Of what a server says about an error, this much is told.
const DETAIL_CHARS_MAX: usize = 200;

/// One Honcho server with one way to use it. Shared by all conversations of a process.
pub struct Honcho {
    pub settings: HonchoSettings,
    client: OnceLock<Client>,
    trouble: Mutex<Option<Trouble>>,
}

/// The last thing that went wrong, until something goes right.
#[derive(Debug, Clone)]
struct Trouble {
    why: String,
    at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HonchoError {
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer within {} ms", .0.as_millis())]
    TookTooLong(Duration),
    #[error("the key is refused ({0})")]
    Refused(u16),
    #[error("there is no such thing")]
    NotFound,
    /// It will say the same again.
    #[error("the request is refused ({status}): {detail}")]
    Rejected { status: u16, detail: String },
    #[error("the server fails ({status}): {detail}")]
    Failing { status: u16, detail: String },
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

impl HonchoError {
    /// Whether it is about the server rather than about one request.
    fn is_of_server(&self) -> bool {
        !matches!(self, Self::NotFound | Self::Rejected { .. })
    }
}

/// A message as Honcho keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    pub peer: String,
    pub content: String,
    /// ISO 8601.
    pub at: String,
    pub metadata: Value,
}

impl Honcho {
    pub fn new(settings: HonchoSettings) -> Self {
        Self {
            settings,
            client: OnceLock::new(),
            trouble: Mutex::default(),
        }
    }

    /// Why it does not work at the moment.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.lock_trouble().clone()?;
        Some(format!(
            "Honcho at {} does not work: {}",
            self.settings.base_url, trouble.why
        ))
    }

    /// Whether it failed so recently that whoever need not ask it does not.
    pub fn is_resting(&self) -> bool {
        let trouble = self.lock_trouble();
        trouble
            .as_ref()
            .is_some_and(|trouble| trouble.at.elapsed() < COOLDOWN)
    }

    fn lock_trouble(&self) -> std::sync::MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server is there and takes our key.
    pub async fn probe(&self, deadline: Duration) -> Result<(), HonchoError> {
        match self
            .call(Method::GET, "/queue/status", &[], None, deadline)
            .await
        {
            // The workspace comes with the first message.
            Ok(_) | Err(HonchoError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes what messages go into, where it is not there yet.
    pub async fn ensure_session(
        &self,
        session: &str,
        user: &str,
        deadline: Duration,
    ) -> Result<(), HonchoError> {
        let ai = &self.settings.ai_peer;
        self.post_root(&json!({"id": self.settings.workspace}), deadline)
            .await?;
        for peer in [user, ai] {
            self.post("/peers", json!({"id": peer}), deadline).await?;
        }
        let is_directional = self.settings.observation == Observation::Directional;
        let mut peers = serde_json::Map::new();
        peers.insert(
            user.to_owned(),
            json!({"observe_me": true, "observe_others": false}),
        );
        peers.insert(
            ai.clone(),
            json!({"observe_me": false, "observe_others": is_directional}),
        );
        self.post(
            "/sessions",
            json!({"id": session, "peers": peers}),
            deadline,
        )
        .await?;
        Ok(())
    }

    pub async fn add_messages(
        &self,
        session: &str,
        messages: &[NewMessage],
        deadline: Duration,
    ) -> Result<(), HonchoError> {
        let told: Vec<Value> = messages
            .iter()
            .map(|one| {
                json!({"peer_id": one.peer, "content": one.content, "created_at": one.at,
                       "metadata": one.metadata})
            })
            .collect();
        let path = format!("/sessions/{session}/messages");
        self.post(&path, json!({"messages": told}), deadline)
            .await
            .map(drop)
    }

    /// The metadata of the last messages of a session, the newest first.
    pub async fn last_metadata(
        &self,
        session: &str,
        deadline: Duration,
    ) -> Result<Vec<Value>, HonchoError> {
        let path = format!("/sessions/{session}/messages/list");
        let query = [("reverse", "true"), ("page", "1"), ("size", "100")];
        let listed = self
            .call(Method::POST, &path, &query, Some(json!({})), deadline)
            .await;
        let listed = match listed {
            Err(HonchoError::NotFound) => return Ok(Vec::new()),
            listed => listed?,
        };
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        Ok(items
            .into_iter()
            .map(|mut one| one["metadata"].take())
            .collect())
    }

    /// What is known of a peer: representation and card. Nothing, where there is no such peer yet.
    pub async fn context(&self, of: &str, deadline: Duration) -> Result<Known, HonchoError> {
        let (path, query) = self.view(of, "/context");
        let answer = self.call(Method::GET, &path, &query, None, deadline).await;
        match answer {
            Ok(answer) => Ok(Known {
                representation: answer["representation"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                card: lines(&answer["peer_card"]),
            }),
            Err(HonchoError::NotFound) => Ok(Known::default()),
            Err(error) => Err(error),
        }
    }

    /// What is known of a peer about something.
    pub async fn representation(
        &self,
        of: &str,
        about: &str,
        deadline: Duration,
    ) -> Result<String, HonchoError> {
        let (path, query) = self.view(of, "/representation");
        let mut body = json!({"search_query": about});
        if let Some((_, target)) = query.first() {
            body["target"] = json!(target);
        }
        match self.post(&path, body, deadline).await {
            Ok(answer) => Ok(answer["representation"]
                .as_str()
                .unwrap_or_default()
                .to_owned()),
            Err(HonchoError::NotFound) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Messages of a peer about something, as `(when, words)`.
    pub async fn search(
        &self,
        peer: &str,
        query: &str,
        limit: usize,
        deadline: Duration,
    ) -> Result<Vec<(String, String)>, HonchoError> {
        let path = format!("/peers/{peer}/search");
        let found = self
            .post(&path, json!({"query": query, "limit": limit}), deadline)
            .await;
        let found = match found {
            Err(HonchoError::NotFound) => return Ok(Vec::new()),
            found => found?,
        };
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let found = found.as_array().cloned().unwrap_or_default();
        Ok(found
            .iter()
            .map(|one| (text(one, "created_at"), text(one, "content")))
            .collect())
    }

    /// Asks the dialectic. `None` when it has nothing to say.
    pub async fn chat(
        &self,
        of: &str,
        query: &str,
        level: Level,
        deadline: Duration,
    ) -> Result<Option<String>, HonchoError> {
        let (path, target) = self.view(of, "/chat");
        let mut body = json!({"query": query, "stream": false, "reasoning_level": level.as_str()});
        if let Some((_, target)) = target.first() {
            body["target"] = json!(target);
        }
        let answer = match self.post(&path, body, deadline).await {
            Err(HonchoError::NotFound) => return Ok(None),
            answer => answer?,
        };
        let words = answer["content"].as_str().unwrap_or_default().trim();
        Ok((!words.is_empty()).then(|| words.to_owned()))
    }

    pub async fn set_card(
        &self,
        of: &str,
        card: &[String],
        deadline: Duration,
    ) -> Result<Vec<String>, HonchoError> {
        let (path, query) = self.view(of, "/card");
        let body = json!({"peer_card": card});
        let answer = self
            .call(Method::PUT, &path, &query, Some(body), deadline)
            .await?;
        Ok(lines(&answer["peer_card"]))
    }

    /// Keeps a conclusion about a peer. Returns its name.
    pub async fn conclude(
        &self,
        of: &str,
        content: &str,
        deadline: Duration,
    ) -> Result<String, HonchoError> {
        let one = json!({"content": content, "observer_id": self.observer(of), "observed_id": of});
        let made = self
            .post("/conclusions", json!({"conclusions": [one]}), deadline)
            .await?;
        Ok(made[0]["id"].as_str().unwrap_or_default().to_owned())
    }

    /// Conclusions about a peer, as `(name, words)`: those about something, or the newest.
    pub async fn conclusions(
        &self,
        of: &str,
        about: Option<&str>,
        deadline: Duration,
    ) -> Result<Vec<(String, String)>, HonchoError> {
        let filters = json!({"observer_id": self.observer(of), "observed_id": of});
        let (path, body) = match about {
            Some(about) => (
                "/conclusions/query",
                json!({"query": about, "top_k": 10, "filters": filters}),
            ),
            None => ("/conclusions/list", json!({"filters": filters})),
        };
        let answer = match self.post(path, body, deadline).await {
            Err(HonchoError::NotFound) => return Ok(Vec::new()),
            answer => answer?,
        };
        let items = answer.get("items").unwrap_or(&answer);
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let items = items.as_array().cloned().unwrap_or_default();
        Ok(items
            .iter()
            .map(|one| (text(one, "id"), text(one, "content")))
            .collect())
    }

    pub async fn delete_conclusion(&self, id: &str, deadline: Duration) -> Result<(), HonchoError> {
        let path = format!("/conclusions/{}", super::settings::name_of(id));
        self.call(Method::DELETE, &path, &[], None, deadline)
            .await
            .map(drop)
    }

    /// Whose view of a peer counts.
    fn observer<'a>(&'a self, of: &'a str) -> &'a str {
        match self.settings.observation {
            Observation::Directional => &self.settings.ai_peer,
            Observation::Unified => of,
        }
    }

    /// Where the view of a peer is, and whom it is a view of.
    fn view<'a>(&'a self, of: &'a str, what: &str) -> (String, Vec<(&'static str, &'a str)>) {
        let observer = self.observer(of);
        let target = (observer != of).then_some(("target", of));
        (
            format!("/peers/{observer}{what}"),
            target.into_iter().collect(),
        )
    }

    async fn post_root(&self, body: &Value, deadline: Duration) -> Result<Value, HonchoError> {
        let url = format!("{}/v3/workspaces", self.settings.base_url);
        self.send(Method::POST, &url, &[], Some(body), deadline)
            .await
    }

    async fn post(
        &self,
        path: &str,
        body: Value,
        deadline: Duration,
    ) -> Result<Value, HonchoError> {
        self.call(Method::POST, path, &[], Some(body), deadline)
            .await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
        deadline: Duration,
    ) -> Result<Value, HonchoError> {
        let HonchoSettings {
            base_url,
            workspace,
            ..
        } = &self.settings;
        let url = format!("{base_url}/v3/workspaces/{workspace}{path}");
        self.send(method, &url, query, body.as_ref(), deadline)
            .await
    }

    /// Sends one request, and keeps what it says about the server.
    async fn send(
        &self,
        method: Method,
        url: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        deadline: Duration,
    ) -> Result<Value, HonchoError> {
        let sent = tokio::time::timeout(deadline, self.exchange(method, url, query, body)).await;
        let answer = sent.unwrap_or(Err(HonchoError::TookTooLong(deadline)));
        let trouble = match &answer {
            Err(error) if error.is_of_server() => Some(Trouble {
                why: error.to_string(),
                at: Instant::now(),
            }),
            _ => None,
        };
        *self.lock_trouble() = trouble;
        answer
    }

    async fn exchange(
        &self,
        method: Method,
        url: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, HonchoError> {
        let unreachable = |error: reqwest::Error| HonchoError::Unreachable(told(&error));
        let mut url =
            Url::parse(url).map_err(|error| HonchoError::Unreachable(error.to_string()))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.authorised(self.client()?.request(method, url));
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body.to_string()),
            None => request,
        };
        let mut answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            text.extend_from_slice(&chunk);
            if text.len() > ANSWER_BYTES_MAX {
                return Err(HonchoError::Unreadable(format!(
                    "it is longer than {ANSWER_BYTES_MAX} bytes"
                )));
            }
        }
        read(status, &text)
    }

    fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.settings.api_key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }

    fn client(&self) -> Result<&Client, HonchoError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let builder = hermes_os::http::client();
        let builder = if self.settings.base_url.starts_with("http://") {
            hermes_os::http::without_tls(builder)
        } else {
            builder
        };
        let client = builder
            .build()
            .map_err(|error| HonchoError::Unreachable(told(&error)))?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// What a server knows of a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    pub representation: String,
    pub card: Vec<String>,
}

fn lines(card: &Value) -> Vec<String> {
    let lines = card.as_array().cloned().unwrap_or_default();
    lines
        .iter()
        .filter_map(|line| line.as_str().map(str::to_owned))
        .collect()
}

/// The innermost cause: it names what is wrong, where the outer ones name the address.
fn told(error: &reqwest::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(inner) = source.source() {
        source = inner;
    }
    redact(&source.to_string())
}

fn read(status: StatusCode, text: &[u8]) -> Result<Value, HonchoError> {
    if status.is_success() {
        if text.is_empty() {
            return Ok(Value::Null);
        }
        return serde_json::from_slice(text)
            .map_err(|error| HonchoError::Unreadable(error.to_string()));
    }
    let detail = redact(&shorten(&String::from_utf8_lossy(text), DETAIL_CHARS_MAX));
    Err(match status.as_u16() {
        status @ (401 | 403) => HonchoError::Refused(status),
        404 => HonchoError::NotFound,
        status @ (408 | 425 | 429 | 300..=399 | 500..) => HonchoError::Failing { status, detail },
        status => HonchoError::Rejected { status, detail },
    })
}
