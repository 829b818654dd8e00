//! Calls that take several requests, because the server wants to know something first.
//!
//! In the newer era its result says what it wants, and the call is sent again with the answers. In either era its error
//! may say that the person has to open an address, or that their login does not allow this, and the call is sent again
//! once that is done; a server that lets nobody in without a login has the person log in first.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use hermes_core::Response;
use rmcp::model::{ClientRequest, InputRequiredResult, InputResponses, ServerResult};
use tokio::time::{sleep, timeout};

use super::{CallError, Fate, Request, Server};
use crate::failure::Failure;
use crate::in_flight::Call;
use crate::respond::Visit;
use crate::status::ServerState;
use crate::view::View;

/// A server that still wants something after so many answers goes round in circles.
const ROUNDS_MAX: usize = 10;
/// A server that wants yet another right after so many logins will want the next one, too.
const STEP_UPS_MAX: usize = 3;
/// How long we wait to see that a login is made use of.
const LET_IN_WAIT_MAX: Duration = Duration::from_secs(5);
/// What a login here still has to do when its token is there: to tell the person's browser so.
const ELSEWHERE_GRACE: Duration = Duration::from_millis(500);
/// Between requests when the server only wants to be asked again.
const AGAIN_WAIT: Duration = Duration::from_millis(250);

impl Server {
    /// Sends the request, and sends it again with what the server wants to know, until it has an answer.
    ///
    /// What few calls need is boxed: every call would move the bytes of its state around.
    pub(super) async fn in_rounds(
        &self,
        request: &Request,
        call: &Arc<Call>,
    ) -> Result<ServerResult, CallError> {
        let mut request = Cow::Borrowed(request);
        let mut granted = Vec::new();
        for _ in 0..ROUNDS_MAX {
            match self.exchange(&request, call).await {
                Ok(ServerResult::InputRequiredResult(wanted)) => {
                    let state = wanted.request_state.clone();
                    let responses = Box::pin(self.respond_to(&request, wanted, call)).await?;
                    if !put_into(&mut request.to_mut().message, responses, state) {
                        return Err(self.refused(&request, "it wants input for what takes none"));
                    }
                }
                Err((error, Some(Failure::VisitWanted { visits, .. }))) => {
                    Box::pin(self.visit(&request, error, &visits, call)).await?;
                }
                Err((error, failure)) => {
                    let lack = failure.and_then(|failure| failure.missing_scope());
                    if let Some(scope) = lack {
                        Box::pin(self.be_granted(scope, error, &mut granted, call)).await?;
                    } else if self.needs_login() {
                        Box::pin(self.be_let_in(error, &mut granted, call)).await?;
                    } else {
                        return Err(error);
                    }
                }
                Ok(answer) => return Ok(answer),
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

    /// Has the person log in for what the call lacks, or returns why it ends here. What was `granted` before in vain is
    /// not asked for again.
    async fn be_granted(
        &self,
        scope: String,
        mut error: CallError,
        granted: &mut Vec<String>,
        call: &Call,
    ) -> Result<(), CallError> {
        let Some(step_up) = &self.step_up else {
            return Err(error);
        };
        if granted.contains(&scope) || granted.len() == STEP_UPS_MAX {
            error.next = format!("a new login did not help; {}", error.next);
            return Err(error);
        }
        let scopes: Vec<String> = scope.split_whitespace().map(str::to_owned).collect();
        granted.push(scope);
        let elsewhere = async {
            step_up.granted_elsewhere(&scopes).await;
            sleep(ELSEWHERE_GRACE).await;
        };
        let outcome = tokio::select! {
            biased;
            outcome = step_up.grant(&scopes, call) => outcome,
            () = elsewhere => Ok(()),
        };
        outcome.map_err(|reason| {
            error.next = format!("{reason}; {}", error.next);
            error
        })
    }

    fn needs_login(&self) -> bool {
        self.step_up.is_some() && matches!(self.view().state, ServerState::NeedsAuth { .. })
    }

    /// Has the person log in at a server that does not let us in, or returns why the call ends here. What was not sent is
    /// sent then.
    async fn be_let_in(
        &self,
        mut error: CallError,
        granted: &mut Vec<String>,
        call: &Call,
    ) -> Result<(), CallError> {
        let any = String::new();
        let (Some(step_up), Fate::NotRun, false) =
            (&self.step_up, error.fate, granted.contains(&any))
        else {
            return Err(error);
        };
        granted.push(any);
        let mut views = self.watch();
        let elsewhere = async {
            // An error means that we are shutting down, which the call will find out by itself.
            let _ = views.wait_for(is_let_in).await;
            sleep(ELSEWHERE_GRACE).await;
        };
        let logged_in = tokio::select! {
            biased;
            logged_in = step_up.let_in(|| self.needs_login(), call) => logged_in,
            () = elsewhere => Ok(()),
        };
        if let Err(reason) = logged_in {
            error.next = format!("{reason}; {}", error.next);
            return Err(error);
        }
        if self.needs_login() {
            self.reconnect().await;
        }
        // When it takes longer, the call says how the server is.
        let _ = timeout(LET_IN_WAIT_MAX, self.watch().wait_for(is_let_in)).await;
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

fn is_let_in(view: &View) -> bool {
    !matches!(view.state, ServerState::NeedsAuth { .. })
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
