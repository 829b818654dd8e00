//! Elicitation: a server asks the person behind a call for values, or to open an address.

use hermes_core::{ElicitationRequest, Response, Wanted};
use reqwest::Url;
use rmcp::ErrorData;
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::{Map, Value};
use tokio::sync::broadcast::error::RecvError;

use super::{Respondent, form};
use crate::in_flight::Call;

/// An address that a server wants the person to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) message: String,
    pub(crate) url: String,
    /// By which the server says that it is finished.
    pub(crate) id: String,
}

impl Visit {
    /// Reads one from the parameters of a request, or from the data of an error.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        Some(Self {
            message: text("message")?,
            url: text("url")?,
            id: text("elicitationId")?,
        })
    }

    /// Reads all that the data of an error asks for; none if one of them cannot be read.
    pub(crate) fn read_all(data: &Value) -> Option<Vec<Self>> {
        let visits = data.get("elicitations")?.as_array()?;
        let visits: Option<Vec<Self>> = visits.iter().map(Self::read).collect();
        visits.filter(|visits| !visits.is_empty())
    }
}

impl Respondent {
    /// Answers `elicitation/create`. Nobody is asked when it cannot be said for whom the server works.
    pub(crate) async fn elicit(
        &self,
        request: &Value,
        call: Option<&Call>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(call) = call.filter(|_| self.elicitation.is_enabled) else {
            tracing::warn!(
                server = self.server,
                "declined a question that nobody can be asked"
            );
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let response = match request.get("mode").and_then(Value::as_str) {
            Some("url") => {
                let visit = Visit::read(request)
                    .ok_or_else(|| invalid("`message`, `url` and `elicitationId` are needed"))?;
                self.ask_to_visit(&visit, call).await?
            }
            Some("form") | None => self.ask_for_values(request, call).await?,
            Some(other) => return Err(invalid(&format!("there is no mode `{other}`"))),
        };
        Ok(match response {
            Response::Accepted { values } if request.get("mode") != Some(&"url".into()) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(values.into())
            }
            Response::Accepted { .. } => ElicitResult::new(ElicitationAction::Accept),
            Response::Declined { .. } => ElicitResult::new(ElicitationAction::Decline),
            Response::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn ask_for_values(&self, request: &Value, call: &Call) -> Result<Response, ErrorData> {
        let message = request.get("message").and_then(Value::as_str);
        let schema = request.get("requestedSchema");
        let (Some(message), Some(schema)) = (message, schema) else {
            return Err(invalid("`message` and `requestedSchema` are needed"));
        };
        let fields = form::fields(schema).map_err(|error| invalid(&error))?;
        if fields.is_empty() {
            return Err(invalid("the form has no fields"));
        }
        let ask = self.request(message, Wanted::Form { fields });
        Ok(call.elicit(ask).await)
    }

    /// Asks the person to open an address. When the server says that they have been there, nobody needs to say so.
    pub(crate) async fn ask_to_visit(
        &self,
        visit: &Visit,
        call: &Call,
    ) -> Result<Response, ErrorData> {
        let is_web = Url::parse(&visit.url)
            .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
        if !is_web {
            return Err(invalid("`url` must be an address of the web"));
        }
        let wanted = Wanted::Visit {
            url: visit.url.clone(),
        };
        let completed = self.completed(&visit.id);
        tokio::select! {
            response = call.elicit(self.request(&visit.message, wanted)) => Ok(response),
            () = completed => Ok(Response::Accepted { values: Map::new() }),
        }
    }

    /// Notes that the server calls a visit finished.
    pub(crate) fn complete(&self, id: &str) {
        // Nobody may be waiting for it.
        let _ = self.completions.send(id.to_owned());
    }

    fn completed(&self, id: &str) -> impl Future<Output = ()> {
        let mut completions = self.completions.subscribe();
        let id = id.to_owned();
        async move {
            loop {
                match completions.recv().await {
                    Ok(completed) if completed == id => return,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        }
    }

    fn request(&self, message: &str, wanted: Wanted) -> ElicitationRequest {
        ElicitationRequest {
            asker: format!("MCP server `{}`", self.server),
            message: message.to_owned(),
            wanted,
            timeout: self.elicitation.timeout,
        }
    }
}

fn invalid(error: &str) -> ErrorData {
    ErrorData::invalid_params(format!("elicitation/create: {error}"), None)
}
