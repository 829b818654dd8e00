//! What is said in groups and not to us: where settings want it heard (`observe_unmentioned_group_messages`), the next words
//! that are for us bring it along.
//!
//! It is context and no conversation, so it is in memory, little, and gone with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Address, EarlierMessage, IncomingMessage, MessageId, text};

/// Of one group: what a question is about was said not long before it.
const MESSAGES_MAX: usize = 30;
/// Of one message: the beginning says what it is about.
const CHARS_MAX: usize = 1_000;
/// Groups that are heard at a time. In one more, the others are forgotten.
const GROUPS_MAX: usize = 256;

#[derive(Default)]
pub(super) struct Observed(Mutex<HashMap<Address, VecDeque<Heard>>>);

struct Heard {
    id: MessageId,
    said: EarlierMessage,
}

impl Observed {
    /// Keeps a message that is not for us; one that is known by its number is replaced.
    pub(super) fn hear(&self, to: Address, message: &IncomingMessage) {
        let words = message.words();
        if words.is_empty() {
            return;
        }
        let sender = &message.sender;
        let name = sender.name.as_ref().or(sender.username.as_ref());
        let said = EarlierMessage {
            name: name.map_or_else(|| "somebody".to_owned(), Clone::clone),
            text: text::shorten(&words, CHARS_MAX),
        };
        let mut groups = self.groups();
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&to) {
            groups.clear();
        }
        let heard = groups.entry(to).or_default();
        match heard.iter_mut().find(|heard| heard.id == message.id) {
            Some(known) => known.said = said,
            None => heard.push_back(Heard {
                id: message.id.clone(),
                said,
            }),
        }
        if heard.len() > MESSAGES_MAX {
            heard.pop_front();
        }
    }

    /// What was said there since it was last taken, oldest first.
    pub(super) fn take(&self, to: &Address) -> Vec<EarlierMessage> {
        let heard = self.groups().remove(to).unwrap_or_default();
        heard.into_iter().map(|heard| heard.said).collect()
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<Address, VecDeque<Heard>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Chat, ChatKind, Mentions, Sender};

    use super::*;

    fn message(id: &str, text: &str) -> IncomingMessage {
        IncomingMessage {
            chat: Chat {
                kind: ChatKind::Group,
                ..Chat::direct("-1")
            },
            sender: Sender {
                id: "7".into(),
                name: Some("Ann".into()),
                ..Sender::default()
            },
            id: id.into(),
            text: text.into(),
            attachments: Vec::new(),
            replies_to: None,
            mentions: Mentions::default(),
            album: None,
            forwarded: None,
        }
    }

    #[test]
    fn what_was_said_is_brought_along_once_and_in_order() {
        let observed = Observed::default();
        let there = Address::parse("fake:-1").expect("an address");
        for (id, text) in [("1", "tea?"), ("2", " "), ("3", "yes"), ("1", "coffee?")] {
            observed.hear(there.clone(), &message(id, text));
        }
        let elsewhere = Address::parse("fake:-2").expect("an address");
        assert_eq!(observed.take(&elsewhere), []);
        let said = |taken: Vec<EarlierMessage>| -> Vec<String> {
            taken.into_iter().map(|one| one.text).collect()
        };
        assert_eq!(said(observed.take(&there)), ["coffee?", "yes"]);
        assert_eq!(observed.take(&there), []);
    }

    #[test]
    fn groups_that_talk_without_end_cost_little() {
        let observed = Observed::default();
        for group in 0..2 * GROUPS_MAX {
            let there = Address::parse(&format!("fake:-{group}")).expect("an address");
            for id in 0..2 * MESSAGES_MAX {
                observed.hear(there.clone(), &message(&id.to_string(), &"x".repeat(5_000)));
            }
            let kept = &observed.groups()[&there];
            assert_eq!(kept.len(), MESSAGES_MAX);
            assert!(
                kept.iter()
                    .all(|heard| heard.said.text.chars().count() <= CHARS_MAX)
            );
        }
        assert!(observed.groups().len() <= GROUPS_MAX);
    }
}
