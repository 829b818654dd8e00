//! Elicitations: what a running call wants to know from the person behind it.
//!
//! A tool asks through the [`Person`] in its context; the loop tells the [`Elicitation`] as an event, and whoever shows it
//! sends back a [`Response`]. An approval ([`crate::ApprovalRequest`]) is asked for before a call runs, an elicitation while it
//! runs.

mod field;
mod format;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::id::{CallId, ElicitationId};

pub use field::{Field, FieldKind, FieldOption};
pub use format::TextFormat;

/// A call asks one thing after the other; more waiting ones than this mean that it has gone wild.
const WAITING_MAX: usize = 8;

/// An elicitation as a surface sees it. It is open until [`crate::Event::ElicitationClosed`], or until its call has finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    pub id: ElicitationId,
    pub call: CallId,
    pub tool: String,
    /// Who wants to know, in words for the person. Untrusted, as everything else that comes from a call.
    pub asker: String,
    pub message: String,
    pub wanted: Wanted,
    pub expires_in_ms: u64,
}

/// What a person is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Wanted {
    /// Values for these fields.
    Form { fields: Vec<Field> },
    /// That they open this address themselves. Nothing opens it for them, and nothing follows it before they agree.
    Visit { url: String },
}

/// What a person says to an elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Response {
    Accepted {
        /// By the names of the fields; optional ones may be missing.
        values: Map<String, Value>,
    },
    Declined {
        reason: Option<String>,
    },
    /// No answer: the time was up, or the call ended.
    Cancelled,
}

impl Wanted {
    /// Checks a response, so that a caller gets nothing but what it asked for. The error is for whoever answered.
    pub fn check(&self, response: &Response) -> Result<(), String> {
        let Response::Accepted { values } = response else {
            return Ok(());
        };
        let fields = match self {
            Self::Form { fields } => fields.as_slice(),
            Self::Visit { .. } => &[],
        };
        if let Some(name) = values
            .keys()
            .find(|name| !fields.iter().any(|field| field.name == **name))
        {
            return Err(format!("there is no field `{name}`"));
        }
        for field in fields {
            match values.get(&field.name) {
                Some(value) => field.check(value)?,
                None if field.is_required => {
                    return Err(format!("`{}` needs an answer", field.name));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// What a tool wants to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationRequest {
    pub asker: String,
    pub message: String,
    pub wanted: Wanted,
    /// After this long without an answer it is cancelled.
    pub timeout: Duration,
}

/// The person behind a call, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Person(Option<mpsc::Sender<PendingElicitation>>);

/// An elicitation on its way to the person.
#[derive(Debug)]
pub struct PendingElicitation {
    pub request: ElicitationRequest,
    /// Closed once the tool does not wait any more.
    pub response: oneshot::Sender<Response>,
}

impl Person {
    /// Makes the handle of a call, and what its elicitations come out of.
    pub fn reachable() -> (Self, mpsc::Receiver<PendingElicitation>) {
        let (asked, elicitations) = mpsc::channel(WAITING_MAX);
        (Self(Some(asked)), elicitations)
    }

    pub fn is_reachable(&self) -> bool {
        self.0.is_some()
    }

    /// Asks, and waits for the answer. Dropping the future takes the elicitation back.
    ///
    /// An accepted response holds nothing but what was wanted. Without a person it is declined at once; when the call
    /// ends or the time is up it is cancelled.
    pub async fn elicit(&self, request: ElicitationRequest) -> Response {
        let Some(person) = &self.0 else {
            return Response::nobody();
        };
        let (response, answered) = oneshot::channel();
        match person.send(PendingElicitation { request, response }).await {
            Ok(()) => answered.await.unwrap_or(Response::Cancelled),
            Err(_) => Response::Cancelled,
        }
    }
}

impl Response {
    /// What everybody is told who asks where no person is.
    pub fn nobody() -> Self {
        let reason = "nobody is here to answer".to_owned();
        Self::Declined {
            reason: Some(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Wanted {
        let field = |name: &str, is_required| Field {
            is_required,
            ..Field::new(name, FieldKind::Boolean { default: None })
        };
        Wanted::Form {
            fields: vec![field("must", true), field("may", false)],
        }
    }

    fn accepted(values: Value) -> Response {
        Response::Accepted {
            values: values.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn a_response_holds_what_was_wanted_and_nothing_else() {
        let check = |values| form().check(&accepted(values));
        assert_eq!(check(json!({ "must": true })), Ok(()));
        assert_eq!(check(json!({ "must": true, "may": false })), Ok(()));
        assert!(check(json!({ "may": true })).unwrap_err().contains("must"));
        assert!(check(json!({ "must": "yes" })).is_err());
        assert!(check(json!({ "must": true, "more": 1 })).is_err());
        assert_eq!(
            form().check(&Response::Declined { reason: None }),
            Ok(()),
            "a no needs no values"
        );
        let visit = Wanted::Visit {
            url: "https://example.org".into(),
        };
        assert!(visit.check(&accepted(json!({ "a": 1 }))).is_err());
        assert_eq!(visit.check(&accepted(json!({}))), Ok(()));
    }
}
