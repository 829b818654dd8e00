//! Session keys: which conversation a message belongs to. The format is that of Hermes Agent.

use hermes_core::{Chat, ChatKind, Sender};

/// What of the settings decides which conversation a message belongs to.
#[derive(Debug, Clone)]
pub struct KeyRules {
    /// `main`, or the profile's name.
    pub profile: String,
    /// In a group everybody has a conversation of their own.
    pub per_user_in_groups: bool,
    /// In a thread, too.
    pub per_user_in_threads: bool,
    /// Private chats of one person on several platforms are one conversation.
    pub joins_private_chats: bool,
}

impl Default for KeyRules {
    fn default() -> Self {
        Self {
            profile: "main".into(),
            per_user_in_groups: true,
            per_user_in_threads: false,
            joins_private_chats: false,
        }
    }
}

impl KeyRules {
    /// `agent:main:telegram:dm:42`, `agent:main:telegram:group:-100:7:42`.
    pub fn key(&self, platform: &str, chat: &Chat, sender: &Sender) -> String {
        let mut parts = vec!["agent", &self.profile, platform, chat.kind.name()];
        let person = sender.other_id.as_deref().unwrap_or(&sender.id);
        let thread = chat.thread.as_ref().map(|thread| thread.id.as_str());
        if chat.kind == ChatKind::Dm {
            parts.push(if chat.id.is_empty() { person } else { &chat.id });
            parts.extend(thread);
        } else {
            parts.push(chat.first_id());
            parts.extend(thread);
            if !self.is_shared(chat) {
                parts.push(person);
            }
        }
        parts.retain(|part| !part.is_empty());
        parts.join(":")
    }

    /// The one conversation of somebody with several accounts: `agent:main:person:telegram:42`.
    pub fn joined_key(&self, person: &str) -> String {
        format!("agent:{}:person:{person}", self.profile)
    }

    /// Several people talk in one conversation.
    pub fn is_shared(&self, chat: &Chat) -> bool {
        let is_thread = chat.thread.is_some() || chat.kind == ChatKind::Thread;
        let is_own = self.per_user_in_groups && (!is_thread || self.per_user_in_threads);
        chat.kind != ChatKind::Dm && !is_own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::Thread;

    fn chat(kind: ChatKind, id: &str, thread: Option<&str>) -> Chat {
        Chat {
            kind,
            thread: thread.map(|id| Thread {
                id: id.into(),
                title: None,
            }),
            ..Chat::direct(id)
        }
    }

    fn ann() -> Sender {
        Sender {
            id: "42".into(),
            ..Sender::default()
        }
    }

    #[test]
    fn keys_are_those_of_hermes_agent() {
        let rules = KeyRules::default();
        for (kind, id, thread, key) in [
            (ChatKind::Dm, "42", None, "agent:main:fake:dm:42"),
            (ChatKind::Dm, "42", Some("9"), "agent:main:fake:dm:42:9"),
            (ChatKind::Dm, "", None, "agent:main:fake:dm:42"),
            (ChatKind::Group, "-1", None, "agent:main:fake:group:-1:42"),
            (
                ChatKind::Forum,
                "-1",
                Some("9"),
                "agent:main:fake:forum:-1:9",
            ),
            (ChatKind::Channel, "c", None, "agent:main:fake:channel:c:42"),
        ] {
            assert_eq!(rules.key("fake", &chat(kind, id, thread), &ann()), key);
        }
    }

    #[test]
    fn who_shares_a_conversation_is_a_setting() {
        let together = KeyRules {
            per_user_in_groups: false,
            ..KeyRules::default()
        };
        let group = chat(ChatKind::Group, "-1", None);
        assert_eq!(
            together.key("fake", &group, &ann()),
            "agent:main:fake:group:-1"
        );
        assert!(together.is_shared(&group));
        let apart = KeyRules {
            per_user_in_threads: true,
            ..KeyRules::default()
        };
        let thread = chat(ChatKind::Group, "-1", Some("9"));
        assert!(KeyRules::default().is_shared(&thread));
        assert_eq!(
            apart.key("fake", &thread, &ann()),
            "agent:main:fake:group:-1:9:42"
        );
    }

    #[test]
    fn a_chat_that_moved_keeps_its_conversation() {
        let moved = Chat {
            former: Some("-1".into()),
            ..chat(ChatKind::Group, "-100", None)
        };
        let key = KeyRules::default().key("fake", &moved, &ann());
        assert_eq!(key, "agent:main:fake:group:-1:42");
    }

    #[test]
    fn another_id_of_the_same_person_goes_first() {
        let sender = Sender {
            other_id: Some("uuid".into()),
            ..ann()
        };
        let group = chat(ChatKind::Group, "-1", None);
        let key = KeyRules::default().key("fake", &group, &sender);
        assert_eq!(key, "agent:main:fake:group:-1:uuid");
    }
}
