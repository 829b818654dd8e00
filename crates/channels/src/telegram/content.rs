//! What messages hold beside words: files, and what is told in words because it has none.

use hermes_core::{Attachment, AttachmentKind};

use super::wire::{WireFile, WireLocation, WireMessage, WirePhoto, WireSticker};

pub(super) fn attachments(message: &WireMessage) -> Vec<Attachment> {
    let photo = largest(&message.photo).map(photo);
    let sticker = message.sticker.as_ref().map(sticker);
    // An animation comes a second time, as a document, for old programs.
    let document = message
        .document
        .as_ref()
        .filter(|_| message.animation.is_none());
    let files = [
        (
            AttachmentKind::Video,
            message.animation.as_ref(),
            "video/mp4",
        ),
        (AttachmentKind::Video, message.video.as_ref(), "video/mp4"),
        (
            AttachmentKind::Video,
            message.video_note.as_ref(),
            "video/mp4",
        ),
        (AttachmentKind::Voice, message.voice.as_ref(), "audio/ogg"),
        (AttachmentKind::Audio, message.audio.as_ref(), "audio/mpeg"),
        (
            AttachmentKind::Document,
            document,
            "application/octet-stream",
        ),
    ];
    let files = files
        .into_iter()
        .filter_map(|(kind, given, mime)| Some(file(kind, given?, mime)));
    photo.into_iter().chain(sticker).chain(files).collect()
}

fn largest(photos: &[WirePhoto]) -> Option<&WirePhoto> {
    let size = |photo: &&WirePhoto| {
        let area = photo
            .width
            .unwrap_or(0)
            .saturating_mul(photo.height.unwrap_or(0));
        (area, photo.file_size.unwrap_or(0))
    };
    photos.iter().max_by_key(size)
}

fn photo(photo: &WirePhoto) -> Attachment {
    Attachment {
        kind: AttachmentKind::Picture,
        name: None,
        mime: Some("image/jpeg".to_owned()),
        bytes: photo.file_size,
        file: photo.file_id.clone(),
    }
}

fn sticker(sticker: &WireSticker) -> Attachment {
    let mime = if sticker.is_animated == Some(true) {
        "application/x-tgsticker"
    } else if sticker.is_video == Some(true) {
        "video/webm"
    } else {
        "image/webp"
    };
    Attachment {
        kind: AttachmentKind::Sticker,
        name: None,
        mime: Some(mime.to_owned()),
        bytes: sticker.file_size,
        file: sticker.file_id.clone(),
    }
}

fn file(kind: AttachmentKind, file: &WireFile, mime: &str) -> Attachment {
    Attachment {
        kind,
        name: file.file_name.clone(),
        mime: Some(file.mime_type.clone().unwrap_or_else(|| mime.to_owned())),
        bytes: file.file_size,
        file: file.file_id.clone(),
    }
}

/// The words of a message, and below them what it shows that is no file.
pub(super) fn with_description(words: &str, message: &WireMessage) -> String {
    let parts = [Some(words.to_owned()), description(message)];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n")
}

fn description(message: &WireMessage) -> Option<String> {
    if let Some(venue) = &message.venue {
        let address = venue.address.as_deref().unwrap_or("no address");
        let place = place(&venue.location);
        return Some(format!("[Venue: {}, {address} ({place})]", venue.title));
    }
    if let Some(location) = &message.location {
        let kind = if location.live_period.is_some() {
            "Live location"
        } else {
            "Location"
        };
        return Some(format!("[{kind}: {}]", place(location)));
    }
    if let Some(contact) = &message.contact {
        let name = [contact.first_name.as_deref(), contact.last_name.as_deref()];
        let name = name.into_iter().flatten().collect::<Vec<_>>().join(" ");
        return Some(format!("[Contact: {name}, {}]", contact.phone_number));
    }
    if let Some(poll) = &message.poll {
        let options: String = poll
            .options
            .iter()
            .map(|option| format!("\n- {}", option.text))
            .collect();
        return Some(format!("[Poll: {}]{options}", poll.question));
    }
    if let Some(dice) = &message.dice {
        return Some(format!("[Dice {}: {}]", dice.emoji, dice.value));
    }
    let sticker = message.sticker.as_ref()?;
    let emoji = sticker.emoji.as_deref().unwrap_or_default();
    let set = sticker
        .set_name
        .as_ref()
        .map(|set| format!(" from \"{set}\""));
    Some(format!("[Sticker {emoji}{}]", set.unwrap_or_default()))
}

fn place(location: &WireLocation) -> String {
    format!("{}, {}", location.latitude, location.longitude)
}

/// What a message without words is, for whoever is told that it was replied to.
pub(super) fn label(message: &WireMessage) -> Option<String> {
    let kind = attachments(message).first()?.kind;
    let name = match kind {
        AttachmentKind::Picture => "picture",
        AttachmentKind::Sticker => "sticker",
        AttachmentKind::Video => "video",
        AttachmentKind::Voice => "voice message",
        AttachmentKind::Audio => "audio",
        AttachmentKind::Document => "document",
    };
    Some(format!("[{name}]"))
}
