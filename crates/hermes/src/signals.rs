//! Ctrl-C, SIGTERM and a terminal that hangs up: the first asks the agent to stop, the second stops the program.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::failure::{Failure, Outcome, code};

/// A signal that was sent with something else arrives so soon after it.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    seen: u32,
    /// The code to end with, once somebody wants the program to end.
    ending: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    First,
    Again,
}

impl Interrupted {
    pub fn is_repeated(self) -> bool {
        self == Self::Again
    }
}

impl Signals {
    pub fn listen() -> Outcome<Self> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            seen: 0,
            ending: None,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub async fn interrupted(&mut self) -> Interrupted {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => self.ending = Some(code::TERMINATED),
            _ = self.hangup.recv() => self.ending = Some(code::HUNG_UP),
        }
        self.seen += 1;
        if self.seen == 1 {
            Interrupted::First
        } else {
            Interrupted::Again
        }
    }

    /// Waits until somebody wants the program to end. Ctrl-C is no such wish where it is a key: as a signal it is then meant
    /// for a pager or an editor that has the terminal.
    pub async fn ended(&mut self) {
        while !self.was_terminated() {
            self.interrupted().await;
        }
    }

    /// Whether one of the signals was SIGTERM or SIGHUP: somebody wants the program to end, not only the turn.
    pub fn was_terminated(&self) -> bool {
        self.ending.is_some()
    }

    /// The code to end with after a signal.
    pub fn code(&self) -> u8 {
        self.ending.unwrap_or(code::INTERRUPTED)
    }

    /// How the program ends when somebody wanted it to: without a word, with the code of the signal.
    pub fn ending(&self) -> Option<Failure> {
        self.ending.map(|code| Failure {
            code,
            ..Failure::new("")
        })
    }

    /// As [`Self::ending`], also for a signal that is on its way.
    pub async fn ending_soon(&mut self) -> Option<Failure> {
        if !self.was_terminated() {
            let _ = timeout(ON_ITS_WAY, self.interrupted()).await;
        }
        self.ending()
    }

    /// Forgets the signals so far: a new turn may be interrupted anew.
    pub fn reset(&mut self) {
        self.seen = 0;
    }
}
