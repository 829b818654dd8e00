//! A channel between its platform's side and an inlet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{
    Address, Body, Channel, ChannelError, Incoming, IncomingMessage, MessageId, Outgoing, Press,
};
use tokio::task::JoinSet;

use super::{Fault, HeldInlet, LeftOut, Place, PlatformSide, Said, Seen};

const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often we look whether the platform has a request for us.
const REQUEST_INTERVAL: Duration = Duration::from_millis(5);

pub struct Bench<S> {
    pub(super) side: Arc<S>,
    pub(super) channel: Arc<dyn Channel>,
    pub(super) inlet: Arc<HeldInlet>,
    receiving: Mutex<JoinSet<ChannelError>>,
    keys: Mutex<u32>,
}

impl<S: PlatformSide> Bench<S> {
    pub(super) fn new(side: S) -> Self {
        Self {
            channel: side.open(),
            side: Arc::new(side),
            inlet: Arc::default(),
            receiving: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    /// Begins to receive, and waits until we are connected.
    pub(super) async fn connect(&self) {
        let before = self.inlet.kept().connected.len();
        self.listen();
        let is_connected = |kept: &super::inlet::Kept| kept.connected.len() > before;
        self.inlet.wait_for("connected", is_connected).await;
    }

    /// Begins to receive.
    pub(super) fn listen(&self) {
        let (channel, inlet, side) = (
            Arc::clone(&self.channel),
            Arc::clone(&self.inlet),
            Arc::clone(&self.side),
        );
        let receiving = async move {
            tokio::select! {
                ended = channel.receive(&*inlet) => ended,
                never = answer_requests(&*side, &*channel, &inlet) => match never {},
            }
        };
        self.receivers().spawn(receiving);
    }

    /// Stops receiving in the middle of whatever it does.
    pub(super) async fn stop(&self) {
        let mut receivers = std::mem::take(&mut *self.receivers());
        receivers.shutdown().await;
    }

    /// Receives for a moment, so that the platform knows whom to keep things for: before the first time, some keep nothing.
    pub(super) async fn meet(&self) {
        self.connect().await;
        self.stop().await;
    }

    /// Waits until receiving ends by itself, and returns why.
    pub(super) async fn ended(&self) -> ChannelError {
        let mut receivers = std::mem::take(&mut *self.receivers());
        let ended = tokio::time::timeout(WAIT_MAX, receivers.join_next());
        let ended = ended.await.expect("receiving ends");
        ended.expect("it was begun").expect("it does not panic")
    }

    fn receivers(&self) -> std::sync::MutexGuard<'_, JoinSet<ChannelError>> {
        self.receiving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn place(&self, place: Place) -> Result<Address, LeftOut> {
        self.side.place(place).ok_or(LeftOut)
    }

    pub(super) async fn say(&self, place: Place, said: Said) -> Result<MessageId, LeftOut> {
        self.place(place)?;
        self.side.say(place, said).await.ok_or(LeftOut)
    }

    /// Somebody says something, and it arrives.
    pub(super) async fn hear(&self, place: Place, said: Said) -> Result<IncomingMessage, LeftOut> {
        let id = self.say(place, said).await?;
        Ok(self.arrived_in(&self.place(place)?, &id).await)
    }

    /// Waits for a message to [`Place::Direct`].
    pub(super) async fn arrived(&self, id: &MessageId) -> IncomingMessage {
        let direct = self.side.place(Place::Direct).expect("a direct chat");
        self.arrived_in(&direct, id).await
    }

    async fn arrived_in(&self, place: &Address, id: &MessageId) -> IncomingMessage {
        let find = |kept: &super::inlet::Kept| {
            kept.updates
                .iter()
                .find_map(|update| match &update.incoming {
                    Incoming::Message(message)
                        if message.id == *id && message.chat.id == place.chat =>
                    {
                        Some(message.clone())
                    }
                    _ => None,
                })
        };
        let kept = self
            .inlet
            .wait_for("the message arrives", |kept| find(kept).is_some());
        find(&kept.await).expect("it was there")
    }

    pub(super) async fn edited(&self, id: &MessageId) -> IncomingMessage {
        let find = |kept: &super::inlet::Kept| {
            kept.updates
                .iter()
                .find_map(|update| match &update.incoming {
                    Incoming::Edited(message) if message.id == *id => Some(message.clone()),
                    _ => None,
                })
        };
        let kept = self
            .inlet
            .wait_for("the edit arrives", |kept| find(kept).is_some());
        find(&kept.await).expect("it was there")
    }

    pub(super) async fn pressed(&self) -> Press {
        let find = |kept: &super::inlet::Kept| {
            kept.updates
                .iter()
                .find_map(|update| match &update.incoming {
                    Incoming::Press(press) => Some(press.clone()),
                    _ => None,
                })
        };
        let kept = self
            .inlet
            .wait_for("the press arrives", |kept| find(kept).is_some());
        find(&kept.await).expect("it was there")
    }

    pub(super) async fn fault(&self, fault: Fault) -> Result<(), LeftOut> {
        if self.side.fault(fault).await {
            Ok(())
        } else {
            Err(LeftOut)
        }
    }

    /// A text for a place.
    pub(super) fn text(&self, place: Place, markdown: &str) -> Result<Outgoing, LeftOut> {
        let body = Body::Text {
            markdown: markdown.to_owned(),
            is_preview: false,
        };
        self.outgoing(place, body)
    }

    pub(super) fn outgoing(&self, place: Place, body: Body) -> Result<Outgoing, LeftOut> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        *keys += 1;
        Ok(Outgoing {
            to: self.place(place)?,
            key: format!("key-{keys}"),
            body,
            replies_to: None,
            follows: None,
            buttons: Vec::new(),
            is_silent: false,
        })
    }

    pub(super) async fn send(&self, message: &Outgoing) -> MessageId {
        let sent = self.channel.send(message).await;
        sent.unwrap_or_else(|error| panic!("{error:?} when sending {message:?}"))
    }

    /// What people see of one message of ours.
    pub(super) async fn seen_as(&self, place: Place, id: &MessageId) -> Option<Seen> {
        let seen = self.side.seen(place).await;
        seen.into_iter().find(|message| message.id == id.as_str())
    }

    /// Sends a text, and returns what people see.
    pub(super) async fn shown(&self, place: Place, markdown: &str) -> Result<Seen, LeftOut> {
        let id = self.send(&self.text(place, markdown)?).await;
        Ok(self.seen_as(place, &id).await.expect("it is seen"))
    }
}

/// Hands over what the platform asks of us, as the gateway's server does.
async fn answer_requests<S: PlatformSide>(
    side: &S,
    channel: &dyn Channel,
    inlet: &HeldInlet,
) -> std::convert::Infallible {
    loop {
        match side.next_request().await {
            Some(request) => {
                let response = channel.on_request(request, inlet).await;
                side.answered(&response).await;
                if response.status != 200 {
                    tokio::time::sleep(REQUEST_INTERVAL).await;
                }
            }
            None => tokio::time::sleep(REQUEST_INTERVAL).await,
        }
    }
}
