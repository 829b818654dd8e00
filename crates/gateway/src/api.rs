//! The HTTP API: what programs that speak OpenAI's dialect, and our own clients, ask over HTTP.
//!
//! Routes are in [`router`]; who may use them is `guard`. Everything that asks a model goes through `turns`, which
//! sends an op to a session and reads its events: an answer that is not streamed is a collected stream.

pub(crate) mod body;
mod chat;
mod content;
mod continuations;
pub(crate) mod error;
pub(crate) mod extract;
mod guard;
mod health;
mod idempotency;
pub(crate) mod ids;
mod inventory;
mod jobs;
mod key;
mod metrics;
mod models;
mod outcome;
mod pool;
mod recent;
mod responses;
mod run;
mod runs;
mod said;
mod sessions;
mod settings;
mod sse;
mod told;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, patch, post};
use hermes_core::{
    Archive, Audience, Clock, JobDesk, Random, Records, SessionId, Sessions, TurnCounts,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::http_server::HttpServer;
use crate::report::TellReport;
use crate::shutdown::Shutdown;
use continuations::Continuations;
use error::{ApiError, ApiResult};
use idempotency::Flights;
use metrics::Metrics;
use pool::{Pool, Which};
use run::{Ask, Say};
use runs::{KeptRun, Runs};
use told::Told;

pub use inventory::{Inventory, ListedSkill, ListedToolset};
pub use key::{ApiKey, WeakKey};
pub use settings::{ApiSettings, OnDisconnect};

/// What the API works with.
#[derive(Clone)]
pub struct ApiParts {
    pub sessions: Arc<dyn Sessions>,
    pub archive: Arc<dyn Archive>,
    pub records: Arc<dyn Records>,
    pub inventory: Arc<dyn Inventory>,
    pub jobs: Arc<dyn JobDesk>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    /// How the gateway is as a whole.
    pub report: TellReport,
    /// Turns of all its surfaces.
    pub turns: Arc<TurnCounts>,
}

/// The API, shared by all its requests.
pub(crate) struct Api {
    parts: ApiParts,
    settings: ApiSettings,
    shutdown: Shutdown,
    pool: Pool,
    /// What runs, whether or not anybody still listens.
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
    continuations: Continuations,
    told: Told,
    flights: Flights,
    runs: Runs,
    metrics: Metrics,
}

impl Api {
    fn new(parts: ApiParts, settings: ApiSettings, shutdown: Shutdown) -> Self {
        Self {
            pool: Pool::new(Arc::clone(&parts.sessions), Arc::clone(&parts.archive)),
            permits: Arc::new(Semaphore::new(settings.runs_max)),
            parts,
            settings,
            shutdown,
            tasks: TaskTracker::new(),
            continuations: Continuations::default(),
            told: Told::default(),
            flights: Flights::default(),
            runs: Runs::default(),
            metrics: Metrics::default(),
        }
    }

    /// Lets one more turn run, unless too many do.
    fn admit(&self) -> ApiResult<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map_err(|_| {
            let max = self.settings.runs_max;
            ApiError::busy(format!("{max} turns run already, which is as many as may"))
        })
    }

    /// Lets a turn run for whose conversation others had to wait: it comes before those that come now.
    async fn admit_next(&self) -> ApiResult<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        match permit {
            Ok(permit) if !self.shutdown.is_draining() => Ok(permit),
            _ => Err(ApiError::draining()),
        }
    }

    fn active_runs(&self) -> usize {
        self.settings.runs_max - self.permits.available_permits()
    }
}

/// Finishes turns that an earlier process began for the API. Their answers are in their conversations, under the keys of
/// their requests, and under the names of their runs.
async fn take_up(api: Arc<Api>, unfinished: Vec<SessionId>) {
    if unfinished.is_empty() {
        return;
    }
    let mut runs = runs::under_way(&api).await;
    for session in unfinished {
        let run = runs.iter().position(|(_, kept)| kept.is_in(&session));
        match run.map(|at| runs.swap_remove(at)) {
            Some(run) => take_up_run(&api, session, run).await,
            None => {
                let ask = unfinished_turn(&api, &session);
                match run::start(&api, ask, run::nothing()).await {
                    Ok(client) => drop(client.run().outcome().await),
                    Err(_) => not_gone_on(&session),
                }
            }
        }
    }
}

fn not_gone_on(session: &SessionId) {
    tracing::warn!(%session, "a turn that was cut short did not go on");
}

fn unfinished_turn(api: &Api, session: &SessionId) -> Ask {
    Ask {
        which: Which::UnderWay(session.clone()),
        options: api.settings.options.clone(),
        say: Say::Resume,
        on_disconnect: OnDisconnect::Detach,
        reservation: None,
    }
}

/// The same for a turn with the name of a run. It may wait for a person, and nothing else waits for that.
async fn take_up_run(api: &Arc<Api>, session: SessionId, (id, kept): (String, KeptRun)) {
    // Those that wait have their places.
    drop(api.permits.acquire().await);
    let mut ask = unfinished_turn(api, &session);
    ask.options.audience = Audience::Person;
    let at_end = runs::keeping(api, &id, Some(kept.name()), kept.began());
    match run::start(api, ask, at_end).await {
        Ok(client) => runs::take_up(api, &id, &kept, client.run()),
        Err(_) => not_gone_on(&session),
    }
}

/// How often what has come to its end is forgotten.
const TIDY_EVERY: Duration = Duration::from_secs(5 * 60);

/// Answers requests until the gateway ends.
///
/// `unfinished` are conversations of the API with a turn that an earlier process did not end.
pub async fn run(
    server: HttpServer,
    parts: ApiParts,
    settings: ApiSettings,
    unfinished: Vec<SessionId>,
    shutdown: Shutdown,
) {
    let api = Arc::new(Api::new(parts, settings, shutdown.clone()));
    let router = router(&api);
    api.tasks.spawn(take_up(Arc::clone(&api), unfinished));
    let done = async {
        api.tasks.close();
        api.tasks.wait().await;
    };
    tokio::select! {
        () = server.run(router, shutdown, done) => {}
        () = tidy(&api) => {}
    }
}

async fn tidy(api: &Api) {
    loop {
        let now = api.parts.clock.now();
        if let Err(error) = api.parts.records.forget_expired_records(now).await {
            tracing::warn!("old records were not deleted: {error}");
        }
        api.runs.tidy(now);
        tokio::time::sleep(TIDY_EVERY).await;
    }
}

fn router(api: &Arc<Api>) -> Router {
    let open = Router::new()
        .route("/health", get(health::health))
        .route("/v1/health", get(health::health));
    let guarded = Router::new()
        .route("/health/detailed", get(health::detailed))
        .route("/v1/models", get(models::models))
        .route("/v1/models/{model}", get(models::model))
        .route("/v1/capabilities", get(models::capabilities))
        .route("/v1/skills", get(inventory::skills))
        .route("/v1/toolsets", get(inventory::toolsets))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/responses", post(responses::create))
        .route(
            "/v1/responses/{id}",
            get(responses::get).delete(responses::delete),
        )
        .route("/v1/runs", post(runs::create))
        .route("/v1/runs/{id}", get(runs::get))
        .route("/v1/runs/{id}/events", get(runs::events))
        .route("/v1/runs/{id}/approval", post(runs::approve))
        .route("/v1/runs/{id}/stop", post(runs::stop))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route(
            "/api/sessions/{id}",
            patch(sessions::change)
                .get(sessions::get)
                .delete(sessions::delete),
        )
        .route("/api/sessions/{id}/messages", get(sessions::messages))
        .route("/api/sessions/{id}/fork", post(sessions::fork))
        .route("/api/sessions/{id}/chat", post(sessions::chat))
        .route(
            "/api/sessions/{id}/chat/stream",
            post(sessions::chat_stream),
        )
        .merge(of_jobs());
    let router = open.merge(guard::with_key(api, guarded));
    guard::for_all(api, router).with_state(Arc::clone(api))
}

fn of_jobs() -> Router<Arc<Api>> {
    Router::new()
        .route("/api/jobs", get(jobs::list).post(jobs::create))
        .route(
            "/api/jobs/{id}",
            get(jobs::get)
                .patch(jobs::change)
                .put(jobs::change)
                .delete(jobs::delete),
        )
        .route("/api/jobs/{id}/pause", post(jobs::pause))
        .route("/api/jobs/{id}/resume", post(jobs::resume))
        .route("/api/jobs/{id}/run", post(jobs::run))
        .route("/api/jobs/{id}/runs", get(jobs::history))
        .route("/api/cron/fire", post(jobs::fire))
}
