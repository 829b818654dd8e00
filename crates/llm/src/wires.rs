//! Servers that are taken to speak the Responses API and have chat completions only: how that is noticed, and remembered.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::classify::Failure;
use crate::providers::{Protocol, Quirks};
use crate::settings::Route;

/// Keeps which servers have chat completions only, so that nobody asks them for more every time.
pub trait WireMemory: fmt::Debug + Send + Sync {
    /// The server at this address answered over chat completions, and did not know the Responses API.
    fn has_chat_only(&self, base_url: &str);
}

/// The other wire of each route, where there is one.
#[derive(Debug)]
pub(crate) struct Wires {
    chat: Vec<Option<ChatRoute>>,
    pub(crate) memory: Option<Arc<dyn WireMemory>>,
}

#[derive(Debug)]
struct ChatRoute {
    route: Route,
    /// It answered, so it is the one that is asked from now on.
    is_proven: AtomicBool,
}

impl Wires {
    pub(crate) fn of(routes: &[Route]) -> Self {
        Self {
            chat: routes.iter().map(ChatRoute::of).collect(),
            memory: None,
        }
    }

    /// The route as it is asked over chat completions, if it may be.
    pub(crate) fn chat(&self, route: usize) -> Option<&Route> {
        Some(&self.chat[route].as_ref()?.route)
    }

    pub(crate) fn is_chat_proven(&self, route: usize) -> bool {
        let chat = self.chat[route].as_ref();
        chat.is_some_and(|chat| chat.is_proven.load(Ordering::Relaxed))
    }

    /// Remembers that the server answered over chat completions.
    pub(crate) fn prove_chat(&self, route: usize) {
        let Some(chat) = &self.chat[route] else {
            return;
        };
        if !chat.is_proven.swap(true, Ordering::Relaxed)
            && let Some(memory) = &self.memory
        {
            memory.has_chat_only(&chat.route.base_url);
        }
    }
}

impl ChatRoute {
    fn of(route: &Route) -> Option<Self> {
        let may_differ = route.protocol == Protocol::OpenAiResponses && route.is_wire_guessed;
        may_differ.then(|| Self {
            route: Route {
                protocol: Protocol::OpenAiChat,
                // Whoever knows one wire only is not who the provider's own habits are for.
                quirks: Quirks::default(),
                ..route.clone()
            },
            is_proven: AtomicBool::new(false),
        })
    }
}

/// Whether a server says that it has no such address; some do so with a status of success.
pub(crate) fn is_no_such_address(failure: &Failure) -> bool {
    matches!(failure.status, Some(404 | 405 | 501))
        || failure
            .message
            .to_lowercase()
            .contains("unexpected endpoint")
}
