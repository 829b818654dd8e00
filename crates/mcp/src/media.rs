//! Pictures, sound and other bytes that servers send, kept as files. Pictures are shown to the model too.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermes_core::picture::{Picture, PictureFormat, Unshowable};
use hermes_core::{Media, MediaSource};
use tokio::fs::{DirBuilder, OpenOptions};
use tokio::io::AsyncWriteExt;

/// A larger one is named, not kept.
const FILE_BYTES_MAX: usize = 50 * 1024 * 1024;

/// Files whose names differ only in this number have the same hash; more would be an attack.
const NAMES_TRIED_MAX: usize = 8;

/// Where media go.
#[derive(Debug, Clone)]
pub(crate) struct MediaFolder(PathBuf);

/// What became of bytes that a server sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Kept {
    /// What they are and where, in words for the model.
    pub(crate) text: String,
    /// Them, if they are a picture that can be shown.
    pub(crate) picture: Option<Media>,
}

impl Kept {
    fn named(text: String) -> Self {
        Self {
            text,
            picture: None,
        }
    }
}

/// Returns a picture for a model, or why it cannot be shown; `None` for anything else. A server's word for what it sends
/// does not count, its bytes do.
fn picture(bytes: &[u8], base64: &str) -> Option<Result<Media, Unshowable>> {
    let format = PictureFormat::of(bytes)?;
    let shown = Picture::showable(format, bytes).map(|_| Media {
        mime: format.mime().to_owned(),
        source: MediaSource::Base64(base64.to_owned()),
    });
    Some(shown)
}

impl MediaFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Keeps the bytes in a file and says where, in words for the model; `what` names them. What cannot be kept is
    /// named all the same.
    pub(crate) async fn keep(&self, what: &str, mime_type: &str, base64: &str) -> Kept {
        let bytes_about = base64.len() / 4 * 3;
        if bytes_about > FILE_BYTES_MAX {
            return Kept::named(format!(
                "[{what}, {mime_type}, about {bytes_about} bytes: more than {FILE_BYTES_MAX}, so it was not kept]"
            ));
        }
        let Ok(bytes) = STANDARD.decode(base64) else {
            return Kept::named(format!(
                "[{what}, {mime_type}: it cannot be read, its base64 is broken]"
            ));
        };
        let (picture, note) = match picture(&bytes, base64) {
            Some(Ok(picture)) => (Some(picture), String::new()),
            Some(Err(why)) => (None, format!("; not shown to you: it {why}")),
            None => (None, String::new()),
        };
        let about = format!("{what}, {mime_type}, {} bytes{note}", bytes.len());
        let text = match self.save(&bytes, mime_type).await {
            Ok(path) => format!("[{about}]\nMEDIA:{}", path.display()),
            Err(error) => format!(
                "[{about}: it cannot be kept in `{}`: {error}]",
                self.0.display()
            ),
        };
        Kept { text, picture }
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
        let kept = media.keep("an image", "image/png", "QUJDRA==").await;
        assert_eq!(kept.picture, None, "whatever its name, it is none");
        let text = kept.text;
        let (about, path) = text.split_once("\nMEDIA:").unwrap();
        assert_eq!(about, "[an image, image/png, 4 bytes]");
        assert_eq!(std::fs::read(path).unwrap(), b"ABCD");
        assert!(path.ends_with(".png"), "{path}");
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = media.keep("an image", "image/png", "QUJDRA==").await;
        assert_eq!(again.text, text);
        let other = media.keep("an image", "image/png", "QUJDRQ==").await.text;
        assert_ne!(other, text);
    }

    #[tokio::test]
    async fn a_picture_is_kept_and_shown_if_it_can_be_seen() {
        let folder = tempfile::tempdir().unwrap();
        let media = MediaFolder::new(folder.path().to_owned());
        let gif = |width: [u8; 2]| STANDARD.encode([b"GIF89a", &width[..], b"\x01\0"].concat());
        let kept = media.keep("an image", "text/html", &gif([1, 0])).await;
        assert!(
            kept.text
                .starts_with("[an image, text/html, 10 bytes]\nMEDIA:")
        );
        let picture = Media {
            mime: "image/gif".into(),
            source: MediaSource::Base64(gif([1, 0])),
        };
        assert_eq!(kept.picture, Some(picture));

        let kept = media.keep("an image", "image/gif", &gif([0, 0x20])).await;
        let begin = "[an image, image/gif, 10 bytes; not shown to you: it is 8192×1, and no side";
        assert!(kept.text.starts_with(begin), "{}", kept.text);
        assert!(kept.text.contains("\nMEDIA:"), "{}", kept.text);
        assert_eq!(kept.picture, None);
    }

    #[tokio::test]
    async fn another_file_of_the_same_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let media = MediaFolder::new(folder.path().to_owned());
        let name = format!("{:016x}.txt", hash(b"mine"));
        std::fs::write(folder.path().join(&name), "theirs").unwrap();
        let text = media.keep("a file", "text/plain", "bWluZQ==").await.text;
        assert!(text.ends_with("-1.txt"), "{text}");
        assert_eq!(std::fs::read(folder.path().join(&name)).unwrap(), b"theirs");
    }

    #[tokio::test]
    async fn what_cannot_be_kept_is_named() {
        let media = MediaFolder::new("/proc/nowhere".into());
        let text = media.keep("an image", "image/png", "QUJDRA==").await.text;
        assert!(text.contains("cannot be kept"), "{text}");
        let text = media
            .keep("an image", "image/png", "not base64!")
            .await
            .text;
        assert!(text.contains("cannot be read"), "{text}");
        let huge = "A".repeat(FILE_BYTES_MAX / 3 * 4 + 8);
        let text = media.keep("a film", "video/mp4", &huge).await.text;
        assert!(text.contains("was not kept"), "{text}");
    }

    #[test]
    fn an_extension_comes_from_a_table() {
        assert_eq!(extension("image/PNG; charset=x"), "png");
        assert_eq!(extension("application/x-sh"), "bin");
        assert_eq!(extension("../../etc"), "bin");
    }
}
