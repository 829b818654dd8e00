//! Follows the announcements of a server of the newer era, which has no stream of its own: `subscriptions/listen` asks
//! for them.
//!
//! A subscription is not resumed. After it broke, what was announced meanwhile is lost, so the list is fetched again.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::Random;
use hermes_core::backoff::Backoff;
use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::Subscription;
use rmcp::{Peer, RoleClient};
use tokio::time::{sleep, timeout};

use crate::failure::Failure;
use crate::signal::Reporter;

/// Servers acknowledge a subscription as soon as they have it.
const ACKNOWLEDGED_WAIT: Duration = Duration::from_secs(10);

/// A subscription that lasted this long was a good one; the next may be asked for at once.
const BREAKS_APART: Duration = Duration::from_secs(30);

/// Whether a server announces changes only to those who ask for it.
pub(crate) fn wants_to_be_asked(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        let announces = tools.is_some_and(|tools| tools.list_changed == Some(true));
        announces && !info.protocol_version.has_initialize()
    })
}

/// How long to wait before a broken subscription is asked for again.
pub(crate) struct Patience {
    pub(crate) backoff: Backoff,
    pub(crate) random: Arc<Random>,
}

/// Reports changed lists until the connection ends, or the server says that it does not know how to announce them.
pub(crate) async fn follow(peer: Peer<RoleClient>, reporter: Reporter, patience: Patience) {
    let mut failures = 0;
    while !peer.is_transport_closed() {
        let started = tokio::time::Instant::now();
        match subscribe(&peer).await {
            Ok(mut subscription) => {
                if failures > 0 {
                    reporter.list_changed();
                }
                report_changes(&mut subscription, &reporter).await;
            }
            Err(failure) if is_unknown(&failure) => return,
            Err(failure) => {
                tracing::debug!(%failure, "no announcements for now");
                // A server that could do it before may be gone; a probe will tell.
                if failures > 0 {
                    reporter.doubt();
                }
            }
        }
        if started.elapsed() >= BREAKS_APART {
            failures = 0;
        }
        sleep(patience.backoff.wait(failures, &patience.random)).await;
        failures = failures.saturating_add(1);
    }
}

async fn subscribe(peer: &Peer<RoleClient>) -> Result<Subscription, Failure> {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    match timeout(ACKNOWLEDGED_WAIT, peer.listen(filter)).await {
        Ok(subscribed) => subscribed.map_err(Failure::from_service),
        Err(_) => Err(Failure::Timeout {
            after: ACKNOWLEDGED_WAIT,
        }),
    }
}

async fn report_changes(subscription: &mut Subscription, reporter: &Reporter) {
    // Its end, whichever it is, is followed by another subscription.
    while let Ok(Some(_)) = subscription.next().await {
        reporter.list_changed();
    }
}

/// Returns whether the server has said that it has no announcements. Then asking again is of no use.
fn is_unknown(failure: &Failure) -> bool {
    match failure {
        Failure::Rpc { code, .. } => *code == ErrorCode::METHOD_NOT_FOUND.0,
        Failure::Http(answer) => {
            let is_refused = (400..500).contains(&answer.status);
            is_refused && !matches!(answer.status, 408 | 429)
        }
        _ => false,
    }
}
