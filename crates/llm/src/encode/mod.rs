//! From our request to the bytes of its body, one module for each wire.
//!
//! Content is borrowed and written once. The same conversation always gives the same bytes, and a longer one begins with
//! them, apart from the cache marks that move along with its end and from old pictures that are left out in steps; what
//! the user adds to the body replaces fields of the same name and comes last.

mod anthropic;
mod chat;
mod claude;
mod gemini;
mod pictures;
mod responses;

use std::borrow::Cow;

use hermes_core::{
    Arguments, Media, MediaSource, Message, ModelRequest, Part, ToolCall, ToolResult,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::providers::Protocol;
use crate::settings::{Effort, Route};
use crate::signature;
pub(crate) use pictures::Unseen;

/// What of a conversation is not sent, because the provider refused it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Those of earlier replies: it does not accept its own any more.
    pub(crate) signatures: bool,
    pub(crate) pictures: Option<Unseen>,
}

/// Writes the body of a request to `route`.
pub(crate) fn body(route: &Route, request: &ModelRequest<'_>, left_out: LeftOut) -> Vec<u8> {
    let messages = pictures::sent(request.messages, route.protocol, left_out.pictures);
    let asked = Asked {
        route,
        request,
        messages: &messages,
        left_out,
    };
    match route.protocol {
        Protocol::OpenAiChat => chat::body(&asked),
        Protocol::OpenAiResponses => responses::body(&asked),
        Protocol::Anthropic => anthropic::body(&asked),
        Protocol::Gemini => gemini::body(&asked),
    }
}

/// What is asked, and of whom.
struct Asked<'a> {
    route: &'a Route,
    request: &'a ModelRequest<'a>,
    messages: &'a [Cow<'a, Message>],
    left_out: LeftOut,
}

impl<'a> Asked<'a> {
    fn model(&self) -> &'a str {
        &self.route.name.model
    }

    fn messages(&self) -> impl Iterator<Item = &'a Message> + use<'a> {
        self.messages.iter().map(|message| &**message)
    }

    fn system(&self) -> Option<&'a str> {
        Some(self.request.system).filter(|system| !system.is_empty())
    }

    fn output_tokens_max(&self) -> Option<u32> {
        self.request.output_tokens_max.or(self.route.max_tokens)
    }

    /// The effort that was set, where it is understood.
    fn effort(&self) -> Option<Effort> {
        self.route.effort.filter(|_| self.route.quirks.effort)
    }

    /// The session's name, where the provider finds its cache by it.
    fn cache_key(&self) -> Option<&'a str> {
        let session = self.request.session;
        self.route.quirks.cache_key.then(|| session.as_str())
    }

    /// Opens a signature, if it was made by the provider that is asked.
    fn open<'s>(&self, sealed: &'s str) -> Option<&'s str> {
        if self.left_out.signatures {
            None
        } else {
            signature::open(&self.route.name.provider, sealed)
        }
    }
}

/// A JSON object that is written field by field.
struct Body<'a> {
    bytes: Vec<u8>,
    /// The user's own fields.
    extra: &'a Map<String, Value>,
}

impl<'a> Body<'a> {
    fn new(asked: &Asked<'a>) -> Self {
        Self {
            bytes: b"{".to_vec(),
            extra: &asked.route.extra_body,
        }
    }

    fn field(&mut self, name: &str, value: &impl Serialize) {
        if !self.extra.contains_key(name) {
            self.write(name, value);
        }
    }

    fn optional(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        for (name, value) in self.extra {
            self.write(name, value);
        }
        self.bytes.push(b'}');
        self.bytes
    }

    fn write(&mut self, name: &str, value: &impl Serialize) {
        if self.bytes.len() > 1 {
            self.bytes.push(b',');
        }
        let bytes = &mut self.bytes;
        let written = serde_json::to_writer(&mut *bytes, name).and_then(|()| {
            bytes.push(b':');
            serde_json::to_writer(&mut *bytes, value)
        });
        written.expect("memory takes everything, and no map of ours has keys that are not text");
    }
}

/// The arguments of a call. Every wire wants an object; of malformed ones the model still sees what it wrote.
#[derive(Serialize)]
#[serde(untagged)]
enum CallInput<'a> {
    Json(&'a Value),
    Malformed { malformed_arguments: &'a str },
}

impl<'a> CallInput<'a> {
    fn of(call: &'a ToolCall) -> Self {
        match &call.arguments {
            Arguments::Json(value) => Self::Json(value),
            Arguments::Malformed(text) => Self::Malformed {
                malformed_arguments: text,
            },
        }
    }
}

/// The arguments of a call as a text of JSON, for wires that want them so.
struct CallText<'a>(&'a ToolCall);

impl Serialize for CallText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match CallInput::of(self.0) {
            CallInput::Json(value) => serializer.collect_str(value),
            malformed @ CallInput::Malformed { .. } => {
                let text = serde_json::to_string(&malformed).map_err(serde::ser::Error::custom)?;
                serializer.serialize_str(&text)
            }
        }
    }
}

/// Where a wire finds a picture: its address, or the picture itself as one.
struct MediaUrl<'a>(&'a Media);

impl Serialize for MediaUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Media { mime, source } = self.0;
        match source {
            MediaSource::Url(url) => serializer.serialize_str(url),
            MediaSource::Base64(data) => {
                serializer.collect_str(&format_args!("data:{mime};base64,{data}"))
            }
        }
    }
}

/// Says whose pictures follow, on wires that cannot put them into the result itself.
fn belongs(result: &ToolResult) -> String {
    format!(
        "With the result of the call `{}` of `{}`:",
        result.call, result.tool
    )
}

/// Drops text that providers refuse as empty.
fn spoken(text: &str) -> Option<&str> {
    (!text.trim().is_empty()).then_some(text)
}

/// Returns the texts of a message that say something.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => spoken(text),
        _ => None,
    })
}

/// Stands for a recording on a wire without sound.
fn unheard(media: &Media) -> String {
    format!("[a recording ({}) that this model cannot hear]", media.mime)
}

/// The names that OpenAI has for efforts.
fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh | Effort::Max => "xhigh",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Reasoning, ResultStatus, Role, SessionId, ToolSpec, TurnId};
    use serde_json::json;

    use crate::settings::{ModelChoice, ModelSettings};

    fn route(api_mode: &str) -> Route {
        let settings = ModelSettings {
            choice: ModelChoice {
                provider: Some("custom".into()),
                model: Some("qwen3-max".into()),
                base_url: Some("http://127.0.0.1:1/v1".into()),
                api_mode: Some(api_mode.into()),
                api_key: None,
            },
            ..ModelSettings::default()
        };
        crate::resolve(&settings, &|_| None).unwrap().primary
    }

    fn conversation() -> Vec<Message> {
        let call = |id: &str, arguments| ToolCall {
            id: id.into(),
            name: "web_search".into(),
            arguments,
            signatures: vec!["custom|sig".into()],
        };
        let first = call("c1", Arguments::Json(json!({"z": 1, "a": "\"é\""})));
        let second = call("c2", Arguments::Malformed("{\"z\":".into()));
        let result =
            |call: &ToolCall| Message::result(ToolResult::new(call, ResultStatus::Ok, "found"));
        let picture = Media {
            mime: "image/png".into(),
            source: MediaSource::Base64("AAAA".into()),
        };
        let shown = ToolResult::new(&second, ResultStatus::Ok, "seen").with_images(vec![picture]);
        let reply = Message {
            role: Role::Assistant,
            origin: None,
            parts: vec![
                Part::Reasoning(Reasoning {
                    text: "hm".into(),
                    signature: Some("custom|{\"signature\":\"sig\"}".into()),
                }),
                Part::text("let me see"),
                Part::ToolCall(first.clone()),
                Part::ToolCall(second.clone()),
            ],
        };
        vec![
            Message::user("find it"),
            reply,
            result(&first),
            Message::result(shown),
            Message::assistant("done"),
            Message::user("thanks"),
        ]
    }

    fn sent(route: &Route, messages: &[Message]) -> String {
        let tools = [ToolSpec {
            name: "web_search".into(),
            description: "searches".into(),
            parameters: json!({"type": "object", "properties": {"z": {}, "a": {}}}),
        }];
        let request = ModelRequest {
            session: &SessionId::from("s"),
            turn: &TurnId::from("t"),
            system: "be brief",
            tools: &tools,
            messages,
            output_tokens_max: None,
        };
        String::from_utf8(body(route, &request, LeftOut::default())).unwrap()
    }

    #[test]
    fn the_bytes_of_a_conversation_are_the_beginning_of_those_of_its_continuation() {
        let messages = conversation();
        for api_mode in ["chat_completions", "responses", "gemini"] {
            let route = route(api_mode);
            let whole = sent(&route, &messages);
            // Results of one reply may share a message, so it is cut before or after all of them.
            for length in [1, 2, 4, 5] {
                let shorter = sent(&route, &messages[..length]);
                let shared = shorter.strip_suffix("]}").unwrap();
                assert!(whole.starts_with(shared), "{shorter}\n{whole}");
            }
        }
    }

    #[test]
    fn names_and_arguments_are_sent_as_they_are() {
        for api_mode in ["chat_completions", "responses", "anthropic_messages"] {
            let sent = sent(&route(api_mode), &conversation());
            assert!(sent.contains(r#""model":"qwen3-max""#), "{sent}");
            assert!(sent.contains(r#""name":"web_search""#), "{sent}");
        }
        let as_text = r#""arguments":"{\"z\":1,\"a\":\"\\\"é\\\"\"}""#;
        assert!(sent(&route("chat_completions"), &conversation()).contains(as_text));
        assert!(sent(&route("responses"), &conversation()).contains(as_text));
        let as_object = r#":{"z":1,"a":"\"é\""}"#;
        assert!(sent(&route("anthropic_messages"), &conversation()).contains(as_object));
        assert!(sent(&route("gemini"), &conversation()).contains(as_object));
    }

    #[test]
    fn fields_of_the_user_replace_ours_and_come_last() {
        let mut route = route("chat_completions");
        route.extra_body = json!({"stream_options": null, "seed": 1})
            .as_object()
            .unwrap()
            .clone();
        let sent = sent(&route, &[Message::user("hi")]);
        assert!(
            sent.ends_with(r#","stream_options":null,"seed":1}"#),
            "{sent}"
        );
        assert_eq!(sent.matches("stream_options").count(), 1);
    }

    #[test]
    fn a_message_without_words_is_not_sent() {
        let empty = [
            Message::user("hi"),
            Message::assistant(" \n"),
            Message::user(""),
        ];
        for api_mode in [
            "chat_completions",
            "responses",
            "anthropic_messages",
            "gemini",
        ] {
            let route = route(api_mode);
            assert_eq!(sent(&route, &empty), sent(&route, &empty[..1]));
        }
    }
}
