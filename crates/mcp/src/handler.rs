//! What we do with what a server sends by itself: questions to [`Respondent`], progress to whoever made the call, log
//! lines to the server's log.

use std::sync::Arc;

use hermes_core::text::shorten;
use rmcp::model::{
    ClientConfig, CustomNotification, CustomRequest, CustomResult, ElicitRequestParams,
    ElicitResult, ErrorCode, Implementation, ProgressNotificationParam, ProtocolVersion,
};
#[expect(
    deprecated,
    reason = "servers of today's era ask for roots and samples, and log"
)]
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ListRootsResult,
    LoggingMessageNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};

use crate::in_flight::InFlight;
use crate::log::ServerLog;
use crate::respond::Respondent;
use crate::signal::Reporter;

const LOG_CHARS_MAX: usize = 2000;

/// Serves one connection.
pub(crate) struct Handler {
    respondent: Arc<Respondent>,
    reporter: Reporter,
    log: ServerLog,
    in_flight: InFlight,
}

impl Handler {
    pub(crate) fn new(respondent: Arc<Respondent>, reporter: Reporter, log: ServerLog) -> Self {
        Self {
            respondent,
            reporter,
            log,
            in_flight: InFlight::default(),
        }
    }

    /// Returns the calls of the connection, for whoever makes them.
    pub(crate) fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    async fn elicit(&self, request: &Value) -> Result<ElicitResult, ErrorData> {
        let call = self.in_flight.whose();
        self.respondent.elicit(request, call.as_deref()).await
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("hermes", env!("CARGO_PKG_VERSION"));
        // The library's own default has no `initialize`, which is the only place where this version is sent.
        ClientConfig::new(self.respondent.capabilities(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        cx: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            result = async { self.elicit(&json!(request)).await } => result,
            () = cx.ct.cancelled() => Err(called_off()),
        }
    }

    #[expect(deprecated, reason = "servers of today's era ask for samples")]
    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        cx: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let call = self.in_flight.whose();
        tokio::select! {
            result = self.respondent.sample(request, call.as_deref()) => result,
            () = cx.ct.cancelled() => Err(called_off()),
        }
    }

    #[expect(deprecated, reason = "servers of today's era ask for roots")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.respondent.roots())
    }

    /// A form that the library cannot read comes here; ours reads more of them, and says what is wrong with the rest.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        cx: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "elicitation/create" {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                request.method,
                None,
            ));
        }
        let parameters = request.params.unwrap_or_default();
        tokio::select! {
            result = self.elicit(&parameters) => Ok(CustomResult::new(json!(result?))),
            () = cx.ct.cancelled() => Err(called_off()),
        }
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        if notification.method == "notifications/elicitation/complete" {
            let parameters = notification.params.unwrap_or_default();
            if let Some(id) = parameters.get("elicitationId").and_then(Value::as_str) {
                self.respondent.complete(id);
            }
        }
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.in_flight.show(&progress);
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
        let level = json!(message.level);
        let level = level.as_str().unwrap_or("info");
        let logger = message.logger.as_deref().unwrap_or("server");
        let text = match message.data {
            Value::String(text) => text,
            data => data.to_string(),
        };
        let line = shorten(&format!("[{level}] {logger}: {text}"), LOG_CHARS_MAX);
        self.log.note(&line.replace('\n', " ")).await;
    }
}

fn called_off() -> ErrorData {
    ErrorData::internal_error("the server called its question off", None)
}
