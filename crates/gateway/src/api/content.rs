//! Reads the content of messages in OpenAI's shapes: a text, or a list of parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::picture::{Picture, PictureFormat};
use hermes_core::{Media, MediaSource, Part, UserMessage};
use serde_json::Value;

use super::error::{ApiError, ApiResult};

/// What was said before may be long; this is more than fits into any model.
const TEXT_BYTES_MAX: usize = 4_000_000;
const PARTS_MAX: usize = 1_000;

/// Reads a content; `place` says where it stands, for whoever wrote it.
pub(crate) fn parts(content: &Value, place: &str) -> ApiResult<Vec<Part>> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![text_part(text, place)?]),
        Value::Array(items) if items.len() > PARTS_MAX => {
            let message = format!(
                "`{place}` has {} parts; {PARTS_MAX} are allowed",
                items.len()
            );
            Err(ApiError::invalid(message).param(place))
        }
        Value::Array(items) => {
            let read = |(at, item)| part(item, &format!("{place}[{at}]"));
            items.iter().enumerate().map(read).collect()
        }
        _ => Err(
            ApiError::invalid(format!("`{place}` must be a text or a list of parts")).param(place),
        ),
    }
}

fn part(item: &Value, place: &str) -> ApiResult<Part> {
    let wrong = |what: String| ApiError::invalid(what).param(place);
    if let Value::String(text) = item {
        return text_part(text, place);
    }
    let kind = item["type"].as_str();
    let kind = kind.ok_or_else(|| wrong(format!("`{place}` has no `type`")))?;
    match kind {
        "text" | "input_text" | "output_text" => match &item["text"] {
            Value::String(text) => text_part(text, place),
            _ => Err(wrong(format!("`{place}.text` must be a text"))),
        },
        "image_url" | "input_image" => {
            let image = &item["image_url"];
            let url = image.as_str().or_else(|| image["url"].as_str());
            let url = url.ok_or_else(|| wrong(format!("`{place}.image_url` has no address")))?;
            Ok(Part::Image(image_at(url, place)?))
        }
        other => {
            let message =
                format!("`{place}` is a part of type `{other}`; texts and pictures are read");
            Err(wrong(message).code("unsupported_content_type"))
        }
    }
}

fn text_part(text: &str, place: &str) -> ApiResult<Part> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "`{place}` is a text of {} bytes; {TEXT_BYTES_MAX} are allowed",
            text.len()
        );
        return Err(ApiError::too_large(message).param(place));
    }
    Ok(Part::text(text))
}

/// Refuses texts that are longer than the settings let somebody say at once. What was said before is not looked at.
pub(crate) fn check_texts(message: &UserMessage, chars_max: usize, place: &str) -> ApiResult<()> {
    for part in &message.parts {
        let Part::Text { text } = part else {
            continue;
        };
        // Counting takes time, and bytes are never fewer.
        if text.len() > chars_max && text.chars().count() > chars_max {
            let message = format!(
                "a text in `{place}` has {} characters; {chars_max} are allowed (`platforms.api_server.max_text_chars`)",
                text.chars().count()
            );
            return Err(ApiError::too_large(message).param(place));
        }
    }
    Ok(())
}

/// A picture by its address, or inside of it.
fn image_at(url: &str, place: &str) -> ApiResult<Media> {
    let wrong = |what: String| {
        ApiError::invalid(what)
            .param(place)
            .code("invalid_image_url")
    };
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(Media {
            mime: "image/*".to_owned(),
            source: MediaSource::Url(url.to_owned()),
        });
    }
    let Some((head, data)) = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
    else {
        return Err(wrong(format!(
            "`{place}` must be an http(s) address or a `data:` one"
        )));
    };
    if !head.ends_with(";base64") {
        return Err(wrong(format!(
            "the picture of `{place}` must be written in base64"
        )));
    }
    let bytes = STANDARD
        .decode(data.trim())
        .map_err(|error| wrong(format!("the picture of `{place}` is not base64: {error}")))?;
    let format = PictureFormat::of(&bytes).ok_or_else(|| {
        wrong(format!(
            "what `{place}` holds is no PNG, JPEG, GIF or WebP picture"
        ))
    })?;
    match Picture::showable(format, &bytes) {
        Ok(_) => Ok(Media {
            mime: format.mime().to_owned(),
            source: MediaSource::Base64(data.trim().to_owned()),
        }),
        Err(error) => Err(wrong(format!(
            "the picture of `{place}` cannot be shown: it {error}"
        ))),
    }
}
