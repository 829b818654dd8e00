//! One answer of the scripted model: what it says, how it is cut into chunks, and how it fails.
//! Knows nothing of wires; `wire` renders it for whichever API was asked.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::Faults;

/// One reply to one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    pub parts: Vec<Part>,
    /// Why the model stopped; `tool_calls` if it calls any and `stop` if it does not, unless set.
    pub finish: Option<Finish>,
    pub usage: Usage,
    /// Refuses the request with an HTTP error instead of answering it.
    pub refusal: Option<Refusal>,
    /// Extra response headers, also on refusals.
    pub headers: BTreeMap<String, String>,
    pub faults: Faults,
}

/// A piece of the answer, in the order the model produces them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Part {
    Text {
        text: String,
        #[serde(default)]
        split: Split,
    },
    Reasoning {
        reasoning: String,
        #[serde(default)]
        signature: Option<String>,
        #[serde(default)]
        split: Split,
    },
    Call {
        /// The name of the tool.
        call: String,
        id: String,
        /// A JSON string is sent as it is, so that it need not be valid JSON inside.
        arguments: Value,
        #[serde(default)]
        split: Split,
    },
    /// Generated text, for benchmarks: so many chunks of so many bytes each.
    TextChunks {
        text_chunks: usize,
        #[serde(default = "Part::default_chunk_bytes")]
        bytes_each: usize,
    },
}

/// Where a text is cut into chunks, counted in characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    #[default]
    Whole,
    /// About equal pieces, this many (fewer if the text is shorter).
    Pieces(usize),
    /// Pieces of this many characters.
    Every(usize),
    /// One piece of each size; what is left is one more.
    Sizes(Vec<usize>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
}

/// Token counts as OpenAI counts them: `prompt` includes `cached`, `completion` includes `reasoning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub prompt: u64,
    pub completion: u64,
    pub cached: u64,
    pub reasoning: u64,
}

/// An HTTP error response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    pub status: u16,
    /// A JSON string is sent as plain text, anything else as JSON.
    #[serde(default)]
    pub body: Value,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            prompt: 10,
            completion: 5,
            cached: 0,
            reasoning: 0,
        }
    }
}

impl Answer {
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().also_text(text)
    }

    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self::default().also_call(id, name, arguments)
    }

    /// Returns generated text in `count` chunks of a few bytes, for benchmarks.
    pub fn text_chunks(count: usize) -> Self {
        Self::default().part(Part::TextChunks {
            text_chunks: count,
            bytes_each: Part::default_chunk_bytes(),
        })
    }

    /// Returns generated text in a single chunk, and so a single line, of more than `bytes`.
    pub fn huge_line(bytes: usize) -> Self {
        Self::default().part(Part::TextChunks {
            text_chunks: 1,
            bytes_each: bytes,
        })
    }

    /// Returns a refusal; a `&str` body is sent as plain text, a JSON value as JSON.
    pub fn status(status: u16, body: impl Into<Value>) -> Self {
        Self {
            refusal: Some(Refusal {
                status,
                body: body.into(),
            }),
            ..Self::default()
        }
    }

    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    pub fn also_text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text {
            text: text.into(),
            split: Split::Whole,
        })
    }

    /// Adds reasoning before everything said so far.
    pub fn reasoning(self, reasoning: impl Into<String>) -> Self {
        self.think(reasoning.into(), None)
    }

    /// Adds reasoning with a provider's signature before everything said so far.
    pub fn signed_reasoning(
        self,
        reasoning: impl Into<String>,
        signature: impl Into<String>,
    ) -> Self {
        self.think(reasoning.into(), Some(signature.into()))
    }

    /// Adds a tool call; `Value::String` arguments are sent raw and may be malformed.
    pub fn also_call(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        self.part(Part::Call {
            call: name.into(),
            id: id.into(),
            arguments,
            split: Split::Whole,
        })
    }

    /// Cuts every part given so far into chunks.
    pub fn split(mut self, how: &Split) -> Self {
        for part in &mut self.parts {
            match part {
                Part::Text { split, .. }
                | Part::Reasoning { split, .. }
                | Part::Call { split, .. } => split.clone_from(how),
                Part::TextChunks { .. } => {}
            }
        }
        self
    }

    /// Cuts every part given so far into about equal pieces.
    pub fn pieces(self, count: usize) -> Self {
        self.split(&Split::Pieces(count))
    }

    pub fn finish(mut self, finish: Finish) -> Self {
        self.finish = Some(finish);
        self
    }

    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    fn think(mut self, reasoning: String, signature: Option<String>) -> Self {
        let thought = Part::Reasoning {
            reasoning,
            signature,
            split: Split::Whole,
        };
        self.parts.insert(0, thought);
        self
    }

    /// Returns the reason to stop, the implied one if none is set.
    pub(crate) fn finish_reason(&self) -> Finish {
        let calls_tools = || {
            self.parts
                .iter()
                .any(|part| matches!(part, Part::Call { .. }))
        };
        match self.finish {
            Some(finish) => finish,
            None if calls_tools() => Finish::ToolCalls,
            None => Finish::Stop,
        }
    }

    /// Returns all visible text, or `None` if there is none.
    pub(super) fn whole_text(&self) -> Option<String> {
        let is_text = |part: &&Part| matches!(part, Part::Text { .. } | Part::TextChunks { .. });
        self.join(is_text)
    }

    /// Returns all reasoning, or `None` if there is none.
    pub(super) fn whole_reasoning(&self) -> Option<String> {
        self.join(|part| matches!(part, Part::Reasoning { .. }))
    }

    fn join(&self, wanted: impl Fn(&&Part) -> bool) -> Option<String> {
        let texts: Vec<_> = self
            .parts
            .iter()
            .filter(wanted)
            .map(Part::content)
            .collect();
        (!texts.is_empty()).then(|| texts.concat())
    }
}

impl Part {
    /// The size of a usual token, with its space.
    const fn default_chunk_bytes() -> usize {
        6
    }

    /// Returns what this part streams: text, reasoning, or the raw arguments of a call.
    pub(crate) fn content(&self) -> Cow<'_, str> {
        match self {
            Self::Text { text, .. } => text.into(),
            Self::Reasoning { reasoning, .. } => reasoning.into(),
            Self::Call { arguments, .. } => match arguments {
                Value::String(raw) => raw.into(),
                value => value.to_string().into(),
            },
            Self::TextChunks {
                text_chunks,
                bytes_each,
            } => {
                let word = ".".repeat(bytes_each.saturating_sub(1)) + " ";
                word.repeat(*text_chunks).into()
            }
        }
    }

    /// Returns how [`Part::content`] is cut.
    pub(crate) fn chunking(&self) -> Cow<'_, Split> {
        match self {
            Self::Text { split, .. } | Self::Reasoning { split, .. } | Self::Call { split, .. } => {
                Cow::Borrowed(split)
            }
            Self::TextChunks { bytes_each, .. } => Cow::Owned(Split::Every(*bytes_each)),
        }
    }
}

impl Split {
    /// Cuts `text`, never inside a character; an empty text has no pieces.
    pub(crate) fn cut<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let length = text.chars().count();
        match self {
            Self::Whole => cut_every(text, length),
            Self::Pieces(count) => cut_every(text, length.div_ceil((*count).max(1))),
            Self::Every(size) => cut_every(text, *size),
            Self::Sizes(sizes) => cut_sizes(text, sizes.iter().copied()),
        }
    }
}

fn cut_every(text: &str, size: usize) -> Vec<&str> {
    cut_sizes(text, std::iter::repeat(size.max(1)))
}

fn cut_sizes(text: &str, sizes: impl Iterator<Item = usize>) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for size in sizes {
        let end = rest.char_indices().nth(size).map(|(end, _)| end);
        let Some(end) = end else { break };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_nothing_is_lost() {
        assert_eq!(Split::Whole.cut("häß"), ["häß"]);
        assert_eq!(Split::Pieces(2).cut("häßl€"), ["häß", "l€"]);
        assert_eq!(Split::Every(2).cut("häßl€"), ["hä", "ßl", "€"]);
        assert_eq!(Split::Sizes(vec![1, 3]).cut("häßl€"), ["h", "äßl", "€"]);
        assert!(Split::Pieces(3).cut("").is_empty());
    }

    #[test]
    fn generated_text_has_the_chunks_it_promises() {
        let answer = Answer::text_chunks(3);
        let text = answer.parts[0].content();
        let pieces = answer.parts[0].chunking().cut(&text);
        assert_eq!(pieces, ["..... ", "..... ", "..... "]);
    }

    #[test]
    fn an_answer_reads_from_short_json() {
        let json = r#"{"parts": [{"reasoning": "hm"}, {"text": "hi", "split": {"pieces": 2}},
            {"call": "ls", "id": "c1", "arguments": {"path": "."}}, {"text_chunks": 9}]}"#;
        let answer: Answer = serde_json::from_str(json).unwrap();
        assert_eq!(answer.parts.len(), 4);
        assert_eq!(answer.finish_reason(), Finish::ToolCalls);
        assert_eq!(answer.parts[2].content(), r#"{"path":"."}"#);
    }
}
