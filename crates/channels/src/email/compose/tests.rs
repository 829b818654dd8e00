use std::collections::BTreeMap;

use hermes_core::{Address as ChatAddress, AttachmentKind, MessageId, PlatformSettings};
use mail_parser::{HeaderValue as Value, Message as Parsed, MessageParser, MimeHeaders as _};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::email::settings;

fn ours() -> Settings {
    let values = BTreeMap::from([
        ("address".to_owned(), json!("hermes@example.net")),
        ("password".to_owned(), json!("open sesame")),
        ("imap_host".to_owned(), json!("mail.example.net")),
        ("smtp_host".to_owned(), json!("mail.example.net")),
    ]);
    settings::read(&PlatformSettings::new(values)).expect("settings")
}

fn text_message(markdown: &str) -> Outgoing {
    Outgoing {
        to: ChatAddress::parse("email:alice@example.org").expect("an address"),
        key: "session/1/0#0".to_owned(),
        body: Body::Text {
            markdown: markdown.to_owned(),
            is_preview: false,
        },
        replies_to: None,
        follows: None,
        buttons: Vec::new(),
        is_silent: false,
    }
}

fn file_message(name: &str, caption: &str) -> Outgoing {
    Outgoing {
        body: Body::File {
            path: "/tmp/x".into(),
            kind: AttachmentKind::Document,
            name: name.to_owned(),
            caption: caption.to_owned(),
        },
        ..text_message("")
    }
}

fn thread() -> ThreadOf {
    ThreadOf {
        id: "a2@example.org".to_owned(),
        subject: "plans".to_owned(),
        references: vec!["a1@example.org".to_owned()],
    }
}

fn mail(message: &Outgoing, thread: Option<&ThreadOf>, file: Option<&[u8]>) -> Vec<u8> {
    let now = Timestamp::from_millis(1_790_000_000_000);
    let file = file.map(<[u8]>::to_vec);
    compose(message, &ours(), thread, file, now)
        .expect("a mail")
        .bytes
}

fn parsed(bytes: &[u8]) -> Parsed<'_> {
    MessageParser::default().parse(bytes).expect("a mail")
}

fn list(value: &Value<'_>) -> Vec<String> {
    let all = value.as_text_list().unwrap_or_default();
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn an_answer_is_in_its_thread() {
    let mut message = text_message("Some **bold** plans.");
    message.replies_to = Some(MessageId::from("a2@example.org"));
    let bytes = mail(&message, Some(&thread()), None);
    let mail = parsed(&bytes);
    assert_eq!(mail.subject(), Some("Re: plans"));
    assert_eq!(list(mail.in_reply_to()), ["a2@example.org"]);
    assert_eq!(
        list(mail.references()),
        ["a1@example.org", "a2@example.org"]
    );
    assert_eq!(
        mail.header_raw("Auto-Submitted").map(str::trim),
        Some("auto-replied")
    );
    assert_eq!(
        mail.from()
            .and_then(|from| from.first())
            .and_then(|from| from.address()),
        Some("hermes@example.net")
    );
    assert_eq!(
        mail.to()
            .and_then(|to| to.first())
            .and_then(|to| to.address()),
        Some("alice@example.org")
    );
    assert_eq!(mail.body_text(0).as_deref(), Some("Some bold plans."));
    assert!(
        mail.body_html(0)
            .is_some_and(|html| html.contains("<strong>bold</strong>"))
    );
    assert!(mail.date().is_some());
}

#[test]
fn a_mail_that_answers_none_is_called_by_its_first_words() {
    let bytes = mail(&text_message("# The weather\n\nIt rains."), None, None);
    let mail = parsed(&bytes);
    assert_eq!(mail.subject(), Some("The weather"));
    assert_eq!(
        mail.header_raw("Auto-Submitted").map(str::trim),
        Some("auto-generated")
    );
    assert!(list(mail.in_reply_to()).is_empty());
}

#[test]
fn the_same_message_has_the_same_id_whatever_it_says() {
    let id = |message: &Outgoing| message_id(message, &ours());
    let message = text_message("one");
    assert_eq!(id(&message), id(&text_message("perhaps again: one")));
    assert!(is_ours(&id(&message), "example.net"));
    assert!(!is_ours(&id(&message), "evil.example"));
    assert!(is_id(&id(&message)));
    let mut other = text_message("one");
    other.key = "session/1/0#1".to_owned();
    assert_ne!(id(&message), id(&other));
    let bytes = mail(&message, None, None);
    assert_eq!(parsed(&bytes).message_id(), Some(id(&message).as_str()));
}

#[test]
fn subjects_are_answered_once() {
    for (subject, expected) in [
        ("Re: plans", "Re: plans"),
        ("AW: plans", "AW: plans"),
        ("", "Re: your mail"),
        ("über 😀", "Re: über 😀"),
    ] {
        let thread = ThreadOf {
            subject: subject.to_owned(),
            ..thread()
        };
        let bytes = mail(&text_message("x"), Some(&thread), None);
        assert_eq!(parsed(&bytes).subject(), Some(expected));
    }
}

#[test]
fn long_threads_keep_their_beginning_and_their_end() {
    let thread = ThreadOf {
        references: (0..100).map(|at| format!("r{at}@example.org")).collect(),
        ..thread()
    };
    let bytes = mail(&text_message("x"), Some(&thread), None);
    let references = list(parsed(&bytes).references());
    assert_eq!(references.len(), REFERENCES_COUNT_MAX);
    assert_eq!(references[0], "r0@example.org");
    assert_eq!(references[REFERENCES_COUNT_MAX - 1], "a2@example.org");
}

#[test]
fn files_arrive_as_they_are() {
    let content = b"a\nb\r\n\x00\xff";
    let bytes = mail(
        &file_message("über/\"x\".txt", "the **file**"),
        None,
        Some(content),
    );
    let mail = parsed(&bytes);
    assert_eq!(mail.body_text(0).as_deref(), Some("the file"));
    let file = mail.attachment(0).expect("a file");
    assert_eq!(file.attachment_name(), Some("über__x_.txt"));
    assert_eq!(&*crate::email::update::part_bytes(&mail, file), content);
    let bytes = self::mail(&file_message("a.pdf", ""), None, Some(b"%PDF"));
    let mail = parsed(&bytes);
    assert_eq!(mail.subject(), Some("a.pdf"));
    assert_eq!(
        mail.attachment(0).map(|file| file.contents()),
        Some(&b"%PDF"[..])
    );
}

#[test]
fn what_cannot_be_sent_is_said() {
    let trouble = |message: &Outgoing| {
        let now = Timestamp::from_millis(0);
        compose(message, &ours(), None, None, now)
            .expect_err("refused")
            .trouble
    };
    assert_eq!(trouble(&text_message(" \n")), Trouble::Refused);
    assert_eq!(
        trouble(&text_message(&"x".repeat(TEXT_CHARS_MAX + 1))),
        Trouble::TooLong
    );
    for chat in [
        "404",
        "a@b\r\nBcc: evil@evil.example",
        "a b@c.d",
        "a@b, c@d",
    ] {
        let mut message = text_message("x");
        message.to.chat = chat.to_owned();
        assert_eq!(trouble(&message), Trouble::NotFound, "{chat}");
    }
}

/// Names of all headers above the text.
fn header_names(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let head = text.split("\r\n\r\n").next().unwrap_or_default().to_owned();
    let lines = head
        .split("\r\n")
        .filter(|line| !line.starts_with([' ', '\t']));
    lines
        .map(|line| line.split(':').next().unwrap_or_default().to_owned())
        .collect()
}

proptest! {
    #[test]
    fn nothing_that_anybody_writes_becomes_a_header(subject in "[ -~\\r\\n\\t\u{80}-\u{2ff}]{0,120}", id in "[ -~\\r\\n]{0,60}@[ -~\\r\\n]{0,20}", name in "\\PC{0,40}") {
        let plain = header_names(&mail(&text_message("x"), Some(&thread()), None));
        let hostile = ThreadOf { subject: subject.clone(), id: id.clone(), references: vec![id.clone()] };
        let mut message = text_message(&format!("{subject}\nx"));
        message.replies_to = Some(MessageId::from(id));
        let bytes = mail(&message, Some(&hostile), None);
        let names = header_names(&bytes);
        prop_assert!(names.iter().all(|name| plain.contains(name)), "{names:?}");
        let bytes = mail(&file_message(&format!("{name}\r\nBcc: x"), &subject), Some(&hostile), Some(b"x"));
        let names = header_names(&bytes);
        prop_assert!(names.iter().all(|name| plain.contains(name)), "{names:?}");
        prop_assert!(String::from_utf8_lossy(&bytes).lines().all(|line| line.len() <= 998));
    }

    #[test]
    fn words_arrive_as_they_were(words in "[a-zA-Z0-9é你😀]{1,20}( [a-zA-Z0-9é你😀.=]{1,20}){0,40}") {
        let bytes = mail(&text_message(&words), None, None);
        let mail = parsed(&bytes);
        prop_assert_eq!(mail.body_text(0).unwrap_or_default().into_owned(), super::markdown::render(&words).plain);
    }
}
