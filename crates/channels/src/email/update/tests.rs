use std::collections::BTreeMap;

use hermes_core::PlatformSettings;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::email::settings;

fn settings_of(more: &[(&str, serde_json::Value)]) -> Settings {
    let mut values = BTreeMap::from([
        ("address".to_owned(), json!("hermes@example.net")),
        ("password".to_owned(), json!("open sesame")),
        ("imap_host".to_owned(), json!("mail.example.net")),
        ("smtp_host".to_owned(), json!("mail.example.net")),
        ("authserv_id".to_owned(), json!("mx.example.net")),
    ]);
    for (key, value) in more {
        values.insert((*key).to_owned(), value.clone());
    }
    settings::read(&PlatformSettings::new(values)).expect("settings")
}

fn letter(bytes: &[u8]) -> Letter {
    Letter {
        place: LetterPlace {
            validity: 7,
            uid: 42,
        },
        received: Some(Timestamp::from_millis(1_790_000_000_000)),
        bytes_count: bytes.len() as u64,
        bytes: bytes.to_vec(),
    }
}

const PROVEN: &str =
    "Authentication-Results: mx.example.net; dmarc=pass header.from=example.org\r\n";

fn read_of(headers: &str, body: &str) -> Result<IncomingMessage, String> {
    let mail = format!("{PROVEN}{headers}\r\n{body}");
    let read = read(&letter(mail.as_bytes()), &settings_of(&[]))?;
    match read.update.incoming {
        Incoming::Message(message) => Ok(message),
        other => panic!("{other:?}"),
    }
}

const FROM: &str = "From: Alice <Alice@Example.org>\r\nMessage-ID: <a1@example.org>\r\n";

fn text_of(headers: &str, body: &str) -> String {
    read_of(&format!("{FROM}{headers}"), body)
        .expect("a mail")
        .text
}

#[test]
fn a_mail_is_a_message_of_its_sender() {
    let message = read_of(&format!("{FROM}Subject: Re: plans\r\n"), "hello\r\n").expect("a mail");
    assert_eq!(message.sender.id, "alice@example.org");
    assert_eq!(message.sender.name.as_deref(), Some("Alice"));
    assert_eq!(message.chat, Chat::direct("alice@example.org"));
    assert_eq!(message.id.as_str(), "a1@example.org");
    assert_eq!(message.text, "hello");
    assert_eq!(message.replies_to, None);
}

#[test]
fn the_subject_comes_with_the_words_unless_it_says_nothing_new() {
    assert_eq!(
        text_of("Subject: plans\r\n", "hello"),
        "[Subject: plans]\n\nhello"
    );
    assert_eq!(text_of("Subject: Re: plans\r\n", "hello"), "hello");
    assert_eq!(text_of("Subject: AW: plans\r\n", "hello"), "hello");
    assert_eq!(text_of("Subject: RE[2]: plans\r\n", "hello"), "hello");
    assert_eq!(text_of("Subject: plans\r\n", "/status"), "/status");
    assert_eq!(
        text_of("Subject: what is the time?\r\n", "\r\n"),
        "what is the time?"
    );
    assert_eq!(text_of("", "hello"), "hello");
    assert_eq!(
        text_of("Subject: =?utf-8?B?w7xiZXI=?=\r\n x\r\n", "hello"),
        "[Subject: über x]\n\nhello"
    );
}

#[test]
fn letters_of_all_kinds_are_read() {
    let latin = "Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n";
    assert_eq!(text_of(latin, "caf=E9 =\r\nau lait"), "café au lait");
    let japanese = "Content-Type: text/plain; charset=iso-2022-jp\r\n";
    assert_eq!(text_of(japanese, "\u{1b}$B$3$s\u{1b}(B"), "こん");
    let encoded =
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n";
    assert_eq!(text_of(encoded, "aGVsbG8g8J+YgA=="), "hello 😀");
    let html = "Content-Type: text/html\r\n";
    assert_eq!(
        text_of(
            html,
            "<p>one</p><p>two <b>three</b><script>x()</script></p>"
        )
        .replace('\n', " ")
        .split_whitespace()
        .collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
    assert_eq!(text_of("", "a\u{7}b\u{0}c\u{1b}[31m"), "abc[31m");
}

#[test]
fn what_is_answered_is_known_and_what_is_quoted_is_cut() {
    let headers = format!(
        "{FROM}Subject: Re: plans\r\nIn-Reply-To: <hermes-1f@example.net>\r\nReferences: <r@x.y>\r\n <hermes-1f@example.net>\r\n"
    );
    let body = "yes\r\n\r\nOn Monday, Hermes wrote:\r\n> shall I?\r\n";
    let message = read_of(&headers, body).expect("a mail");
    assert_eq!(message.text, "yes");
    let replied = message.replies_to.expect("a reply");
    assert_eq!(replied.id.as_str(), "hermes-1f@example.net");
    assert!(replied.is_ours);
    let mail = format!("{PROVEN}{headers}\r\n{body}");
    let read = read(&letter(mail.as_bytes()), &settings_of(&[])).expect("a mail");
    assert_eq!(read.thread.references, ["r@x.y", "hermes-1f@example.net"]);
    // The mail as it came is kept.
    assert!(
        read.update.raw["text"]
            .as_str()
            .expect("text")
            .contains("shall I?")
    );
    assert!(
        read.update.raw["headers"]
            .to_string()
            .contains("dmarc=pass")
    );
    assert_eq!(
        read.update.sent,
        Some(Timestamp::from_millis(1_790_000_000_000))
    );
}

#[test]
fn a_mail_that_is_passed_on_is_not_its_senders_words() {
    let block = "From: Bob <b@c.d>\r\nDate: Monday\r\nTo: Alice\r\nSubject: pay\r\n\r\npay me\r\n";
    let body = format!("see below\r\n\r\n---------- Forwarded message ---------\r\n{block}");
    // Programs refer to the mail that they pass on.
    let headers = format!("{FROM}Subject: Fwd: pay\r\nReferences: <r@x.y>\r\n");
    let message = read_of(&headers, &body).expect("a mail");
    assert_eq!(message.text, "see below");
    let forwarded = message.forwarded.expect("what was passed on");
    assert!(
        forwarded.text.starts_with("[Subject: Fwd: pay]"),
        "{forwarded:?}"
    );
    assert!(forwarded.text.ends_with("pay me"), "{forwarded:?}");
    let message = read_of(&headers, block).expect("a mail");
    assert_eq!(message.text, "");
    assert!(message.forwarded.expect("it").text.ends_with("pay me"));
}

#[test]
fn only_proven_senders_are_heard() {
    let plain = format!("{FROM}\r\nhello");
    let refused = |mail: &str, settings: &Settings| read(&letter(mail.as_bytes()), settings).err();
    assert!(refused(&plain, &settings_of(&[])).is_some());
    assert!(refused(&plain, &settings_of(&[("trust_from_header", json!(true))])).is_none());
    assert!(refused(&format!("{PROVEN}{plain}"), &settings_of(&[])).is_none());
    let forged = format!(
        "Authentication-Results: mx.example.net; dmarc=fail header.from=example.org\r\n{PROVEN}{plain}"
    );
    assert!(refused(&forged, &settings_of(&[])).is_some());
    for from in [
        "From: alice@example.org\r\nFrom: bob@example.org\r\n",
        "From: alice@example.org, bob@example.org\r\n",
        "From: Alice\r\n",
        "From: \"alice@example.org\" <evil@evil.example>\r\n",
        "From: <>\r\n",
        "Sender: alice@example.org\r\n",
        "",
    ] {
        assert!(read_of(from, "hello").is_err(), "{from}");
    }
}

#[test]
fn machines_are_not_answered() {
    let error = read_of(
        &format!("{FROM}Auto-Submitted: auto-replied\r\n"),
        "I am away",
    );
    assert!(error.expect_err("automatic").contains("automatically"));
    assert!(read_of("From: no-reply@example.org\r\n", "news").is_err());
}

const FILES: &str = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n";

fn part(headers: &str, body: &str) -> String {
    format!("--x\r\n{headers}\r\n{body}\r\n")
}

#[test]
fn files_are_told_of_and_found_again() {
    let mail = part("Content-Type: text/plain\r\n", "look")
        + &part(
            "Content-Type: image/png; name=\"a b.png\"\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n",
            "AAEC",
        )
        + &part(
            "Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename*=utf-8''%C3%BC.jpg\r\n",
            "x",
        )
        + &part(
            "Content-Type: audio/ogg\r\nContent-Disposition: attachment; filename=v.ogg\r\n",
            "OggS",
        )
        + &part(
            "Content-Type: text/csv\r\nContent-Disposition: attachment; filename=\"../../etc/t.csv\"\r\n",
            "a,b",
        )
        + &part(
            "Content-Type: message/rfc822\r\n",
            "Subject: inner\r\n\r\ninner words",
        )
        + "--x--\r\n";
    let message = read_of(&format!("{FROM}{FILES}"), &mail).expect("a mail");
    assert_eq!(message.text, "look");
    let kinds: Vec<_> = message.attachments.iter().map(|file| file.kind).collect();
    use AttachmentKind::{Document, Picture, Voice};
    assert_eq!(kinds, [Picture, Picture, Voice, Document, Document]);
    let names: Vec<_> = message
        .attachments
        .iter()
        .map(|file| file.name.as_deref())
        .collect();
    assert_eq!(names[..2], [Some("a b.png"), Some("ü.jpg")]);
    assert_eq!(message.attachments[0].bytes, Some(3));
    let inner = "Subject: inner\r\n\r\ninner words";
    assert_eq!(message.attachments[4].bytes, Some(inner.len() as u64));
    assert_eq!(message.attachments[0].file, "7.42.0");
    let (place, at) = LetterPlace::of_file("7.42.0").expect("a place");
    assert_eq!((place.validity, place.uid, at), (7, 42, "0"));
    for wrong in ["", "7", "7.42", "a.b.c"] {
        assert!(LetterPlace::of_file(wrong).is_none(), "{wrong}");
    }
    let skipping = settings_of(&[("skip_attachments", json!(true))]);
    let mail = format!("{PROVEN}{FROM}{FILES}\r\n{mail}");
    let read = read(&letter(mail.as_bytes()), &skipping).expect("a mail");
    assert!(
        matches!(read.update.incoming, Incoming::Message(message) if message.attachments.is_empty())
    );
}

#[test]
fn too_much_is_said_and_not_lost() {
    let long = "word ".repeat(20_000);
    let message = read_of(FROM, &long).expect("a mail");
    assert!(message.text.chars().count() < TEXT_CHARS_MAX + 200);
    assert!(message.text.ends_with("all of it is in the file.]"));
    assert_eq!(message.attachments[0].file, "7.42.text");
    let many: String = (0..30)
        .map(|at| part(&format!("Content-Type: text/csv\r\nContent-Disposition: attachment; filename={at}.csv\r\n"), "x"))
        .collect();
    let message = read_of(&format!("{FROM}{FILES}"), &many).expect("a mail");
    assert_eq!(message.attachments.len(), ATTACHMENTS_COUNT_MAX);
    assert!(message.text.contains("10 more files"), "{}", message.text);
    let mut large = letter(
        format!(
            "{PROVEN}{FROM}{FILES}\r\n{}",
            part("Content-Type: text/plain\r\n", "see the film")
        )
        .as_bytes(),
    );
    large.bytes_count = 90_000_000;
    let read = read(&large, &settings_of(&[])).expect("a mail");
    let Incoming::Message(message) = read.update.incoming else {
        panic!("a message");
    };
    assert!(message.text.starts_with("see the film"), "{}", message.text);
    assert!(message.text.contains("90 MB"), "{}", message.text);
}

#[test]
fn a_mail_without_an_id_has_one_of_its_own() {
    let read_id = |body: &str| {
        let mail = format!("{PROVEN}From: alice@example.org\r\n\r\n{body}");
        let read = read(&letter(mail.as_bytes()), &settings_of(&[])).expect("a mail");
        read.update.id
    };
    assert_eq!(read_id("a"), read_id("a"));
    assert_ne!(read_id("a"), read_id("b"));
    let evil = format!("{PROVEN}From: alice@example.org\r\nMessage-ID: <a\r\n b@c>\r\n\r\nx");
    let read = read(&letter(evil.as_bytes()), &settings_of(&[])).expect("a mail");
    assert!(!read.update.id.contains('\n'));
}

#[test]
fn numbers_in_the_mailbox_do_not_make_another_mail_of_it() {
    let mail = format!("{PROVEN}{FROM}\r\nhello");
    let one = letter(mail.as_bytes());
    let mut other = one.clone();
    other.place = LetterPlace {
        validity: 8,
        uid: 1,
    };
    let id = |letter: &Letter| read(letter, &settings_of(&[])).expect("a mail").update.id;
    assert_eq!(id(&one), id(&other));
    assert_eq!(id(&one), "a1@example.org alice@example.org");
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let trusting = settings_of(&[("trust_from_header", json!(true))]);
        let _ = read(&letter(&bytes), &trusting);
        let mut mail = format!("{PROVEN}{FROM}{FILES}").into_bytes();
        mail.extend_from_slice(&bytes);
        let _ = read(&letter(&mail), &trusting);
    }

    #[test]
    fn whatever_headers_say_ids_and_names_stay_on_their_line(value in "[ -~\\r\\n\\t\u{80}-\u{ff}]{0,80}") {
        for name in ["Subject", "Message-ID", "In-Reply-To", "References", "Content-Type"] {
            let mail = format!("{PROVEN}From: alice@example.org\r\n{name}: {value}\r\n\r\nhello");
            let Ok(read) = read(&letter(mail.as_bytes()), &settings_of(&[])) else {
                continue;
            };
            let is_line = |text: &str| !text.contains(|c: char| c.is_control());
            prop_assert!(is_line(&read.update.id) && is_line(&read.thread.subject));
            prop_assert!(read.thread.references.iter().all(|id| is_id(id)));
        }
    }
}
