//! Files, out and in.

use std::path::Path;

use futures_util::StreamExt as _;
use hermes_core::{AttachmentKind, Body, ChannelError, FileBytes, Outgoing, Trouble};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::Telegram;
use super::refusal::Failure;
use super::send::{Way, put_caption};
use crate::http::{limited, unreadable};

/// Larger photos are taken as documents only.
const PHOTO_BYTES_MAX: u64 = 10_000_000;
const CHUNK_BYTES: usize = 64 * 1024;

/// How a file is sent: the method, and what its field is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Manner {
    method: &'static str,
    field: &'static str,
}

const DOCUMENT: Manner = Manner {
    method: "sendDocument",
    field: "document",
};
const PHOTO: Manner = Manner {
    method: "sendPhoto",
    field: "photo",
};
const ANIMATION: Manner = Manner {
    method: "sendAnimation",
    field: "animation",
};
const VOICE: Manner = Manner {
    method: "sendVoice",
    field: "voice",
};
const AUDIO: Manner = Manner {
    method: "sendAudio",
    field: "audio",
};
const VIDEO: Manner = Manner {
    method: "sendVideo",
    field: "video",
};
const STICKER: Manner = Manner {
    method: "sendSticker",
    field: "sticker",
};

/// What Telegram takes a file as; everything it shows in no way of its own is a document.
fn manner(kind: AttachmentKind, name: &str, bytes: u64) -> Manner {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    match (kind, ending.as_str()) {
        (AttachmentKind::Picture, "png" | "jpg" | "jpeg" | "webp") if bytes <= PHOTO_BYTES_MAX => {
            PHOTO
        }
        (AttachmentKind::Picture | AttachmentKind::Video, "gif") => ANIMATION,
        (AttachmentKind::Voice | AttachmentKind::Audio, "ogg" | "oga" | "opus") => VOICE,
        (AttachmentKind::Voice | AttachmentKind::Audio, "mp3" | "m4a") => AUDIO,
        (AttachmentKind::Video, "mp4" | "m4v" | "mov") => VIDEO,
        (AttachmentKind::Sticker, "webp" | "tgs" | "webm") => STICKER,
        _ => DOCUMENT,
    }
}

impl Telegram {
    pub(super) async fn send_file(&self, message: &Outgoing, way: &Way) -> Result<Value, Failure> {
        let Body::File {
            path,
            kind,
            name,
            caption,
        } = &message.body
        else {
            return Err(ChannelError::new(Trouble::Refused, "the message is no file").into());
        };
        let bytes = self.size(path, name).await?;
        let manner = if way.as_document {
            DOCUMENT
        } else {
            manner(*kind, name, bytes)
        };
        let mut body = self.addressed(message, way);
        put_caption(&mut body, caption, way);
        if self.settings.server.is_local {
            body[manner.field] = format!("file://{}", path.display()).into();
            return self.api.call(manner.method, &body).await;
        }
        let form = form(&body, manner.field, path, name).await?;
        self.api.upload(manner.method, form).await
    }

    async fn size(&self, path: &Path, name: &str) -> Result<u64, ChannelError> {
        let unreadable = |error: std::io::Error| unreadable(path, &error);
        let about = tokio::fs::metadata(path).await.map_err(unreadable)?;
        let max = self.settings.server.upload_bytes_max();
        match about.len() {
            0 => Err(ChannelError::new(
                Trouble::Refused,
                format!("`{name}` is empty, and Telegram takes no empty files"),
            )),
            bytes if bytes > max => Err(ChannelError::new(
                Trouble::TooLong,
                format!("`{name}` has {bytes} bytes; Telegram takes {max}"),
            )
            .with_hint("a Bot API server of your own takes 2 GB: see docs/platforms/telegram.md")),
            bytes => Ok(bytes),
        }
    }

    /// Finds where a file is, and begins to fetch it.
    pub(super) async fn fetch(&self, file: &str) -> Result<FileBytes, ChannelError> {
        let found = self.api.call("getFile", &json!({"file_id": file})).await;
        let found =
            found.map_err(
                |failure| match failure.error.message.contains("file is too big") {
                    true => self.too_big(),
                    false => failure.error,
                },
            )?;
        let max = self.settings.server.download_bytes_max();
        if found["file_size"].as_u64().is_some_and(|bytes| bytes > max) {
            return Err(self.too_big());
        }
        let path = found["file_path"]
            .as_str()
            .ok_or_else(|| ChannelError::new(Trouble::NotFound, "Telegram has the file no more"))?;
        if self.settings.server.is_local && Path::new(path).is_absolute() {
            return read_here(Path::new(path), max).await;
        }
        let answer = self.api.file(path).await?;
        let chunks = answer.bytes_stream().map(|chunk| match chunk {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(_) => Err(ChannelError::new(
                Trouble::Passing,
                "the file from Telegram broke off",
            )),
        });
        Ok(limited(chunks.boxed(), max, "Telegram"))
    }

    fn too_big(&self) -> ChannelError {
        let max = self.settings.server.download_bytes_max();
        ChannelError::new(
            Trouble::TooLong,
            format!("the file is larger than the {max} bytes that bots may fetch"),
        )
        .with_hint("a Bot API server of your own gives 2 GB: see docs/platforms/telegram.md")
    }
}

async fn form(
    body: &Value,
    field: &'static str,
    path: &Path,
    name: &str,
) -> Result<Form, ChannelError> {
    let mut form = Form::new();
    for (key, value) in body.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        form = form.text(key.clone(), text);
    }
    let part = Part::file(path)
        .await
        .map_err(|error| unreadable(path, &error))?;
    Ok(form.part(field, part.file_name(name.to_owned())))
}

/// A file that a server of one's own put on this machine.
async fn read_here(path: &Path, bytes_max: u64) -> Result<FileBytes, ChannelError> {
    let file = tokio::fs::File::open(path)
        .await
        .map_err(|error| unreadable(path, &error))?;
    let chunks = futures_util::stream::try_unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        match file.read(&mut chunk).await {
            Ok(0) => Ok(None),
            Ok(read) => {
                chunk.truncate(read);
                Ok(Some((chunk, file)))
            }
            Err(error) => Err(ChannelError::new(
                Trouble::Passing,
                format!("the file broke off: {error}"),
            )),
        }
    });
    Ok(limited(chunks.boxed(), bytes_max, "Telegram"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sent_as_what_telegram_shows_them_as() {
        let check = |kind, name, method| assert_eq!(manner(kind, name, 1).method, method, "{name}");
        check(AttachmentKind::Picture, "a.PNG", "sendPhoto");
        check(AttachmentKind::Picture, "a.svg", "sendDocument");
        check(AttachmentKind::Picture, "a.gif", "sendAnimation");
        check(AttachmentKind::Voice, "a.ogg", "sendVoice");
        check(AttachmentKind::Audio, "a.opus", "sendVoice");
        check(AttachmentKind::Audio, "a.mp3", "sendAudio");
        check(AttachmentKind::Audio, "a.wav", "sendDocument");
        check(AttachmentKind::Video, "a.mp4", "sendVideo");
        check(AttachmentKind::Video, "a.mkv", "sendDocument");
        check(AttachmentKind::Document, "a.png", "sendDocument");
        check(AttachmentKind::Sticker, "a.webp", "sendSticker");
        let large = manner(AttachmentKind::Picture, "a.png", PHOTO_BYTES_MAX + 1);
        assert_eq!(large.method, "sendDocument");
    }
}
