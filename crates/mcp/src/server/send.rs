//! Sends one request over one connection, once.

use std::sync::Arc;

use futures_util::FutureExt;
use rmcp::model::{
    CancelledNotificationParam, ContentBlock, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::{Request, Server};
use crate::failure::Failure;
use crate::in_flight::{Call, Sent};
use crate::signal::Signal;
use crate::view::Link;

/// A longer text says more than that a session is gone.
const REPORTED_BYTES_MAX: usize = 1024;

impl Server {
    /// Sends the request and waits for its answer: as long as there is progress, but not for ever.
    pub(super) async fn send(
        &self,
        link: &Link,
        request: &Request,
        call: &Arc<Call>,
    ) -> Result<ServerResult, Failure> {
        let _calling = link.calling();
        let started = Instant::now();
        self.tell_folder(link, call).await;
        let begun = link.in_flight.begin(Arc::clone(call));
        let handle = link
            .peer
            .send_request_with_option(request.message.clone(), self.options(link))
            .await
            // It did not even reach the connection's queue.
            .map_err(|error| Failure::Unreachable {
                cause: error.to_string(),
            })?;
        begun.is_told_by(handle.progress_token.clone());
        let id = handle.id.clone();
        call.is_sent(Sent::Whole);
        let mut abandoned = CancelOnDrop::new(&link.peer, id.clone(), call);
        let result = tokio::select! {
            // An answer that is there is never too late, and most are there before the clock matters.
            biased;
            result = handle.await_response() => {
                abandoned.disarm();
                result.map_err(|error| match Failure::from_service(error) {
                    Failure::Cut { cause } if link.excludes(&id) => Failure::Unreachable { cause },
                    Failure::Cut { cause } => Failure::Cut {
                        cause: link.given_up().map_or(cause, str::to_owned),
                    },
                    failure => failure,
                })
            }
            failure = self.out_of_time(call, started) => Err(failure),
        };
        let is_lost = matches!(
            result,
            Err(Failure::Cut { .. } | Failure::Timeout { .. } | Failure::Unreadable { .. })
        );
        if !is_lost {
            call.is_sent(Sent::Answered);
        }
        let now = Instant::now();
        if matches!(result, Ok(_) | Err(Failure::Rpc { .. })) && link.is_news(now) {
            // A full queue holds other signs of life.
            let _ = self.signals.try_send(Signal::Answered {
                epoch: link.epoch,
                round_trip: now - started,
            });
        }
        result
    }

    /// Waits until the server has been silent for too long, or the call has taken too long in all.
    async fn out_of_time(&self, call: &Call, started: Instant) -> Failure {
        let patience = self.settings.call_timeout;
        let total_max = self.settings.call_total_max;
        call.hear();
        loop {
            let (now, due) = (Instant::now(), call.due(patience));
            if now >= started + total_max {
                return Failure::Timeout { after: total_max };
            }
            if due <= now {
                return Failure::Timeout { after: patience };
            }
            sleep_until(due.min(started + total_max)).await;
        }
    }

    /// Tells the server of the folder a call comes from, if it is a new one.
    async fn tell_folder(&self, link: &Link, call: &Call) {
        if self.respondent.note_folder(call) && is_legacy(&link.peer) {
            // A connection that cannot be written to will say so in a moment.
            let _ = link.peer.notify_roots_list_changed().await;
        }
    }

    /// In the newer era each request says how much log is wanted about it.
    fn options(&self, link: &Link) -> PeerRequestOptions {
        let options = PeerRequestOptions::no_options();
        match self.settings.log_level {
            Some(level) if !is_legacy(&link.peer) => {
                let mut meta = RequestMetaObject::default();
                meta.set_log_level(level.into());
                options.with_meta(meta)
            }
            _ => options,
        }
    }
}

fn is_legacy(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info()
        .is_none_or(|info| info.protocol_version.has_initialize())
}

/// Returns the failure that a tool reports as its result, if it is one short text.
pub(super) fn reported(answer: &ServerResult) -> Option<Failure> {
    let result = match answer {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => result,
        _ => return None,
    };
    let [ContentBlock::Text(content)] = result.content.as_slice() else {
        return None;
    };
    (content.text.len() <= REPORTED_BYTES_MAX).then(|| Failure::Reported {
        text: content.text.clone(),
    })
}

/// Tells the server that nobody waits for a request any more, when its caller goes away.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    call: &'a Call,
    id: Option<RequestId>,
}

impl<'a> CancelOnDrop<'a> {
    fn new(peer: &'a Peer<RoleClient>, id: RequestId, call: &'a Call) -> Self {
        Self {
            peer,
            call,
            id: Some(id),
        }
    }

    fn disarm(&mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        let reason = Some("the caller stopped waiting".to_owned());
        let cancelled = CancelledNotificationParam::new(Some(id), reason);
        let peer = self.peer.clone();
        let mut telling = Box::pin(async move { peer.notify_cancelled(cancelled).await.is_ok() });
        let (told, is_told) = oneshot::channel();
        // The first poll puts it into the connection's queue, whatever becomes of us.
        if let Some(is_told) = telling.as_mut().now_or_never() {
            let _ = told.send(is_told);
        } else if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Whoever wanted to know may have gone.
                let _ = told.send(telling.await);
            });
        }
        self.call.is_sent(Sent::CalledOff(is_told));
    }
}
