//! A run: one turn that the API asked for, seen to its end whether or not anybody still listens.
//!
//! Each has a task of its own that collects what comes of it; clients follow the session's events beside it, each at its
//! own pace. Start at [`start`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::StreamExt as _;
use hermes_core::{
    ApprovalRequest, BoxFuture, Elicitation, Event, Events, FollowFrom, Followed, Notice,
    NumberedEvent, Op, Origin, Part, Response, SessionFacts, SessionHandle, SessionId,
    SessionOptions, Timestamp, TurnEnd, TurnId, UserMessage,
};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::Api;
use super::error::{ApiError, ApiResult};
use super::idempotency::Reservation;
use super::outcome::{Collected, Outcome};
use super::pool::{Lane, OpenedSession, Place, Which};
use super::settings::OnDisconnect;

/// What is done with an outcome before anybody is told of it.
pub(crate) type AtEnd = Box<dyn FnOnce(Arc<Outcome>) -> BoxFuture<'static, ()> + Send>;

/// What is asked.
pub(crate) struct Ask {
    pub(crate) which: Which,
    pub(crate) options: SessionOptions,
    pub(crate) say: Say,
    pub(crate) on_disconnect: OnDisconnect,
    /// Who asks again under the same key joins it.
    pub(crate) reservation: Option<Reservation>,
}

/// What a run begins with.
pub(crate) enum Say {
    Message(UserMessage),
    /// Nothing: it is a turn that was cut short, and goes on.
    Resume,
}

/// One turn of a conversation that somebody asked for over HTTP.
pub(crate) struct Run {
    pub(crate) session: SessionId,
    pub(crate) handle: Arc<dyn SessionHandle>,
    pub(crate) facts: Option<Arc<SessionFacts>>,
    pub(crate) began: Timestamp,
    ended: OnceLock<Timestamp>,
    pub(crate) turn: TurnId,
    /// The number of the event that it began with.
    first: u64,
    state: watch::Sender<RunState>,
    /// What waits for consent.
    approvals: Mutex<Vec<ApprovalRequest>>,
    clients: AtomicUsize,
    on_disconnect: OnDisconnect,
}

#[derive(Clone)]
pub(crate) enum RunState {
    Running,
    WaitingForApproval,
    Stopping,
    Ended(Arc<Outcome>),
}

impl Run {
    /// What happens in it, from its beginning. Whoever comes late may find that the beginning is gone.
    pub(crate) fn events(&self) -> Events {
        self.handle.follow(FollowFrom::After(self.first - 1))
    }

    pub(crate) fn state(&self) -> RunState {
        self.state.borrow().clone()
    }

    /// When it came to its end.
    pub(crate) fn ended(&self) -> Option<Timestamp> {
        self.ended.get().copied()
    }

    /// Waits for its end.
    pub(crate) async fn outcome(&self) -> Arc<Outcome> {
        let mut state = self.state.subscribe();
        loop {
            if let RunState::Ended(outcome) = &*state.borrow_and_update() {
                return Arc::clone(outcome);
            }
            if state.changed().await.is_err() {
                // The sender is ours, so that this cannot be; waiting for ever would be worse.
                return Arc::new(Collected::new(self.session.clone(), None).finished());
            }
        }
    }

    pub(crate) async fn stop(&self) {
        let is_stopping = self.state.send_if_modified(|state| match state {
            RunState::Running | RunState::WaitingForApproval => {
                *state = RunState::Stopping;
                true
            }
            RunState::Stopping | RunState::Ended(_) => false,
        });
        if is_stopping {
            self.handle.interrupt().await;
        }
    }

    pub(crate) fn approvals(&self) -> Vec<ApprovalRequest> {
        self.lock_approvals().clone()
    }

    fn lock_approvals(&self) -> std::sync::MutexGuard<'_, Vec<ApprovalRequest>> {
        self.approvals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what an event says of how it stands.
    fn hear(&self, event: &Event) {
        let is_waiting = {
            let mut approvals = self.lock_approvals();
            match event {
                Event::ApprovalRequested(request) => approvals.push(request.clone()),
                Event::ApprovalClosed { approval, .. } => {
                    approvals.retain(|request| request.approval != *approval);
                }
                _ => return,
            }
            !approvals.is_empty()
        };
        self.state.send_if_modified(|state| match state {
            RunState::Running | RunState::WaitingForApproval => {
                *state = if is_waiting {
                    RunState::WaitingForApproval
                } else {
                    RunState::Running
                };
                true
            }
            RunState::Stopping | RunState::Ended(_) => false,
        });
    }
}

/// Somebody who waits for a run. When the last of them goes before its end, what the settings say happens to it.
pub(crate) struct Client {
    run: Arc<Run>,
    api: Arc<Api>,
}

impl Client {
    /// One who waits for a run that is under way.
    pub(crate) fn join(api: &Arc<Api>, run: &Arc<Run>) -> Self {
        run.clients.fetch_add(1, Ordering::SeqCst);
        Self {
            run: Arc::clone(run),
            api: Arc::clone(api),
        }
    }

    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let is_last = self.run.clients.fetch_sub(1, Ordering::SeqCst) == 1;
        let is_over = matches!(*self.run.state.borrow(), RunState::Ended(_));
        if is_last && !is_over && self.run.on_disconnect == OnDisconnect::Interrupt {
            let run = Arc::clone(&self.run);
            self.api.tasks.spawn(async move { run.stop().await });
        }
    }
}

/// Begins a run. It goes on to its end even when nobody waits for this any more.
pub(crate) async fn start(api: &Arc<Api>, mut ask: Ask, at_end: AtEnd) -> ApiResult<Client> {
    let reservation = ask.reservation.take();
    let request = reservation.as_ref().map(Reservation::request);
    let goes_on = matches!(ask.say, Say::Resume);
    let keep = reservation
        .as_ref()
        .map(|reservation| reservation.keeping(api));
    let (mut begun, beginning) = oneshot::channel();
    let task = Arc::clone(api);
    api.tasks.spawn(async move {
        let leave = tokio::select! {
            leave = admitted(&task, ask.which.id()) => leave,
            // Nothing was said yet.
            () = begun.closed(), if ask.on_disconnect == OnDisconnect::Interrupt => Err(left()),
        };
        let beginning = match leave {
            Ok(leave) => begin(&task, ask, request, leave).await,
            Err(error) => Err(error),
        };
        let Begun { run, events, leave } = match beginning {
            Ok(begun) => begun,
            Err(error) => {
                // What was begun once is never begun anew.
                if !goes_on {
                    give_up(&task, reservation).await;
                }
                let _ = begun.send(Err(error));
                return;
            }
        };
        if let Some(reservation) = reservation {
            reservation.share(&task, &run);
        }
        // When nobody is there to take it, it counts as left.
        let _ = begun.send(Ok(Client::join(&task, &run)));
        let outcome = Arc::new(collect(&run, events).await);
        task.metrics.count(&outcome);
        at_end(Arc::clone(&outcome)).await;
        if let Some(keep) = keep {
            keep(Arc::clone(&outcome)).await;
        }
        // The next request may come as soon as those who wait here are told.
        drop(leave);
        let _ = run.ended.set(task.parts.clock.now());
        run.state.send_replace(RunState::Ended(outcome));
        task.pool.rest(run.session.clone()).await;
    });
    let gone = |_| ApiError::internal("the turn could not be begun");
    beginning.await.map_err(gone)?
}

/// Who asked is gone, so that nobody is told.
fn left() -> ApiError {
    ApiError::internal("nobody waits for an answer")
}

async fn give_up(api: &Api, reservation: Option<Reservation>) {
    if let Some(reservation) = reservation {
        reservation.give_up(api).await;
    }
}

/// Has nothing done at the end.
pub(crate) fn nothing() -> AtEnd {
    Box::new(|_| Box::pin(async {}))
}

struct Begun {
    run: Arc<Run>,
    events: Events,
    leave: Leave,
}

/// What lets a turn run: one of the places for turns, and the lane of its conversation. Given back in this order, so that
/// the place is free when the next in the lane asks for it.
struct Leave {
    _permit: OwnedSemaphorePermit,
    lane: Lane,
}

/// Waits until it is our turn in a conversation, and only then for a place: who waits for others of its own conversation
/// keeps no place from other conversations. Whoever would be the next is refused at once where no place is free.
async fn admitted(api: &Api, session: &SessionId) -> ApiResult<Leave> {
    if api.shutdown.is_draining() {
        return Err(ApiError::draining());
    }
    let (lane, permit) = match api.pool.place(session)? {
        Place::First(lane) => (lane, api.admit()?),
        Place::Behind(waiting) => {
            let lane = waiting.lane().await;
            (lane, api.admit_next().await?)
        }
    };
    Ok(Leave {
        _permit: permit,
        lane,
    })
}

/// Says it, and waits until the turn has begun.
async fn begin(
    api: &Arc<Api>,
    ask: Ask,
    request: Option<String>,
    leave: Leave,
) -> ApiResult<Begun> {
    let system = ask.options.notes.join("\n\n");
    let person = ask.options.person.clone();
    let OpenedSession {
        handle,
        mut events,
        facts,
        is_new,
    } = api.pool.open(ask.which, ask.options, &leave.lane).await?;
    let surface = &api.settings.options.source;
    let (first, turn) = match ask.say {
        Say::Resume => turn_under_way(&mut events).await?,
        Say::Message(mut message) => {
            let is_told = api.told.is_told(handle.id(), &system, is_new);
            message
                .parts
                .extend((!is_told).then(|| late_instructions(&system)));
            let message = message.with_origin(Origin::Person {
                surface: Some(surface.clone()),
                id: person,
                request,
                inbox: Vec::new(),
                mirrored: None,
            });
            if !handle.send(Op::Say(message)).await {
                let error = ApiError::internal("the conversation is closed; try again");
                return Err(error.retry_after(1));
            }
            own_turn(&mut events, surface).await?
        }
    };
    let run = Arc::new(Run {
        session: handle.id().clone(),
        handle,
        facts,
        began: api.parts.clock.now(),
        ended: OnceLock::new(),
        turn,
        first,
        state: watch::Sender::new(RunState::Running),
        approvals: Mutex::default(),
        clients: AtomicUsize::new(0),
        on_disconnect: ask.on_disconnect,
    });
    Ok(Begun { run, events, leave })
}

/// What the client wants of this conversation, when its prompt does not say it.
fn late_instructions(system: &str) -> Part {
    Part::text(format!(
        "\n\n[Instructions of the program that this is sent through, which count from now on:\n{system}]"
    ))
}

/// Waits for the turn that goes on by itself.
async fn turn_under_way(events: &mut Events) -> ApiResult<(u64, TurnId)> {
    while let Some(followed) = events.next().await {
        let Followed::Event(NumberedEvent { number, event }) = followed else {
            continue;
        };
        match event {
            Event::TurnStarted { turn, .. } | Event::TurnResumed { turn, .. } => {
                return Ok((number, turn));
            }
            Event::TurnEnded { .. } | Event::Idle => break,
            _ => {}
        }
    }
    Err(ApiError::turn_over())
}

/// Waits for the turn that begins with what we said: others may come first. Nobody else speaks for the API in this
/// conversation meanwhile. Returns the number of the event that tells of it, and the turn.
async fn own_turn(events: &mut Events, surface: &str) -> ApiResult<(u64, TurnId)> {
    let mut is_ours_next = false;
    while let Some(followed) = events.next().await {
        let Followed::Event(numbered) = followed else {
            continue;
        };
        let is_ours = |origin: &Origin| matches!(origin, Origin::Person { surface: Some(from), .. } if from == surface);
        match numbered.event {
            Event::TurnStarted { turn, origin, .. } if is_ours(&origin) => {
                return Ok((numbered.number, turn));
            }
            Event::Queued { origin, .. } if is_ours(&origin) => is_ours_next = true,
            Event::Notice {
                notice: Notice::NotTaken { reason } | Notice::NotQueued { reason, .. },
            } if !is_ours_next => {
                return Err(ApiError::conflict(format!("it was not taken: {reason}")));
            }
            // It broke before it began.
            Event::TurnEnded {
                end: TurnEnd::Broken { error, hint },
                ..
            } => return Err(ApiError::internal(format!("{error}; {hint}"))),
            Event::Notice {
                notice: Notice::Forgotten { .. },
            } if is_ours_next => {
                return Err(ApiError::conflict(
                    "an interrupt made the conversation forget it",
                ));
            }
            _ => {}
        }
    }
    Err(ApiError::internal(
        "the conversation ended before the turn began",
    ))
}

/// Calls may ask a person for more than consent; over HTTP there is no form to show.
async fn decline(run: &Run, asked: &Elicitation) {
    let reason = Some("nobody can fill in forms over the HTTP API".to_owned());
    run.handle
        .respond(asked.id.clone(), Response::Declined { reason })
        .await;
}

async fn collect(run: &Run, mut events: Events) -> Outcome {
    let mut outcome = Collected::new(run.session.clone(), run.facts.as_deref());
    while let Some(followed) = events.next().await {
        let Some(event) = followed.into_event() else {
            continue;
        };
        run.hear(&event);
        if let Event::ElicitationRequested(asked) = &event {
            decline(run, asked).await;
        }
        outcome.add(&event);
        if outcome.is_over {
            break;
        }
    }
    outcome.finished()
}
