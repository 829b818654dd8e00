//! `subscriptions/listen` of the 2026-07-28 era: a POST whose answer is a stream of announcements.

use std::io;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    host::Host,
    reply,
    rpc::{self, notification},
    stream,
};
use crate::server::{http::Connection, play::After};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

impl Host {
    /// Tells whether a message asks for announcements, and may.
    pub(super) fn is_subscription(&self, message: &Value) -> bool {
        let settings = self.peer.settings();
        rpc::method(message) == "subscriptions/listen"
            && settings.has_subscriptions
            && settings.era.is_modern()
            && rpc::modern_version(message).is_some()
    }

    /// Acknowledges a subscription, and then announces what is to be announced.
    pub(super) async fn subscribe(
        &self,
        connection: &mut Connection,
        message: &Value,
    ) -> io::Result<After> {
        let id = message["id"].clone();
        let params = json!({
            "notifications": message["params"]["notifications"],
            "_meta": {SUBSCRIPTION_ID: id},
        });
        let acknowledged = notification("notifications/subscriptions/acknowledged", &params);
        let (outbox, notes) = mpsc::unbounded_channel();
        self.state().subscriptions.push((id, outbox));
        stream::send_notes_after(connection, &reply::event(&acknowledged), notes).await
    }

    /// Announces so many times that the tools have changed; returns to how many subscribers.
    pub(super) fn notify_subscribers(&self, times: usize) -> usize {
        let subscriptions = &mut self.state().subscriptions;
        subscriptions.retain(|(id, stream)| {
            let params = json!({"_meta": {SUBSCRIPTION_ID: id}});
            let note = notification("notifications/tools/list_changed", &params);
            (0..times).all(|_| stream.send(note.clone()).is_ok())
        });
        subscriptions.len()
    }

    pub(crate) fn end_subscriptions(&self) {
        self.state().subscriptions.clear();
    }
}
