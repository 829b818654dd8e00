//! What we do with what a server sends by itself: notifications of progress, changed lists and log lines.
//!
//! It declares no capabilities, so servers have nothing to ask of us.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::Progress;
use hermes_core::text::shorten;
#[expect(deprecated, reason = "servers of today's era send log lines")]
use rmcp::model::LoggingMessageNotificationParam;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

use crate::signal::Reporter;

const LOG_CHARS_MAX: usize = 2000;

pub(crate) struct Handler {
    server: String,
    reporter: Reporter,
    watchers: Watchers,
}

impl Handler {
    pub(crate) fn new(server: &str, reporter: Reporter, watchers: Watchers) -> Self {
        Self {
            server: server.to_owned(),
            reporter,
            watchers,
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("hermes", env!("CARGO_PKG_VERSION"));
        // The library's own default has no `initialize`, which is the only place where this version is sent.
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.watchers.show(&progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.reporter.list_changed();
    }

    #[expect(deprecated, reason = "servers of today's era send log lines")]
    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = shorten(&message.data.to_string(), LOG_CHARS_MAX);
        tracing::debug!(server = self.server, level = ?message.level, "{text}");
    }
}

/// Who watches which request of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<HashMap<ProgressToken, Progress>>>);

impl Watchers {
    /// Shows the progress of a request to its watcher until the guard is dropped.
    pub(crate) fn watch(&self, token: ProgressToken, progress: Progress) -> Watching {
        self.lock().insert(token.clone(), progress);
        Watching {
            watchers: self.clone(),
            token,
        }
    }

    fn show(&self, notice: &ProgressNotificationParam) {
        if let Some(progress) = self.lock().get(&notice.progress_token) {
            progress.show(match (&notice.message, notice.total) {
                (Some(message), _) => message.clone(),
                (None, Some(total)) => format!("{} of {total}", notice.progress),
                (None, None) => notice.progress.to_string(),
            });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Watching {
    watchers: Watchers,
    token: ProgressToken,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watchers.lock().remove(&self.token);
    }
}
