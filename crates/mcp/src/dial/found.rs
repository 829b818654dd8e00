//! What earlier connections have taught us about a server, so that it is not asked at every reconnect.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Connection;
use crate::settings::{HttpWire, Protocol};

/// Which era the server was found to speak.
pub(super) struct Era {
    configured: Protocol,
    learnt: AtomicU8,
}

impl Era {
    const UNKNOWN: u8 = 0;
    const LEGACY: u8 = 1;
    const MODERN: u8 = 2;

    pub(super) fn new(configured: Protocol) -> Self {
        Self {
            configured,
            learnt: AtomicU8::new(Self::UNKNOWN),
        }
    }

    pub(super) fn known(&self) -> Protocol {
        match (self.configured, self.learnt.load(Ordering::Relaxed)) {
            (Protocol::Auto, Self::LEGACY) => Protocol::Legacy,
            (Protocol::Auto, Self::MODERN) => Protocol::Modern,
            (configured, _) => configured,
        }
    }

    /// Remembers what a connection turned out to speak; after a failure everything is open again.
    pub(super) fn learn(&self, connection: Option<&Connection>) {
        let info = connection.and_then(|connection| connection.service.peer_info());
        let learnt = match info.map(|info| info.protocol_version.has_initialize()) {
            None => Self::UNKNOWN,
            Some(true) => Self::LEGACY,
            Some(false) => Self::MODERN,
        };
        self.learnt.store(learnt, Ordering::Relaxed);
    }
}

/// Which of the transports over HTTP the server was found to speak.
pub(super) struct WireFound(Mutex<HttpWire>);

impl Default for WireFound {
    fn default() -> Self {
        Self(Mutex::new(HttpWire::Auto))
    }
}

impl WireFound {
    pub(super) fn get(&self) -> HttpWire {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, wire: HttpWire) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wire;
    }
}
