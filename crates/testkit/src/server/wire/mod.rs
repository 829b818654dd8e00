//! The model APIs the server speaks. Each module renders the same [`Answer`] in its own format:
//! `stream` as frames, `collected` as one JSON value. They know nothing of sockets or faults.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use bytes::Bytes;
use serde_json::Value;

use super::{
    answer::{Answer, Part},
    fault::NoiseKind,
};

/// The time of every answer, in seconds since 1970: scripted answers have no dates of their own.
pub(crate) const CREATED_S: u64 = 1_700_000_000;

/// A model API, known by the end of the request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI chat completions: `/chat/completions`.
    Chat,
    /// OpenAI responses: `/responses`.
    Responses,
    /// Anthropic messages: `/messages`.
    Messages,
    /// Google Gemini: `:streamGenerateContent` and `:generateContent`.
    Gemini,
    /// Ollama's own chat: `/api/chat`.
    Ollama,
}

/// What an answer must know of the request it answers.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) model: String,
    /// The request's number, for ids.
    pub(crate) number: usize,
    pub(crate) is_streaming: bool,
    /// Whether a chat completion stream ends with a usage chunk; asked for explicitly.
    pub(crate) includes_usage: bool,
}

/// One event of a stream: an SSE event or a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    /// Whether it carries content, and so counts as a chunk.
    pub(crate) is_chunk: bool,
}

impl Wire {
    /// Returns the wire of a path without its query.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        const SUFFIXES: &[(&str, Wire)] = &[
            ("/chat/completions", Wire::Chat),
            ("/responses", Wire::Responses),
            ("/messages", Wire::Messages),
            (":streamGenerateContent", Wire::Gemini),
            (":generateContent", Wire::Gemini),
            ("/api/chat", Wire::Ollama),
        ];
        let found = SUFFIXES.iter().find(|(suffix, _)| path.ends_with(suffix));
        found.map(|(_, wire)| *wire)
    }

    pub(crate) fn ask(self, path: &str, body: &Value, number: usize) -> Ask {
        let is_streaming = match self {
            Self::Gemini => path.ends_with(":streamGenerateContent"),
            Self::Ollama => body["stream"] != false,
            Self::Chat | Self::Responses | Self::Messages => body["stream"] == true,
        };
        let model = match self {
            Self::Gemini => gemini::model_of_path(path),
            _ => body["model"].as_str().unwrap_or("scripted"),
        };
        Ask {
            model: model.to_owned(),
            number,
            is_streaming,
            includes_usage: body["stream_options"]["include_usage"] == true,
        }
    }

    pub(crate) fn content_type(self, ask: &Ask) -> &'static str {
        match self {
            _ if !ask.is_streaming => "application/json",
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }

    /// Renders the answer as the frames of its body; a collected body is a single frame.
    pub(crate) fn render(self, answer: &Answer, ask: &Ask) -> Vec<Frame> {
        if !ask.is_streaming {
            let body = self.collected(answer, ask).to_string();
            return vec![Frame::new(body).chunk()];
        }
        match self {
            Self::Chat => chat::stream(answer, ask),
            Self::Responses => responses::stream(answer, ask),
            Self::Messages => messages::stream(answer, ask),
            Self::Gemini => gemini::stream(answer, ask),
            Self::Ollama => ollama::stream(answer, ask),
        }
    }

    fn collected(self, answer: &Answer, ask: &Ask) -> Value {
        match self {
            Self::Chat => chat::collected(answer, ask),
            Self::Responses => responses::collected(answer, ask),
            Self::Messages => messages::collected(answer, ask),
            Self::Gemini => gemini::collected(answer, ask),
            Self::Ollama => ollama::collected(answer, ask),
        }
    }

    /// Renders an error that strikes in the middle of a stream.
    pub(crate) fn error(self, kind: &str, message: &str) -> Frame {
        match self {
            Self::Chat => chat::error(kind, message),
            Self::Responses => responses::error(kind, message),
            Self::Messages => messages::error(kind, message),
            Self::Gemini => gemini::error(kind, message),
            Self::Ollama => ollama::error(message),
        }
    }

    pub(crate) fn noise(self, kind: &NoiseKind) -> Frame {
        let bytes = match (kind, self) {
            (NoiseKind::Bytes(bytes), _) => bytes.clone(),
            (NoiseKind::Raw(raw), _) => raw.as_bytes().to_vec(),
            (NoiseKind::Comment(_), Self::Ollama) => b"\n".to_vec(),
            (NoiseKind::Comment(comment), _) => format!(": {comment}\n\n").into_bytes(),
            (NoiseKind::BadJson, _) => self.bad_json().into(),
        };
        Frame::new(bytes)
    }

    fn bad_json(self) -> &'static str {
        match self {
            Self::Chat => "data: {\"id\":\"chatcmpl-0\",\"choices\":[{\"del\n\n",
            Self::Responses => "event: response.output_text.delta\ndata: {\"type\":\"resp\n\n",
            Self::Messages => "event: content_block_delta\ndata: {\"type\":\"content_bl\n\n",
            Self::Gemini => "data: {\"candidates\":[{\"cont\r\n\r\n",
            Self::Ollama => "{\"model\":\"m\",\"message\":{\"cont\n",
        }
    }
}

impl Frame {
    fn new(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            is_chunk: false,
        }
    }

    /// Renders an SSE event without a name.
    fn data(data: &Value) -> Self {
        Self::new(format!("data: {data}\n\n"))
    }

    /// Renders an SSE event named by its `type`.
    fn event(data: &Value) -> Self {
        let name = data["type"].as_str().unwrap_or("message");
        Self::new(format!("event: {name}\ndata: {data}\n\n"))
    }

    fn line(data: &Value) -> Self {
        Self::new(format!("{data}\n"))
    }

    fn chunk(mut self) -> Self {
        self.is_chunk = true;
        self
    }

    pub(crate) fn with_crlf(self) -> Self {
        let text = String::from_utf8_lossy(&self.bytes);
        let bytes = text.replace("\r\n", "\n").replace('\n', "\r\n").into();
        Self { bytes, ..self }
    }
}

/// Renders the chunks of a part. Equal neighbours share their bytes, so that a long generated
/// text is rendered once.
fn chunks(part: &Part, render: impl Fn(&str) -> Frame) -> Vec<Frame> {
    let content = part.content();
    let mut frames: Vec<Frame> = Vec::new();
    let mut previous = "";
    for piece in part.chunking().cut(&content) {
        let frame = match frames.last() {
            Some(last) if piece == previous => last.clone(),
            _ => render(piece).chunk(),
        };
        frames.push(frame);
        previous = piece;
    }
    frames
}

/// Returns arguments for wires that carry them as JSON; those that do not parse stay a string.
fn parsed_arguments(part: &Part) -> Value {
    let raw = part.content();
    serde_json::from_str(&raw).unwrap_or_else(|_| raw.into())
}
