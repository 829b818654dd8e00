//! Files, out and in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{ChannelError, FileBytes, Trouble};
use reqwest::multipart::{Form, Part};
use serde_json::Value;

use super::Discord;

/// What bots may send to any server.
pub(super) const UPLOAD_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// A download that brings nothing for this long is dead.
const CHUNK_MAX: Duration = Duration::from_secs(30);

/// A file that is sent.
pub(super) struct Upload {
    path: PathBuf,
    name: String,
}

pub(super) async fn upload(path: &Path, name: &str) -> Result<Upload, ChannelError> {
    let about = tokio::fs::metadata(path).await;
    let bytes = about.map_err(|error| unreadable(path, &error))?.len();
    match bytes {
        0 => Err(ChannelError::new(
            Trouble::Refused,
            format!("`{name}` is empty, and Discord takes no empty files"),
        )),
        bytes if bytes > UPLOAD_BYTES_MAX => Err(ChannelError::new(
            Trouble::TooLong,
            format!("`{name}` has {bytes} bytes; Discord takes {UPLOAD_BYTES_MAX}"),
        )),
        _ => Ok(Upload {
            path: path.to_owned(),
            name: name.to_owned(),
        }),
    }
}

impl Upload {
    pub(super) async fn form(&self, payload: &Value) -> Result<Form, ChannelError> {
        let json = Part::text(payload.to_string()).mime_str("application/json");
        let json = json.map_err(|error| {
            ChannelError::new(
                Trouble::Refused,
                format!("the message cannot be sent: {error}"),
            )
        })?;
        let file = Part::file(&self.path).await;
        let file = file.map_err(|error| unreadable(&self.path, &error))?;
        let file = file.file_name(self.name.clone());
        Ok(Form::new()
            .part("payload_json", json)
            .part("files[0]", file))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> ChannelError {
    let words = format!("`{}` cannot be read: {error}", path.display());
    ChannelError::new(Trouble::Refused, words)
}

impl Discord {
    /// Finds where a file is now, since addresses of files expire, and begins to fetch it. `CHANNEL/MESSAGE/FILE`.
    pub(super) async fn fetch(&self, file: &str) -> Result<FileBytes, ChannelError> {
        let gone = || ChannelError::new(Trouble::NotFound, "Discord has the file no more");
        let parts: Vec<&str> = file.split('/').collect();
        let [channel, message, id] = parts.as_slice() else {
            return Err(gone());
        };
        let found = self
            .api
            .get(&format!("/channels/{channel}/messages/{message}"))
            .await;
        let found = found.map_err(|failure| failure.error)?;
        let snapshots = found["message_snapshots"].as_array().into_iter().flatten();
        let forwarded = snapshots.map(|snapshot| &snapshot["message"]["attachments"]);
        let attachment = std::iter::once(&found["attachments"])
            .chain(forwarded)
            .filter_map(Value::as_array)
            .flatten()
            .find(|attachment| attachment["id"] == *id)
            .ok_or_else(gone)?;
        let max = self.settings.attachment_bytes_max;
        if attachment["size"].as_u64().is_some_and(|bytes| bytes > max) {
            let words = format!("the file is larger than {max} bytes");
            return Err(ChannelError::new(Trouble::TooLong, words)
                .with_hint("set `DISCORD_MAX_ATTACHMENT_BYTES` to take larger files"));
        }
        let address = attachment["url"].as_str().ok_or_else(gone)?;
        let answer = self.api.file(address).await?;
        let chunks = answer.bytes_stream().map(|chunk| match chunk {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(_) => Err(ChannelError::new(
                Trouble::Passing,
                "the file from Discord broke off",
            )),
        });
        Ok(limited(chunks.boxed(), max))
    }
}

/// Ends a stream with an error when it is longer than it may be, or stalls.
fn limited(chunks: FileBytes, bytes_max: u64) -> FileBytes {
    let limited =
        futures_util::stream::try_unfold((chunks, bytes_max), |(mut chunks, left)| async move {
            let next = tokio::time::timeout(CHUNK_MAX, chunks.next()).await;
            let Ok(next) = next else {
                return Err(ChannelError::new(
                    Trouble::Passing,
                    "the file does not go on coming",
                ));
            };
            let Some(chunk) = next.transpose()? else {
                return Ok(None);
            };
            match left.checked_sub(chunk.len() as u64) {
                Some(left) => Ok(Some((chunk, (chunks, left)))),
                None => Err(ChannelError::new(
                    Trouble::TooLong,
                    "the file is longer than Discord said",
                )),
            }
        });
    limited.boxed()
}
