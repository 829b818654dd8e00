//! One server as its callers see it: requests that survive a lost connection.
//!
//! Start at [`Server::request`]. The decision whether a request is sent again is [`may_send_again`], which is pure.

mod branches;
mod doubt;
mod error;
mod link;
mod rounds;
mod send;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{Effect, SessionId};
use rmcp::model::{ClientRequest, ServerResult};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::auth::StepUp;
use crate::classify::{Class, Health, health};
use crate::failure::Failure;
use crate::in_flight::{Call, Sent};
use crate::media::MediaFolder;
use crate::respond::Respondent;
use crate::settings::{Retry, ServerSettings};
use crate::signal::{Settled, Signal, Trouble};
use crate::supervisor::wake::Wake;
use crate::view::{Link, View};

pub(crate) use branches::Branches;
pub(crate) use error::{AFFINITY_HINT, CallError, Fate};

/// How long a caller waits for a connection: a restart takes less, and a person does not wait longer.
const LINK_WAIT_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) settings: Arc<ServerSettings>,
    view: watch::Receiver<View>,
    signals: mpsc::Sender<Signal>,
    permits: Semaphore,
    wake: Arc<Wake>,
    heir: Mutex<Heir>,
    findings: doubt::Findings,
    respondent: Arc<Respondent>,
    /// How a person grants what their login does not allow, if one can be asked.
    step_up: Option<StepUp>,
    pub(crate) media: MediaFolder,
    /// The connections of single conversations, if the settings want them.
    pub(crate) branches: Option<Arc<Branches>>,
}

/// Who answers for a server since the settings were read again.
#[derive(Debug)]
enum Heir {
    Itself,
    Other(Arc<Server>),
    Nobody,
}

/// A request, and what repeating it would mean.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) message: ClientRequest,
    /// For people: the method, and what it is about.
    pub(crate) operation: Arc<str>,
    pub(crate) effect: Effect,
    pub(crate) retry: Retry,
}

impl Server {
    pub(crate) fn new(
        settings: Arc<ServerSettings>,
        view: watch::Receiver<View>,
        signals: mpsc::Sender<Signal>,
        wake: Arc<Wake>,
        respondent: Arc<Respondent>,
        step_up: Option<StepUp>,
        media: MediaFolder,
    ) -> Self {
        Self {
            respondent,
            step_up,
            media,
            branches: None,
            permits: Semaphore::new(settings.concurrency_max),
            settings,
            view,
            signals,
            wake,
            heir: Mutex::new(Heir::Itself),
            findings: doubt::Findings::default(),
        }
    }

    /// Returns the server that has this one's place now; `None` if it was removed from the settings.
    pub(crate) fn current(self: &Arc<Self>) -> Option<Arc<Self>> {
        let mut server = Arc::clone(self);
        loop {
            let next = match &*server.heir() {
                Heir::Itself => None,
                Heir::Other(next) => Some(Arc::clone(next)),
                Heir::Nobody => return None,
            };
            match next {
                Some(next) => server = next,
                None => return Some(server),
            }
        }
    }

    /// Returns the server as a conversation has it: this one, unless each has a connection of its own.
    pub(crate) fn for_conversation(self: &Arc<Self>, conversation: &SessionId) -> Arc<Self> {
        match &self.branches {
            Some(branches) => branches.for_conversation(conversation),
            None => Arc::clone(self),
        }
    }

    pub(crate) fn succeed_with(&self, next: &Arc<Self>) {
        *self.heir() = Heir::Other(Arc::clone(next));
    }

    /// Takes it out: calls are answered with that from now on.
    pub(crate) fn remove(&self) {
        *self.heir() = Heir::Nobody;
    }

    fn is_removed(&self) -> bool {
        matches!(*self.heir(), Heir::Nobody)
    }

    /// Says what happens next, for somebody whose call failed.
    fn outlook(&self) -> String {
        if self.is_removed() {
            "the server was removed from the settings; do without it".to_owned()
        } else {
            self.view().outlook()
        }
    }

    /// Says how the server is, for somebody whose call may have run.
    fn condition(&self) -> String {
        if self.is_removed() {
            "the server was removed from the settings".to_owned()
        } else {
            self.view().condition()
        }
    }

    fn heir(&self) -> MutexGuard<'_, Heir> {
        self.heir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether calls are under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.permits.available_permits() < self.settings.concurrency_max
            || self.branches.as_ref().is_some_and(|own| own.is_busy())
    }

    pub(crate) fn view(&self) -> watch::Ref<'_, View> {
        self.view.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<View> {
        self.view.clone()
    }

    pub(crate) async fn reconnect(&self) {
        // A supervisor that is gone has nothing to reconnect.
        let _ = self.signals.send(Signal::Reconnect).await;
    }

    /// Sends a request and returns its answer, over a second connection if the first fails and the request allows it.
    /// What the server wants to know on the way is answered.
    ///
    /// Dropping the future tells the server that nobody waits any more.
    pub(crate) async fn request(
        &self,
        request: &Request,
        call: &Arc<Call>,
    ) -> Result<ServerResult, CallError> {
        let Some(_permit) = self.permit().await else {
            let cause = "other calls to this server took all its places".to_owned();
            return Err(self.not_sent(request, cause));
        };
        self.in_rounds(request, call).await
    }

    /// Waits for a place among the calls, which is free as a rule; `None` when it takes too long.
    async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Some(permit);
        }
        let wait_max = self.settings.call_timeout;
        timeout(wait_max, self.permits.acquire()).await.ok()?.ok()
    }

    /// Sends a request that may be one of several of a call. `Err` holds the failure too, which may ask for something.
    async fn exchange(
        &self,
        request: &Request,
        call: &Arc<Call>,
    ) -> Result<ServerResult, (CallError, Option<Failure>)> {
        let link = match self.link_for_new_call().await {
            Ok(link) => link,
            Err(cause) => return Err((self.not_sent(request, cause), None)),
        };
        let (failure, class) = match self.send(&link, request, call).await {
            Ok(answer) => match send::reported(&answer) {
                None => return Ok(answer),
                Some(failure) => match self.judge(&link, request, &failure).await {
                    Class::SessionLost => (failure, Class::SessionLost),
                    _ => return Ok(answer),
                },
            },
            Err(failure) => {
                let class = self.judge(&link, request, &failure).await;
                (failure, class)
            }
        };
        Box::pin(self.recover(&link, request, call, failure, class)).await
    }

    /// Sends the request again if it may be. Boxed by its caller: few calls need it.
    async fn recover(
        &self,
        link: &Link,
        request: &Request,
        call: &Arc<Call>,
        failure: Failure,
        class: Class,
    ) -> Result<ServerResult, (CallError, Option<Failure>)> {
        if !may_send_again(&failure, class, request) {
            self.report(link, &failure, class).await;
            return Err((self.failed(request, &failure, class), Some(failure)));
        }
        tracing::debug!(server = self.settings.name, %failure, "a request will be sent again");
        if class != Class::OutcomeUnknown {
            call.is_sent(Sent::Nothing);
        }
        match self.link_after_trouble(link, &failure, class).await {
            Some(link) => self.send_last(&link, request, call, class).await,
            None => Err((self.failed(request, &failure, class), None)),
        }
    }

    /// Sends the request for the second and last time; `first` is how the first time ended.
    async fn send_last(
        &self,
        link: &Link,
        request: &Request,
        call: &Arc<Call>,
        first: Class,
    ) -> Result<ServerResult, (CallError, Option<Failure>)> {
        let failure = match self.send(link, request, call).await {
            Ok(answer) => {
                if let Some(failure) = send::reported(&answer) {
                    self.judge_last(link, request, &failure);
                }
                return Ok(answer);
            }
            Err(failure) => failure,
        };
        let class = self.judge_last(link, request, &failure);
        self.report(link, &failure, class).await;
        let known = match (first, class) {
            (_, Class::Answered) => class,
            // What the first one did is as unknown as before.
            (Class::OutcomeUnknown, _) => first,
            _ => class,
        };
        let mut error = self.failed(request, &failure, known);
        if class == Class::SessionLost {
            error.next = format!("{AFFINITY_HINT}; {}", error.next);
        }
        Err((error, Some(failure)))
    }

    /// Tells the supervisor about trouble. Returns how to learn that it is settled, if there is any.
    async fn report(&self, link: &Link, failure: &Failure, class: Class) -> Option<Settled> {
        // What one call is not allowed may be fine for the others.
        let is_refused = class == Class::Auth && !failure.is_forbidden();
        if health(failure, class) == Health::Sound && !is_refused {
            return None;
        }
        link.note_trouble();
        let (noted, settled) = oneshot::channel();
        let trouble = Trouble {
            epoch: link.epoch,
            failure: failure.clone(),
            class,
            noted,
        };
        // A supervisor that is gone drops the message, and with it the sender.
        let _ = self.signals.send(Signal::Trouble(trouble)).await;
        settled.await.ok()
    }

    fn not_sent(&self, request: &Request, cause: String) -> CallError {
        CallError {
            server: self.settings.name.clone(),
            operation: request.operation.clone(),
            fate: Fate::NotRun,
            cause,
            next: self.outlook(),
        }
    }

    fn how_to_be_allowed(&self, failure: &Failure) -> String {
        let name = &self.settings.name;
        match (&self.settings.oauth, failure.missing_scope()) {
            (Some(_), Some(scope)) => {
                let flags: String = scope
                    .split_whitespace()
                    .map(|scope| format!(" --scope {scope}"))
                    .collect();
                format!("the login does not allow this; run `hermes mcp login {name}{flags}`")
            }
            _ => "the credentials do not allow this; they need the right it asks for".to_owned(),
        }
    }

    fn failed(&self, request: &Request, failure: &Failure, class: Class) -> CallError {
        CallError {
            server: self.settings.name.clone(),
            operation: request.operation.clone(),
            fate: match class {
                Class::Answered => Fate::Answered,
                Class::OutcomeUnknown if request.effect == Effect::Read => Fate::Unread,
                Class::OutcomeUnknown => Fate::Unknown,
                _ => Fate::NotRun,
            },
            cause: failure.to_string(),
            next: match class {
                Class::Answered => String::new(),
                Class::Auth if failure.is_forbidden() => self.how_to_be_allowed(failure),
                Class::RateLimited { after } => {
                    format!("it asked us to wait {} s", after.as_secs().max(1))
                }
                Class::OutcomeUnknown if request.effect != Effect::Read => self.condition(),
                _ => self.outlook(),
            },
        }
    }
}

/// Decides whether a failed request is sent once more.
fn may_send_again(failure: &Failure, class: Class, request: &Request) -> bool {
    let may_repeat = match request.retry {
        Retry::Never => return false,
        Retry::Safe => request.effect.may_repeat(),
        Retry::Always => true,
    };
    match class {
        Class::SessionLost | Class::NotExecuted => true,
        // Nobody has looked whether it is true.
        Class::SessionDoubted => false,
        Class::RateLimited { after } => after <= LINK_WAIT_MAX,
        // Its time is used up.
        Class::OutcomeUnknown if matches!(failure, Failure::Timeout { .. }) => false,
        Class::OutcomeUnknown => may_repeat,
        Class::Auth | Class::Answered | Class::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::PingRequest;

    fn request(effect: Effect, retry: Retry) -> Request {
        Request {
            message: ClientRequest::PingRequest(PingRequest::default()),
            operation: "ping".into(),
            effect,
            retry,
        }
    }

    fn cut() -> Failure {
        Failure::Cut {
            cause: "reset".into(),
        }
    }

    #[test]
    fn what_may_have_run_is_repeated_only_when_that_does_no_harm() {
        let again =
            |effect, retry| may_send_again(&cut(), Class::OutcomeUnknown, &request(effect, retry));
        assert!(!again(Effect::Effect, Retry::Safe));
        assert!(again(Effect::Idempotent, Retry::Safe) && again(Effect::Read, Retry::Safe));
        assert!(again(Effect::Effect, Retry::Always));
        assert!(!again(Effect::Read, Retry::Never));
    }

    #[test]
    fn what_did_not_run_is_sent_again_unless_the_user_forbids_it() {
        for class in [Class::SessionLost, Class::NotExecuted] {
            assert!(may_send_again(
                &cut(),
                class,
                &request(Effect::Effect, Retry::Safe)
            ));
            assert!(!may_send_again(
                &cut(),
                class,
                &request(Effect::Effect, Retry::Never)
            ));
        }
    }

    #[test]
    fn an_answer_a_refusal_and_a_timeout_are_final() {
        let request = request(Effect::Read, Retry::Always);
        for class in [Class::Answered, Class::Auth, Class::Cancelled] {
            assert!(!may_send_again(&cut(), class, &request));
        }
        let timeout = Failure::Timeout {
            after: Duration::from_secs(1),
        };
        assert!(!may_send_again(&timeout, Class::OutcomeUnknown, &request));
    }

    #[test]
    fn a_long_rate_limit_is_told_and_not_waited_for() {
        let limited = |seconds| Class::RateLimited {
            after: Duration::from_secs(seconds),
        };
        let request = request(Effect::Effect, Retry::Safe);
        assert!(may_send_again(&cut(), limited(2), &request));
        assert!(!may_send_again(&cut(), limited(60), &request));
    }
}
