//! How the parts of the gateway are told to end.

use hermes_core::CancellationToken;

/// Ends the gateway in two steps. Parts that are *draining* take nothing new and end once what they do has ended; those
/// that are *stopped* end at once.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    stopped: CancellationToken,
}

impl Shutdown {
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.is_cancelled()
    }

    /// Waits until nothing new is to be taken.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Waits until everything is to end at once.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    pub(crate) fn stop(&self) {
        self.draining.cancel();
        self.stopped.cancel();
    }
}
