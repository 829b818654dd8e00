//! Reads conversations as clients send them.

use hermes_core::{Message, Origin, Part, Role, UserMessage};
use serde_json::Value;

use super::content;
use super::error::{ApiError, ApiResult};

/// More were never said in one conversation.
const MESSAGES_MAX: usize = 10_000;

/// Reads a list of messages; `place` is its name in the request.
pub(crate) fn messages(list: &[Value], place: &str) -> ApiResult<Said> {
    if list.len() > MESSAGES_MAX {
        let message = format!("`{place}` may have {MESSAGES_MAX} messages");
        return Err(ApiError::invalid(message).param(place));
    }
    let mut said = Said::default();
    for (at, message) in list.iter().enumerate() {
        said.add(message, &format!("{place}[{at}]"))?;
    }
    Ok(said)
}

/// Messages in the order in which they were said, two of one speaker joined.
#[derive(Default)]
pub(crate) struct Said {
    system: Vec<String>,
    pub(crate) messages: Vec<Message>,
}

impl Said {
    fn add(&mut self, message: &Value, place: &str) -> ApiResult<()> {
        let Some(role) = message["role"].as_str() else {
            return Err(ApiError::invalid(format!("`{place}` has no `role`")).param(place));
        };
        let role = match role {
            "system" | "developer" => {
                let parts = content::parts(&message["content"], &format!("{place}.content"))?;
                let text = Message::from(UserMessage::of(parts)).text();
                self.system
                    .extend((!text.trim().is_empty()).then_some(text));
                return Ok(());
            }
            "user" => Role::User,
            "assistant" => Role::Assistant,
            // Calls and their results are ours to make.
            _ => return Ok(()),
        };
        let mut parts = content::parts(&message["content"], &format!("{place}.content"))?;
        parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
        if parts.is_empty() {
            return match role {
                Role::User => {
                    Err(ApiError::invalid(format!("`{place}.content` is empty")).param(place))
                }
                // It only called tools.
                _ => Ok(()),
            };
        }
        self.push(role, parts);
        Ok(())
    }

    fn push(&mut self, role: Role, parts: Vec<Part>) {
        if let Some(last) = self.messages.last_mut().filter(|last| last.role == role) {
            last.parts.push(Part::text("\n\n"));
            last.parts.extend(parts);
            return;
        }
        if self.messages.is_empty() && role == Role::Assistant {
            self.messages.push(Message {
                role: Role::User,
                origin: Some(Origin::Notice),
                parts: vec![Part::text(
                    "[The conversation begins with what you said first.]",
                )],
            });
        }
        let origin = (role == Role::User).then(Origin::person);
        self.messages.push(Message {
            role,
            origin,
            parts,
        });
    }

    /// What the system prompt is to say besides.
    pub(crate) fn system(&self) -> Option<String> {
        (!self.system.is_empty()).then(|| self.system.join("\n\n"))
    }

    /// Takes off the last message, if it is the user's.
    pub(crate) fn take_last(&mut self) -> Option<UserMessage> {
        let is_users = self.messages.last()?.role == Role::User;
        let last = self.messages.pop().filter(|_| is_users)?;
        Some(UserMessage::of(last.parts))
    }
}
