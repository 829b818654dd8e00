//! What a running call tells the loop before its result: one channel, one closed enum, so that it arrives in order.
//!
//! A tool never sees the channel. It has handles that each send one kind of message: [`Progress`](crate::Progress),
//! [`Spending`](crate::Spending), [`Person`](crate::Person), [`Delegates`](crate::Delegates),
//! [`Toolbox`](crate::Toolbox).

use tokio::sync::mpsc;

use crate::delegation::Delegation;
use crate::elicitation::PendingElicitation;
use crate::model::Finished;
use crate::toolbox::Use;

/// Messages that may wait. The loop takes them at once; a call that floods it loses progress lines, and waits with
/// everything else.
const WAITING_MAX: usize = 64;

#[derive(Debug)]
pub enum CallMessage {
    /// Live output for whoever watches.
    Progress(String),
    /// What the call itself spent on a model.
    Spent(Finished),
    /// It wants to know something from a person.
    Elicitation(PendingElicitation),
    /// It gives work to subagents.
    Delegated(Delegation),
    /// It uses another tool of its session.
    Used(Use),
}

/// The call's end of its channel.
#[derive(Debug, Clone)]
pub struct CallSender(mpsc::Sender<CallMessage>);

/// The loop's end of the channel of a call.
#[derive(Debug)]
pub struct CallMessages(mpsc::Receiver<CallMessage>);

/// Opens the channel of one call.
pub fn call_channel() -> (CallSender, CallMessages) {
    let (sender, messages) = mpsc::channel(WAITING_MAX);
    (CallSender(sender), CallMessages(messages))
}

impl CallSender {
    /// Sends, and waits while too much is waiting. Returns whether there is anybody to receive it.
    pub(crate) async fn send(&self, message: CallMessage) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Sends what may be lost.
    pub(crate) fn send_lossy(&self, message: CallMessage) {
        let _ = self.0.try_send(message);
    }
}

impl CallMessages {
    /// Waits for the next message. `None` when every handle is gone. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<CallMessage> {
        self.0.recv().await
    }

    pub fn try_recv(&mut self) -> Option<CallMessage> {
        self.0.try_recv().ok()
    }

    /// Waits for the next question to a person and drops whatever else is told: for calls outside of a session.
    pub async fn elicitation(&mut self) -> Option<PendingElicitation> {
        loop {
            if let CallMessage::Elicitation(asked) = self.recv().await? {
                return Some(asked);
            }
        }
    }

    /// Waits for the next line of live output and drops whatever else is told.
    pub async fn shown(&mut self) -> Option<String> {
        loop {
            if let CallMessage::Progress(text) = self.recv().await? {
                return Some(text);
            }
        }
    }
}
