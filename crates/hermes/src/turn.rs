//! Runs single turns for the surfaces that have one question: `-z`, `chat -q`, recovery.

use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::report::Report;
use hermes_core::{
    Event, Events, Message, Op, Role, RunningSession, SessionId, Sessions, Store as _, TurnEnd,
    UserMessage,
};
use hermes_runtime::Runtime;

use crate::countdown::Countdown;
use crate::failure::{Failure, Outcome, code};
use crate::logging;
use crate::render::Renderer;
use crate::signals::Signals;

/// What a turn came to here, where a signal may have ended it.
pub struct Asked {
    pub report: Report,
    /// The code to end with, should it be interrupted.
    signal: u8,
    /// Events went by unseen: the text has to be read in the store.
    is_incomplete: bool,
}

/// Says one thing in a session, and follows it until it rests. A turn that a crash cut short ends first.
pub async fn run(
    runtime: &Runtime,
    opened: RunningSession,
    message: Option<UserMessage>,
    renderer: &mut Renderer,
) -> Outcome<Asked> {
    if let Some(message) = message {
        opened.handle.send(Op::Say(message)).await;
    }
    let mut asked = Asked::of(&opened);
    follow(runtime, opened, renderer, &mut asked).await?;
    if asked.is_incomplete {
        let loaded = runtime.store().load(&asked.report.session).await?;
        let mut said = loaded.messages.iter().rev();
        let answer = said.find(|message| message.role == Role::Assistant);
        asked.report.text = answer.map(Message::text).unwrap_or_default();
    }
    Ok(asked)
}

/// Brings a turn that a crash cut short to its end without going on with it.
pub async fn stop(runtime: &Runtime, opened: RunningSession) -> Outcome<Report> {
    // It waits there before the turn goes on.
    opened.handle.interrupt().await;
    let mut asked = Asked::of(&opened);
    follow(runtime, opened, &mut Renderer::Quiet, &mut asked).await?;
    Ok(asked.report)
}

/// Shows what happens until nothing does any more.
async fn follow(
    sessions: &dyn Sessions,
    opened: RunningSession,
    renderer: &mut Renderer,
    asked: &mut Asked,
) -> Outcome<()> {
    let RunningSession {
        handle: session,
        mut events,
        resumed,
        ..
    } = opened;
    drop(resumed);
    let mut signals = Signals::listen()?;
    let mut countdown = Countdown::beside(renderer);
    let mut shown = renderer.begin(session.id());
    if shown.is_err() {
        session.interrupt().await;
    }
    loop {
        let followed = tokio::select! {
            followed = events.next() => followed,
            () = countdown.tick() => continue,
            interrupted = signals.interrupted() => {
                asked.signal = signals.code();
                if interrupted.is_repeated() {
                    let failure = give_up(&mut events, session.id()).await;
                    return Err(Failure { code: asked.signal, ..failure });
                }
                session.interrupt().await;
                continue;
            }
        };
        let Some(followed) = followed else { break };
        if followed.event() == Some(&Event::Idle) {
            break;
        }
        countdown.clear();
        if shown.is_ok() {
            shown = renderer.show(&followed);
            if shown.is_err() {
                // Nobody reads any more: the turn is stopped, but comes to its proper end.
                session.interrupt().await;
            }
        }
        asked.is_incomplete |= followed.event().is_none();
        if let Some(event) = followed.event() {
            logging::log(session.id(), event);
            asked.report.add(event);
            countdown.heed(event);
        }
    }
    sessions.close(session.id()).await?;
    shown
}

/// What remains after a second Ctrl-C: a moment for the end of the turn to be recorded, then out.
pub async fn give_up(events: &mut Events, session: &SessionId) -> Failure {
    /// The first Ctrl-C ends a turn within 100 ms; this is for a machine that is busy.
    const PATIENCE: Duration = Duration::from_secs(2);
    let end = async {
        while let Some(followed) = events.next().await {
            if matches!(followed.event(), Some(Event::TurnEnded { .. })) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, end).await;
    interrupted(session)
}

fn interrupted(session: &SessionId) -> Failure {
    Failure {
        code: code::INTERRUPTED,
        ..Failure::new("interrupted")
    }
    .hint(format!("`hermes -r {session}` goes on with this session"))
}

impl Asked {
    fn of(opened: &RunningSession) -> Self {
        let model = opened.facts.model.clone();
        Self {
            report: Report::new(opened.handle.id().clone(), model),
            signal: code::INTERRUPTED,
            is_incomplete: false,
        }
    }

    /// Returns why there is no answer, or none that is complete.
    pub fn failure(&self) -> Option<Failure> {
        let (message, hint) = self.report.problem()?;
        let code = match self.report.end {
            TurnEnd::Interrupted => self.signal,
            _ => code::FAILED,
        };
        let failure = Failure::new(message).hint(hint);
        Some(Failure { code, ..failure })
    }
}
