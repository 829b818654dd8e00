//! A chat platform with weather: it repeats itself, mixes things up, throttles, falls silent and goes away.

mod channel;
mod inbound;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{
    Button, ChannelFacts, Chat, Clock as _, Incoming, IncomingMessage, Mentions, MessageId, Press,
    Random, Sender, Timestamp,
};
use tokio::sync::Notify;

use super::clock::SimClock;
use super::fate::Trace;
use super::lock;

pub use self::channel::SimChannel;

/// How a platform tells what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformKind {
    /// It is asked, and told how far it was read.
    Polling,
    /// It tells by itself, and goes on from a number after a loss.
    Socket,
    /// It calls, again and again until it is heard.
    Webhook,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    Calm,
    Stormy,
}

/// One platform; it lives on while processes die.
pub struct SimPlatform {
    pub(super) facts: ChannelFacts,
    pub(super) kind: PlatformKind,
    clock: Arc<SimClock>,
    random: Arc<Random>,
    trace: Arc<Trace>,
    state: Mutex<State>,
    /// Something was said.
    said: Notify,
}

pub(super) struct State {
    weather: Weather,
    updates: Vec<Told>,
    messages: Vec<Posted>,
    by_key: HashMap<String, usize>,
    /// Nothing works until then.
    away_until: Timestamp,
    /// Chats that are held up.
    throttled: HashMap<String, Timestamp>,
    /// Chats that do not want us.
    left: Vec<String>,
}

/// Something that somebody did.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) incoming: Incoming,
    pub(super) at: Timestamp,
    /// We were told that it is kept.
    pub(super) is_confirmed: bool,
    /// Calls: when it is told next, and how often it was.
    next_call: Timestamp,
    calls: u32,
    /// It gave up telling it.
    pub(super) is_dropped: bool,
}

/// A message of the gateway, as people see it.
#[derive(Debug, Clone)]
pub(super) struct Posted {
    pub(super) id: MessageId,
    pub(super) key: String,
    pub(super) chat: String,
    pub(super) text: String,
    pub(super) buttons: Vec<Vec<Button>>,
    pub(super) is_deleted: bool,
}

impl SimPlatform {
    pub fn new(
        name: &'static str,
        kind: PlatformKind,
        clock: Arc<SimClock>,
        random: Arc<Random>,
        trace: Arc<Trace>,
    ) -> Self {
        let facts = ChannelFacts {
            platform: name,
            account: format!("{name}-account"),
            length_max: 400,
            caption_length_max: 100,
            file_bytes_max: 1 << 20,
            edit_interval: (random.below(4) > 0).then_some(Duration::from_secs(1)),
            has_buttons: random.below(3) > 0,
            typing: (random.below(2) == 0).then_some(Duration::from_secs(5)),
            has_reactions: random.below(2) == 0,
            knows_keys: random.below(2) == 0,
            silence_max: Duration::from_secs(90),
            joining: Duration::from_secs(1),
            split_length: 390,
            has_private_ids: false,
            hint: "",
        };
        Self {
            facts,
            kind,
            clock,
            random,
            trace,
            state: Mutex::new(State {
                weather: Weather::Stormy,
                updates: Vec::new(),
                messages: Vec::new(),
                by_key: HashMap::new(),
                away_until: Timestamp::from_millis(0),
                throttled: HashMap::new(),
                left: Vec::new(),
            }),
            said: Notify::new(),
        }
    }

    pub fn name(&self) -> &'static str {
        self.facts.platform
    }

    pub fn set_weather(&self, weather: Weather) {
        let mut state = lock(&self.state);
        state.weather = weather;
        if weather == Weather::Calm {
            state.away_until = Timestamp::from_millis(0);
            state.throttled.clear();
            state.left.clear();
        }
    }

    /// Is gone for a while.
    pub(super) fn go_away(&self, length: Duration) {
        let until = self.clock.now().plus(length);
        lock(&self.state).away_until = until;
        self.trace
            .note(|| format!("{} goes away for {length:?}", self.name()));
    }

    pub(super) fn is_away(&self) -> bool {
        self.clock.now() < lock(&self.state).away_until
    }

    /// One in so many, in a storm.
    pub(super) fn strikes(&self, one_in: u64) -> bool {
        lock(&self.state).weather == Weather::Stormy && self.random.below(one_in) == 0
    }

    fn tell(&self, incoming: Incoming) {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        state.updates.push(Told {
            incoming,
            at: now,
            is_confirmed: false,
            next_call: now,
            calls: 0,
            is_dropped: false,
        });
        self.said.notify_waiters();
    }

    /// Somebody writes. Returns the message's number on the platform.
    pub(super) fn say(&self, chat: &Chat, sender: &Sender, text: &str) -> MessageId {
        let id = MessageId::from(format!("u{}", lock(&self.state).updates.len()));
        self.trace
            .note(|| format!("{} {} says {id}: {text}", self.name(), chat.id));
        self.tell(Incoming::Message(message(chat, sender, &id, text)));
        id
    }

    pub(super) fn edit(&self, chat: &Chat, sender: &Sender, id: &MessageId, text: &str) {
        self.trace
            .note(|| format!("{} {} edits {id}: {text}", self.name(), chat.id));
        self.tell(Incoming::Edited(message(chat, sender, id, text)));
    }

    /// Somebody presses a button of the last question in a chat, if there is one.
    pub(super) fn press(&self, chat: &Chat, sender: &Sender, which: u64) {
        let found = {
            let state = lock(&self.state);
            let mut posted = state.messages.iter().rev();
            posted
                .find(|posted| posted.chat == chat.id && !posted.buttons.is_empty())
                .cloned()
        };
        let Some(posted) = found else {
            return;
        };
        let buttons: Vec<&Button> = posted.buttons.iter().flatten().collect();
        let chosen = usize::try_from(which).unwrap_or_default() % buttons.len();
        let press = Press {
            id: format!("press-{}", self.random.next_u64()),
            chat: chat.clone(),
            sender: sender.clone(),
            message: posted.id.clone(),
            data: buttons[chosen].data.clone(),
        };
        self.trace
            .note(|| format!("{} {} presses {}", self.name(), chat.id, press.data));
        self.tell(Incoming::Press(press));
    }

    /// A chat does not want us any more, or again.
    pub(super) fn set_left(&self, chat: &str, is_left: bool) {
        let mut state = lock(&self.state);
        state.left.retain(|left| left != chat);
        if is_left {
            state.left.push(chat.to_owned());
        }
        self.trace
            .note(|| format!("{} {chat} left: {is_left}", self.name()));
    }

    pub(super) fn updates(&self) -> Vec<Told> {
        lock(&self.state).updates.clone()
    }

    pub(super) fn posted(&self) -> Vec<Posted> {
        lock(&self.state).messages.clone()
    }

    pub(super) fn update_id(&self, seq: usize) -> String {
        format!("{}-{seq}", self.name())
    }
}

fn message(chat: &Chat, sender: &Sender, id: &MessageId, text: &str) -> IncomingMessage {
    IncomingMessage {
        chat: chat.clone(),
        sender: sender.clone(),
        id: id.clone(),
        text: text.to_owned(),
        attachments: Vec::new(),
        replies_to: None,
        mentions: Mentions {
            us: true,
            ..Mentions::default()
        },
        album: None,
        forwarded: None,
    }
}
