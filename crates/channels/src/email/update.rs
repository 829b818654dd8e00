//! Mail into updates: pure functions of its bytes.

use std::borrow::Cow;

use hermes_core::{
    Attachment, AttachmentKind, Chat, Forwarded, Incoming, IncomingMessage, Mentions, MessageId,
    RepliedTo, Sender, Timestamp, Update,
};
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding, HeaderName, Message, MessageParser, MessagePart, MimeHeaders as _};
use serde_json::json;

use super::compose::{hash, is_ours};
use super::quotes::Kind;
use super::settings::Settings;
use super::{address, authentication, automated, quotes};

/// What a person writes in one mail; what is longer comes as a file.
const TEXT_CHARS_MAX: usize = 50_000;
/// Of the text as it came, with what it quotes.
const RAW_BYTES_MAX: usize = 256 * 1024;
const ATTACHMENTS_COUNT_MAX: usize = 20;
const SUBJECT_CHARS_MAX: usize = 500;
const NAME_CHARS_MAX: usize = 200;
/// A longer Message-ID is not one.
const ID_BYTES_MAX: usize = 250;
/// Of the mails that a mail refers to, those that threads are made of.
const REFERENCES_COUNT_MAX: usize = 100;

/// A mail as it lies in the mailbox.
#[derive(Debug, Clone)]
pub(super) struct Letter {
    pub(super) place: LetterPlace,
    /// When the server took it.
    pub(super) received: Option<Timestamp>,
    /// As large as the server says it is.
    pub(super) bytes_count: u64,
    /// All of it, or its beginning.
    pub(super) bytes: Vec<u8>,
}

impl Letter {
    fn is_whole(&self) -> bool {
        self.bytes.len() as u64 >= self.bytes_count
    }
}

/// Where a mail is: numbers mean the same for as long as the mailbox has the same validity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LetterPlace {
    pub(super) validity: u32,
    pub(super) uid: u32,
}

impl LetterPlace {
    /// What names a file of the mail: `VALIDITY.UID.PART`.
    pub(super) fn file(self, part: &str) -> String {
        format!("{}.{}.{part}", self.validity, self.uid)
    }

    pub(super) fn of_file(file: &str) -> Option<(Self, &str)> {
        let (validity, rest) = file.split_once('.')?;
        let (uid, part) = rest.split_once('.')?;
        let place = Self {
            validity: validity.parse().ok()?,
            uid: uid.parse().ok()?,
        };
        Some((place, part))
    }
}

/// The part that is a mail's whole text.
pub(super) const WHOLE_TEXT: &str = "text";

/// What an answer has to refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThreadOf {
    pub(super) id: String,
    pub(super) subject: String,
    /// Without their angle brackets, the oldest first; the mail itself is not among them.
    pub(super) references: Vec<String>,
}

/// A mail that is for us.
#[derive(Debug, Clone)]
pub(super) struct ReadLetter {
    pub(super) update: Update,
    pub(super) thread: ThreadOf,
}

/// Reads a mail; the error says why it is none that we answer.
pub(super) fn read(letter: &Letter, settings: &Settings) -> Result<ReadLetter, String> {
    let message = parse(&letter.bytes).ok_or("it is no mail")?;
    let (from, name) = sender(&message)?;
    if let Some(reason) = automated::reason(&message, &from, &settings.address) {
        return Err(reason.to_owned());
    }
    let results: Vec<&str> = message
        .headers_raw()
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("authentication-results"))
        .map(|(_, value)| value)
        .collect();
    authentication::check(&settings.proof, address::domain(&from), &results)?;
    let thread = thread_of(&message, &letter.bytes);
    let whole = whole_text(&message);
    let Content {
        text,
        forwarded,
        attachments,
    } = content(&message, letter, settings, &thread, &whole);
    let incoming = IncomingMessage {
        chat: Chat::direct(&from),
        sender: Sender {
            id: from.clone(),
            name: Some(name),
            username: Some(from.clone()),
            ..Sender::default()
        },
        id: MessageId::from(thread.id.clone()),
        text,
        forwarded,
        attachments,
        replies_to: replied_to(&message, settings),
        mentions: Mentions::default(),
        album: None,
    };
    let update = Update {
        // The number in the mailbox changes when the mailbox is moved or rebuilt; this does not.
        id: format!("{} {from}", thread.id),
        sent: letter.received,
        raw: raw(&message, letter, &whole),
        incoming: Incoming::Message(incoming),
    };
    Ok(ReadLetter { update, thread })
}

pub(super) fn parse(bytes: &[u8]) -> Option<Message<'_>> {
    MessageParser::default().parse(bytes)
}

/// Reads what an answer refers to from the headers of a mail.
pub(super) fn thread_of_headers(bytes: &[u8]) -> Option<ThreadOf> {
    let message = MessageParser::default().parse_headers(bytes)?;
    Some(thread_of(&message, bytes))
}

/// Whose mail it is, and what they call themselves. Two senders are none.
fn sender(message: &Message<'_>) -> Result<(String, String), String> {
    let is_from = |header: &&mail_parser::Header<'_>| header.name == HeaderName::From;
    if message.headers().iter().filter(is_from).count() != 1 {
        return Err("it does not have one sender".to_owned());
    }
    let senders: Vec<_> = message
        .from()
        .into_iter()
        .flat_map(|from| from.iter())
        .collect();
    let [sender] = senders.as_slice() else {
        return Err("it does not have one sender".to_owned());
    };
    let from = sender.address().and_then(address::canonical);
    let from = from.ok_or("its sender has no address that can be answered")?;
    let name = sender.name().map(|name| one_line(name, NAME_CHARS_MAX));
    let name = name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| from.clone());
    Ok((from, name))
}

fn thread_of(message: &Message<'_>, bytes: &[u8]) -> ThreadOf {
    let id = message.message_id().filter(|id| is_id(id));
    let known = |value: &mail_parser::HeaderValue<'_>| ids(value);
    let mut references = known(message.references());
    for id in known(message.in_reply_to()) {
        if !references.contains(&id) {
            references.push(id);
        }
    }
    let skipped = references.len().saturating_sub(REFERENCES_COUNT_MAX);
    ThreadOf {
        id: id.map_or_else(|| format!("none-{}", hash(&[bytes])), ToOwned::to_owned),
        subject: one_line(message.subject().unwrap_or_default(), SUBJECT_CHARS_MAX),
        references: references.split_off(skipped),
    }
}

fn ids(value: &mail_parser::HeaderValue<'_>) -> Vec<String> {
    let all = value.as_text_list().unwrap_or_default();
    let ids = all.iter().map(|id| id.trim().to_owned());
    ids.filter(|id| is_id(id)).collect()
}

/// Whether it can stand between angle brackets in a header.
pub(super) fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>\"\\(),;".contains(c);
    id.contains('@') && id.len() <= ID_BYTES_MAX && id.chars().all(is_plain)
}

fn replied_to(message: &Message<'_>, settings: &Settings) -> Option<RepliedTo> {
    let id = ids(message.in_reply_to()).into_iter().next()?;
    Some(RepliedTo {
        is_ours: is_ours(&id, settings.domain()),
        id: MessageId::from(id),
        text: None,
    })
}

/// The whole text, with everything it quotes; of HTML, its words.
pub(super) fn whole_text(message: &Message<'_>) -> String {
    let texts = (0..message.text_body_count()).filter_map(|at| message.body_text(at));
    let mut texts: Vec<_> = texts.collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        texts.extend(broken_texts(message));
    }
    let text = texts.join("\n").replace("\r\n", "\n").replace('\r', "\n");
    let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_shown).collect()
}

/// Texts that do not end, or are not encoded, as they say: what can be read of them.
fn broken_texts<'a>(message: &'a Message<'_>) -> impl Iterator<Item = Cow<'a, str>> {
    let broken = |part: &&MessagePart<'_>| part.is_encoding_problem && part.is_text();
    let parts = message.parts.iter().filter(broken);
    parts.filter_map(|part| part.text_contents().map(Cow::Borrowed))
}

/// What is said, what is passed on, and the files that come with it.
struct Content {
    text: String,
    forwarded: Option<Forwarded>,
    attachments: Vec<Attachment>,
}

fn content(
    message: &Message<'_>,
    letter: &Letter,
    settings: &Settings,
    thread: &ThreadOf,
    whole: &str,
) -> Content {
    let kind = match &thread.subject {
        subject if is_forward(subject) => Kind::Forward,
        subject if is_answer(subject) || !thread.references.is_empty() => Kind::Answer,
        _ => Kind::Letter,
    };
    let (own, passed_on) = quotes::parted(whole, kind);
    // The subject of a mail that is passed on is its own.
    let (mut text, mut passed_on) = match kind {
        Kind::Forward => (own, with_subject(&passed_on, &thread.subject)),
        _ => (with_subject(&own, &thread.subject), passed_on),
    };
    let mut attachments = Vec::new();
    let is_cut = [cut(&mut text), cut(&mut passed_on)];
    if is_cut.contains(&true) {
        attachments.push(text_file(letter, whole));
    }
    if !letter.is_whole() {
        let megabytes = letter.bytes_count.div_ceil(1_000_000);
        text.push_str(&format!("\n\n[This mail has {megabytes} MB, too much to fetch: this is how it begins, and its files are left in the mailbox.]"));
    } else if !settings.skip_attachments {
        let count = message.attachment_count();
        attachments.extend(files(message, letter.place));
        if count > ATTACHMENTS_COUNT_MAX {
            text.push_str(&format!(
                "\n\n[{} more files are left in the mailbox.]",
                count - ATTACHMENTS_COUNT_MAX
            ));
        }
    }
    let passed_on = passed_on.trim_end();
    Content {
        text: text.trim_end().to_owned(),
        forwarded: (!passed_on.is_empty()).then(|| Forwarded {
            from: None,
            text: passed_on.to_owned(),
        }),
        attachments,
    }
}

/// Leaves out what nobody reads in one go, and says so. Returns whether there was any.
fn cut(text: &mut String) -> bool {
    let length = text.chars().count();
    if length <= TEXT_CHARS_MAX {
        return false;
    }
    *text = text.chars().take(TEXT_CHARS_MAX).collect();
    text.push_str(&format!(
        "\n\n[The mail goes on for {} more characters; all of it is in the file.]",
        length - TEXT_CHARS_MAX
    ));
    true
}

/// An answer's subject says nothing new; that of a command would hide it.
fn with_subject(body: &str, subject: &str) -> String {
    let is_blank = body.trim().is_empty();
    match subject {
        "" => body.to_owned(),
        subject if is_blank && !is_answer(subject) => subject.to_owned(),
        subject if is_answer(subject) || body.trim_start().starts_with('/') => body.to_owned(),
        subject => format!("[Subject: {subject}]\n\n{body}"),
    }
}

/// `Re:`, as programs of several countries write it.
pub(super) fn is_answer(subject: &str) -> bool {
    const SIGNS: &[&str] = &[
        "re", "aw", "antw", "sv", "ref", "rif", "res", "回复", "答复",
    ];
    begins_with_sign(subject, SIGNS)
}

/// `Fwd:`
fn is_forward(subject: &str) -> bool {
    const SIGNS: &[&str] = &["fwd", "fw", "wg", "tr", "rv", "enc", "vl", "doorst", "转发"];
    begins_with_sign(subject, SIGNS)
}

fn begins_with_sign(subject: &str, signs: &[&str]) -> bool {
    let Some((sign, _)) = subject.split_once([':', '：']) else {
        return false;
    };
    let sign = sign.trim().to_lowercase();
    let sign = sign.split('[').next().unwrap_or_default().trim();
    signs.contains(&sign)
}

fn text_file(letter: &Letter, whole: &str) -> Attachment {
    Attachment {
        kind: AttachmentKind::Document,
        name: Some("mail.txt".to_owned()),
        mime: Some("text/plain".to_owned()),
        bytes: Some(whole.len() as u64),
        file: letter.place.file(WHOLE_TEXT),
    }
}

fn files(message: &Message<'_>, place: LetterPlace) -> Vec<Attachment> {
    let file = |(at, part): (usize, &MessagePart<'_>)| {
        let name = part
            .attachment_name()
            .map(|name| one_line(name, NAME_CHARS_MAX));
        let name = name.filter(|name| !name.is_empty());
        let mime = mime(part);
        Attachment {
            kind: kind(
                mime.as_deref().unwrap_or_default(),
                name.as_deref().unwrap_or_default(),
            ),
            name,
            mime,
            bytes: Some(part_bytes(message, part).len() as u64),
            file: place.file(&at.to_string()),
        }
    };
    let parts = message.attachments().enumerate();
    parts.take(ATTACHMENTS_COUNT_MAX).map(file).collect()
}

/// What a file has in it, as it was sent: a text is not translated, and a mail that is attached is a file, too.
pub(super) fn part_bytes<'a>(message: &'a Message<'_>, part: &'a MessagePart<'_>) -> Cow<'a, [u8]> {
    let (start, end) = (part.raw_body_offset(), part.raw_end_offset());
    let sent = message.raw_message().get(start as usize..end as usize);
    let decoded = match (part.encoding, sent) {
        _ if !part.is_text() && !part.is_message() => None,
        (Encoding::None, Some(sent)) => Some(sent.to_vec()),
        (Encoding::Base64, Some(sent)) => base64_decode(sent),
        (Encoding::QuotedPrintable, Some(sent)) => quoted_printable_decode(sent),
        _ => None,
    };
    decoded.map_or(Cow::Borrowed(part.contents()), Cow::Owned)
}

fn mime(part: &MessagePart<'_>) -> Option<String> {
    let kind = part.content_type()?;
    let mime = format!(
        "{}/{}",
        kind.ctype(),
        kind.subtype().unwrap_or("octet-stream")
    );
    Some(one_line(&mime.to_ascii_lowercase(), NAME_CHARS_MAX))
}

fn kind(mime: &str, name: &str) -> AttachmentKind {
    let ending = name
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_unnamed = matches!(mime, "" | "application/octet-stream");
    match (mime.split('/').next().unwrap_or_default(), ending.as_str()) {
        ("audio", "ogg" | "oga" | "opus" | "amr") => AttachmentKind::Voice,
        ("image", "svg") => AttachmentKind::Document,
        ("image", _) => AttachmentKind::Picture,
        ("audio", _) => AttachmentKind::Audio,
        ("video", _) => AttachmentKind::Video,
        (_, "png" | "jpg" | "jpeg" | "gif" | "webp") if is_unnamed => AttachmentKind::Picture,
        (_, "ogg" | "oga" | "opus" | "amr") if is_unnamed => AttachmentKind::Voice,
        _ => AttachmentKind::Document,
    }
}

/// What is kept of a mail as it came.
fn raw(message: &Message<'_>, letter: &Letter, whole: &str) -> serde_json::Value {
    const KEPT: &[&str] = &[
        "from",
        "to",
        "cc",
        "date",
        "subject",
        "message-id",
        "in-reply-to",
        "references",
        "return-path",
        "authentication-results",
    ];
    let headers: Vec<_> = message
        .headers_raw()
        .filter(|(name, _)| KEPT.contains(&name.trim().to_ascii_lowercase().as_str()))
        .map(|(name, value)| json!([name.trim(), hermes_core::text::head(value.trim(), 2000)]))
        .take(50)
        .collect();
    json!({
        "validity": letter.place.validity,
        "uid": letter.place.uid,
        "bytes": letter.bytes_count,
        "headers": headers,
        "text": hermes_core::text::head(whole, RAW_BYTES_MAX),
    })
}

/// A text of others on one line, without anything that a screen or a header takes for more than a letter.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(blank).collect();
    let words: Vec<&str> = line.split_whitespace().collect();
    hermes_core::text::shorten(&words.join(" "), chars_max)
}

#[cfg(test)]
mod tests;
