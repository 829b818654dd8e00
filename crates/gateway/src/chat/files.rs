//! Files that replies hand over: `MEDIA:/path` in a text becomes a file below it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hermes_core::{AttachmentKind, Body, Channel};

use super::words;

/// Which files may leave this machine.
pub trait FilePolicy: Send + Sync {
    /// Takes the file that a path means, as it is now, to where nobody changes it before it is sent; or says why it stays here.
    /// Blocks. A guest is handed nothing that is somebody else's, and nobody what is larger than this.
    fn take(&self, path: &Path, guest: Option<&str>, bytes_max: u64) -> Result<PathBuf, String>;

    /// Forgets what was taken before this, but for what waits to be sent. Blocks.
    fn forget_taken(&self, before: SystemTime, waiting: &[PathBuf]);

    /// Where files go that a guest sends.
    fn folder(&self, guest: &str) -> PathBuf;
}

const TAG: &str = "MEDIA:";
/// What a picture in markdown begins with.
const PICTURE: &str = "![";
const AS_VOICE: &str = "[[audio_as_voice]]";
const AS_DOCUMENT: &str = "[[as_document]]";
const FENCE: &str = "```";
/// Files of one reply: more is an archive.
const FILES_MAX: usize = 10;

/// What a text wants handed over, and what is left of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) text: String,
    pub(super) files: Vec<PathBuf>,
    is_voice: bool,
    is_document: bool,
}

impl Marked {
    /// Reads the marks. In code and quotes they are only words.
    pub(super) fn read(text: &str) -> Self {
        let mut marked = Self::default();
        let mut in_code = false;
        for line in text.lines() {
            let start = line.trim_start();
            in_code ^= start.starts_with(FENCE);
            if in_code || start.starts_with(FENCE) || start.starts_with('>') {
                marked.keep(line);
            } else {
                marked.read_line(line);
            }
        }
        marked.text.truncate(marked.text.trim_end().len());
        marked
    }

    fn keep(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn read_line(&mut self, line: &str) {
        let mut kept = line.to_owned();
        for (mark, flag) in [
            (AS_VOICE, &mut self.is_voice),
            (AS_DOCUMENT, &mut self.is_document),
        ] {
            if kept.contains(mark) {
                *flag = true;
                kept = kept.replace(mark, "");
            }
        }
        while let Some(tag) = Tag::find(&kept) {
            self.files.push(tag.path);
            kept.replace_range(tag.start..tag.end, "");
        }
        // A line that only had marks on it is gone with them.
        if kept.trim().is_empty() && !line.trim().is_empty() {
            return;
        }
        self.keep(kept.trim_end());
    }

    fn kind(&self, path: &Path) -> AttachmentKind {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            _ if self.is_document => AttachmentKind::Document,
            "png" | "jpg" | "jpeg" | "gif" | "webp" => AttachmentKind::Picture,
            "mp4" | "mov" | "webm" | "mkv" => AttachmentKind::Video,
            "ogg" | "opus" => AttachmentKind::Voice,
            "mp3" | "m4a" if self.is_voice => AttachmentKind::Voice,
            "mp3" | "m4a" | "wav" | "flac" => AttachmentKind::Audio,
            _ => AttachmentKind::Document,
        }
    }
}

/// One mark in a line.
struct Tag {
    start: usize,
    end: usize,
    path: PathBuf,
}

impl Tag {
    fn find(line: &str) -> Option<Self> {
        let mut tags = line.match_indices(TAG);
        let tag = tags.find_map(|(at, _)| Self::at(line, at));
        let mut pictures = line.match_indices(PICTURE);
        tag.or_else(|| pictures.find_map(|(at, _)| Self::picture(line, at)))
    }

    /// A picture in markdown that is a file here: `![words](/path)`.
    fn picture(line: &str, at: usize) -> Option<Self> {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| matches!(c, '`' | '\\')) {
            return None;
        }
        let (words, rest) = line[at + PICTURE.len()..].split_once("](")?;
        let (path, _) = rest.split_once(')')?;
        let is_file = path.starts_with('/') && !path.starts_with("//") && !words.contains(']');
        is_file.then(|| Self {
            start: at,
            end: at + PICTURE.len() + words.len() + "](".len() + path.len() + ")".len(),
            path: PathBuf::from(path),
        })
    }

    fn at(line: &str, at: usize) -> Option<Self> {
        let before = line[..at].chars().next_back();
        let is_wrapped = before == Some('`');
        if !is_wrapped && before.is_some_and(|c| !c.is_whitespace() && !"([*_".contains(c)) {
            return None;
        }
        let after = &line[at + TAG.len()..];
        let rest = after.trim_start();
        let skipped = after.len() - rest.len();
        let quote = rest.chars().next().filter(|c| "\"'`".contains(*c));
        let (path, length) = match quote {
            Some(quote) => {
                let end = rest[1..].find(quote)?;
                (&rest[1..=end], end + 2)
            }
            None if is_wrapped => {
                let end = rest.find('`')?;
                (&rest[..end], end + 1)
            }
            None => plain_path(rest, line[..at].trim().is_empty()),
        };
        path.starts_with('/').then(|| Self {
            start: at - usize::from(is_wrapped),
            end: at + TAG.len() + skipped + length,
            path: PathBuf::from(path),
        })
    }
}

/// A path without quotes: the rest of a line of its own, with the spaces in it; otherwise one word.
fn plain_path(rest: &str, is_alone: bool) -> (&str, usize) {
    let whole = rest.trim_end();
    let has_extension = Path::new(whole).extension().is_some_and(|extension| {
        let letters = extension.to_str().unwrap_or_default();
        !letters.is_empty() && letters.chars().all(char::is_alphanumeric)
    });
    if is_alone && has_extension && !whole.contains(TAG) {
        return (whole, rest.len());
    }
    let word = rest.split_whitespace().next().unwrap_or_default();
    let path = word.trim_end_matches([')', ']', ',', ';', '.', '*', '_']);
    (path, path.len())
}

/// What is said of a reply while it is written: its text, without the marks.
pub(super) fn without_marks(text: &str) -> String {
    if text.contains(TAG) || text.contains("[[a") || text.contains(PICTURE) {
        Marked::read(text).text
    } else {
        text.to_owned()
    }
}

/// The files of a reply as messages, and words for those that stay here.
pub(super) async fn bodies(
    marked: Marked,
    channel: &dyn Channel,
    policy: &Arc<dyn FilePolicy>,
    guest: Option<&str>,
) -> Vec<Body> {
    let bytes_max = channel.facts().file_bytes_max;
    let (policy, guest) = (Arc::clone(policy), guest.map(str::to_owned));
    let look = move || {
        let mut bodies = Vec::new();
        for path in marked.files.iter().take(FILES_MAX) {
            bodies.push(
                file(&marked, path, policy.as_ref(), guest.as_deref(), bytes_max).unwrap_or_else(
                    |why| {
                        let name = name_of(path);
                        words::body(format!("_(I cannot send `{name}`: {why})_"))
                    },
                ),
            );
        }
        if marked.files.len() > FILES_MAX {
            let more = marked.files.len() - FILES_MAX;
            let words =
                format!("_({more} more files were not sent: {FILES_MAX} go with one reply)_");
            bodies.push(words::body(words));
        }
        bodies
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn file(
    marked: &Marked,
    path: &Path,
    policy: &dyn FilePolicy,
    guest: Option<&str>,
    bytes_max: u64,
) -> Result<Body, String> {
    let taken = policy.take(path, guest, bytes_max)?;
    Ok(Body::File {
        kind: marked.kind(path),
        name: name_of(path),
        path: taken,
        caption: String::new(),
    })
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_shown = |c: &char| !c.is_control() && *c != '`';
    name.chars().filter(is_shown).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Vec<String> {
        let marked = Marked::read(text);
        let paths = marked.files.iter();
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn a_mark_becomes_a_file_and_is_gone_from_the_text() {
        let marked = Marked::read("Here it is:\nMEDIA:/tmp/a b.png\n\nAnything else?");
        assert_eq!(marked.text, "Here it is:\n\nAnything else?");
        assert_eq!(marked.files, [PathBuf::from("/tmp/a b.png")]);
        assert_eq!(marked.kind(&marked.files[0]), AttachmentKind::Picture);
    }

    #[test]
    fn paths_are_read_as_models_write_them() {
        for (text, expected) in [
            ("see MEDIA:/tmp/a.png, and more", vec!["/tmp/a.png"]),
            ("`MEDIA:/tmp/a b.txt` is it", vec!["/tmp/a b.txt"]),
            ("MEDIA:\"/tmp/a, b.txt\"", vec!["/tmp/a, b.txt"]),
            ("MEDIA: /tmp/x.pdf", vec!["/tmp/x.pdf"]),
            (
                "MEDIA:/tmp/a.png MEDIA:/tmp/b.png",
                vec!["/tmp/a.png", "/tmp/b.png"],
            ),
            ("(MEDIA:/tmp/a.png)", vec!["/tmp/a.png"]),
        ] {
            assert_eq!(files(text), expected, "{text}");
        }
    }

    #[test]
    fn a_picture_in_markdown_that_lies_here_is_a_file() {
        let marked = Marked::read("Look:\n![the plot](/tmp/plot 1.png)\nNice.");
        assert_eq!(marked.text, "Look:\nNice.");
        assert_eq!(marked.files, [PathBuf::from("/tmp/plot 1.png")]);
        for text in [
            "![plot](https://x.example/plot.png)",
            "![plot](//x.example/plot.png)",
            "`![plot](/tmp/plot.png)`",
            "![plot](plot.png)",
            "![plot](/tmp/unclosed",
            "[a link](/tmp/plot.png)",
        ] {
            assert_eq!(files(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn words_about_marks_are_words() {
        for text in [
            "```\nMEDIA:/tmp/a.png\n```",
            "> MEDIA:/tmp/a.png",
            "XMEDIA:/tmp/a.png",
            "{\"tag\": \"MEDIA:/tmp/a.png\"}",
            "MEDIA:relative.png",
            "MEDIA:",
            "MEDIA:`/tmp/unclosed",
        ] {
            let marked = Marked::read(text);
            assert_eq!((marked.files.len(), marked.text.as_str()), (0, text));
        }
    }

    #[test]
    fn what_it_goes_as_can_be_said() {
        let voice = Marked::read("[[audio_as_voice]]\nMEDIA:/tmp/a.mp3");
        assert_eq!(voice.kind(&voice.files[0]), AttachmentKind::Voice);
        let plain = Marked::read("[[as_document]] MEDIA:/tmp/a.png");
        assert_eq!(plain.kind(&plain.files[0]), AttachmentKind::Document);
        assert_eq!((voice.text, plain.text), (String::new(), String::new()));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "[MEDIA:/`\"'> \\n.a(!)\\[\\]]{0,40}") {
            Marked::read(&text);
        }
    }
}
