//! Files that people send: kept where tools can read them, pictures shown to the model, short texts read to it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use hermes_core::picture::{PICTURE_BYTES_MAX, Picture, PictureFormat};
use hermes_core::{Attachment, AttachmentKind, Channel, Media, MediaSource};
use tokio::io::AsyncWriteExt as _;

use super::ports::ChatPorts;

/// Texts up to this are part of what somebody said; longer ones are files that the model may read.
const TEXT_BYTES_MAX: usize = 100 * 1024;
/// How long files are kept that people sent: the conversations say where they were.
pub(super) const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Bytes of a name, of the 255 that a disk takes and the 143 that an encrypted one does. What it begins with comes on top.
const NAME_BYTES_MAX: usize = 100;
/// What is longer tells nobody what a file is.
const EXTENSION_BYTES_MAX: usize = 16;
/// The folders for them, and what their names begin with.
const PLACES: [(&str, &str); 4] = [
    ("images", "img_"),
    ("videos", "video_"),
    ("audio", "audio_"),
    ("documents", "doc_"),
];

/// What became of a file.
pub(super) struct TakenFile {
    /// For the model: where it is, or why it is not.
    pub(super) note: Option<String>,
    pub(super) picture: Option<Media>,
}

/// Takes a file. A file that cannot be had is told of; it never holds the message up.
pub(super) async fn take(
    channel: &dyn Channel,
    attachment: &Attachment,
    ports: &ChatPorts,
    folder: &Path,
) -> TakenFile {
    let what = describe(attachment);
    match fetch(channel, attachment, ports, folder).await {
        Ok(path) => {
            let picture = match attachment.kind {
                AttachmentKind::Picture | AttachmentKind::Sticker => picture(&path).await,
                _ => None,
            };
            let words = match attachment.kind {
                AttachmentKind::Voice => " It was not transcribed.]".to_owned(),
                AttachmentKind::Document => match short_text(&path).await {
                    Some(text) => format!(" It says:]\n{text}"),
                    None => "]".to_owned(),
                },
                _ => "]".to_owned(),
            };
            let note = format!("[{what}, saved as {}.{words}", path.display());
            TakenFile {
                note: Some(note),
                picture,
            }
        }
        Err(reason) => TakenFile {
            note: Some(format!("[{what}; it could not be fetched: {reason}]")),
            picture: None,
        },
    }
}

fn describe(attachment: &Attachment) -> String {
    let kind = match attachment.kind {
        AttachmentKind::Picture => "picture",
        AttachmentKind::Sticker => "sticker",
        AttachmentKind::Video => "video",
        AttachmentKind::Voice => "voice message",
        AttachmentKind::Audio => "audio file",
        AttachmentKind::Document => "document",
    };
    match &attachment.name {
        Some(name) => format!("{kind} \"{}\"", clean(name)),
        None => kind.to_owned(),
    }
}

/// A name without anything that leads elsewhere, and no longer than a disk takes.
fn clean(name: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let name: String = name.chars().filter(is_plain).collect();
    let name = name.trim_start_matches('.').trim();
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    let extension = extension.filter(|extension| extension.len() <= EXTENSION_BYTES_MAX);
    let kept = |bytes: usize| hermes_core::text::head(name, bytes).trim_end();
    match extension {
        Some(extension) => {
            let begin = kept(NAME_BYTES_MAX - extension.len() - 1);
            format!("{begin}.{extension}")
        }
        None => kept(NAME_BYTES_MAX).to_owned(),
    }
}

async fn fetch(
    channel: &dyn Channel,
    attachment: &Attachment,
    ports: &ChatPorts,
    folder: &Path,
) -> Result<PathBuf, String> {
    let max = ports.settings.now().media_bytes_max;
    let too_large = || format!("it is larger than {} MB", max >> 20);
    if attachment.bytes.is_some_and(|bytes| bytes > max) {
        return Err(too_large());
    }
    let mut pieces = channel
        .download(&attachment.file)
        .await
        .map_err(|error| error.to_string())?;
    let mut next = pieces.next().await;
    let head = match &next {
        Some(Ok(head)) => head.as_slice(),
        _ => &[],
    };
    let path = place(attachment, head, ports, folder);
    let mut file = create(&path).await?;
    let mut bytes = 0;
    while let Some(piece) = next {
        let written = async {
            let piece = piece.map_err(|error| error.to_string())?;
            bytes += piece.len() as u64;
            if bytes > max {
                return Err(too_large());
            }
            file.write_all(&piece)
                .await
                .map_err(|error| error.to_string())
        };
        if let Err(reason) = written.await {
            _ = tokio::fs::remove_file(&path).await;
            return Err(reason);
        }
        next = pieces.next().await;
    }
    file.flush().await.map_err(|error| error.to_string())?;
    Ok(path)
}

async fn create(path: &Path) -> Result<tokio::fs::File, String> {
    let folder = path.parent().ok_or("there is no place for it")?;
    let made = async {
        tokio::fs::create_dir_all(folder).await?;
        tokio::fs::File::create(path).await
    };
    made.await.map_err(|error| error.to_string())
}

/// Where a file goes. Its name says what it is, so that it can be sent as that again.
fn place(attachment: &Attachment, head: &[u8], ports: &ChatPorts, whose: &Path) -> PathBuf {
    let (folder, prefix) = match attachment.kind {
        AttachmentKind::Picture | AttachmentKind::Sticker => PLACES[0],
        AttachmentKind::Video => PLACES[1],
        AttachmentKind::Voice | AttachmentKind::Audio => PLACES[2],
        AttachmentKind::Document => PLACES[3],
    };
    let number = ports.random.next_u64() & 0xffff_ffff_ffff;
    let name = attachment
        .name
        .as_deref()
        .map(clean)
        .filter(|name| !name.is_empty());
    let mut name = match name {
        Some(name) => format!("{prefix}{number:012x}_{name}"),
        None => format!("{prefix}{number:012x}"),
    };
    if Path::new(&name).extension().is_none()
        && let Some(extension) = extension(attachment, head)
    {
        name.push('.');
        name.push_str(extension);
    }
    whose.join(folder).join(name)
}

/// What a file without a telling name is: its first bytes say so, else the platform does.
fn extension(attachment: &Attachment, head: &[u8]) -> Option<&'static str> {
    let by_bytes = match PictureFormat::of(head) {
        Some(PictureFormat::Png) => Some("png"),
        Some(PictureFormat::Jpeg) => Some("jpg"),
        Some(PictureFormat::Gif) => Some("gif"),
        Some(PictureFormat::WebP) => Some("webp"),
        None if head.starts_with(b"OggS") => Some("ogg"),
        None if head.starts_with(b"%PDF") => Some("pdf"),
        None => None,
    };
    let mime = attachment.mime.as_deref().unwrap_or_default();
    by_bytes.or(match (mime, attachment.kind) {
        ("image/jpeg", _) | ("", AttachmentKind::Picture) => Some("jpg"),
        ("image/png", _) => Some("png"),
        ("image/gif", _) => Some("gif"),
        ("image/webp", _) => Some("webp"),
        ("application/x-tgsticker", _) => Some("tgs"),
        ("video/webm", _) => Some("webm"),
        ("video/mp4", _) | ("", AttachmentKind::Video) => Some("mp4"),
        ("audio/ogg" | "audio/opus", _) | ("", AttachmentKind::Voice) => Some("ogg"),
        ("audio/mpeg", _) => Some("mp3"),
        ("audio/mp4" | "audio/x-m4a" | "audio/aac", _) => Some("m4a"),
        ("application/pdf", _) => Some("pdf"),
        ("text/plain", _) => Some("txt"),
        _ => None,
    })
}

/// What a short text says; nothing of what is long or no text.
async fn short_text(path: &Path) -> Option<String> {
    let bytes = tokio::fs::metadata(path).await.ok()?.len();
    if bytes > TEXT_BYTES_MAX as u64 {
        return None;
    }
    let text = String::from_utf8(tokio::fs::read(path).await.ok()?).ok()?;
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    (!text.trim().is_empty() && !text.contains(is_odd)).then_some(text)
}

/// Words that no model reads in one go become a file, with their beginning told.
pub(super) async fn without_length(text: String, ports: &ChatPorts, whose: &Path) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let number = ports.random.next_u64() & 0xffff_ffff_ffff;
    let (folder, prefix) = PLACES[3];
    let name = format!("{prefix}{number:012x}_message.txt");
    let path = whose.join(folder).join(name);
    let head = hermes_core::text::head(&text, TEXT_BYTES_MAX / 10);
    let kib = text.len() / 1024;
    let written = async {
        let mut file = create(&path).await?;
        let written = file.write_all(text.as_bytes()).await;
        written.map_err(|error| error.to_string())?;
        file.flush().await.map_err(|error| error.to_string())
    };
    match written.await {
        Ok(()) => {
            let path = path.display();
            format!("{head}\n\n[The message has {kib} KB; all of it is in {path}.]")
        }
        Err(error) => {
            format!("{head}\n\n[The message has {kib} KB; the rest could not be kept: {error}]")
        }
    }
}

/// Deletes what people sent long ago, the owner and guests with folders of their own. Blocks.
pub(super) fn forget_old(media: &Path, now: SystemTime) {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        inside.map(|one| one.path()).collect()
    };
    let guests = folders(media).into_iter().flat_map(|one| folders(&one));
    for whose in guests.filter(|whose| whose.is_dir()) {
        forget_old_of(&whose, now);
    }
    forget_old_of(media, now);
}

fn forget_old_of(media: &Path, now: SystemTime) {
    for (folder, prefix) in PLACES {
        let Ok(files) = std::fs::read_dir(media.join(folder)) else {
            continue;
        };
        for file in files.flatten() {
            let is_ours = file.file_name().to_string_lossy().starts_with(prefix);
            let changed = file.metadata().and_then(|about| about.modified());
            let age = changed.map(|changed| now.duration_since(changed).unwrap_or_default());
            if is_ours && age.is_ok_and(|age| age > KEPT) {
                _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// A picture that models can be shown; its first bytes say what it is, not its name.
async fn picture(path: &Path) -> Option<Media> {
    let bytes = tokio::fs::metadata(path).await.ok()?.len();
    if bytes > PICTURE_BYTES_MAX as u64 {
        return None;
    }
    let bytes = tokio::fs::read(path).await.ok()?;
    let format = hermes_core::picture::PictureFormat::of(&bytes)?;
    Picture::showable(format, &bytes).ok()?;
    Some(Media {
        mime: format.mime().to_owned(),
        source: MediaSource::Base64(STANDARD.encode(&bytes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(kind: AttachmentKind, mime: &str) -> Attachment {
        Attachment {
            kind,
            name: None,
            mime: (!mime.is_empty()).then(|| mime.to_owned()),
            bytes: None,
            file: "f".into(),
        }
    }

    #[test]
    fn a_file_without_a_name_is_called_what_it_is() {
        for (kind, mime, head, expected) in [
            (AttachmentKind::Picture, "image/jpeg", "\u{89}", Some("jpg")),
            (AttachmentKind::Picture, "image/jpeg", "GIF89a", Some("gif")),
            (AttachmentKind::Voice, "audio/ogg", "", Some("ogg")),
            (AttachmentKind::Voice, "", "", Some("ogg")),
            (AttachmentKind::Video, "video/mp4", "", Some("mp4")),
            (AttachmentKind::Document, "", "%PDF-1.7", Some("pdf")),
            (AttachmentKind::Document, "application/x", "", None),
        ] {
            let found = extension(&sent(kind, mime), head.as_bytes());
            assert_eq!(found, expected, "{kind:?} {mime} {head}");
        }
    }

    #[test]
    fn a_long_name_is_cut_by_its_bytes_and_keeps_its_extension() {
        for (name, expected) in [
            ("报告.pdf".to_owned(), "报告.pdf".to_owned()),
            (
                format!("{}.pdf", "报".repeat(80)),
                format!("{}.pdf", "报".repeat(32)),
            ),
            ("a".repeat(300), "a".repeat(100)),
            (
                format!("a.{}", "b".repeat(200)),
                format!("a.{}", "b".repeat(98)),
            ),
        ] {
            assert_eq!(clean(&name), expected);
        }
        let folder = tempfile::tempdir().unwrap();
        let name = format!(
            "video_0123456789ab_{}",
            clean(&format!("{}.webm", "😀報".repeat(99)))
        );
        std::fs::write(folder.path().join(name), "x").unwrap();
    }

    #[test]
    fn only_old_files_of_ours_are_forgotten() {
        let media = tempfile::tempdir().unwrap();
        let folder = media.path().join("images");
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["img_0123456789ab.jpg", "mine.jpg"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let names = || {
            let files = std::fs::read_dir(&folder).unwrap().flatten();
            files.map(|file| file.file_name()).collect::<Vec<_>>()
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        forget_old(media.path(), now - Duration::from_secs(3_900_000_000));
        assert_eq!(names().len(), 2);
        forget_old(media.path(), now);
        assert_eq!(names(), ["mine.jpg"]);
    }
}
