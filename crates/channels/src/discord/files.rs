//! Files, out and in.

use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use hermes_core::{ChannelError, FileBytes, Trouble};
use reqwest::multipart::{Form, Part};
use serde_json::Value;

use super::Discord;
use crate::http::{limited, unreadable};

/// What bots may send to any server.
pub(super) const UPLOAD_BYTES_MAX: u64 = 10 * 1024 * 1024;

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
        Ok(limited(chunks.boxed(), max, "Discord"))
    }
}
