//! A conversation as text, for models that only advise on it: no system prompt, no tools, long results cut in the middle.

use hermes_core::text::{head, tail};
use hermes_core::{Arguments, Message, Part, Role, ToolCall};

/// Results of tools and arguments are long, and advice needs their ends only.
const DETAIL_BYTES_MAX: usize = 4_000;
/// Fewer bytes than most tokens have, so that a transcript that seems to fit does.
const TOKEN_BYTES: u64 = 3;

pub(super) fn of(messages: &[Message]) -> String {
    let paragraphs: Vec<String> = messages.iter().map(paragraph).collect();
    paragraphs.join("\n\n")
}

/// Returns the end of a transcript that fits into three quarters of a context window of so many tokens.
pub(super) fn fitting(transcript: &str, window: u64) -> String {
    let bytes_max = (window / 4).saturating_mul(3 * TOKEN_BYTES);
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    if transcript.len() <= bytes_max {
        return transcript.to_owned();
    }
    format!(
        "[what came before is left out]\n{}",
        tail(transcript, bytes_max)
    )
}

fn paragraph(message: &Message) -> String {
    let who = match message.role {
        Role::User => "[user]",
        Role::Assistant => "[assistant]",
        Role::Tool => "[tool]",
    };
    let mut paragraph = who.to_owned();
    for line in message.parts.iter().filter_map(line) {
        paragraph.push('\n');
        paragraph.push_str(&line);
    }
    paragraph
}

fn line(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image(_) => Some("[an image]".to_owned()),
        Part::Audio(_) => Some("[a recording]".to_owned()),
        Part::Reasoning(_) => None,
        Part::ToolCall(call) => Some(format!("[calls {} with {}]", call.name, arguments(call))),
        Part::ToolResult(result) => Some(format!(
            "[result of {}]\n{}{}",
            result.tool,
            shortened(&result.text),
            "\n[an image]".repeat(result.images.len())
        )),
    }
}

fn arguments(call: &ToolCall) -> String {
    match &call.arguments {
        Arguments::Json(value) => shortened(&value.to_string()),
        Arguments::Malformed(text) => shortened(text),
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= DETAIL_BYTES_MAX {
        return text.to_owned();
    }
    let half = DETAIL_BYTES_MAX / 2;
    format!("{}\n[…]\n{}", head(text, half), tail(text, half))
}

#[cfg(test)]
mod tests {
    use hermes_core::{Media, MediaSource, Reasoning, ResultStatus, ToolResult};
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_but_thoughts_is_told_and_results_keep_their_ends() {
        let call = ToolCall {
            id: "c1".into(),
            name: "read_file".into(),
            arguments: Arguments::Json(json!({"path": "a"})),
            signatures: Vec::new(),
        };
        let long = format!("begin{}end", "ü".repeat(DETAIL_BYTES_MAX));
        let result = ToolResult::new(&call, ResultStatus::Ok, long);
        let image = Media {
            mime: "image/png".into(),
            source: MediaSource::Url("https://example.org/a.png".into()),
        };
        let messages = [
            Message {
                role: Role::User,
                origin: None,
                parts: vec![Part::text("look"), Part::Image(image.clone())],
            },
            Message {
                role: Role::Assistant,
                origin: None,
                parts: vec![
                    Part::Reasoning(Reasoning::default()),
                    Part::text("I look"),
                    Part::ToolCall(call),
                ],
            },
            Message::result(result.with_images(vec![image])),
        ];
        let told = of(&messages);
        assert!(told.starts_with(
            "[user]\nlook\n[an image]\n\n[assistant]\nI look\n[calls read_file with {\"path\":\"a\"}]\n\n\
             [tool]\n[result of read_file]\nbeginü"
        ));
        assert!(told.contains("\n[…]\n") && told.ends_with("üend\n[an image]"));
        assert!(told.len() < DETAIL_BYTES_MAX + 200);
    }

    #[test]
    fn a_small_window_is_shown_the_end() {
        assert_eq!(fitting("short", 1_000), "short");
        let long = format!("{}the end", "ü".repeat(1_000));
        let shown = fitting(&long, 100);
        assert!(shown.starts_with("[what came before is left out]\nü"));
        assert!(shown.ends_with("the end") && shown.len() < 300, "{shown}");
    }
}
