//! Calls that take several requests, because the server wants to know something first.
//!
//! In the newer era its result says what it wants, and the call is sent again with the answers. In either era its error
//! may say that the person has to open an address, and the call is sent again once they have.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use hermes_core::Response;
use rmcp::model::{ClientRequest, InputRequiredResult, InputResponses, ServerResult};
use tokio::time::sleep;

use super::{CallError, Fate, Request, Server};
use crate::failure::Failure;
use crate::in_flight::Call;
use crate::respond::Visit;

/// A server that still wants something after so many answers goes round in circles.
const ROUNDS_MAX: usize = 10;
/// Between requests when the server only wants to be asked again.
const AGAIN_WAIT: Duration = Duration::from_millis(250);

impl Server {
    /// Sends the request, and sends it again with what the server wants to know, until it has an answer.
    pub(super) async fn in_rounds(
        &self,
        request: &Request,
        call: &Arc<Call>,
    ) -> Result<ServerResult, CallError> {
        let mut request = Cow::Borrowed(request);
        for _ in 0..ROUNDS_MAX {
            match self.exchange(&request, call).await {
                Ok(ServerResult::InputRequiredResult(wanted)) => {
                    let state = wanted.request_state.clone();
                    let responses = self.respond_to(&request, wanted, call).await?;
                    if !put_into(&mut request.to_mut().message, responses, state) {
                        return Err(self.refused(&request, "it wants input for what takes none"));
                    }
                }
                Err((error, Some(Failure::VisitWanted { visits, .. }))) => {
                    self.visit(&request, error, &visits, call).await?;
                }
                Ok(answer) => return Ok(answer),
                Err((error, _)) => return Err(error),
            }
        }
        let cause = format!("it wanted more input {ROUNDS_MAX} times in a row");
        Err(self.refused(&request, &cause))
    }

    async fn respond_to(
        &self,
        request: &Request,
        wanted: InputRequiredResult,
        call: &Call,
    ) -> Result<InputResponses, CallError> {
        let requests = wanted.input_requests.unwrap_or_default();
        if requests.is_empty() {
            sleep(AGAIN_WAIT).await;
        }
        let respond = async |(key, wanted)| {
            let response = self.respondent.respond(wanted, call).await;
            response.map(|response| (key, response))
        };
        let responses = try_join_all(requests.into_iter().map(respond)).await;
        responses
            .map(|responses| responses.into_iter().collect())
            // The protocol has no way to tell the server, so the call ends here.
            .map_err(|error| self.refused(request, &error.message))
    }

    /// Has the person open all addresses, or returns why the call ends here.
    async fn visit(
        &self,
        request: &Request,
        mut error: CallError,
        visits: &[Visit],
        call: &Call,
    ) -> Result<(), CallError> {
        for visit in visits {
            match self.respondent.ask_to_visit(visit, call).await {
                Ok(Response::Accepted { .. }) => {}
                Ok(Response::Declined { reason }) => {
                    let reason = reason.unwrap_or_else(|| "the person declined".to_owned());
                    error.next = format!("it was not opened: {reason}");
                    return Err(error);
                }
                Ok(Response::Cancelled) => {
                    error.next = "it was not opened in time".to_owned();
                    return Err(error);
                }
                Err(invalid) => return Err(self.refused(request, &invalid.message)),
            }
        }
        Ok(())
    }

    fn refused(&self, request: &Request, cause: &str) -> CallError {
        CallError {
            server: self.settings.name.clone(),
            operation: request.operation.clone(),
            fate: Fate::Answered,
            cause: cause.to_owned(),
            next: String::new(),
        }
    }
}

/// Puts the answers into the request. Returns whether it has a place for them.
fn put_into(request: &mut ClientRequest, responses: InputResponses, state: Option<String>) -> bool {
    let responses = Some(responses).filter(|responses| !responses.is_empty());
    let (input_responses, request_state) = match request {
        ClientRequest::CallToolRequest(call) => (
            &mut call.params.input_responses,
            &mut call.params.request_state,
        ),
        ClientRequest::ReadResourceRequest(read) => (
            &mut read.params.input_responses,
            &mut read.params.request_state,
        ),
        ClientRequest::GetPromptRequest(get) => (
            &mut get.params.input_responses,
            &mut get.params.request_state,
        ),
        _ => return false,
    };
    *input_responses = responses;
    *request_state = state;
    true
}
