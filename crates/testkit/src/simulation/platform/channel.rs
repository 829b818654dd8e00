//! A platform as one process has it: the port [`Channel`].

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Address, Arrival, Body, BoxFuture, Channel, ChannelError, ChannelFacts, Clock as _, Inlet,
    MessageId, Outgoing, Press, Reaction, Trouble,
};
use tokio::time::sleep;

use super::{Posted, SimPlatform};
use crate::simulation::fate::Fate;
use crate::simulation::lock;

pub struct SimChannel {
    pub(super) platform: Arc<SimPlatform>,
    pub(super) fate: Arc<Fate>,
}

impl SimChannel {
    pub fn new(platform: Arc<SimPlatform>, fate: Arc<Fate>) -> Self {
        Self { platform, fate }
    }

    /// The way there: it takes a moment, and may be closed.
    async fn travel(&self) -> Result<(), ChannelError> {
        let platform = &self.platform;
        self.fate.step().await;
        sleep(Duration::from_millis(10 + platform.random.below(200))).await;
        self.fate.live().await;
        if platform.is_away() || platform.strikes(40) {
            return Err(ChannelError::new(Trouble::Passing, "no route to it"));
        }
        Ok(())
    }

    fn admit(&self, to: &Address) -> Result<(), ChannelError> {
        let platform = &self.platform;
        let now = platform.clock.now();
        let mut state = lock(&platform.state);
        if state.left.contains(&to.chat) {
            return Err(ChannelError::new(Trouble::Forbidden, "they blocked us"));
        }
        if let Some(until) = state.throttled.get(&to.chat).copied()
            && now < until
        {
            let wait = until.since(now);
            return Err(ChannelError::new(Trouble::Throttled { wait }, "flood"));
        }
        drop(state);
        if platform.strikes(40) {
            let wait = Duration::from_secs(1 + platform.random.below(40));
            state = lock(&platform.state);
            state.throttled.insert(to.chat.clone(), now.plus(wait));
            return Err(ChannelError::new(Trouble::Throttled { wait }, "flood"));
        }
        Ok(())
    }

    async fn post(&self, message: &Outgoing) -> Result<MessageId, ChannelError> {
        self.travel().await?;
        self.admit(&message.to)?;
        let id = self.keep(message);
        // It is there. Whether we hear of that is another matter.
        self.fate.step().await;
        sleep(Duration::from_millis(10 + self.platform.random.below(200))).await;
        self.fate.live().await;
        if self.platform.strikes(50) {
            return Err(ChannelError::new(Trouble::Ambiguous, "the line went dead"));
        }
        Ok(id)
    }

    fn keep(&self, message: &Outgoing) -> MessageId {
        let platform = &self.platform;
        let mut state = lock(&platform.state);
        let known = state.by_key.get(&message.key).copied();
        if let Some(known) = known
            && platform.facts.knows_keys
        {
            return state.messages[known].id.clone();
        }
        let place = state.messages.len();
        let id = MessageId::from(format!("{}-{place}", platform.facts.platform));
        platform.trace.note(|| {
            let text = text(&message.body);
            format!(
                "{} {} posted {id} [{}]: {text}",
                platform.facts.platform, message.to.chat, message.key
            )
        });
        state.by_key.insert(message.key.clone(), place);
        state.messages.push(Posted {
            id: id.clone(),
            key: message.key.clone(),
            chat: message.to.chat.clone(),
            text: text(&message.body).to_owned(),
            buttons: message.buttons.clone(),
            is_deleted: false,
        });
        id
    }

    async fn change(
        &self,
        to: &Address,
        id: &MessageId,
        change: impl FnOnce(&mut Posted),
    ) -> Result<(), ChannelError> {
        self.travel().await?;
        self.admit(to)?;
        {
            let mut state = lock(&self.platform.state);
            let mut messages = state.messages.iter_mut();
            let found = messages.find(|posted| posted.id == *id && !posted.is_deleted);
            match found {
                Some(posted) => change(posted),
                None => return Err(ChannelError::new(Trouble::NotFound, "no such message")),
            }
        }
        self.fate.step().await;
        match self.platform.strikes(60) {
            true => Err(ChannelError::new(Trouble::Ambiguous, "the line went dead")),
            false => Ok(()),
        }
    }
}

fn text(body: &Body) -> &str {
    match body {
        Body::Text { markdown, .. } => markdown,
        Body::File { caption, .. } => caption,
    }
}

impl Channel for SimChannel {
    fn facts(&self) -> &ChannelFacts {
        &self.platform.facts
    }

    fn receive<'a>(&'a self, inlet: &'a dyn Inlet) -> BoxFuture<'a, ChannelError> {
        Box::pin(self.listen(inlet))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(self.travel())
    }

    fn send<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<MessageId, ChannelError>> {
        Box::pin(self.post(message))
    }

    fn edit<'a>(
        &'a self,
        id: &'a MessageId,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let trace = &self.platform.trace;
        Box::pin(self.change(&message.to, id, move |posted| {
            trace.note(|| format!("{id} edited [{}]: {}", message.key, text(&message.body)));
            posted.text = text(&message.body).to_owned();
            posted.buttons.clone_from(&message.buttons);
        }))
    }

    fn delete<'a>(
        &'a self,
        from: &'a Address,
        id: &'a MessageId,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let trace = &self.platform.trace;
        Box::pin(self.change(from, id, move |posted| {
            trace.note(|| format!("{id} deleted"));
            posted.is_deleted = true;
        }))
    }

    fn find_sent<'a>(
        &'a self,
        message: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Arrival, ChannelError>> {
        Box::pin(async move {
            self.travel().await?;
            if !self.platform.facts.knows_keys {
                return Ok(Arrival::Unknown);
            }
            let state = lock(&self.platform.state);
            let known = state.by_key.get(&message.key);
            Ok(match known {
                Some(at) => Arrival::Arrived(state.messages[*at].id.clone()),
                None => Arrival::NotArrived,
            })
        })
    }

    fn typing<'a>(&'a self, _: &'a Address) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.travel())
    }

    fn react<'a>(
        &'a self,
        _: &'a Address,
        _: &'a MessageId,
        _: Option<Reaction>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.travel())
    }

    fn acknowledge<'a>(
        &'a self,
        _: &'a Press,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.travel())
    }
}
