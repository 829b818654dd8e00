//! What signals mean to a gateway: TERM and INT end it, USR1 restarts it, HUP has it read its settings again.

use std::io;

use rustix::termios::{isatty, tcgetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, Outcome};

pub(super) struct GatewaySignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    restart: Signal,
    /// It was started at a terminal, which may hang up.
    has_terminal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Restart,
    Reload,
}

impl GatewaySignals {
    pub(super) fn listen() -> Outcome<Self> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            restart: listen(SignalKind::user_defined1())?,
            has_terminal: isatty(io::stdin()),
        })
    }

    /// Waits for the next wish. Cancel-safe.
    pub(super) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End,
            _ = self.terminate.recv() => Wish::End,
            _ = self.restart.recv() => Wish::Restart,
            _ = self.hangup.recv() => self.hung_up(),
        }
    }

    /// A terminal that is gone takes with it what was started there.
    fn hung_up(&self) -> Wish {
        let is_gone = self.has_terminal && tcgetattr(io::stdin()).is_err();
        if is_gone { Wish::End } else { Wish::Reload }
    }
}
