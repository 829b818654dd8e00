//! `hermes -z` and `hermes chat -q`: one question, one answer, an exit code.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use hermes_core::{Media, MediaSource, Part, UserMessage};

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};
use crate::prepare::Prepared;
use crate::render::{Live, Renderer};
use crate::style::Style;
use crate::turn::{self, Report};
use crate::usage_file;
use crate::wiring::Audience;

/// What is asked, and how the answer is shown.
pub struct Question {
    pub prompt: String,
    pub images: Vec<PathBuf>,
    pub source: String,
    pub audience: Audience,
    pub manner: Manner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// `-z`: the answer on standard output and nothing else anywhere.
    AnswerOnly,
    /// `chat -q -Q`: the answer, and the session's id on standard error.
    AnswerAndSession,
    /// `chat -q`: text as it comes, tools on standard error.
    Live,
}

/// Answers a question. The usage report is written whatever happens.
pub async fn run(base: &Base, flags: &RunFlags, question: Question) -> Outcome<()> {
    let asked = ask(base, flags, &question).await;
    if let Some(path) = &flags.usage_file {
        match &asked {
            Ok(report) => usage_file::write(path, report)?,
            Err(failure) => usage_file::write_failure(path, failure)?,
        }
    }
    let report = asked?;
    if question.manner == Manner::AnswerAndSession {
        note(&format!("\nsession_id: {}", report.session));
    }
    match report.failure() {
        Some(failure) if question.manner == Manner::Live && !flags.json => {
            // It was shown as it happened; only the exit code is left to tell.
            Err(Failure {
                message: String::new(),
                hint: None,
                ..failure
            })
        }
        Some(failure) => Err(failure),
        None if report.text.trim().is_empty() => {
            Err(Failure::new("the model gave no answer")
                .hint("try again, or another model with -m"))
        }
        None => Ok(()),
    }
}

async fn ask(base: &Base, flags: &RunFlags, question: &Question) -> Outcome<Report> {
    let message = message(question)?;
    let prepared = Prepared::new(base, flags, question.audience, &question.source).await?;
    let mut renderer = renderer(base, flags, question.manner);
    if question.manner == Manner::Live && !flags.json {
        for warning in &prepared.wired.warnings {
            note(&format!("warning: {warning}"));
        }
    }
    let asked = turn::run(
        &prepared.wired,
        prepared.start(),
        Some(message),
        &mut renderer,
    )
    .await;
    prepared.leave(base).await;
    let report = asked?;
    if matches!(renderer, Renderer::Quiet) && !report.text.trim().is_empty() {
        println(report.text.trim_end()).map_err(|failure| unread(failure, &report))?;
    }
    Ok(report)
}

/// An answer that nobody read is not lost.
fn unread(failure: Failure, report: &Report) -> Failure {
    let message = match failure.message.as_str() {
        "" => "cannot write the answer: standard output is closed".to_owned(),
        _ => failure.message,
    };
    Failure::new(message).hint(format!(
        "the answer is saved: hermes sessions show {}",
        report.session
    ))
}

fn renderer(base: &Base, flags: &RunFlags, manner: Manner) -> Renderer {
    match manner {
        _ if flags.json => Renderer::Json,
        Manner::AnswerOnly | Manner::AnswerAndSession => Renderer::Quiet,
        Manner::Live => {
            let style = Style::of(&std::io::stderr(), &base.environment);
            let show_reasoning =
                style.is_coloured() && base.settings.bool("display.show_reasoning").unwrap_or(true);
            Renderer::Live(Live::new(style, show_reasoning))
        }
    }
}

fn message(question: &Question) -> Outcome<UserMessage> {
    let prompt = if question.prompt == "-" {
        read_stdin()?
    } else {
        question.prompt.clone()
    };
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty")
            .hint("write what you want: hermes -z \"list the open tasks\""));
    }
    let mut parts = vec![Part::text(prompt)];
    for image in &question.images {
        parts.push(read_image(image)?);
    }
    Ok(UserMessage { parts })
}

fn read_stdin() -> Outcome<String> {
    /// A prompt larger than any context window.
    const PROMPT_BYTES_MAX: u64 = 16 * 1024 * 1024;
    if std::io::stdin().is_terminal() {
        note("reading the prompt from the keyboard; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(PROMPT_BYTES_MAX + 1);
    stdin.read_to_end(&mut bytes).map_err(|error| {
        Failure::new(format!(
            "cannot read the prompt from standard input: {error}"
        ))
    })?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::usage("the prompt has more than 16 MiB")
            .hint("save it to a file, and ask hermes to read the parts it needs"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads an image, told by its first bytes rather than by its name.
fn read_image(path: &std::path::Path) -> Outcome<Part> {
    /// What providers take at most, before encoding.
    const IMAGE_BYTES_MAX: u64 = 20 * 1024 * 1024;
    let fail = |what: String| {
        Failure::usage(format!("cannot attach `{}`: {what}", path.display()))
            .hint("--image takes the path of an image file")
    };
    let is_file = path
        .metadata()
        .map_err(|error| fail(error.to_string()))?
        .is_file();
    if !is_file {
        return Err(fail("it is not a file".into()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| fail(error.to_string()))?;
    let read = file.take(IMAGE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Err(
            fail(format!("it has more than {IMAGE_BYTES_MAX} bytes")).hint("make it smaller")
        );
    }
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        _ => {
            return Err(
                fail("it is not a PNG, JPEG, GIF or WebP image".into()).hint("convert it first")
            );
        }
    };
    Ok(Part::Image(Media {
        mime: mime.into(),
        source: MediaSource::Base64(base64(&bytes)),
    }))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let is_padding = position > chunk.len();
            let index = (group >> (18 - 6 * position)) as usize & 63;
            text.push(if is_padding {
                '='
            } else {
                char::from(ALPHABET[index])
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_standard_says() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
