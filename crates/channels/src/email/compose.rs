//! Our messages into mail: pure functions.

use std::path::Path;
use std::time::{Duration, SystemTime};

use hermes_core::{Body, ChannelError, Outgoing, Timestamp, Trouble};
use lettre::address::Envelope;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Body as MailBody, Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};
use ring::digest;

use super::markdown;
use super::settings::Settings;
use super::update::{ThreadOf, is_answer, is_id, one_line};

/// By characters, as models write them.
pub(super) const TEXT_CHARS_MAX: usize = 50_000;
/// Most servers take mails of 25 MB, and a file grows by a third on its way.
pub(super) const FILE_BYTES_MAX: u64 = 18_000_000;
const SUBJECT_CHARS_MAX: usize = 200;
/// Of a text that begins a conversation.
const NEW_SUBJECT_CHARS_MAX: usize = 70;
/// A header of more lines is cut by some servers. The first and the last tell threads apart.
const REFERENCES_COUNT_MAX: usize = 12;

/// A mail, ready to go.
#[derive(Debug, Clone)]
pub(super) struct Mail {
    /// Without its angle brackets.
    pub(super) id: String,
    pub(super) envelope: Envelope,
    pub(super) bytes: Vec<u8>,
}

/// Writes a mail. `file` are the bytes of the file that the message is about.
pub(super) fn compose(
    message: &Outgoing,
    settings: &Settings,
    thread: Option<&ThreadOf>,
    file: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Mail, ChannelError> {
    let to = recipient(&message.to.chat)?;
    let from = recipient(&settings.address)?;
    let id = message_id(message, settings);
    let subject = subject(message, thread);
    let mut builder = Message::builder()
        .from(Mailbox::new(Some("Hermes".to_owned()), from))
        .to(Mailbox::new(None, to))
        .subject(subject)
        .date(system_time(now))
        .message_id(Some(format!("<{id}>")));
    for (name, value) in headers(message, thread) {
        builder = builder.raw_header(HeaderValue::new(
            HeaderName::new_from_ascii_str(name),
            value,
        ));
    }
    let written = match file {
        None => builder.multipart(text_part(text(message)?)),
        Some(bytes) => builder.multipart(file_part(message, bytes)?),
    };
    let written =
        written.map_err(|error| refused(format!("the mail cannot be written: {error}")))?;
    Ok(Mail {
        id,
        envelope: written.envelope().clone(),
        bytes: written.formatted(),
    })
}

fn refused(words: String) -> ChannelError {
    ChannelError::new(Trouble::Refused, words)
}

fn recipient(address: &str) -> Result<Address, ChannelError> {
    let canonical = super::address::canonical(address);
    let parsed = canonical.and_then(|address| address.parse().ok());
    parsed.ok_or_else(|| {
        let words = format!(
            "`{}` is not a mail address",
            hermes_core::text::escaped(address)
        );
        ChannelError::new(Trouble::NotFound, words)
    })
}

fn system_time(now: Timestamp) -> SystemTime {
    let millis = u64::try_from(now.as_millis()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// The same whenever the message is sent again.
pub(super) fn message_id(message: &Outgoing, settings: &Settings) -> String {
    let parts = [&settings.address, &message.to.chat, &message.key];
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    format!("{OURS}{}@{}", hash(&parts), settings.domain())
}

/// How ids of our mails begin.
const OURS: &str = "hermes-";

pub(super) fn is_ours(id: &str, domain: &str) -> bool {
    let rest = id.strip_prefix(OURS).and_then(|rest| rest.split_once('@'));
    rest.is_some_and(|(_, of)| of.eq_ignore_ascii_case(domain))
}

/// The first half of a SHA-256 of parts, each with its length before it.
pub(super) fn hash(parts: &[&[u8]]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    let half = &digest.as_ref()[..16];
    half.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn subject(message: &Outgoing, thread: Option<&ThreadOf>) -> String {
    let subject = thread.map_or("", |thread| thread.subject.as_str());
    match thread {
        Some(_) if is_answer(subject) => one_line(subject, SUBJECT_CHARS_MAX),
        Some(_) if subject.is_empty() => "Re: your mail".to_owned(),
        Some(_) => format!("Re: {}", one_line(subject, SUBJECT_CHARS_MAX)),
        None => new_subject(message),
    }
}

/// A mail that answers none is called by its first words.
fn new_subject(message: &Outgoing) -> String {
    let said = match &message.body {
        Body::Text { markdown, .. } => markdown,
        Body::File { caption, name, .. } if caption.trim().is_empty() => name,
        Body::File { caption, .. } => caption,
    };
    let plain = markdown::render(said).plain;
    let first = plain.lines().map(str::trim).find(|line| !line.is_empty());
    match first.map(|line| one_line(line, NEW_SUBJECT_CHARS_MAX)) {
        Some(line) => line,
        None => "A message from Hermes".to_owned(),
    }
}

/// Machines know by these that no person wrote it, and do not answer.
fn headers(message: &Outgoing, thread: Option<&ThreadOf>) -> Vec<(&'static str, String)> {
    let answered = message.replies_to.as_ref().map(|id| id.as_str());
    let answered = answered.or(thread.map(|thread| thread.id.as_str()));
    let answered = answered.filter(|id| is_id(id));
    let submitted = match answered {
        Some(_) => "auto-replied",
        None => "auto-generated",
    };
    let mut headers = vec![
        ("Auto-Submitted", submitted.to_owned()),
        ("X-Auto-Response-Suppress", "All".to_owned()),
    ];
    if let Some(id) = answered {
        headers.push(("In-Reply-To", format!("<{id}>")));
        headers.push(("References", references(thread, id)));
    }
    headers
}

fn references(thread: Option<&ThreadOf>, answered: &str) -> String {
    let known = thread.map_or(&[][..], |thread| thread.references.as_slice());
    let mut ids: Vec<&str> = known.iter().map(String::as_str).collect();
    ids.retain(|id| is_id(id) && *id != answered);
    ids.push(answered);
    if ids.len() > REFERENCES_COUNT_MAX {
        ids.drain(1..=ids.len() - REFERENCES_COUNT_MAX);
    }
    let ids: Vec<String> = ids.iter().map(|id| format!("<{id}>")).collect();
    ids.join(" ")
}

fn text(message: &Outgoing) -> Result<&str, ChannelError> {
    let Body::Text { markdown, .. } = &message.body else {
        return Err(refused(
            "the message is a file, and its bytes are not there".to_owned(),
        ));
    };
    check_text(markdown)?;
    if markdown.trim().is_empty() {
        return Err(refused("there is no text to send".to_owned()));
    }
    Ok(markdown)
}

fn check_text(markdown: &str) -> Result<(), ChannelError> {
    if markdown.chars().count() > TEXT_CHARS_MAX {
        let words = format!("the text is longer than {TEXT_CHARS_MAX} characters");
        return Err(ChannelError::new(Trouble::TooLong, words));
    }
    Ok(())
}

fn text_part(markdown: &str) -> MultiPart {
    let rendered = markdown::render(markdown);
    MultiPart::alternative_plain_html(rendered.plain, rendered.html)
}

fn file_part(message: &Outgoing, bytes: Vec<u8>) -> Result<MultiPart, ChannelError> {
    let Body::File { name, caption, .. } = &message.body else {
        return Err(refused("the message is no file".to_owned()));
    };
    check_text(caption)?;
    let name = file_name(name);
    let kind = content_type(&name);
    // As it is, byte by byte, whatever it is.
    let body = MailBody::new_with_encoding(bytes, ContentTransferEncoding::Base64)
        .map_err(|_| refused("the file cannot be written into a mail".to_owned()))?;
    let attachment: SinglePart = Attachment::new(name).body(body, kind);
    let mixed = MultiPart::mixed();
    Ok(match caption.trim() {
        "" => mixed.singlepart(attachment),
        caption => mixed.multipart(text_part(caption)).singlepart(attachment),
    })
}

fn file_name(name: &str) -> String {
    let name = one_line(name, SUBJECT_CHARS_MAX).replace(['/', '\\', '"'], "_");
    match name.is_empty() {
        true => "file".to_owned(),
        false => name,
    }
}

fn content_type(name: &str) -> ContentType {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    let mime = match ending.unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "zip" => "application/zip",
        "json" => "application/json",
        "csv" => "text/csv",
        "txt" | "md" | "log" => "text/plain",
        _ => "application/octet-stream",
    };
    ContentType::parse(mime).unwrap_or(ContentType::TEXT_PLAIN)
}

#[cfg(test)]
mod tests;
