//! Ctrl-C, SIGTERM and a terminal that hangs up: the first asks the agent to stop, the second stops the program.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, Outcome};

pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    seen: u32,
    was_terminated: bool,
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
            was_terminated: false,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub async fn interrupted(&mut self) -> Interrupted {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => self.was_terminated = true,
            _ = self.hangup.recv() => self.was_terminated = true,
        }
        self.seen += 1;
        if self.seen == 1 {
            Interrupted::First
        } else {
            Interrupted::Again
        }
    }

    /// Whether one of the signals was SIGTERM or SIGHUP: somebody wants the program to end, not only the turn.
    pub fn was_terminated(&self) -> bool {
        self.was_terminated
    }

    /// Forgets the signals so far: a new turn may be interrupted anew.
    pub fn reset(&mut self) {
        self.seen = 0;
    }
}
