//! Sends one request over one connection, once.

use futures_util::FutureExt;
use hermes_core::Progress;
use rmcp::model::{CancelledNotificationParam, ContentBlock, RequestId, ServerResult};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient};
use tokio::time::Instant;

use super::{Request, Server};
use crate::classify::{Class, SessionUse, classify};
use crate::failure::Failure;
use crate::signal::Signal;
use crate::view::Link;

impl Server {
    /// Sends the request and waits for its answer: as long as there is progress, but not for ever.
    pub(super) async fn send(
        &self,
        link: &Link,
        request: &Request,
        progress: &Progress,
    ) -> Result<ServerResult, Failure> {
        let _calling = link.calling();
        let started = Instant::now();
        let options = PeerRequestOptions::with_timeout(self.settings.call_timeout)
            .reset_timeout_on_progress()
            .with_max_total_timeout(self.settings.call_total_max);
        let handle = link
            .peer
            .send_request_with_option(request.message.clone(), options)
            .await
            // It did not even reach the connection's queue.
            .map_err(|error| Failure::Unreachable {
                cause: error.to_string(),
            })?;
        let _watching = link
            .watchers
            .watch(handle.progress_token.clone(), progress.clone());
        let id = handle.id.clone();
        let mut abandoned = CancelOnDrop::new(&link.peer, id.clone());
        let result = handle.await_response().await;
        abandoned.disarm();
        let result = result.map_err(|error| match Failure::from_service(error) {
            Failure::Cut { cause } if link.excludes(&id) => Failure::Unreachable { cause },
            failure => failure,
        });
        if matches!(result, Ok(_) | Err(Failure::Rpc { .. })) {
            // A full queue holds other signs of life.
            let _ = self.signals.try_send(Signal::Answered {
                epoch: link.epoch,
                round_trip: started.elapsed(),
            });
        }
        result
    }
}

/// Finds a lost session that a server reports as the failure of a tool.
pub(super) fn hidden_session_loss(answer: &ServerResult, session: SessionUse) -> Option<Failure> {
    let ServerResult::CallToolResult(result) = answer else {
        return None;
    };
    let [ContentBlock::Text(content)] = result.content.as_slice() else {
        return None;
    };
    let failure = Failure::Reported {
        text: content.text.clone(),
    };
    let is_lost =
        result.is_error == Some(true) && classify(&failure, session) == Class::SessionLost;
    is_lost.then_some(failure)
}

/// Tells the server that nobody waits for a request any more, when its caller goes away.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl<'a> CancelOnDrop<'a> {
    fn new(peer: &'a Peer<RoleClient>, id: RequestId) -> Self {
        Self { peer, id: Some(id) }
    }

    fn disarm(&mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let reason = Some("the caller stopped waiting".to_owned());
            let cancelled = CancelledNotificationParam::new(Some(id), reason);
            // The first poll puts it into the connection's queue; nobody needs to wait until it is sent.
            let _ = self.peer.notify_cancelled(cancelled).now_or_never();
        }
    }
}
