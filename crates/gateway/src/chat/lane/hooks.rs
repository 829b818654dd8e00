//! What hooks are told of a lane, and what they say to commands.

use hermes_core::{ChatKind, InboxEntry, Incoming, Sender};
use serde_json::{Value, json};

use super::Lane;
use crate::hooks::{HookEvent, HookVerdict};

impl Lane {
    /// Tells hooks of something in this chat. Nobody waits for them.
    pub(super) fn tell_hooks(&self, name: &str, more: &[(&str, Value)]) {
        if let Some(hooks) = self.lanes.hooks.get() {
            let sender = self.turn.as_ref().and_then(|turn| turn.asked_by.as_ref());
            hooks.tell(HookEvent::new(name, self.hook_context(sender, more)));
        }
    }

    /// Asks hooks about a command.
    pub(super) async fn ask_hooks(
        &self,
        entry: &InboxEntry,
        command: &str,
        arguments: &str,
    ) -> HookVerdict {
        let Some(hooks) = self.lanes.hooks.get() else {
            return HookVerdict::Allow;
        };
        let message = match &entry.incoming {
            Incoming::Message(message) | Incoming::Edited(message) => message.text.as_str(),
            Incoming::Press(_) => "",
        };
        let more = [
            ("command", json!(command)),
            ("args", json!(arguments)),
            ("message", json!(message)),
        ];
        let context = self.hook_context(Some(entry.incoming.sender()), &more);
        let event = HookEvent::new(format!("command:{command}"), context);
        hooks.ask(event).await
    }

    fn hook_context(&self, sender: Option<&Sender>, more: &[(&str, Value)]) -> Value {
        let chat = self.chat.as_ref();
        let mut context = json!({
            "platform": chat.map(|chat| chat.address.platform.as_str()),
            "chat_id": chat.map(|chat| chat.address.chat.as_str()),
            "thread_id": chat.and_then(|chat| chat.address.thread.as_deref()),
            "chat_type": chat.map_or(ChatKind::Dm, |chat| chat.chat.kind).name(),
            "user_id": sender.map(|sender| sender.id.as_str()),
            "user_name": sender.and_then(|sender| sender.name.as_deref()),
            "session_key": self.key,
            "session_id": chat.and_then(|chat| chat.session.as_ref()).map(ToString::to_string),
            "turn_id": self.turn.as_ref().map(|turn| turn.id.to_string()),
        });
        for (key, value) in more {
            context[*key] = value.clone();
        }
        context
    }
}
