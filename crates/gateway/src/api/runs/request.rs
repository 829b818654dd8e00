//! What begins a run, as clients write it.

use hermes_core::{Audience, Message, UserMessage};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::api::error::{ApiError, ApiResult};
use crate::api::pool::Which;
use crate::api::{Api, body, ids, said};
use hermes_core::SessionOptions;

pub(super) struct RunRequest {
    pub(super) message: UserMessage,
    /// What was said before, where no conversation is named.
    said: Vec<Message>,
    system: Vec<String>,
    /// The conversation, as the client named it.
    pub(super) named: Option<String>,
    person: Option<String>,
}

impl RunRequest {
    pub(super) fn read(headers: &HeaderMap, bytes: &[u8]) -> ApiResult<Self> {
        let in_header = ids::header(headers, &ids::SESSION_ID)?;
        let person = ids::header(headers, &ids::SESSION_KEY)?;
        let body: Value = body::parsed(bytes)?;
        let mut said = said::messages(&input(&body)?, "input")?;
        let own = body["instructions"].as_str().map(str::to_owned);
        let system = own.into_iter().chain(said.system()).collect();
        let Some(message) = said.take_last() else {
            return Err(ApiError::invalid("the last message must be the user's").param("input"));
        };
        Ok(Self {
            message,
            said: said.messages,
            system,
            named: session_id(&body)?.or(in_header),
            person,
        })
    }

    pub(super) fn which(&self, api: &Api) -> Which {
        if let Some(name) = &self.named {
            return Which::Named(ids::session(name));
        }
        let first = Message::from(self.message.clone()).text();
        Which::New {
            id: ids::new_session(&self.system.join("\n\n"), &first, &api.parts.random),
            said: self.said.clone(),
        }
    }

    pub(super) fn options(&self, api: &Api) -> SessionOptions {
        SessionOptions {
            notes: self.system.clone(),
            person: self.person.clone(),
            audience: Audience::Person,
            ..api.settings.options.clone()
        }
    }
}

fn input(body: &Value) -> ApiResult<Vec<Value>> {
    match &body["input"] {
        Value::String(text) => Ok(vec![json!({"role": "user", "content": text})]),
        Value::Array(items) => Ok(items.clone()),
        _ => Err(ApiError::invalid("`input` must be a text or a list of messages").param("input")),
    }
}

fn session_id(body: &Value) -> ApiResult<Option<String>> {
    let Some(name) = body["session_id"].as_str() else {
        return Ok(None);
    };
    let wrong = |what| ApiError::invalid(format!("`session_id` {what}")).param("session_id");
    ids::check_name(name).map_err(wrong)?;
    Ok(Some(name.to_owned()))
}
