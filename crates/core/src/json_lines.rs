//! Events as lines of JSON, for programs. Keys are hidden in it as in what models are shown: such lines are logged,
//! piped on and kept.
//!
//! An answer comes in pieces, and a key may be cut anywhere. So the last word of what came is held back until the next
//! piece, and a private key until its end; nothing else waits.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::follow::{Followed, NumberedEvent};
use crate::hidden_keys::{BODY_BYTES_MAX, HiddenKeys, open_private_key};
use crate::id::SessionId;
use crate::session::Event;

/// A longer word is no key.
const WORD_BYTES_MAX: usize = 4096;

#[derive(Debug, Default)]
pub struct JsonLines {
    /// `None` when the settings want keys to be shown.
    keys: Option<Arc<HiddenKeys>>,
    held: Held,
}

/// What of a text is not shown yet.
#[derive(Debug, Default)]
struct Held {
    text: String,
    is_reasoning: bool,
    /// Of the last event that is in it.
    number: u64,
}

impl Held {
    fn event(&self, text: String) -> Followed {
        let event = if self.is_reasoning {
            Event::Reasoning { text }
        } else {
            Event::Text { text }
        };
        let number = self.number;
        Followed::Event(NumberedEvent { number, event })
    }
}

impl JsonLines {
    /// Hides these keys: those that are hidden from models.
    pub fn hiding(keys: Option<Arc<HiddenKeys>>) -> Self {
        Self {
            keys,
            held: Held::default(),
        }
    }

    /// Says which session it is, before anything else.
    pub fn beginning(session: &SessionId) -> String {
        json!({"event": "session", "session": session}).to_string()
    }

    /// Returns what an event is shown as: its line, after that of what was held back.
    pub fn lines(&mut self, followed: &Followed) -> serde_json::Result<Vec<String>> {
        let Some(keys) = self.keys.clone() else {
            return Ok(vec![line(followed, &|text| text)?]);
        };
        let hide = |text: String| keys.hide(text);
        let (number, text, is_reasoning) = match followed {
            Followed::Event(NumberedEvent {
                number,
                event: Event::Text { text },
            }) => (*number, text, false),
            Followed::Event(NumberedEvent {
                number,
                event: Event::Reasoning { text },
            }) => (*number, text, true),
            followed => {
                let mut lines = self.flush(&hide)?;
                lines.push(line(followed, &hide)?);
                return Ok(lines);
            }
        };
        let mut lines = if self.held.is_reasoning == is_reasoning {
            Vec::new()
        } else {
            self.flush(&hide)?
        };
        self.held.is_reasoning = is_reasoning;
        self.held.number = number;
        self.held.text.push_str(text);
        let safe = safe_bytes(&self.held.text);
        if safe > 0 {
            let shown = self.held.text.drain(..safe).collect();
            lines.push(line(&self.held.event(shown), &hide)?);
        }
        Ok(lines)
    }

    fn flush(&mut self, hide: &dyn Fn(String) -> String) -> serde_json::Result<Vec<String>> {
        match std::mem::take(&mut self.held.text) {
            text if text.is_empty() => Ok(Vec::new()),
            text => Ok(vec![line(&self.held.event(text), hide)?]),
        }
    }
}

/// Returns how much of a text can be shown, because no key goes on behind it.
fn safe_bytes(text: &str) -> usize {
    if let Some(begin) = open_private_key(text)
        && text.len() - begin <= BODY_BYTES_MAX
    {
        return begin;
    }
    let after_space = text.rfind(char::is_whitespace).map_or(0, |at| {
        let space = text[at..].chars().next();
        at + space.map_or(0, char::len_utf8)
    });
    if text.len() - after_space > WORD_BYTES_MAX {
        text.len()
    } else {
        after_space
    }
}

/// Writes an event as one line of JSON, on which no reader of lines and no terminal can disagree.
fn line(followed: &Followed, hide: &dyn Fn(String) -> String) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(followed)?;
    hide_in(&mut value, hide);
    Ok(escaped(&value.to_string()))
}

fn hide_in(value: &mut Value, hide: &dyn Fn(String) -> String) {
    match value {
        Value::String(text) => *text = hide(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, hide)),
        Value::Object(fields) => fields.values_mut().for_each(|field| hide_in(field, hide)),
        _ => {}
    }
}

/// Escapes what JSON allows inside a string, but what ends a line for some readers or steers a terminal.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{2028}' | '\u{2029}' | '\u{061c}' | '\u{200e}' | '\u{200f}' => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => {
                safe.push(c);
                continue;
            }
        }
        // All of these fit into one unit. Writing to a string cannot fail.
        let _ = write!(safe, "\\u{:04x}", u32::from(c));
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hidden_keys::LABEL;
    use crate::secret::Secret;

    const OWN: &str = "weirdshape+9f/and=more";

    fn lines_of(events: &[Event]) -> Vec<Value> {
        let mut lines = JsonLines {
            keys: Some(Arc::new(HiddenKeys::own([Secret::new(OWN)]))),
            held: Held::default(),
        };
        let numbered = (1..).zip(events).map(|(number, event)| {
            let event = event.clone();
            Followed::Event(NumberedEvent { number, event })
        });
        let written = numbered.flat_map(|event| lines.lines(&event).unwrap());
        let parsed = written.map(|line| serde_json::from_str(&line).unwrap());
        parsed.collect()
    }

    /// Returns the text that a program puts together, when it comes in pieces of so many characters.
    fn text_of(text: &str, chars: usize) -> String {
        let chars: Vec<String> = text
            .chars()
            .collect::<Vec<_>>()
            .chunks(chars)
            .map(|piece| piece.iter().collect())
            .collect();
        let mut events: Vec<Event> = chars.into_iter().map(|text| Event::Text { text }).collect();
        events.push(Event::TextDiscarded);
        let lines = lines_of(&events);
        let texts = lines.iter().filter_map(|line| line["text"].as_str());
        texts.collect()
    }

    #[test]
    fn keys_are_hidden_wherever_the_text_is_cut() {
        let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAA\n".repeat(20);
        let text = format!(
            "look: {OWN}, and\n-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\nsk-ant-abcdefghijklmnop end"
        );
        for chars in [1, 2, 3, 7, 11, 40, 200, 10_000] {
            let shown = text_of(&text, chars);
            let expected = format!(
                "look: {LABEL}, and\n-----BEGIN OPENSSH PRIVATE KEY-----\n{LABEL}\n-----END OPENSSH PRIVATE KEY-----\n{LABEL} end"
            );
            assert_eq!(shown, expected, "{chars}");
        }
    }

    #[test]
    fn other_text_arrives_whole_and_in_time() {
        let text = "words —\u{2028} and -----BEGIN prose that is no key\n\n  code()\t";
        for chars in [1, 4, 100] {
            assert_eq!(text_of(text, chars), text, "{chars}");
        }
        let text = "x".repeat(3 * WORD_BYTES_MAX);
        assert_eq!(text_of(&text, 100), text);
        let piece = Event::Text {
            text: "one two".into(),
        };
        assert_eq!(
            lines_of(&[piece]),
            [json!({"number": 1, "event": "text", "text": "one "})]
        );
    }

    #[test]
    fn keys_are_hidden_in_every_part_of_an_event() {
        let call = Event::CallStarted {
            call: "c".into(),
            tool: "write_file".into(),
            arguments: json!({"files": [{"content": format!("KEY={OWN}")}]}),
        };
        let lines = lines_of(&[call]);
        let content = &lines[0]["arguments"]["files"][0]["content"];
        assert_eq!(content, &json!(format!("KEY={LABEL}")));
    }

    #[test]
    fn a_line_is_a_line_for_every_reader() {
        let text = "a\u{85}b\u{2028}c\u{2029}d\u{9b}e\u{7f}f\r\n\u{0}g\u{202e}h\u{1b}[2J\u{fffd}";
        let event = Event::Text { text: text.into() };
        let numbered = NumberedEvent { number: 1, event };
        let line = line(&Followed::Event(numbered.clone()), &|text| text).unwrap();
        assert!(
            line.chars()
                .all(|c| c == '\u{fffd}' || (' '..='~').contains(&c)),
            "{line}"
        );
        assert_eq!(
            serde_json::from_str::<NumberedEvent>(&line).unwrap(),
            numbered
        );
    }
}
