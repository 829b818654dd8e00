//! What the rest of the crate tells a server's supervisor.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::classify::Class;
use crate::failure::Failure;

/// A supervisor answers in microseconds; more waiting signals than this mean that nobody reads them.
pub(crate) const QUEUE_MAX: usize = 256;

#[derive(Debug)]
pub(crate) enum Signal {
    /// A request was answered: a sign of life, as good as a probe.
    Answered { epoch: u64, round_trip: Duration },
    /// A request failed in a way that says something about the connection.
    Trouble(Trouble),
    /// Somebody waits for a connection.
    Demand,
    /// The server says that its list of tools is another.
    ListChanged { epoch: u64 },
    /// The server's own stream could not be opened again.
    Doubt { epoch: u64 },
    /// A person wants a new connection now.
    Reconnect,
}

pub(crate) type Settled = oneshot::Receiver<()>;

#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) epoch: u64,
    pub(crate) failure: Failure,
    pub(crate) class: Class,
    /// Gets, as soon as the supervisor knows of the trouble, what will tell that it is settled: that the connection was
    /// found sound, or was replaced, or cannot be.
    pub(crate) noted: oneshot::Sender<Settled>,
}

/// Lets one connection speak to its supervisor. What does not fit into the queue is lost: it would come too late.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    epoch: u64,
    signals: mpsc::Sender<Signal>,
}

impl Reporter {
    pub(crate) fn new(epoch: u64, signals: mpsc::Sender<Signal>) -> Self {
        Self { epoch, signals }
    }

    /// Returns which connection this is.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn doubt(&self) {
        let _ = self.signals.try_send(Signal::Doubt { epoch: self.epoch });
    }

    pub(crate) fn list_changed(&self) {
        let epoch = self.epoch;
        let _ = self.signals.try_send(Signal::ListChanged { epoch });
    }
}
