//! Turns what a server answers into text for the model.

use hermes_core::text::shorten;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ListPromptsResult, ListResourcesResult,
    ReadResourceResult, ResourceContents,
};
use serde_json::{Value, json};

/// Renders the result of a tool: its texts, then what it has beside them.
pub(crate) fn tool_result(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(content).collect();
    if let Some(structured) = &result.structured_content
        && !is_said(structured, &parts)
    {
        parts.push(structured.to_string());
    }
    parts.retain(|part| !part.trim().is_empty());
    match (parts.is_empty(), result.is_error) {
        (false, _) => parts.join("\n"),
        (true, Some(true)) => "the tool failed and did not say why".to_owned(),
        (true, _) => "done; the tool returned nothing".to_owned(),
    }
}

/// Returns whether a text says the same already: servers should send both, and saying it twice helps nobody.
///
/// A plain value is often wrapped as `{"result": …}`, because structured content has to be an object.
fn is_said(structured: &Value, parts: &[String]) -> bool {
    let inner = match structured.as_object() {
        Some(object) if object.len() == 1 => object.get("result"),
        _ => None,
    };
    parts.iter().any(|part| {
        let value = serde_json::from_str(part).unwrap_or_else(|_| Value::String(part.clone()));
        value == *structured || Some(&value) == inner
    })
}

fn content(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => describe("an image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => describe("a recording", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => resource(&embedded.resource),
        ContentBlock::ResourceLink(link) => format!(
            "[resource `{}` ({}); read it with the tool that reads resources]",
            link.uri, link.name
        ),
        other => json!(other).to_string(),
    }
}

fn describe(what: &str, mime_type: &str, base64: &str) -> String {
    format!(
        "[{what}, {mime_type}, {} bytes; not shown]",
        base64.len() / 4 * 3
    )
}

fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text.clone(),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let mime_type = mime_type.as_deref().unwrap_or("unknown kind");
            describe(&format!("`{uri}`"), mime_type, blob)
        }
        other => json!(other).to_string(),
    }
}

pub(crate) fn resource_list(list: &ListResourcesResult) -> String {
    let line = |uri: &str, name: &str, about: Option<&str>| match about {
        Some(about) => format!("{uri}  {name}: {}", shorten(about, ABOUT_CHARS_MAX)),
        None => format!("{uri}  {name}"),
    };
    let lines = list
        .resources
        .iter()
        .map(|item| line(&item.uri, &item.name, item.description.as_deref()));
    listing(lines, list.next_cursor.as_deref(), "resources")
}

pub(crate) fn resource_text(result: &ReadResourceResult) -> String {
    let texts: Vec<String> = result.contents.iter().map(resource).collect();
    match texts.is_empty() {
        true => "the resource is empty".to_owned(),
        false => texts.join("\n"),
    }
}

pub(crate) fn prompt_list(list: &ListPromptsResult) -> String {
    let lines = list.prompts.iter().map(|prompt| {
        let arguments = prompt.arguments.iter().flatten();
        let names: Vec<&str> = arguments.map(|argument| argument.name.as_str()).collect();
        let about = prompt.description.as_deref().unwrap_or_default();
        let about = shorten(about, ABOUT_CHARS_MAX);
        format!("{}({})  {about}", prompt.name, names.join(", "))
    });
    listing(lines, list.next_cursor.as_deref(), "prompts")
}

pub(crate) fn prompt_text(result: &GetPromptResult) -> String {
    let message = |role: &Value, block: &ContentBlock| {
        format!("{}: {}", role.as_str().unwrap_or("message"), content(block))
    };
    let messages = result.messages.iter();
    let texts: Vec<String> = messages
        .map(|prompt| message(&json!(prompt.role), &prompt.content))
        .collect();
    match texts.is_empty() {
        true => "the prompt is empty".to_owned(),
        false => texts.join("\n\n"),
    }
}

/// Of a description in a list, this much is shown.
const ABOUT_CHARS_MAX: usize = 200;

fn listing(lines: impl Iterator<Item = String>, next: Option<&str>, what: &str) -> String {
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        lines.push(format!("the server has no {what}"));
    }
    if let Some(cursor) = next {
        lines.push(format!("[there are more: pass cursor `{cursor}`]"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(result: Value) -> String {
        tool_result(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn texts_are_joined_and_media_are_described() {
        let text = render(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "QUJDRA==", "mimeType": "image/png" },
            { "type": "text", "text": "two" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
        ] }));
        assert_eq!(
            text,
            "one\n[an image, image/png, 6 bytes; not shown]\ntwo\ninside"
        );
    }

    #[test]
    fn structured_content_is_shown_unless_the_text_says_the_same() {
        let both = render(json!({
            "content": [{ "type": "text", "text": "{ \"n\": 1 }" }], "structuredContent": { "n": 1 },
        }));
        assert_eq!(both, "{ \"n\": 1 }");
        let alone = render(json!({ "content": [], "structuredContent": { "n": 1 } }));
        assert_eq!(alone, r#"{"n":1}"#);
        for (text, value) in [("3", json!(3)), ("three", json!("three"))] {
            let wrapped = render(json!({
                "content": [{ "type": "text", "text": text }], "structuredContent": { "result": value },
            }));
            assert_eq!(wrapped, text);
        }
    }

    #[test]
    fn no_result_is_empty() {
        assert!(!render(json!({ "content": [] })).is_empty());
        assert!(render(json!({ "content": [], "isError": true })).contains("failed"));
    }
}
