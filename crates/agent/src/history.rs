//! The conversation in memory, in the form it is sent.

use std::sync::Arc;

use hermes_core::{CallId, Message, Prefix, Role, ToolCall, ToolResult, history};

use crate::delegation::CallPlace;

pub(crate) struct History {
    pub(crate) prefix: Prefix,
    /// Shared with who opened the session, until they have seen it: a long one is not copied.
    messages: Arc<Vec<Message>>,
}

impl History {
    pub(crate) fn new(prefix: Prefix, messages: Vec<Message>) -> Self {
        Self {
            prefix,
            messages: Arc::new(messages),
        }
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
        self.messages_mut().push(message);
    }

    /// Finds where the last turns begin: as many as there are, up to so many. `None` when there is none.
    pub(crate) fn before_last(&self, turns: u32) -> Option<(u32, usize)> {
        let said = self.messages.iter().enumerate().rev();
        let begins = said.filter(|(_, message)| message.role == Role::User);
        let counted = (1..).zip(begins.map(|(at, _)| at));
        counted.take(turns as usize).last()
    }

    /// Drops everything from a message on, and returns that message.
    pub(crate) fn cut(&mut self, at: usize) -> Message {
        let message = self.messages[at].clone();
        self.messages_mut().truncate(at);
        message
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
        let mut replies = self
            .messages
            .iter()
            .filter(|message| message.role == Role::Assistant);
        let reply = replies.clone().count();
        let mut calls = replies.next_back().into_iter().flat_map(Message::calls);
        let position = calls.position(|other| other.id == *call);
        CallPlace {
            reply,
            call: position.map_or(0, |position| position + 1),
        }
    }

    /// Returns whether the conversation ends with something the assistant said.
    pub(crate) fn is_closed(&self) -> bool {
        self.messages.last().is_some_and(|message| {
            message.role == Role::Assistant && message.calls().next().is_none()
        })
    }

    /// The text of a tool's last successful result.
    pub(crate) fn previous_result(&self, tool: &str) -> Option<String> {
        let results = self.messages.iter().rev().filter_map(Message::tool_result);
        let mut of_tool = results
            .filter(|result| result.tool == tool && result.status == hermes_core::ResultStatus::Ok);
        of_tool.next().map(|result| result.text.clone())
    }
}
