//! How a running call uses other tools of its session: through the same checks as the model's own calls.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::tool::{ToolError, ToolOutput, ToolSpec};

/// Calls that may wait for their turn; whoever makes more is made to wait.
const WAITING_MAX: usize = 8;

/// The tools of a session, in the hands of one of its calls. Empty for calls that were made through one.
///
/// A call made here is checked, needs the same consent and is stopped like one of the model's; it is part of the call
/// that makes it, so neither the conversation nor the step log knows of it.
#[derive(Debug, Clone, Default)]
pub struct Toolbox(Option<mpsc::Sender<Use>>);

/// What a call wants from the toolbox.
#[derive(Debug)]
pub enum Use {
    Look(oneshot::Sender<Vec<ToolSpec>>),
    Call(InnerCall),
}

/// A call on its way to its tool.
#[derive(Debug)]
pub struct InnerCall {
    pub tool: String,
    pub arguments: Value,
    pub result: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

impl Toolbox {
    /// Makes the handle of a call, and what its uses come out of.
    pub fn open() -> (Self, mpsc::Receiver<Use>) {
        let (sender, uses) = mpsc::channel(WAITING_MAX);
        (Self(Some(sender)), uses)
    }

    /// Returns the tools there are.
    pub async fn look(&self) -> Vec<ToolSpec> {
        let (specs, answered) = oneshot::channel();
        if self.send(Use::Look(specs)).await {
            answered.await.unwrap_or_default()
        } else {
            Vec::new()
        }
    }

    /// Calls a tool and waits for its result. Dropping the future does not stop a call that runs already: the end of the
    /// call that made it does.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let (result, answered) = oneshot::channel();
        let call = InnerCall {
            tool: tool.to_owned(),
            arguments,
            result,
        };
        if !self.send(Use::Call(call)).await {
            return Err(ToolError::Answer("there are no tools here".to_owned()));
        }
        let lost = || ToolError::Stopped("the call that made this one has ended".to_owned());
        answered.await.unwrap_or_else(|_| Err(lost()))
    }

    async fn send(&self, wanted: Use) -> bool {
        match &self.0 {
            Some(sender) => sender.send(wanted).await.is_ok(),
            None => false,
        }
    }
}
