//! Where words go that nobody asked for in a chat: what webhooks and schedules bring.

use hermes_core::BoxFuture;
pub use hermes_core::deliver::{Arrival, Deliver, DeliverError, DeliveryId, Place};
use hermes_core::text::shorten;

/// Writes to the log, and knows no chats.
#[derive(Debug, Default)]
pub struct ToLog;

/// The names of the log.
const LOG: [&str; 2] = ["log", "local"];
const LOGGED_CHARS_MAX: usize = 2_000;

/// Whether a target is the log.
pub(crate) fn is_log(target: &str) -> bool {
    LOG.contains(&target)
}

pub(crate) fn log(key: &str, text: &str) -> DeliveryId {
    let text = shorten(text, LOGGED_CHARS_MAX);
    tracing::info!(key, "delivered: {text}");
    DeliveryId("log".to_owned())
}

impl Deliver for ToLog {
    fn check(&self, target: &str) -> Result<(), DeliverError> {
        if is_log(target) {
            return Ok(());
        }
        Err(DeliverError {
            message: format!("`{target}` cannot be reached: no chat platform is connected"),
            hint: "`log` writes to the log; chats can be named once their platform is set up"
                .to_owned(),
            is_passing: false,
        })
    }

    fn deliver<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        Box::pin(async move {
            self.check(target)?;
            Ok(log(key, &text))
        })
    }

    fn deliver_verbatim<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        self.deliver(key, target, text)
    }

    fn status<'a>(&'a self, _id: &'a DeliveryId) -> BoxFuture<'a, Result<Arrival, DeliverError>> {
        let message = "log".to_owned();
        Box::pin(std::future::ready(Ok(Arrival::Arrived { message })))
    }
}
