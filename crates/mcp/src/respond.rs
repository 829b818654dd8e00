//! What servers ask of us, and what we answer: questions to a person, requests to a model, the folders we work in.
//!
//! The same answers serve both eras: in the older one a server sends requests of its own, which reach [`crate::handler`];
//! in the newer one its result asks for them, and `server::rounds` sends the call again with the answers.

mod conversation;
mod elicitation;
mod form;
mod roots;
mod sampling;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::Model;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, FormElicitationCapability, JsonObject,
    UrlElicitationCapability,
};
use rmcp::model::{InputRequest, RootsCapabilities, SamplingCapability};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::in_flight::Call;
use crate::settings::{ElicitationSettings, SamplingSettings, ServerSettings};

pub(crate) use elicitation::Visit;
use roots::Roots;
use sampling::Quota;

/// Notices of finished visits that a slow call may leave unread.
const COMPLETIONS_MAX: usize = 16;

/// The models that servers may ask.
#[derive(Clone)]
pub struct Models {
    pub usual: Arc<dyn Model>,
    /// Those that the settings of a server name, by that name.
    pub named: HashMap<String, Arc<dyn Model>>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.named.keys().collect();
        write!(f, "Models({}, {names:?})", self.usual.name())
    }
}

/// Answers one server, over all its connections.
#[derive(Debug)]
pub(crate) struct Respondent {
    server: String,
    elicitation: ElicitationSettings,
    sampling: SamplingSettings,
    models: Option<Models>,
    quota: Quota,
    roots: Roots,
    /// The ids of visits that the server says are finished.
    completions: broadcast::Sender<String>,
}

/// What a respondent may answer with: models to sample, folders to name, a person to ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct RespondentOptions {
    pub(crate) models: Option<Models>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) is_attended: bool,
}

impl Respondent {
    pub(crate) fn new(settings: &ServerSettings, respondent_options: RespondentOptions) -> Self {
        let mut elicitation = settings.elicitation.clone();
        elicitation.is_enabled &= respondent_options.is_attended;
        Self {
            server: settings.name.clone(),
            elicitation,
            quota: Quota::new(settings.sampling.per_minute_max),
            models: respondent_options
                .models
                .filter(|_| settings.sampling.is_enabled),
            sampling: settings.sampling.clone(),
            roots: Roots::new(respondent_options.folders),
            completions: broadcast::channel(COMPLETIONS_MAX).0,
        }
    }

    /// Returns what the server may ask for: only what can be answered.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.roots = Some(roots);
        if self.elicitation.is_enabled {
            let elicitation = ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        if self.models.is_some() {
            let mut sampling = SamplingCapability::default();
            let takes_tools = self.sampling.tool_rounds_max > 0;
            sampling.tools = takes_tools.then(JsonObject::new);
            capabilities.sampling = Some(sampling);
        }
        capabilities
    }

    /// Notes where a call comes from. Returns whether the server does not know the folder yet.
    pub(crate) fn note_folder(&self, call: &Call) -> bool {
        self.roots.add(&call.cwd)
    }

    #[expect(deprecated, reason = "servers of today's era ask for roots")]
    pub(crate) fn roots(&self) -> rmcp::model::ListRootsResult {
        self.roots.list()
    }

    /// Answers what the result of a call asks for.
    pub(crate) async fn respond(
        &self,
        request: InputRequest,
        call: &Call,
    ) -> Result<Value, ErrorData> {
        match request {
            InputRequest::Elicitation(request) => {
                let request = to_json(&request.params)?;
                to_json(&self.elicit(&request, Some(call)).await?)
            }
            InputRequest::CreateMessage(request) => {
                to_json(&self.sample(request.params, Some(call)).await?)
            }
            InputRequest::ListRoots(_) => to_json(&self.roots()),
            other => Err(ErrorData::invalid_request(
                format!("this client cannot answer {other:?}"),
                None,
            )),
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Value, ErrorData> {
    serde_json::to_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
