//! Handing words to chats, for whoever has something to say that nobody asked for there: jobs, webhooks, the model, a command.

use crate::tool::BoxFuture;

/// Delivers words to a place: a chat, or the log.
///
/// What was handed over under a key is delivered once, however often that key comes: after a crash the same is handed over
/// again. Handing over is not arriving; [`Deliver::status`] says how far it has come.
pub trait Deliver: Send + Sync {
    /// Whether there is such a place.
    fn check(&self, target: &str) -> Result<(), DeliverError> {
        let _ = target;
        Ok(())
    }

    /// Takes a text for a target: `log`, a platform, `platform:chat[:thread]`, `all`. It is durable when this returns, and the
    /// conversation in a chat knows of it.
    fn deliver<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>>;

    /// Takes words that somebody else wrote: they reach the chat as they are. Nothing in them hands over a file of ours, or
    /// means that there is nothing to say.
    fn deliver_verbatim<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>>;

    /// Takes the result of a job; whether the conversation in a chat knows of it then is a setting.
    fn deliver_result<'a>(
        &'a self,
        key: &'a str,
        target: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<DeliveryId, DeliverError>> {
        self.deliver(key, target, text)
    }

    fn status<'a>(&'a self, id: &'a DeliveryId) -> BoxFuture<'a, Result<Arrival, DeliverError>>;

    /// The places there are, those that were used last first.
    fn places(&self) -> BoxFuture<'_, Result<Vec<Place>, DeliverError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// A place that words can go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What [`Deliver::deliver`] is told: `telegram:-100123:7`.
    pub target: String,
    /// What people call it there. Others gave it this name.
    pub name: String,
    /// `dm`, `group` and the like.
    pub kind: &'static str,
    /// Words for the platform as a whole go here.
    pub is_home: bool,
}

/// What was handed over, as whoever sends it names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryId(pub String);

/// How far a message has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    OnItsWay,
    /// The platform confirmed it, with this id.
    Arrived {
        message: String,
    },
    /// It may have arrived.
    Unknown {
        why: String,
    },
    Failed {
        error: String,
    },
}

/// Why a text was not taken, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DeliverError {
    pub message: String,
    pub hint: String,
    /// It may be taken later.
    pub is_passing: bool,
}
