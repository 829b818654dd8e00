//! The conversation in memory, in the form it is sent.

use std::sync::Arc;

use hermes_core::{
    CallId, LoadedSession, Message, ModelName, Origin, Prefix, Role, Shortened, ToolCall,
    ToolResult, ToolStates, Usage, history,
};
use serde_json::Value;

use crate::compaction::{self, gauge::Gauge};
use crate::delegation::CallPlace;

pub(crate) struct History {
    pub(crate) prefix: Prefix,
    /// Shared with who opened the session, until they have seen it: a long one is not copied.
    messages: Arc<Vec<Message>>,
    /// What tools keep.
    states: ToolStates,
    /// Replies of the turn that runs, also those that a compaction took out of sight.
    replies: usize,
    /// How much of the window it fills.
    pub(crate) gauge: Gauge,
    /// What it was told of tools may be out of sight.
    pub(crate) has_forgotten: bool,
}

impl History {
    /// A conversation in which nothing was said yet.
    pub(crate) fn new(prefix: Prefix) -> Self {
        Self {
            prefix,
            messages: Arc::default(),
            states: ToolStates::new(),
            replies: 0,
            gauge: Gauge::default(),
            has_forgotten: false,
        }
    }

    /// A conversation as the store has it.
    pub(crate) fn loaded(loaded: LoadedSession) -> Self {
        let open_turn = loaded.open_turn.as_ref();
        Self {
            prefix: loaded.prefix,
            messages: Arc::new(loaded.messages),
            states: loaded.tool_states,
            replies: open_turn.map_or(0, |turn| turn.replies as usize),
            gauge: Gauge::default(),
            has_forgotten: false,
        }
    }

    /// Says this before everything else, where nothing was asked yet.
    pub(crate) fn begin_with(&mut self, prefix: Prefix) {
        self.prefix = prefix;
        self.gauge.reset();
    }

    /// Begins a turn with what was said.
    pub(crate) fn begin_turn(&mut self, message: Message) {
        self.replies = 0;
        self.push(message);
    }

    /// The messages as they are now; they stay so, whatever is said afterwards.
    pub(crate) fn share(&self) -> Arc<Vec<Message>> {
        Arc::clone(&self.messages)
    }

    fn messages_mut(&mut self) -> &mut Vec<Message> {
        Arc::make_mut(&mut self.messages)
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.replies += usize::from(message.role == Role::Assistant);
        self.messages_mut().push(message);
    }

    /// What the next request takes of the window, in tokens.
    pub(crate) fn tokens(&mut self, model: &ModelName) -> u64 {
        self.gauge.tokens(&self.prefix, &self.messages, model)
    }

    /// Takes in what a provider counted for the last request and its answer.
    pub(crate) fn measure(&mut self, usage: &Usage, window: Option<u64>) {
        let window = self.gauge.window(window);
        self.gauge.measure(usage, &self.messages, window);
    }

    /// Where what was said begins, behind a summary if there is one.
    pub(crate) fn after_summary(&self) -> usize {
        let first = self.messages.first();
        usize::from(first.is_some_and(|first| first.origin == Some(Origin::Summary)))
    }

    /// Goes on with a summary and what comes from a message on, some of it shortened, in a new prefix if there is one.
    pub(crate) fn compact(
        &mut self,
        summary: Option<Message>,
        cut: usize,
        shortened: Vec<Shortened>,
        prefix: Option<Prefix>,
    ) {
        if let Some(prefix) = prefix {
            self.prefix = prefix;
        }
        self.messages = Arc::new(compaction::seen(&self.messages, summary, cut, shortened));
        self.gauge.reset();
        self.has_forgotten = true;
    }

    /// Adds the results of one reply, putting them into the order of its calls.
    pub(crate) fn push_results(&mut self, results: impl IntoIterator<Item = ToolResult>) {
        let messages = self.messages_mut();
        messages.extend(results.into_iter().map(Message::result));
        let reply = messages
            .iter()
            .rposition(|message| message.role != Role::Tool)
            .unwrap_or(0);
        let tail = messages.split_off(reply);
        messages.extend(history::in_call_order(tail));
    }

    /// Returns whether it is the model's turn to speak: the last word is the user's, or all calls have results.
    pub(crate) fn awaits_reply(&self) -> bool {
        match self.messages.last() {
            Some(message) if message.role == Role::Assistant => false,
            _ => self.unanswered_calls().is_empty(),
        }
    }

    pub(crate) fn unanswered_calls(&self) -> Vec<ToolCall> {
        let ids = history::unanswered(&self.messages);
        let Some(reply) = self
            .messages
            .iter()
            .rfind(|message| message.role != Role::Tool)
        else {
            return Vec::new();
        };
        reply
            .calls()
            .filter(|call| ids.contains(&call.id))
            .cloned()
            .collect()
    }

    /// Where a call of the last reply stands: the same before and after a crash.
    pub(crate) fn place_of(&self, call: &CallId) -> CallPlace {
        let mut replies = self.messages.iter().rev();
        let last = replies.find(|message| message.role == Role::Assistant);
        let mut calls = last.into_iter().flat_map(Message::calls);
        let position = calls.position(|other| other.id == *call);
        CallPlace {
            reply: self.replies,
            call: position.map_or(0, |position| position + 1),
        }
    }

    /// Returns whether the conversation ends with something the assistant said.
    pub(crate) fn is_closed(&self) -> bool {
        self.messages.last().is_some_and(|message| {
            message.role == Role::Assistant && message.calls().next().is_none()
        })
    }

    /// What a tool last kept.
    pub(crate) fn state_of(&self, tool: &str) -> Option<Value> {
        self.states.get(tool).cloned()
    }

    pub(crate) fn states(&self) -> &ToolStates {
        &self.states
    }

    /// Keeps something for a tool; the store has it already, or gets it with the next commit.
    pub(crate) fn keep(&mut self, tool: String, state: Value) {
        self.states.insert(tool, state);
    }
}
