//! Lets the model of the user hear conversations: follows a session, notes that somebody spoke, and lets what was said be
//! taken in only while nobody waits for anything.
//!
//! One task per session, beside it. Whoever speaks stops a hearing, which stays due; so does the end of the process. What
//! one session leaves due another of the same person does when it rests.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{Follower, WeakSession};
use hermes_core::{
    CancellationToken, Clock, DueHearing, Event, Followed, Heard, Notice, Origin, SessionId,
    StoreError, UserModel, UserModels,
};
use tokio::time::timeout;

/// Hearings that are done in one rest: what a long absence left behind is done over several.
const HEARINGS_MAX: usize = 20;

/// When what was said is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// After so many turns of the person; 0: only once the conversation is over.
    pub(crate) turns: u64,
    /// How long a conversation rests before that.
    pub(crate) rest: Duration,
    /// A conversation that rested this long is over.
    pub(crate) over: Duration,
}

/// What the hearings of one conversation go by. Clones share everything.
#[derive(Clone)]
pub(crate) struct HearingPlan(pub(crate) Arc<Hearings>);

pub(crate) struct Hearings {
    pub(crate) model: Arc<dyn UserModel>,
    pub(crate) models: Arc<dyn UserModels>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) person: Option<String>,
    pub(crate) pace: Pace,
    /// `display.memory_notifications`
    pub(crate) is_told: bool,
}

impl HearingPlan {
    /// Follows a session until it is closed.
    pub(crate) async fn follow(self, session: WeakSession, events: Follower) {
        let mut watch = Watch {
            hearings: self.0,
            session,
            events,
            resting: Resting::Not,
            has_spoken: false,
            turns: 0,
            problem: None,
        };
        watch.run().await;
    }
}

struct Watch {
    hearings: Arc<Hearings>,
    session: WeakSession,
    events: Follower,
    resting: Resting,
    /// Whether the person began the turn that runs.
    has_spoken: bool,
    /// Of the person, that were not heard.
    turns: u64,
    /// What the conversation was told last of a provider that does not work.
    problem: Option<String>,
}

/// How long a session has rested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resting {
    Not,
    ForAMoment,
    /// The conversation is over, as far as anybody can tell.
    Long,
}

/// What an event asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    /// Somebody spoke, and was answered.
    NoteDue,
    /// A turn runs.
    LetItRun,
}

impl Watch {
    async fn run(&mut self) {
        loop {
            let Pace { rest, over, .. } = self.hearings.pace;
            let wait = match self.resting {
                Resting::Not => None,
                Resting::ForAMoment => Some(rest),
                Resting::Long => Some(over),
            };
            let next = match wait {
                None => self.events.next().await,
                Some(wait) => match timeout(wait, self.events.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        if !self.hear_what_is_due().await {
                            return;
                        }
                        continue;
                    }
                },
            };
            let Some(next) = next else {
                return;
            };
            if self.on(next) == Then::NoteDue {
                self.note_due().await;
            }
        }
    }

    fn on(&mut self, followed: Followed) -> Then {
        let Followed::Event(numbered) = followed else {
            return Then::Nothing;
        };
        match numbered.event {
            Event::TurnStarted { origin, .. } => {
                self.has_spoken |= matches!(origin, Origin::Person { .. });
                self.resting = Resting::Not;
                Then::LetItRun
            }
            Event::TurnResumed { .. } => {
                self.resting = Resting::Not;
                Then::LetItRun
            }
            Event::Idle => {
                self.resting = Resting::ForAMoment;
                if !std::mem::take(&mut self.has_spoken) {
                    return Then::Nothing;
                }
                self.turns += 1;
                Then::NoteDue
            }
            _ => Then::Nothing,
        }
    }

    /// Writes down that something was said: from now on nothing loses it.
    async fn note_due(&self) {
        let due = DueHearing {
            session: self.session.id().clone(),
            person: self.hearings.person.clone(),
            at: self.hearings.clock.now(),
        };
        if let Err(error) = self.hearings.models.set_hearing_due(due).await {
            tracing::warn!("what was said is not heard by the model of the user: {error}");
        }
    }

    /// Does what is due while nobody speaks. Returns false when the session is over.
    async fn hear_what_is_due(&mut self) -> bool {
        let is_over = self.resting == Resting::Long;
        self.resting = match self.resting {
            Resting::ForAMoment => Resting::Long,
            _ => Resting::Not,
        };
        for _ in 0..HEARINGS_MAX {
            let due = match self.next_due(is_over).await {
                Ok(Some(due)) => due,
                Ok(None) => return true,
                Err(error) => {
                    tracing::warn!("conversations that are due were not read: {error}");
                    return true;
                }
            };
            let (heard, is_open) = self.hear(&due).await;
            let goes_on = self.tell(&due, heard);
            if !is_open || !goes_on {
                return is_open;
            }
        }
        true
    }

    /// Lets one conversation be heard until somebody speaks. Returns also whether the session is still open.
    async fn hear(&mut self, due: &SessionId) -> (Result<Heard, StoreError>, bool) {
        let stop = CancellationToken::new();
        let hearings = Arc::clone(&self.hearings);
        // On the heap, where the port puts it: most of its life a session is not heard.
        let mut hearing = hearings.model.hear(due, &stop);
        let (mut is_open, mut is_noted) = (true, true);
        let heard = loop {
            tokio::select! {
                heard = &mut hearing => break heard,
                next = self.events.next(), if is_open => match next.map(|next| self.on(next)) {
                    Some(Then::LetItRun) => stop.cancel(),
                    Some(Then::NoteDue) => is_noted = false,
                    Some(Then::Nothing) => {}
                    None => {
                        is_open = false;
                        stop.cancel();
                    }
                },
            }
        };
        if !is_noted {
            self.note_due().await;
        }
        (heard, is_open)
    }

    /// This session if enough was said in it, else one of the same person that is over.
    async fn next_due(&self, is_over: bool) -> Result<Option<SessionId>, StoreError> {
        let Hearings {
            clock,
            models,
            person,
            pace,
            ..
        } = self.hearings.as_ref();
        let now = clock.now();
        let due = models.due_hearings(person.as_deref(), now).await?;
        let is_enough = pace.turns > 0 && self.turns >= pace.turns;
        let own_counts = is_over || is_enough;
        let next = due.into_iter().find(|due| {
            if due.session == *self.session.id() {
                own_counts
            } else {
                due.at.plus(pace.over) <= now
            }
        });
        Ok(next.map(|due| due.session))
    }

    /// Tells what came of a hearing. Returns whether another one makes sense now.
    fn tell(&mut self, session: &SessionId, heard: Result<Heard, StoreError>) -> bool {
        let is_own = session == self.session.id();
        let problem = match heard {
            Ok(Heard::Done { learned }) => {
                if is_own {
                    self.turns = 0;
                }
                self.problem = None;
                if let Some((id, what)) = learned.filter(|_| self.hearings.is_told) {
                    let text = format!("{what}; undo with `hermes learning undo {id}`");
                    self.session.tell(Notice::Learned { text });
                }
                return true;
            }
            Ok(Heard::NotDue | Heard::PutOff) => return false,
            Ok(Heard::OutOfBudget) => {
                tracing::info!("today's budget for learning is used up (learning.budget)");
                return false;
            }
            Ok(Heard::GivenUp(why)) => {
                tracing::warn!("left out of the model of the user: {why}");
                return true;
            }
            Ok(Heard::Failed(why)) => why,
            Err(error) => error.to_string(),
        };
        tracing::warn!("{session} was not taken into the model of the user: {problem}");
        // Whoever chose a provider hears once that it does not work; a cheap model that talks nonsense is no news.
        let told = self.hearings.model.degraded();
        if let Some(told) = told
            && self.problem.replace(told.clone()).is_none()
        {
            self.session.tell(Notice::Context { text: told });
        }
        false
    }
}
