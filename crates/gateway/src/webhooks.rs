//! Webhooks: events that other programs send, which make the agent do something or are delivered as they are.
//!
//! An event is checked (signature, event, filters, rate, whether it came before), put into words, and then begins a
//! conversation of its own (`turn`), or goes straight to a chat. Start at [`run`] and `receive`.

mod claims;
mod event;
mod filter;
mod rate;
mod route;
mod script;
mod signature;
mod subscriptions;
mod template;
mod turn;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use hermes_core::text::shorten;
use hermes_core::{
    Archive, Clock, Random, RecordKey, Records, Secret, SessionId, SessionOptions, Sessions,
};
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::api::body;
use crate::api::error::ApiError;
use crate::api::extract::Id;
use crate::deliver::{Arrival, Deliver, DeliveryId};
use crate::http_server::HttpServer;
use crate::shutdown::Shutdown;
use rate::Rates;
use script::Scripted;
use signature::Signed;

pub use filter::Filter;
pub use route::{NO_AUTH, Route, check_name};
pub use script::ScriptParts;
pub use signature::signed;
pub use subscriptions::{Routes, read_file, write_file};

/// As the known program has it: GitHub's largest event has 25 MB, and says nothing more.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Turns that events may have begun at a time; senders try again later.
const TURNS_MAX: usize = 10;

/// Scripts of routes that run at a time; senders try again later.
const SCRIPTS_MAX: usize = 4;

/// How long the platform's word is waited for: senders wait too, GitHub for ten seconds.
const ARRIVAL_PATIENCE: Duration = Duration::from_secs(5);
const ARRIVAL_LOOK: Duration = Duration::from_millis(50);

/// What webhooks work with.
#[derive(Clone)]
pub struct WebhookParts {
    pub sessions: Arc<dyn Sessions>,
    pub archive: Arc<dyn Archive>,
    pub records: Arc<dyn Records>,
    pub deliver: Arc<dyn Deliver>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub scripts: ScriptParts,
}

pub struct WebhookSettings {
    pub routes: Routes,
    /// Of all routes without one.
    pub secret: Option<Secret>,
    pub per_minute: u32,
    /// How conversations are that events begin.
    pub options: SessionOptions,
}

/// What all events share.
pub(crate) struct Webhooks {
    parts: WebhookParts,
    settings: WebhookSettings,
    shutdown: Shutdown,
    rates: Rates,
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
    script_permits: Semaphore,
    /// What is being looked at this very moment: the same event twice at a time is one.
    taking: Mutex<HashSet<RecordKey>>,
    /// Whether other machines can send.
    is_open: bool,
}

/// Takes events until the gateway ends.
pub async fn run(
    server: HttpServer,
    parts: WebhookParts,
    settings: WebhookSettings,
    shutdown: Shutdown,
) {
    let webhooks = Arc::new(Webhooks {
        rates: Rates::new(settings.per_minute),
        is_open: !is_loopback(server.address().ip()),
        parts,
        settings,
        shutdown: shutdown.clone(),
        tasks: TaskTracker::new(),
        permits: Arc::new(Semaphore::new(TURNS_MAX)),
        script_permits: Semaphore::new(SCRIPTS_MAX),
        taking: Mutex::default(),
    });
    let before = Arc::clone(&webhooks);
    webhooks
        .tasks
        .spawn(async move { turn::take_up(&before).await });
    let router = Router::new()
        .route(
            "/health",
            get(async || Json(json!({"status": "ok", "platform": "webhook"}))),
        )
        .route("/webhooks/{route}", post(receive))
        .fallback(async || ApiError::not_found("there is nothing at this address"))
        .with_state(Arc::clone(&webhooks));
    let done = async {
        webhooks.tasks.close();
        webhooks.tasks.wait().await;
    };
    server.run(router, shutdown, done).await;
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// An event that is being looked at.
struct Taking<'a> {
    webhooks: &'a Webhooks,
    keys: Vec<RecordKey>,
}

impl<'a> Taking<'a> {
    fn begin(webhooks: &'a Webhooks, keys: &[RecordKey]) -> Option<Self> {
        let mut taking = webhooks.lock_taking();
        if keys.iter().any(|key| taking.contains(key)) {
            return None;
        }
        taking.extend(keys.iter().cloned());
        Some(Self {
            webhooks,
            keys: keys.to_vec(),
        })
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        let mut taking = self.webhooks.lock_taking();
        for key in &self.keys {
            taking.remove(key);
        }
    }
}

/// What becomes of an event.
enum Taken {
    /// The agent is at it; or it is on its way to its chat.
    Accepted,
    Delivered,
    /// Its chat refused it, and why. It stays in the outbox, and goes out once somebody is heard from there.
    Refused(String),
    /// It does not count, and why.
    Ignored(String),
    Duplicate,
}

async fn receive(
    State(webhooks): State<Arc<Webhooks>>,
    Id(name): Id,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    if webhooks.shutdown.is_draining() {
        return Err(ApiError::draining());
    }
    let route = webhooks.settings.routes.get(&name);
    let route =
        route.ok_or_else(|| ApiError::not_found("there is no such route").code("unknown_route"))?;
    let headers = request.headers().clone();
    let body = body::bytes(request, BODY_BYTES_MAX).await?;
    let signed = webhooks.verified(&route, &headers, &body)?;
    if !route.enabled {
        return Err(ApiError::forbidden("this route is switched off").code("route_disabled"));
    }
    let now = webhooks.parts.clock.now();
    webhooks.rates.count(&name, now).map_err(|seconds| {
        let per_minute = webhooks.settings.per_minute;
        ApiError::busy(format!("this route takes {per_minute} events in a minute"))
            .retry_after(seconds)
    })?;
    let event = event::read(&headers, &body).map_err(ApiError::invalid)?;
    let kind = event::name(&headers, &event);
    let ids = event::delivery_ids(&headers, &body, &signed);
    let taken = match unwanted(&route, &kind, &event) {
        Some(why) => Taken::Ignored(why),
        None => webhooks.take(&route, &kind, &event, &ids).await?,
    };
    told(&taken, &name, &kind, &ids)
}

/// Why an event does not count, if it does not.
fn unwanted(route: &Route, kind: &str, event: &Value) -> Option<String> {
    if !route.events.is_empty() && !route.events.iter().any(|wanted| wanted == kind) {
        return Some(format!("the route does not take `{kind}`"));
    }
    let unmet = route.filters.iter().find(|filter| !filter.admits(event))?;
    Some(format!("`{}` is not as the route wants it", unmet.field()))
}

fn told(taken: &Taken, route: &str, kind: &str, ids: &[String]) -> Result<Response, ApiError> {
    let (status, word) = match taken {
        Taken::Refused(why) => return Err(not_delivered(route, why)),
        Taken::Accepted => (StatusCode::ACCEPTED, "accepted"),
        Taken::Delivered => (StatusCode::OK, "delivered"),
        Taken::Ignored(_) => (StatusCode::OK, "ignored"),
        Taken::Duplicate => (StatusCode::OK, "duplicate"),
    };
    let mut body =
        json!({"status": word, "route": route, "event": kind, "delivery_id": ids.first()});
    if let Taken::Ignored(why) = taken {
        body["reason"] = why.clone().into();
    }
    Ok((status, Json(body)).into_response())
}

impl Webhooks {
    fn lock_taking(&self) -> MutexGuard<'_, HashSet<RecordKey>> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verified(
        &self,
        route: &Route,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Signed, ApiError> {
        let secret = route.secret.as_ref().or(self.settings.secret.as_ref());
        let unusable = |message: &str| ApiError::forbidden(message).code("route_without_secret");
        let Some(secret) = secret else {
            return Err(unusable(
                "this route has no secret, and takes nothing without one",
            ));
        };
        if secret.expose() == NO_AUTH {
            if self.is_open {
                return Err(unusable(
                    "a route without a secret is only for this machine",
                ));
            }
            return Ok(Signed::Token);
        }
        let now = self.parts.clock.now();
        signature::verify(headers, body, secret.expose(), now).map_err(|error| {
            tracing::warn!(route = route.name, "an event was refused: {error}");
            ApiError::unauthorised()
                .because(error.to_string())
                .code("invalid_signature")
        })
    }

    /// Does what the route says, once.
    async fn take(
        self: &Arc<Self>,
        route: &Route,
        kind: &str,
        event: &Value,
        ids: &[String],
    ) -> Result<Taken, ApiError> {
        let keys = claims::keys(&route.name, ids);
        let Some(_taking) = Taking::begin(self, &keys) else {
            return Err(ApiError::busy("this event is being taken").retry_after(1));
        };
        let Some(session) = claims::claim(self, route, &keys).await? else {
            return Ok(Taken::Duplicate);
        };
        let taken = self.act(route, kind, event, &session).await;
        match &taken {
            // When it comes again, what was handed over for it is what counts.
            Ok(Taken::Refused(_)) => {}
            Ok(_) => claims::note_taken(self, &keys, &session).await?,
            // The sender is told, and may send it again.
            Err(_) => claims::give_up(self, &keys).await?,
        }
        taken
    }

    async fn act(
        self: &Arc<Self>,
        route: &Route,
        kind: &str,
        event: &Value,
        session: &SessionId,
    ) -> Result<Taken, ApiError> {
        let words = match &route.script {
            None => words(route, kind, event),
            Some(script) => match self.scripted(route, script, event, session).await? {
                Scripted::Event(event) => words(route, kind, &event),
                Scripted::Words(words) => words,
                Scripted::Unwanted => {
                    let why = "the script of the route has no use for it";
                    return Ok(Taken::Ignored(why.to_owned()));
                }
            },
        };
        if route.deliver_only {
            self.deliver(route, session, words).await
        } else {
            self.begin(route, session, words).await
        }
    }

    /// What the script of a route makes of an event.
    async fn scripted(
        &self,
        route: &Route,
        script: &str,
        event: &Value,
        session: &SessionId,
    ) -> Result<Scripted, ApiError> {
        let Ok(_permit) = self.script_permits.try_acquire() else {
            let message = format!("{SCRIPTS_MAX} events are being looked at by scripts");
            return Err(ApiError::busy(message).retry_after(5));
        };
        let done = script::run(&self.parts.scripts, script, event, session).await;
        done.map_err(|error| {
            tracing::error!(route = route.name, "an event was not taken: {error}");
            // What it printed is for whoever reads the log.
            ApiError::internal("the script of this route failed; the log of the gateway says how")
                .code("script_failed")
        })
    }

    async fn begin(
        self: &Arc<Self>,
        route: &Route,
        session: &SessionId,
        words: String,
    ) -> Result<Taken, ApiError> {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Err(
                ApiError::busy(format!("{TURNS_MAX} events are being worked on")).retry_after(30),
            );
        };
        let begun = turn::begin(self, route, session.clone(), words, permit).await;
        match begun {
            Ok(()) => Ok(Taken::Accepted),
            Err(error) => {
                tracing::error!(route = route.name, "an event was not taken: {error}");
                Err(ApiError::internal(error))
            }
        }
    }

    async fn deliver(
        &self,
        route: &Route,
        session: &SessionId,
        text: String,
    ) -> Result<Taken, ApiError> {
        if text.trim().is_empty() {
            return Ok(Taken::Ignored("there is nothing to deliver".to_owned()));
        }
        // The sender of the event wrote it, whatever the prompt of the route says around that.
        let deliver = &self.parts.deliver;
        let handed = deliver.deliver_verbatim(session.as_str(), &route.deliver, text);
        match handed.await {
            Ok(id) => match self.arrival(&id).await {
                Arrival::Arrived { .. } => Ok(Taken::Delivered),
                Arrival::OnItsWay | Arrival::Unknown { .. } => Ok(Taken::Accepted),
                Arrival::Failed { error } => Ok(Taken::Refused(error)),
            },
            Err(error) => {
                let message = format!("{error}; {}", error.hint);
                Err(not_delivered(&route.name, &message))
            }
        }
    }

    /// Waits a little for the platform's word. What has not arrived by then waits in the outbox, and goes on.
    async fn arrival(&self, id: &DeliveryId) -> Arrival {
        let looking = async {
            loop {
                match self.parts.deliver.status(id).await {
                    Ok(Arrival::OnItsWay) => sleep(ARRIVAL_LOOK).await,
                    Ok(arrival) => return arrival,
                    Err(error) => {
                        tracing::warn!("whether an event was delivered is not known: {error}");
                        return Arrival::OnItsWay;
                    }
                }
            }
        };
        let looked = timeout(ARRIVAL_PATIENCE, looking).await;
        looked.unwrap_or(Arrival::OnItsWay)
    }
}

fn not_delivered(route: &str, error: &str) -> ApiError {
    tracing::error!(route, "an event was not delivered: {error}");
    ApiError::incomplete(error).code("not_delivered")
}

/// What the agent, or the chat, is told.
fn words(route: &Route, kind: &str, event: &Value) -> String {
    if !route.prompt.trim().is_empty() {
        return template::filled(&route.prompt, event);
    }
    let kind = shorten(kind, 80);
    let raw = template::filled("{__raw__}", event);
    format!(
        "The event `{kind}` came in at the webhook `{}`:\n\n```json\n{raw}\n```",
        route.name
    )
}
