//! What hooks are told of a lane, and what they say to commands.

use hermes_core::{Address, Chat, ChatKind, InboxEntry, Incoming, Sender};
use serde_json::{Value, json};

use super::Lane;
use crate::hooks::{HookEvent, HookVerdict};

impl Lane {
    /// Tells hooks of something in this chat. Nobody waits for them.
    pub(super) fn tell_hooks(&self, name: &str, more: &[(&str, Value)]) {
        let Some(hooks) = self.lanes.hooks.get() else {
            return;
        };
        let context = match &self.turn {
            Some(turn) => {
                let place = Some((&turn.reply.place().to, &turn.chat));
                self.hook_context(place, turn.asked_by.as_ref(), more)
            }
            None => self.hook_context(self.hook_place(), None, more),
        };
        hooks.tell(HookEvent::new(name, context));
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
        let sender = Some(entry.incoming.sender());
        let context = self.hook_context(self.hook_place(), sender, &more);
        let event = HookEvent::new(format!("command:{command}"), context);
        hooks.ask(event).await
    }

    /// Where somebody wrote last.
    fn hook_place(&self) -> Option<(&Address, &Chat)> {
        let chat = self.chat.as_ref();
        chat.map(|chat| (&chat.address, &chat.chat))
    }

    fn hook_context(
        &self,
        place: Option<(&Address, &Chat)>,
        sender: Option<&Sender>,
        more: &[(&str, Value)],
    ) -> Value {
        let chat = self.chat.as_ref();
        let (address, kind) = match place {
            Some((address, chat)) => (Some(address), chat.kind),
            None => (None, ChatKind::Dm),
        };
        let mut context = json!({
            "platform": address.map(|address| address.platform.as_str()),
            "chat_id": address.map(|address| address.chat.as_str()),
            "thread_id": address.and_then(|address| address.thread.as_deref()),
            "chat_type": kind.name(),
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
