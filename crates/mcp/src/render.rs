//! Turns what a server answers into text and pictures for the model.

use hermes_core::picture::RESULT_PICTURES_MAX;
use hermes_core::text::shorten;
use hermes_core::{Media, ToolOutput};
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ListPromptsResult, ListResourcesResult,
    ReadResourceResult, Resource, ResourceContents,
};
use serde_json::{Value, json};

use crate::media::MediaFolder;

/// Takes what a server sends, one after the other, and keeps the pictures that the model will see.
struct Renderer<'a> {
    media: &'a MediaFolder,
    images: Vec<Media>,
}

impl<'a> Renderer<'a> {
    fn new(media: &'a MediaFolder) -> Self {
        Self {
            media,
            images: Vec::new(),
        }
    }

    /// Keeps bytes as a file, and shows them if they are a picture. Of too many pictures the last are only kept.
    async fn keep(&mut self, what: &str, mime_type: &str, base64: &str) -> String {
        let kept = self.media.keep(what, mime_type, base64).await;
        if kept.picture.is_some() && self.images.len() == RESULT_PICTURES_MAX {
            return format!(
                "{}\n[not shown to you: of one result, {RESULT_PICTURES_MAX} pictures are]",
                kept.text
            );
        }
        self.images.extend(kept.picture);
        kept.text
    }

    fn output(self, text: String) -> ToolOutput {
        ToolOutput::text(text).with_images(self.images)
    }
}

/// Renders the result of a tool: its texts, then what it has beside them.
pub(crate) async fn tool_result(result: CallToolResult, media: &MediaFolder) -> ToolOutput {
    let mut renderer = Renderer::new(media);
    let mut parts = Vec::with_capacity(result.content.len() + 1);
    for block in result.content {
        parts.push(renderer.content(block).await);
    }
    if let Some(structured) = &result.structured_content
        && !is_said(structured, &parts)
    {
        parts.push(structured.to_string());
    }
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    let text = match (
        parts.reduce(|text, part| text + "\n" + &part),
        result.is_error,
    ) {
        (Some(text), _) => text,
        (None, Some(true)) => "the tool failed and did not say why".to_owned(),
        (None, _) => "done; the tool returned nothing".to_owned(),
    };
    renderer.output(text)
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

impl Renderer<'_> {
    async fn content(&mut self, block: ContentBlock) -> String {
        match block {
            ContentBlock::Text(text) => text.text,
            ContentBlock::Image(image) => {
                self.keep("an image", &image.mime_type, &image.data).await
            }
            ContentBlock::Audio(audio) => {
                let what = "a recording";
                self.keep(what, &audio.mime_type, &audio.data).await
            }
            ContentBlock::Resource(embedded) => self.resource(&embedded.resource).await,
            ContentBlock::ResourceLink(link) => resource_link(&link),
            other => json!(other).to_string(),
        }
    }

    async fn resource(&mut self, contents: &ResourceContents) -> String {
        match contents {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                let mime_type = mime_type.as_deref().unwrap_or("unknown kind");
                self.keep(&format!("`{uri}`"), mime_type, blob).await
            }
            other => json!(other).to_string(),
        }
    }
}

fn resource_link(link: &Resource) -> String {
    let mut about = format!("[resource `{}` ({}", link.uri, link.name);
    if let Some(mime_type) = &link.mime_type {
        about.push_str(&format!(", {mime_type}"));
    }
    if let Some(description) = &link.description {
        about.push_str(&format!(": {}", shorten(description, ABOUT_CHARS_MAX)));
    }
    about.push_str("); read it with the tool that reads resources]");
    about
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

pub(crate) async fn resource(result: &ReadResourceResult, media: &MediaFolder) -> ToolOutput {
    let mut renderer = Renderer::new(media);
    let mut texts = Vec::with_capacity(result.contents.len());
    for contents in &result.contents {
        texts.push(renderer.resource(contents).await);
    }
    renderer.output(if texts.is_empty() {
        "the resource is empty".to_owned()
    } else {
        texts.join("\n")
    })
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

pub(crate) async fn prompt(result: GetPromptResult, media: &MediaFolder) -> ToolOutput {
    let mut renderer = Renderer::new(media);
    let mut texts = Vec::with_capacity(result.messages.len());
    for message in result.messages {
        let role = json!(message.role);
        let role = role.as_str().unwrap_or("message");
        let said = renderer.content(message.content).await;
        texts.push(format!("{role}: {said}"));
    }
    renderer.output(if texts.is_empty() {
        "the prompt is empty".to_owned()
    } else {
        texts.join("\n\n")
    })
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

    async fn render(result: Value) -> String {
        // Nothing can be kept there, so files have no part in these tests.
        let nowhere = MediaFolder::new("/proc/nowhere".into());
        let result = serde_json::from_value(result).unwrap();
        tool_result(result, &nowhere).await.text
    }

    #[tokio::test]
    async fn the_first_pictures_of_many_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let media = MediaFolder::new(folder.path().to_owned());
        // The header of a GIF of one pixel.
        let image = json!({ "type": "image", "data": "R0lGODlhAQABAA==", "mimeType": "image/gif" });
        for (count, shown) in [(1, 1), (RESULT_PICTURES_MAX + 3, RESULT_PICTURES_MAX)] {
            let result = json!({ "content": vec![image.clone(); count] });
            let output = tool_result(serde_json::from_value(result).unwrap(), &media).await;
            assert_eq!(output.images.len(), shown);
            assert_eq!(output.text.matches("MEDIA:").count(), count);
            assert_eq!(output.text.matches("not shown").count(), count - shown);
        }
    }

    #[tokio::test]
    async fn contents_of_all_kinds_are_joined() {
        let text = render(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "QUJDRA==", "mimeType": "image/png" },
            { "type": "text", "text": "two" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
            { "type": "resource_link", "uri": "file:///b", "name": "b", "mimeType": "text/plain" },
        ] }))
        .await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2], lines[3]), ("one", "two", "inside"));
        assert!(lines[1].starts_with("[an image, image/png, 4 bytes"));
        assert!(lines[4].starts_with("[resource `file:///b` (b, text/plain)"));
    }

    #[tokio::test]
    async fn structured_content_is_shown_unless_the_text_says_the_same() {
        let both = render(json!({
            "content": [{ "type": "text", "text": "{ \"n\": 1 }" }], "structuredContent": { "n": 1 },
        }))
        .await;
        assert_eq!(both, "{ \"n\": 1 }");
        let alone = render(json!({ "content": [], "structuredContent": { "n": 1 } })).await;
        assert_eq!(alone, r#"{"n":1}"#);
        for (text, value) in [("3", json!(3)), ("three", json!("three"))] {
            let wrapped = render(json!({
                "content": [{ "type": "text", "text": text }], "structuredContent": { "result": value },
            }))
            .await;
            assert_eq!(wrapped, text);
        }
    }

    #[tokio::test]
    async fn no_result_is_empty() {
        assert!(!render(json!({ "content": [] })).await.is_empty());
        let failed = render(json!({ "content": [], "isError": true })).await;
        assert!(failed.contains("failed"));
    }
}
