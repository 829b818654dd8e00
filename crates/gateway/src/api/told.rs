//! What conversations were told by the programs that clients talk through: a prompt is frozen, so that what comes later is
//! said in a message, once.

use std::sync::{Mutex, PoisonError};

use hermes_core::SessionId;

use super::ids::{hex, sha256};
use super::recent::Recent;

/// Conversations of which it is known. One that is not is told again, which does no harm.
const KNOWN_MAX: usize = 4_096;

pub(crate) struct Told(Mutex<Recent<SessionId, String>>);

impl Default for Told {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(KNOWN_MAX)))
    }
}

impl Told {
    /// Whether a conversation knows these instructions already; from now on it does. A new one has them in its prompt.
    pub(crate) fn is_told(&self, session: &SessionId, system: &str, is_new: bool) -> bool {
        if system.is_empty() {
            return true;
        }
        let digest = hex(sha256(&[system]).as_ref(), 16);
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = told.get(session) == Some(&digest);
        if !is_known {
            told.insert(session.clone(), digest);
        }
        is_new || is_known
    }
}
