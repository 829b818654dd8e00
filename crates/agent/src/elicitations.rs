//! What running calls want to know from a person: told as events, answered by ops, over with their call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{
    Elicitation, ElicitationId, Event, Notice, PendingElicitation, Response, ToolCall, Wanted,
};
use tokio::sync::oneshot;

use crate::turn::TurnContext;

/// The elicitations of a session that are open.
#[derive(Default)]
pub(crate) struct Elicitations {
    open: Mutex<HashMap<ElicitationId, Open>>,
    count: AtomicU64,
}

struct Open {
    wanted: Wanted,
    response: oneshot::Sender<Response>,
}

impl Elicitations {
    /// Hands a person's response to the call that waits for it, or says why it is not taken.
    pub(crate) fn respond(&self, id: &ElicitationId, response: Response) -> Result<(), String> {
        let mut open = self.lock();
        let Some(elicitation) = open.get(id) else {
            return Err("nobody waits for this answer any more".to_owned());
        };
        elicitation.wanted.check(&response)?;
        if let Some(elicitation) = open.remove(id) {
            // A call that ended in this moment needs no answer.
            let _ = elicitation.response.send(response);
        }
        Ok(())
    }

    fn open(&self, wanted: Wanted) -> (OpenGuard<'_>, oneshot::Receiver<Response>) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = ElicitationId::from(format!("q{number}"));
        let (response, responded) = oneshot::channel();
        self.lock().insert(id.clone(), Open { wanted, response });
        let elicitations = self;
        (OpenGuard { elicitations, id }, responded)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ElicitationId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps an elicitation open; nobody can answer it afterwards.
struct OpenGuard<'a> {
    elicitations: &'a Elicitations,
    id: ElicitationId,
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.elicitations.lock().remove(&self.id);
    }
}

/// Brings an elicitation of a running call to a person, and their response back. Dropped with the call.
pub(crate) async fn elicit(cx: &TurnContext<'_>, call: &ToolCall, asked: PendingElicitation) {
    let PendingElicitation {
        request,
        response: mut waiting,
    } = asked;
    if !cx.settings.is_attended {
        let (asker, message) = (request.asker, request.message);
        let notice = Notice::ElicitationDeclined { asker, message };
        cx.tell(Event::Notice { notice });
        let _ = waiting.send(Response::nobody());
        return;
    }
    let (open, responded) = cx.elicitations.open(request.wanted.clone());
    cx.tell(Event::ElicitationRequested(Elicitation {
        id: open.id.clone(),
        call: call.id.clone(),
        tool: call.name.clone(),
        asker: request.asker,
        message: request.message,
        wanted: request.wanted,
        expires_in_ms: request.timeout.as_millis() as u64,
    }));
    let response = tokio::select! {
        biased;
        () = cx.stop.cancelled() => Response::Cancelled,
        () = waiting.closed() => Response::Cancelled,
        response = responded => response.unwrap_or(Response::Cancelled),
        () = tokio::time::sleep(request.timeout) => Response::Cancelled,
    };
    let elicitation = open.id.clone();
    drop(open);
    cx.tell(Event::ElicitationClosed { elicitation });
    let _ = waiting.send(response);
}
