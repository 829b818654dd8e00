//! What running calls want to know from a person: told as events, answered by ops, over with their call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Asked, Enquiry, EnquiryId, Event, Notice, Response, ToolCall, Wanted};
use tokio::sync::oneshot;

use crate::turn::TurnContext;

/// The enquiries of a session that are open.
#[derive(Default)]
pub(crate) struct Enquiries {
    open: Mutex<HashMap<EnquiryId, Open>>,
    count: AtomicU64,
}

struct Open {
    wanted: Wanted,
    response: oneshot::Sender<Response>,
}

impl Enquiries {
    /// Hands a person's response to the call that waits for it, or says why it is not taken.
    pub(crate) fn respond(&self, id: &EnquiryId, response: Response) -> Result<(), String> {
        let mut open = self.lock();
        let Some(enquiry) = open.get(id) else {
            return Err("nobody waits for this answer any more".to_owned());
        };
        enquiry.wanted.check(&response)?;
        if let Some(enquiry) = open.remove(id) {
            // A call that ended in this moment needs no answer.
            let _ = enquiry.response.send(response);
        }
        Ok(())
    }

    fn open(&self, wanted: Wanted) -> (OpenGuard<'_>, oneshot::Receiver<Response>) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = EnquiryId::from(format!("q{number}"));
        let (response, responded) = oneshot::channel();
        self.lock().insert(id.clone(), Open { wanted, response });
        let enquiries = self;
        (OpenGuard { enquiries, id }, responded)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EnquiryId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps an enquiry open; nobody can answer it afterwards.
struct OpenGuard<'a> {
    enquiries: &'a Enquiries,
    id: EnquiryId,
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.enquiries.lock().remove(&self.id);
    }
}

/// Brings an enquiry of a running call to a person, and their response back. Dropped with the call.
pub(crate) async fn enquire(cx: &TurnContext<'_>, call: &ToolCall, asked: Asked) {
    let Asked {
        ask,
        response: mut waiting,
    } = asked;
    if !cx.settings.is_attended {
        let (asker, message) = (ask.asker, ask.message);
        let notice = Notice::NotEnquired { asker, message };
        cx.tell(Event::Notice { notice });
        let _ = waiting.send(Response::nobody());
        return;
    }
    let (open, responded) = cx.enquiries.open(ask.wanted.clone());
    cx.tell(Event::Enquired(Enquiry {
        id: open.id.clone(),
        call: call.id.clone(),
        tool: call.name.clone(),
        asker: ask.asker,
        message: ask.message,
        wanted: ask.wanted,
        expires_in_ms: ask.timeout.as_millis() as u64,
    }));
    let response = tokio::select! {
        biased;
        () = cx.stop.cancelled() => Response::Cancelled,
        () = waiting.closed() => Response::Cancelled,
        response = responded => response.unwrap_or(Response::Cancelled),
        () = tokio::time::sleep(ask.timeout) => Response::Cancelled,
    };
    let enquiry = open.id.clone();
    drop(open);
    cx.tell(Event::EnquiryClosed { enquiry });
    let _ = waiting.send(response);
}
