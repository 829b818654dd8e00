//! The [`Model`] port over a chain of routes: waits, retries, other keys, other models.
//!
//! Until the caller has seen something of an answer, all of that happens here and is told as notices. After visible
//! text a broken stream ends as [`FinishReason::Cut`]; after reasoning or calls only, as an error of kind
//! [`ModelErrorKind::Broken`] or [`ModelErrorKind::Silent`]: the caller drops the partial reply and may ask again.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hermes_core::backoff::Backoff;
use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{
    Cost, Delta, FinishReason, Finished, Message, Model, ModelError, ModelErrorKind, ModelName,
    ModelNotice, ModelRequest, Random, Secret, TurnId, Usage,
};

use crate::attempt::{Attempt, Step};
use crate::classify::{Failure, Remedy};
use crate::encode::{LeftOut, Unseen};
use crate::http::Http;
use crate::login::{LoginError, Logins};
use crate::pool::{KeyLedger, KeyRefusal, Pool, rest_after};
use crate::prices;
use crate::resolve::Resolved;
use crate::settings::Route;
use crate::wires::{WireMemory, Wires, is_no_such_address};

/// Waits between attempts when the provider does not say how long.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(2),
    cap: Duration::from_secs(60),
};
/// Attempts at a model that is busy or out of reach when another one could be asked instead.
const ATTEMPTS_WITH_FALLBACK: u32 = 2;
/// When a provider wants a longer wait than this, another key or model answers sooner.
const WAIT_WORTHWHILE: Duration = Duration::from_secs(30);
/// Attempts that follow each other as fast as the provider asks for. One that says "at once" for ever is not obeyed.
const ATTEMPTS_AT_ANY_PACE: u32 = 3;
/// Turns whose fallback is remembered. A gateway rarely has more in flight; a forgotten turn asks the first model again.
const TURNS_REMEMBERED: usize = 256;
/// Enough of a provider's words to understand it; some send whole web pages.
const MESSAGE_CHARS_MAX: usize = 600;
/// Shorter texts are found in ordinary words.
const KEY_CHARS_MIN: usize = 6;

/// Asks a model and, when it fails, its fallbacks.
#[derive(Debug)]
pub struct Client {
    /// The model of the settings first, then its fallbacks.
    routes: Vec<Route>,
    /// One for each route; routes of the same provider share it.
    pools: Vec<Arc<Pool>>,
    ledger: Option<Arc<dyn KeyLedger>>,
    logins: Option<Logins>,
    http: Http,
    attempts_max: u32,
    /// How long a request waits, all in all, because the provider says so.
    retry_max: Duration,
    backoff: Backoff,
    random: Random,
    /// Turns that fell back, and to which route: a turn is finished by whoever took it over.
    fallen_back: Mutex<VecDeque<(TurnId, usize)>>,
    /// One for each route: its model said that it cannot see, and is not sent pictures any more.
    cannot_see: Vec<AtomicBool>,
    wires: Wires,
}

impl Client {
    pub fn new(resolved: Resolved) -> Self {
        let Resolved {
            primary,
            fallbacks,
            strategy,
            attempts_max,
            retry_max,
            ..
        } = resolved;
        let http = Http::new(primary.deadlines.connect);
        let routes: Vec<Route> = std::iter::once(primary).chain(fallbacks).collect();
        let mut by_provider: HashMap<(&str, &str), Arc<Pool>> = HashMap::new();
        let pools = routes.iter().map(|route| {
            let place = (route.name.provider.as_str(), route.base_url.as_str());
            let pool = by_provider
                .entry(place)
                .or_insert_with(|| Arc::new(Pool::new(&route.keys, strategy)));
            pool.clone()
        });
        Self {
            pools: pools.collect(),
            cannot_see: routes.iter().map(|_| AtomicBool::new(false)).collect(),
            wires: Wires::of(&routes),
            routes,
            ledger: None,
            logins: None,
            http,
            attempts_max,
            retry_max,
            backoff: BACKOFF,
            random: Random::from_system(),
            fallen_back: Mutex::default(),
        }
    }

    /// Spares the keys that the ledger says rest, and tells it of those that are refused from now on.
    pub fn with_ledger(mut self, ledger: Arc<dyn KeyLedger>) -> Self {
        for (route, pool) in self.routes.iter().zip(&self.pools) {
            for key in &route.keys {
                if let Some(rest) = ledger.rest_left(&route.name.provider, key) {
                    pool.rest(key, rest);
                }
            }
        }
        self.ledger = Some(ledger);
        self
    }

    /// Takes the tokens of logins from here, for routes that have no key.
    pub fn with_logins(mut self, logins: Logins) -> Self {
        self.logins = Some(logins);
        self
    }

    /// Tells this memory of servers that turn out to have chat completions only.
    pub fn with_wire_memory(mut self, memory: Arc<dyn WireMemory>) -> Self {
        self.wires.memory = Some(memory);
        self
    }

    /// Replaces the waits between attempts.
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    fn route_of(&self, turn: &TurnId) -> usize {
        let fallen_back = self
            .fallen_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = fallen_back.iter().rev().find(|(fallen, _)| fallen == turn);
        known.map_or(0, |(_, route)| *route)
    }

    /// What a route is never sent.
    fn left_out(&self, route: usize) -> LeftOut {
        let cannot_see = self.cannot_see[route].load(Ordering::Relaxed);
        LeftOut {
            signatures: false,
            pictures: cannot_see.then_some(Unseen::CannotSee),
        }
    }

    fn remember(&self, turn: &TurnId, route: usize) {
        let mut fallen_back = self
            .fallen_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        fallen_back.retain(|(fallen, _)| fallen != turn);
        if fallen_back.len() == TURNS_REMEMBERED {
            fallen_back.pop_front();
        }
        fallen_back.push_back((turn.clone(), route));
    }
}

impl Model for Client {
    fn name(&self) -> ModelName {
        self.routes[0].name.clone()
    }

    fn context_window(&self) -> Option<u64> {
        self.routes[0].context_window
    }

    fn cost_at_most(&self, input: u64, output: u64) -> Cost {
        let costs: Vec<Cost> = self
            .routes
            .iter()
            .map(|route| prices::cost_at_most(route, input, output))
            .collect();
        let known: Option<Vec<u64>> = costs.iter().map(|cost| cost.micro_usd()).collect();
        match known {
            Some(known) => Cost::Estimated(known.into_iter().max().unwrap_or(0)),
            None => Cost::Unknown,
        }
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let asking = Asking::new(self, request);
        stream::unfold(asking, |mut asking| async move {
            let next = asking.next().await?;
            Some((next, asking))
        })
        .boxed()
    }
}

/// One request of the caller's, over as many attempts as it takes.
struct Asking<'a> {
    client: &'a Client,
    request: ModelRequest<'a>,
    route: usize,
    /// The key of the current attempt.
    key: Option<Secret>,
    /// Attempts at the current route.
    attempts: u32,
    /// How long it waited so far because the provider said so.
    waited: Duration,
    /// The token of a login that was refused, to be renewed before the next attempt.
    refused_token: Option<Secret>,
    /// The current key was already given a second chance after a rate limit.
    waited_for_key: bool,
    left_out: LeftOut,
    /// The current route is asked over chat completions, which is not the wire it was taken to speak.
    over_chat: bool,
    shown: Shown,
    state: State,
}

/// What the caller has seen of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Shown {
    Nothing,
    /// Reasoning or calls.
    Workings,
    Text,
}

enum State {
    Ready,
    Waiting(Duration),
    Streaming(Box<Attempt>),
    Over,
}

impl<'a> Asking<'a> {
    fn new(client: &'a Client, request: ModelRequest<'a>) -> Self {
        let route = client.route_of(request.turn);
        Self {
            client,
            request,
            route,
            key: None,
            attempts: 0,
            waited: Duration::ZERO,
            refused_token: None,
            waited_for_key: false,
            left_out: client.left_out(route),
            over_chat: client.wires.is_chat_proven(route),
            shown: Shown::Nothing,
            state: State::Ready,
        }
    }

    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            match &mut self.state {
                State::Over => return None,
                State::Waiting(wait) => {
                    tokio::time::sleep(*wait).await;
                    self.state = State::Ready;
                }
                State::Ready => match self.open().await {
                    Ok(attempt) => self.state = State::Streaming(Box::new(attempt)),
                    Err(failure) => return Some(self.failed(failure, Usage::default()).await),
                },
                State::Streaming(attempt) => {
                    let step = attempt.next().await;
                    return Some(self.step(step).await);
                }
            }
        }
    }

    async fn open(&mut self) -> Result<Attempt, Failure> {
        self.attempts += 1;
        if self.key.is_none() {
            self.key = match self.client.pools[self.route].pick() {
                Some(key) => Some(key),
                None => self.token().await.map_err(login_failure)?,
            };
        }
        let (http, route) = (&self.client.http, self.route());
        Attempt::open(http, route, self.key.as_ref(), &self.request, self.left_out).await
    }

    /// Returns the token of the route's login, if it has one.
    async fn token(&self) -> Result<Option<Secret>, LoginError> {
        let (Some(server), Some(logins)) = (&self.route().login, &self.client.logins) else {
            return Ok(None);
        };
        let token = match &self.refused_token {
            Some(refused) => logins.renewed(server, refused).await?,
            None => logins.token(server).await?,
        };
        Ok(Some(token))
    }

    async fn step(&mut self, step: Step) -> Result<Delta, ModelError> {
        match step {
            Step::Delta(delta) => {
                self.show(&delta);
                Ok(delta)
            }
            Step::Finished { reason, usage } => {
                let is_refusal = reason == FinishReason::ContentFilter;
                if is_refusal && self.shown == Shown::Nothing && self.has_fallback() {
                    let message = "the provider's filter refused to answer";
                    let kind = ModelErrorKind::ContentFilter;
                    let failure = Failure::new(kind, Remedy::OtherModel, message);
                    return self.failed(failure, usage).await;
                }
                Ok(self.finish(reason, usage))
            }
            Step::Failed { failure, usage } => self.failed(failure, usage).await,
        }
    }

    fn show(&mut self, delta: &Delta) {
        let shown = match delta {
            Delta::Text(text) if !text.trim().is_empty() => Shown::Text,
            _ => Shown::Workings,
        };
        if self.over_chat {
            self.client.wires.prove_chat(self.route);
        }
        if shown > self.shown {
            self.shown = shown;
        }
    }

    fn finish(&mut self, reason: FinishReason, usage: Usage) -> Delta {
        self.state = State::Over;
        let route = self.route();
        Delta::Finished(Finished {
            reason,
            usage,
            cost: prices::cost_of(route, &usage),
            model: route.name.clone(),
        })
    }

    /// Decides what follows a failed attempt: an end, or a notice and another attempt.
    async fn failed(&mut self, failure: Failure, usage: Usage) -> Result<Delta, ModelError> {
        match self.shown {
            Shown::Text => return Ok(self.finish(FinishReason::Cut, usage)),
            Shown::Workings => {
                let kind = match failure.kind {
                    ModelErrorKind::Silent => ModelErrorKind::Silent,
                    _ => ModelErrorKind::Broken,
                };
                return Err(self.give_up(Failure { kind, ..failure }));
            }
            Shown::Nothing => {}
        }
        if is_no_such_address(&failure) && self.may_speak_chat() {
            return Ok(self.speak_chat());
        }
        match failure.remedy {
            Remedy::SendLess => Err(self.give_up(failure)),
            Remedy::Unsigned if !self.left_out.signatures => {
                self.left_out.signatures = true;
                Ok(self.retry(&failure, Duration::ZERO))
            }
            Remedy::Unseen(why) if self.sends_pictures() => {
                Ok(self.without_pictures(why, &failure))
            }
            Remedy::Unsigned | Remedy::Unseen(_) | Remedy::OtherModel => self.fall_back(failure),
            Remedy::OtherKey => self.other_key(failure).await,
            Remedy::Again => self.again(failure),
        }
    }

    /// Whether the server was asked over a wire that it was only taken to speak.
    fn may_speak_chat(&self) -> bool {
        !self.over_chat && self.client.wires.chat(self.route).is_some()
    }

    fn speak_chat(&mut self) -> Delta {
        self.over_chat = true;
        self.attempts = 0;
        self.state = State::Ready;
        Delta::Notice(ModelNotice::OtherWire {
            model: self.route().name.clone(),
        })
    }

    fn sends_pictures(&self) -> bool {
        let mut images = self.request.messages.iter().flat_map(Message::images);
        self.left_out.pictures.is_none() && images.next().is_some()
    }

    fn without_pictures(&mut self, why: Unseen, failure: &Failure) -> Delta {
        if why == Unseen::CannotSee {
            self.client.cannot_see[self.route].store(true, Ordering::Relaxed);
        }
        self.left_out.pictures = Some(why);
        self.state = State::Ready;
        Delta::Notice(ModelNotice::PicturesLeftOut {
            model: self.route().name.clone(),
            reason: self.clean(&failure.message),
        })
    }

    /// A rate limit is waited out once with the same key; then, as any refused key, it rests and another takes over.
    async fn other_key(&mut self, failure: Failure) -> Result<Delta, ModelError> {
        if failure.kind == ModelErrorKind::Auth && self.may_renew() {
            self.refused_token = self.key.take();
            return Ok(self.retry(&failure, Duration::ZERO));
        }
        let is_limit = failure.kind == ModelErrorKind::RateLimit;
        let may_wait = is_short(&failure) && self.attempts < self.attempts_max();
        if is_limit && may_wait && !self.waited_for_key {
            self.waited_for_key = true;
            return self.again(failure);
        }
        if self.refuse_key(&failure).await {
            self.key = None;
            self.waited_for_key = false;
            self.state = State::Ready;
            return Ok(Delta::Notice(ModelNotice::CredentialRotated {
                provider: self.route().name.provider.clone(),
                reason: self.clean(&failure.message),
            }));
        }
        if is_limit {
            self.again(failure)
        } else {
            self.fall_back(failure)
        }
    }

    /// Whether the current key is a token that was not renewed yet.
    fn may_renew(&self) -> bool {
        self.route().login.is_some() && self.refused_token.is_none() && self.key.is_some()
    }

    /// Lets the current key rest and returns whether another one is good.
    async fn refuse_key(&self, failure: &Failure) -> bool {
        let Some(key) = &self.key else {
            return false;
        };
        let rest = rest_after(failure.kind, failure.retry_after);
        let has_other = self.client.pools[self.route].rest(key, rest);
        if let Some(ledger) = &self.client.ledger {
            let refusal = KeyRefusal {
                kind: failure.kind,
                rest,
                message: self.clean(&failure.message),
            };
            let provider = &self.route().name.provider;
            ledger.refused(provider, key, &refusal).await;
        }
        has_other
    }

    fn again(&mut self, failure: Failure) -> Result<Delta, ModelError> {
        let wait = self.wait_after(&failure);
        let is_out_of_attempts = self.attempts >= self.attempts_max();
        let is_better_elsewhere =
            self.has_fallback() && (is_out_of_attempts || !is_short(&failure));
        if !failure.is_wait_stated() {
            return if is_out_of_attempts || is_better_elsewhere {
                self.fall_back(failure)
            } else {
                Ok(self.retry(&failure, wait))
            };
        }
        // Somebody else may answer, and a person would rather know than sit before a silent terminal for hours.
        if self.waited + wait > self.client.retry_max {
            return self.fall_back(failure.saying_wait());
        }
        if is_better_elsewhere {
            return self.fall_back(failure);
        }
        self.waited += wait;
        Ok(self.retry(&failure, wait))
    }

    /// How long to wait before the next attempt: as the provider says, but not at once again and again.
    fn wait_after(&self, failure: &Failure) -> Duration {
        let backoff = |attempt| self.client.backoff.wait(attempt, &self.client.random);
        match failure.retry_after {
            None => backoff(self.attempts - 1),
            Some(wait) => match self.attempts.checked_sub(ATTEMPTS_AT_ANY_PACE) {
                Some(attempt) => wait.max(backoff(attempt)),
                None => wait,
            },
        }
    }

    fn retry(&mut self, failure: &Failure, wait: Duration) -> Delta {
        self.state = State::Waiting(wait);
        Delta::Notice(ModelNotice::Retrying {
            reason: self.clean(&failure.message),
            attempt: self.attempts + 1,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        })
    }

    fn fall_back(&mut self, failure: Failure) -> Result<Delta, ModelError> {
        if !self.has_fallback() {
            return Err(self.give_up(failure));
        }
        let from = self.route().name.clone();
        let reason = self.clean(&failure.message);
        self.route += 1;
        self.key = None;
        self.refused_token = None;
        self.attempts = 0;
        self.waited = Duration::ZERO;
        self.waited_for_key = false;
        self.left_out = self.client.left_out(self.route);
        self.over_chat = self.client.wires.is_chat_proven(self.route);
        self.state = State::Ready;
        self.client.remember(self.request.turn, self.route);
        Ok(Delta::Notice(ModelNotice::FellBack {
            from,
            to: self.route().name.clone(),
            reason,
        }))
    }

    fn give_up(&mut self, failure: Failure) -> ModelError {
        self.state = State::Over;
        ModelError {
            model: self.route().name.clone(),
            kind: failure.kind,
            message: self.clean(&failure.message),
            hint: match failure.hint {
                Some(hint) => hint.to_owned(),
                None => hint(failure.kind, self.route()),
            },
        }
    }

    fn attempts_max(&self) -> u32 {
        if self.has_fallback() {
            self.client.attempts_max.min(ATTEMPTS_WITH_FALLBACK)
        } else {
            self.client.attempts_max
        }
    }

    fn has_fallback(&self) -> bool {
        self.route + 1 < self.client.routes.len()
    }

    fn route(&self) -> &'a Route {
        let over_chat = self
            .client
            .wires
            .chat(self.route)
            .filter(|_| self.over_chat);
        over_chat.unwrap_or(&self.client.routes[self.route])
    }

    /// Makes a provider's words fit to be shown: no keys, not too long.
    fn clean(&self, message: &str) -> String {
        let mut message = message.to_owned();
        let tokens = self.key.iter().chain(&self.refused_token);
        for key in self.route().keys.iter().chain(tokens).map(Secret::expose) {
            if key.len() >= KEY_CHARS_MIN {
                message = message.replace(key, "***");
            }
        }
        shorten(&redact(&message), MESSAGE_CHARS_MAX)
    }
}

/// What a login without a token means for the request. The hint for it is the route's.
fn login_failure(error: LoginError) -> Failure {
    if error.is_passing() {
        Failure::new(ModelErrorKind::Network, Remedy::Again, error.to_string())
    } else {
        Failure::new(ModelErrorKind::Auth, Remedy::OtherModel, error.to_string())
    }
}

/// Returns whether waiting is better than asking elsewhere.
fn is_short(failure: &Failure) -> bool {
    failure
        .retry_after
        .is_none_or(|wait| wait <= WAIT_WORTHWHILE)
}

/// What a person can do about a failure.
fn hint(kind: ModelErrorKind, route: &Route) -> String {
    let provider = &route.name.provider;
    match kind {
        ModelErrorKind::Auth => route.key_hint.clone(),
        ModelErrorKind::Billing => {
            format!(
                "add credit to your {provider} account, or choose another model with `hermes model`"
            )
        }
        ModelErrorKind::RateLimit => {
            "wait a while, add another key, or set `fallback_providers`; `agent.retry_minutes` says how long is waited"
                .into()
        }
        ModelErrorKind::Overloaded => {
            format!("{provider} has trouble; try again later, or set `fallback_providers`")
        }
        ModelErrorKind::ContextTooLong => {
            "begin a new conversation (/new), or choose a model with a larger context window".into()
        }
        ModelErrorKind::UnknownModel => {
            format!("run `hermes model` to see what {provider} has")
        }
        ModelErrorKind::BadRequest => {
            format!(
                "check `model.base_url` ({}) and the model's settings",
                route.base_url
            )
        }
        ModelErrorKind::ContentFilter => "say it in other words, or choose another model".into(),
        ModelErrorKind::Network if route.local => {
            format!("is the server at {} running?", route.base_url)
        }
        ModelErrorKind::Network => {
            format!("check the network connection and {}", route.base_url)
        }
        ModelErrorKind::Broken | ModelErrorKind::Silent => "try again".into(),
    }
}
