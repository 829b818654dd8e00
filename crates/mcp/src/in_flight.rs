//! The calls that are under way on a connection, and whoever made them: a server's questions go to them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    CancellationToken, ElicitationRequest, Person, Progress, Response, SessionId, Spending,
    ToolContext,
};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// Whoever calls something off does not wait longer to hear whether the server knows.
const TELL_WAIT_MAX: Duration = Duration::from_secs(1);

/// A call that is under way.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) progress: Progress,
    pub(crate) spending: Spending,
    person: Person,
    stop: CancellationToken,
    /// When the server last said something about it.
    heard: Mutex<Instant>,
    /// When it last told of its progress.
    spoke: Mutex<Option<Instant>>,
    /// How many answers of ours the server waits for.
    asked: AtomicUsize,
    sent: Mutex<Sent>,
}

/// How far a call has come that is called off.
#[derive(Debug, Default)]
pub(crate) enum Sent {
    /// Nothing of it has left.
    #[default]
    Nothing,
    /// It is with the server.
    Whole,
    /// The server has answered it; perhaps another is to follow.
    Answered,
    /// The server is being told that nobody waits any more; gets whether it was.
    CalledOff(oneshot::Receiver<bool>),
}

impl Call {
    pub(crate) fn of(cx: &ToolContext) -> Arc<Self> {
        Arc::new(Self {
            session: cx.session.clone(),
            cwd: cx.cwd.clone(),
            progress: cx.progress.clone(),
            spending: cx.spending.clone(),
            person: cx.person.clone(),
            stop: cx.stop.clone(),
            heard: Mutex::new(Instant::now()),
            spoke: Mutex::default(),
            sent: Mutex::default(),
            asked: AtomicUsize::new(0),
        })
    }

    /// Asks whoever made the call. Meanwhile its time stands still.
    pub(crate) async fn elicit(&self, ask: ElicitationRequest) -> Response {
        let _waiting = self.is_asked();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Response::Cancelled,
            response = self.person.elicit(ask) => response,
        }
    }

    /// Counts the server as waiting for us until the guard is dropped: its silence is not its own.
    pub(crate) fn is_asked(&self) -> IsAsked<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        IsAsked(self)
    }

    /// Returns when the server will have been silent for too long.
    pub(crate) fn due(&self, patience: Duration) -> Instant {
        match self.asked.load(Ordering::Relaxed) {
            0 => *lock(&self.heard) + patience,
            _ => Instant::now() + patience,
        }
    }

    /// Notes how far it has come.
    pub(crate) fn is_sent(&self, sent: Sent) {
        *lock(&self.sent) = sent;
    }

    /// Returns how far it had come when it was called off, and what the server knows of that.
    pub(crate) async fn called_off(&self) -> CalledOff {
        let sent = std::mem::take(&mut *lock(&self.sent));
        match sent {
            Sent::Nothing => CalledOff::BeforeItWasSent,
            Sent::Whole => CalledOff::Untold,
            Sent::Answered => CalledOff::AfterAnAnswer,
            Sent::CalledOff(told) => match timeout(TELL_WAIT_MAX, told).await {
                Ok(Ok(true)) => CalledOff::Told,
                _ => CalledOff::Untold,
            },
        }
    }

    /// Notes a sign of life.
    pub(crate) fn hear(&self) {
        *lock(&self.heard) = Instant::now();
    }
}

/// What a server knows of a call that was called off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CalledOff {
    /// Nothing, and there is nothing to know.
    BeforeItWasSent,
    Told,
    /// It is not at work on it.
    AfterAnAnswer,
    /// Nobody knows: the word about it did not get through in time.
    Untold,
}

pub(crate) struct IsAsked<'a>(&'a Call);

impl Drop for IsAsked<'_> {
    fn drop(&mut self) {
        self.0.hear();
        self.0.asked.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The calls of one connection, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<Vec<UnderWay>>>);

#[derive(Debug)]
struct UnderWay {
    call: Arc<Call>,
    /// What its progress carries, once that is known.
    token: Option<ProgressToken>,
}

impl InFlight {
    /// Counts a call as under way until the guard is dropped. To be called before it is sent: a quick server asks
    /// before the sender comes back.
    pub(crate) fn begin(&self, call: Arc<Call>) -> Begun {
        lock(&self.0).push(UnderWay {
            call: Arc::clone(&call),
            token: None,
        });
        Begun {
            in_flight: self.clone(),
            call,
        }
    }

    /// Shows the progress of a call to whoever made it.
    pub(crate) fn show(&self, notice: &ProgressNotificationParam) {
        let calls = lock(&self.0);
        let is_of =
            |under_way: &&UnderWay| under_way.token.as_ref() == Some(&notice.progress_token);
        let Some(UnderWay { call, .. }) = calls.iter().find(is_of) else {
            return;
        };
        call.hear();
        *lock(&call.spoke) = Some(Instant::now());
        call.progress.show(match (&notice.message, notice.total) {
            (Some(message), _) => message.clone(),
            (None, Some(total)) => format!("{} of {total}", notice.progress),
            (None, None) => notice.progress.to_string(),
        });
    }

    /// Returns whether the server told of progress since then, or waits for an answer of ours.
    pub(crate) fn has_spoken_since(&self, since: Instant) -> bool {
        lock(&self.0).iter().any(|UnderWay { call, .. }| {
            let spoke = *lock(&call.spoke);
            spoke >= Some(since) || call.asked.load(Ordering::Relaxed) > 0
        })
    }

    /// Finds the call that a server's question belongs to. It does not say, so there is an answer only if all calls are
    /// of one session; of those it is the latest.
    pub(crate) fn whose(&self) -> Option<Arc<Call>> {
        let calls = lock(&self.0);
        let latest = &calls.last()?.call;
        let is_certain = calls
            .iter()
            .all(|under_way| under_way.call.session == latest.session);
        is_certain.then(|| Arc::clone(latest))
    }
}

pub(crate) struct Begun {
    in_flight: InFlight,
    call: Arc<Call>,
}

impl Begun {
    /// Says which progress is that of the call.
    pub(crate) fn is_told_by(&self, token: ProgressToken) {
        let mut calls = lock(&self.in_flight.0);
        if let Some(under_way) = calls.iter_mut().find(|under_way| self.is(under_way)) {
            under_way.token = Some(token);
        }
    }

    fn is(&self, under_way: &UnderWay) -> bool {
        Arc::ptr_eq(&under_way.call, &self.call)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        lock(&self.in_flight.0).retain(|under_way| !self.is(under_way));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests {
    use hermes_core::{Agreement, Delegates, Reader, Toolbox};

    use super::*;

    /// The context of a call that nobody watches.
    pub(crate) fn context(session: &str) -> ToolContext {
        ToolContext {
            session: session.into(),
            call: "c".into(),
            cwd: "/".into(),
            stop: CancellationToken::new(),
            progress: Progress::default(),
            person: Person::default(),
            delegates: Delegates::default(),
            spending: Spending::default(),
            state: None,
            toolbox: Toolbox::default(),
            reader: Reader::default(),
            agreement: Agreement::default(),
        }
    }

    #[tokio::test]
    async fn a_question_belongs_to_the_only_session_that_calls() {
        let in_flight = InFlight::default();
        assert!(in_flight.whose().is_none());
        let first = in_flight.begin(Call::of(&context("a")));
        let latest = Call::of(&context("a"));
        let second = in_flight.begin(Arc::clone(&latest));
        assert!(Arc::ptr_eq(&in_flight.whose().unwrap(), &latest));
        let third = in_flight.begin(Call::of(&context("b")));
        assert!(in_flight.whose().is_none(), "nobody knows whose it is");
        drop((first, second));
        assert_eq!(in_flight.whose().unwrap().session, "b".into());
        drop(third);
        assert!(in_flight.whose().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_call_stands_still_while_somebody_is_asked() {
        let second = Duration::from_secs(1);
        let call = Call::of(&context("a"));
        let asked = call.is_asked();
        tokio::time::sleep(10 * second).await;
        assert_eq!(call.due(second), Instant::now() + second);
        drop(asked);
        let answered = Instant::now();
        tokio::time::sleep(10 * second).await;
        assert_eq!(call.due(second), answered + second);
    }
}
