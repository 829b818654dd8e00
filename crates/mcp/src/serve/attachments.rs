//! The pictures and sounds of a message.

use hermes_core::{Archive, Media, MediaSource, Part, SpokenFrom, SpokenQuery};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::answer::{CallOutcome, Refused};
use super::arguments::Arguments;

/// Of all attachments of an answer together, as they travel; clients refuse much larger messages.
const BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) async fn fetch(archive: &dyn Archive, arguments: &Arguments) -> CallOutcome {
    let session = archive.find(&arguments.text("session_key")?).await?;
    let Some(id) = arguments.number("message_id", 1..=u64::MAX)? else {
        return Err(Refused("the argument `message_id` is missing".to_owned()));
    };
    let query = SpokenQuery {
        session: Some(session.clone()),
        from: SpokenFrom::After(id - 1),
        with_results: false,
        limit: 1,
    };
    let found = archive.spoken(query).await?.pop();
    let Some(spoken) = found.filter(|spoken| spoken.place == id) else {
        return Err(Refused(format!(
            "conversation `{session}` has no message {id}; messages_read shows the ids"
        )));
    };
    Ok(result(&spoken.message.parts))
}

/// Describes every attachment, and adds those that are stored here and fit.
fn result(parts: &[Part]) -> CallToolResult {
    let mut described = Vec::new();
    let mut blocks = Vec::new();
    let mut bytes_left = BYTES_MAX;
    for part in parts {
        let (kind, media) = match part {
            Part::Image(media) => ("image", media),
            Part::Audio(media) => ("audio", media),
            _ => continue,
        };
        let block = block(kind, media, &mut bytes_left);
        described.push(describe(kind, media, block.is_some()));
        blocks.extend(block);
    }
    let mut result = CallToolResult::structured(json!({
        "count": described.len(),
        "attachments": described,
    }));
    result.content.extend(blocks);
    result
}

fn block(kind: &str, media: &Media, bytes_left: &mut usize) -> Option<ContentBlock> {
    let MediaSource::Base64(data) = &media.source else {
        return None;
    };
    *bytes_left = bytes_left.checked_sub(data.len())?;
    Some(match kind {
        "image" => ContentBlock::image(data, &media.mime),
        _ => ContentBlock::audio(data, &media.mime),
    })
}

fn describe(kind: &str, media: &Media, is_included: bool) -> Value {
    let mut described = json!({ "type": kind, "mime_type": media.mime });
    match &media.source {
        MediaSource::Url(url) => described["url"] = json!(url),
        MediaSource::Base64(data) => {
            described["base64_bytes"] = json!(data.len());
            described["is_included"] = json!(is_included);
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_described_and_left_out() {
        let image = |source| {
            let mime = "image/png".to_owned();
            Part::Image(Media { mime, source })
        };
        let parts = [
            Part::text("look"),
            image(MediaSource::Base64("AAAA".into())),
            image(MediaSource::Base64("A".repeat(BYTES_MAX))),
            image(MediaSource::Url("https://example.org/a.png".into())),
        ];
        let result = result(&parts);
        let described = result.structured_content.unwrap();
        assert_eq!(described["count"], 3);
        assert_eq!(described["attachments"][0]["is_included"], true);
        assert_eq!(described["attachments"][1]["is_included"], false);
        assert_eq!(
            described["attachments"][2]["url"],
            "https://example.org/a.png"
        );
        assert_eq!(result.content.len(), 2, "the description and one image");
    }
}
