//! Finds the conversation that a client goes on with who names none and sends everything that was said before.
//!
//! What was said is the name: after each answer the conversation is noted under all that was said in it so far, and who
//! sends exactly that goes on with it, tools and all. Who changed something begins another.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Message, SessionId};
use ring::digest::{Context, SHA256};

use super::recent::Recent;

/// Conversations that are noted, some with two wordings. Of one that is not, the client sends what was said anyway.
const NOTED_MAX: usize = 10_000;

type Name = [u8; 32];

pub(crate) struct Continuations(Mutex<Recent<Name, SessionId>>);

impl Default for Continuations {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(NOTED_MAX)))
    }
}

impl Continuations {
    /// The conversation in which exactly this was said. It goes on from there, so that nobody else finds it so.
    pub(crate) fn take(&self, system: &str, said: &[Message]) -> Option<SessionId> {
        if said.is_empty() {
            return None;
        }
        self.lock().remove(&name(system, said))
    }

    pub(crate) fn note(&self, system: &str, said: &[Message], session: &SessionId) {
        self.lock().insert(name(system, said), session.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Recent<Name, SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Clients trim what they were told, so that spaces at the edges do not count; nor do pictures, which some leave out.
fn name(system: &str, said: &[Message]) -> Name {
    let mut context = Context::new(&SHA256);
    context.update(system.trim().as_bytes());
    for message in said {
        let text = message.text();
        let text = text.trim();
        context.update(&[0, message.role as u8]);
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut name = [0; 32];
    name.copy_from_slice(context.finish().as_ref());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_what_was_said_goes_on_and_nobody_else_does() {
        let continuations = Continuations::default();
        let said = [Message::user("hi"), Message::assistant("hello\n")];
        let session = SessionId::from("s1");
        continuations.note("be kind", &said, &session);
        assert_eq!(continuations.take("be rude", &said), None);
        assert_eq!(continuations.take("be kind", &said[..1]), None);
        let trimmed = [Message::user("hi"), Message::assistant("hello")];
        assert_eq!(continuations.take("be kind", &trimmed), Some(session));
        assert_eq!(continuations.take("be kind", &trimmed), None);
    }
}
