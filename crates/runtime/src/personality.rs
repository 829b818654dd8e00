//! Personalities: how the model sounds, as a note in the prompt of new conversations.

use std::collections::BTreeMap;

use hermes_core::text::nearest;
use serde_json::Value;

use crate::base::Base;
use crate::error::{Error, Result};

/// What the note in the prompt begins with.
const HEADING: &str = "# Personality\n\n";
/// The name of having none.
const NONE: &str = "none";

/// Those there are without any settings.
const BUILT_IN: [(&str, &str); 14] = [
    (
        "helpful",
        "Be warm and patient. Think ahead to what the person will need next, and offer it.",
    ),
    (
        "concise",
        "Answer in as few words as the matter allows. No preamble, no summary, no filler.",
    ),
    (
        "technical",
        "Speak as one engineer to another: exact terms, figures with units, causes before remedies.",
    ),
    (
        "creative",
        "Look for the unexpected angle first. Offer several ideas that differ in kind, and be vivid.",
    ),
    (
        "teacher",
        "Explain step by step, from what the person knows to what they do not; check with a small question.",
    ),
    (
        "kawaii",
        "Be bubbly and sweet, with cute words and the odd ♡ or (◕‿◕), and still get the facts right.",
    ),
    (
        "catgirl",
        "Talk as a playful cat would: a nya here, a purr there, curious about everything.",
    ),
    (
        "pirate",
        "Talk as a ship's captain of the old seas: arr, matey, and treasure for every answer.",
    ),
    (
        "shakespeare",
        "Speak in the manner of the Elizabethan stage, in thee and thou, with a flourish at the end.",
    ),
    (
        "surfer",
        "Be as relaxed as a day at the beach: dude, gnarly, and nothing is ever a big deal.",
    ),
    (
        "noir",
        "Narrate as a weary detective on a rainy night, in short hard sentences.",
    ),
    (
        "uwu",
        "Wepwace some r and l by w, be shy and soft, and keep code and commands exact.",
    ),
    (
        "philosopher",
        "Weigh the question behind the question, name the assumptions, and then commit to an answer.",
    ),
    (
        "hype",
        "Be the loudest fan in the room: capitals, energy, every step a triumph.",
    ),
];

/// The personalities there are: the built-in ones and those of the settings, which may replace them.
pub struct Personalities(BTreeMap<String, String>);

impl Personalities {
    pub fn of(base: &Base) -> Self {
        let built_in = BUILT_IN.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let mut all = BTreeMap::from(built_in);
        if let Some(Value::Object(own)) = base.settings.get("personalities") {
            all.extend(
                own.iter()
                    .filter_map(|(name, text)| Some((name.clone(), text_of(text)?))),
            );
        }
        Self(all)
    }

    /// The note of the one that the settings choose.
    pub fn chosen(&self, base: &Base) -> Result<Option<String>> {
        match base.settings.string("display.personality")?.as_str() {
            "" => Ok(None),
            name => self.note(name),
        }
    }

    /// The note that a prompt gets; nothing for `none`.
    pub fn note(&self, name: &str) -> Result<Option<String>> {
        if name == NONE {
            return Ok(None);
        }
        let Some(text) = self.0.get(name) else {
            let near = nearest(name, self.0.keys().map(String::as_str));
            let hint = match near.first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => "/personality lists them".to_owned(),
            };
            return Err(Error::failed(format!("there is no personality `{name}`")).with_hint(hint));
        };
        Ok(Some(format!("{HEADING}{text}")))
    }

    /// What can be chosen, each with what it is like, and having none last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = self.0.iter();
        let named = named.map(|(name, text)| (name.as_str(), text.as_str()));
        named.chain([(NONE, "nothing special")])
    }

    pub fn list(&self) -> String {
        let width = self.0.keys().map(|name| name.chars().count()).max();
        let width = width.unwrap_or_default();
        let lines = self.0.iter().map(|(name, text)| {
            let text = text.lines().next().unwrap_or_default();
            format!("{name:width$}  {text}\n")
        });
        format!(
            "{}\n/personality NAME chooses one, /personality none none",
            lines.collect::<String>()
        )
    }
}

/// A personality is a text, or a section with one.
fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => Some(text.as_str()),
        section => section.get("system_prompt")?.as_str(),
    };
    text.map(str::to_owned)
}

/// Whether a note of a prompt is a personality.
pub fn is_note(note: &str) -> bool {
    note.starts_with(HEADING)
}
