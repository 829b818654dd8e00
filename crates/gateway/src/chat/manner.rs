//! How Hermes behaves on a platform and in single chats of it, as settings say: whom replies point at, whether it is seen
//! typing, and what a chat has of its own (words in the prompt, a model, skills).

use std::collections::BTreeMap;

use hermes_core::{Chat, PlatformSettings, SessionOptions};
use serde_json::{Map, Value};

use super::work::ShowsCalls;

/// Of what a chat's settings add to the prompt: it is part of every request.
const PROMPT_CHARS_MAX: usize = 8_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Manner {
    pub reply_to: ReplyTo,
    pub shows_typing: bool,
    /// Replies are shown while they are written, where the settings want that at all.
    pub shows_previews: bool,
    /// What people see of the calls of a turn.
    pub shows_calls: ShowsCalls,
    /// By the id of a chat, of a thread, or of the chat a thread belongs to.
    chats: BTreeMap<String, ChatManner>,
}

/// Which messages of ours point at what they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplyTo {
    /// The first of an answer, where several talk.
    #[default]
    InGroups,
    Never,
    First,
    All,
}

/// What one chat has of its own.
#[derive(Debug, Clone, Default, PartialEq)]
struct ChatManner {
    prompts: Vec<String>,
    model: Option<String>,
    provider: Option<String>,
    skills: Vec<String>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            reply_to: ReplyTo::default(),
            shows_typing: true,
            shows_previews: true,
            shows_calls: ShowsCalls::default(),
            chats: BTreeMap::new(),
        }
    }
}

impl Manner {
    /// Reads what a platform's settings say, under the names that all platforms share, and whether calls are shown there where
    /// nothing is said.
    pub fn read(settings: &PlatformSettings, shows_calls: bool) -> Self {
        Self {
            reply_to: match settings.text("reply_to_mode").as_deref() {
                Some("off" | "false") => ReplyTo::Never,
                Some("first") => ReplyTo::First,
                Some("all") => ReplyTo::All,
                _ => ReplyTo::InGroups,
            },
            shows_typing: settings.switch("typing_indicator", true),
            shows_previews: settings.switch("streaming", true),
            shows_calls: calls(settings, shows_calls),
            chats: chats(settings),
        }
    }

    /// Puts what a chat has of its own into the options of its conversations. The thread says more than the chat it is in.
    pub(super) fn apply(&self, chat: &Chat, options: &mut SessionOptions) {
        let thread = chat.thread.as_ref();
        let ids = chat.parent.iter().cloned();
        let ids = ids.chain(chat.ids().map(str::to_owned));
        let whole = |id: &str| thread.map(|thread| format!("{id}:{}", thread.id));
        let names = ids.chain(chat.ids().filter_map(whole));
        let own = names.filter_map(|id| self.chats.get(&id));
        for own in own {
            options.notes.extend(own.prompts.iter().cloned());
            options.skills.extend(own.skills.iter().cloned());
            if own.model.is_some() {
                options.model.clone_from(&own.model);
                options.provider.clone_from(&own.provider);
            }
        }
    }
}

fn calls(settings: &PlatformSettings, usual: bool) -> ShowsCalls {
    let said = settings.text("tool_progress");
    let said = said.unwrap_or_else(|| usual.to_string());
    ShowsCalls::named(&said).unwrap_or_else(|| {
        tracing::warn!(
            said,
            "`tool_progress` must be off, new, all or verbose: calls are not shown"
        );
        ShowsCalls::Nothing
    })
}

fn chats(settings: &PlatformSettings) -> BTreeMap<String, ChatManner> {
    let mut chats: BTreeMap<String, ChatManner> = BTreeMap::new();
    for (id, prompt) in object(settings, "channel_prompts") {
        chats.entry(id).or_default().prompts.extend(words(&prompt));
    }
    for (id, said) in object(settings, "channel_overrides") {
        let chat = chats.entry(id).or_default();
        chat.model = said.get("model").and_then(words);
        chat.provider = said.get("provider").and_then(words);
        let prompt = said.get("system_prompt").and_then(words);
        chat.prompts.extend(prompt);
    }
    let bindings = settings.value("channel_skill_bindings");
    for binding in bindings.and_then(Value::as_array).into_iter().flatten() {
        let Some(id) = binding.get("id").and_then(words) else {
            continue;
        };
        let several = binding.get("skills").and_then(Value::as_array);
        let one = binding.get("skill").into_iter();
        let skills = several.into_iter().flatten().chain(one).filter_map(words);
        chats.entry(id).or_default().skills.extend(skills);
    }
    chats
}

fn object(settings: &PlatformSettings, key: &str) -> Map<String, Value> {
    let value = settings.value(key).and_then(Value::as_object);
    value.cloned().unwrap_or_default()
}

/// A text that says something; ids may be numbers.
fn words(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let text = hermes_core::text::shorten(&text, PROMPT_CHARS_MAX);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use hermes_core::{ChatKind, Thread};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_chat_has_words_a_model_and_skills_of_its_own() {
        let settings = PlatformSettings::default()
            .with(
                "channel_prompts",
                json!({"-1": "Be brief.", "-2": "Rhyme."}),
            )
            .with(
                "channel_overrides",
                json!({"-1:7": {"model": "small", "provider": "local", "system_prompt": "Topic."}}),
            )
            .with(
                "channel_skill_bindings",
                json!([{"id": -1, "skills": ["notes", "mail"]}, {"id": "-2", "skill": "poems"}]),
            );
        let chat = Chat {
            kind: ChatKind::Group,
            thread: Some(Thread {
                id: "7".into(),
                title: None,
            }),
            ..Chat::direct("-1")
        };
        let mut options = SessionOptions::default();
        Manner::read(&settings, false).apply(&chat, &mut options);
        assert_eq!(options.notes, ["Be brief.", "Topic."]);
        assert_eq!(options.skills, ["notes", "mail"]);
        assert_eq!(options.model.as_deref(), Some("small"));
        assert_eq!(options.provider.as_deref(), Some("local"));
    }

    #[test]
    fn nothing_is_said_by_settings_that_say_nothing() {
        let odd = PlatformSettings::default()
            .with("channel_prompts", "x")
            .with("channel_overrides", json!([1]))
            .with("channel_skill_bindings", json!({"id": 1}));
        assert_eq!(Manner::read(&odd, false), Manner::default());
    }
}
