//! Pictures, sound and other bytes that servers send, kept as files: a conversation holds text.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::fs::{DirBuilder, OpenOptions};
use tokio::io::AsyncWriteExt;

/// A larger one is named, not kept.
const FILE_BYTES_MAX: usize = 50 * 1024 * 1024;

/// Files whose names differ only in this number have the same hash; more would be an attack.
const NAMES_TRIED_MAX: usize = 8;

/// Where media go.
#[derive(Debug, Clone)]
pub(crate) struct MediaFolder(PathBuf);

impl MediaFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Keeps the bytes in a file and says where, in words for the model; `what` names them. What cannot be kept is
    /// named all the same.
    pub(crate) async fn keep(&self, what: &str, mime_type: &str, base64: &str) -> String {
        let bytes_about = base64.len() / 4 * 3;
        if bytes_about > FILE_BYTES_MAX {
            return format!(
                "[{what}, {mime_type}, about {bytes_about} bytes: more than {FILE_BYTES_MAX}, so it was not kept]"
            );
        }
        let Ok(bytes) = STANDARD.decode(base64) else {
            return format!("[{what}, {mime_type}: it cannot be read, its base64 is broken]");
        };
        match self.save(&bytes, mime_type).await {
            Ok(path) => format!(
                "[{what}, {mime_type}, {} bytes]\nMEDIA:{}",
                bytes.len(),
                path.display()
            ),
            Err(error) => format!(
                "[{what}, {mime_type}, {} bytes: it cannot be kept in `{}`: {error}]",
                bytes.len(),
                self.0.display()
            ),
        }
    }

    /// Writes a file that is named after its contents, unless it is there already.
    async fn save(&self, bytes: &[u8], mime_type: &str) -> io::Result<PathBuf> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.0).await?;
        let (hash, extension) = (hash(bytes), extension(mime_type));
        for number in 0..NAMES_TRIED_MAX {
            let path = self.0.join(match number {
                0 => format!("{hash:016x}.{extension}"),
                _ => format!("{hash:016x}-{number}.{extension}"),
            });
            match write_new(&path, bytes).await {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if tokio::fs::read(&path).await? == bytes {
                        return Ok(path);
                    }
                }
                written => return written.map(|()| path),
            }
        }
        Err(io::Error::other("too many files of this name"))
    }
}

async fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).await?;
    let written = async {
        file.write_all(bytes).await?;
        file.flush().await
    };
    if let Err(error) = written.await {
        // Half a file under this name would be taken for the whole one.
        let _ = tokio::fs::remove_file(path).await;
        return Err(error);
    }
    Ok(())
}

/// FNV-1a: a name, not a seal. A file of the same name is compared before it is used.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns an extension that programs know. A server cannot choose it freely: a picture is never called a program.
fn extension(mime_type: &str) -> &'static str {
    const EXTENSIONS: &[(&str, &str)] = &[
        ("application/gzip", "gz"),
        ("application/json", "json"),
        ("application/pdf", "pdf"),
        ("application/xml", "xml"),
        ("application/zip", "zip"),
        ("audio/aac", "aac"),
        ("audio/flac", "flac"),
        ("audio/mp4", "m4a"),
        ("audio/mpeg", "mp3"),
        ("audio/ogg", "ogg"),
        ("audio/wav", "wav"),
        ("audio/webm", "weba"),
        ("audio/x-wav", "wav"),
        ("image/bmp", "bmp"),
        ("image/gif", "gif"),
        ("image/jpeg", "jpg"),
        ("image/png", "png"),
        ("image/svg+xml", "svg"),
        ("image/tiff", "tiff"),
        ("image/webp", "webp"),
        ("text/csv", "csv"),
        ("text/html", "html"),
        ("text/markdown", "md"),
        ("text/plain", "txt"),
        ("video/mp4", "mp4"),
        ("video/webm", "webm"),
    ];
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let known = EXTENSIONS
        .iter()
        .find(|(mime, _)| mime.eq_ignore_ascii_case(essence));
    known.map_or("bin", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn bytes_become_a_private_file_named_after_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let media = MediaFolder::new(folder.path().join("media"));
        let text = media.keep("an image", "image/png", "QUJDRA==").await;
        let (about, path) = text.split_once("\nMEDIA:").unwrap();
        assert_eq!(about, "[an image, image/png, 4 bytes]");
        assert_eq!(std::fs::read(path).unwrap(), b"ABCD");
        assert!(path.ends_with(".png"), "{path}");
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(media.keep("an image", "image/png", "QUJDRA==").await, text);
        let other = media.keep("an image", "image/png", "QUJDRQ==").await;
        assert_ne!(other, text);
    }

    #[tokio::test]
    async fn another_file_of_the_same_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let media = MediaFolder::new(folder.path().to_owned());
        let name = format!("{:016x}.txt", hash(b"mine"));
        std::fs::write(folder.path().join(&name), "theirs").unwrap();
        let text = media.keep("a file", "text/plain", "bWluZQ==").await;
        assert!(text.ends_with("-1.txt"), "{text}");
        assert_eq!(std::fs::read(folder.path().join(&name)).unwrap(), b"theirs");
    }

    #[tokio::test]
    async fn what_cannot_be_kept_is_named() {
        let media = MediaFolder::new("/proc/nowhere".into());
        let text = media.keep("an image", "image/png", "QUJDRA==").await;
        assert!(text.contains("cannot be kept"), "{text}");
        let text = media.keep("an image", "image/png", "not base64!").await;
        assert!(text.contains("cannot be read"), "{text}");
        let huge = "A".repeat(FILE_BYTES_MAX / 3 * 4 + 8);
        let text = media.keep("a film", "video/mp4", &huge).await;
        assert!(text.contains("was not kept"), "{text}");
    }

    #[test]
    fn an_extension_comes_from_a_table() {
        assert_eq!(extension("image/PNG; charset=x"), "png");
        assert_eq!(extension("application/x-sh"), "bin");
        assert_eq!(extension("../../etc"), "bin");
    }
}
