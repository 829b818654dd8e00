//! Postfix and Dovecot as the other side of the contract.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hermes_core::{Address, AttachmentKind, Channel, MessageId};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, SaidFile, Seen};
use hermes_testkit::mail::{MailAccount, MailServer, MailWire, SERVER, SmtpFault};
use mail_parser::{MessageParser, MimeHeaders as _};
use serde_json::{Value, json};

pub(super) struct Mailbox {
    pub(super) server: Arc<MailServer>,
    pub(super) account: MailAccount,
    pub(super) wire: MailWire,
    count: AtomicU32,
    last: Mutex<Vec<u8>>,
}

impl Mailbox {
    pub(super) async fn new(server: Arc<MailServer>) -> Self {
        Self {
            account: server.account(),
            wire: MailWire::before(&server).await,
            server,
            count: AtomicU32::new(0),
            last: Mutex::default(),
        }
    }

    pub(super) fn settings(&self) -> Value {
        json!({
            "address": self.account.address,
            "password": self.account.password,
            "imap_host": "127.0.0.1",
            "imap_port": self.wire.imap_port,
            "imap_security": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": self.wire.smtp_port,
            "smtp_security": "none",
            "authserv_id": SERVER,
        })
    }

    /// The person writes a mail: headers of its own, and everything below them.
    pub(super) fn write(&self, more: &str, content: &str) -> MessageId {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let id = format!("said-{number}.{}", self.account.person);
        let mail = format!(
            "Authentication-Results: {SERVER}; dmarc=pass header.from=example.org\r\nFrom: Alice <{}>\r\nTo: {}\r\n\
             Message-ID: <{id}>\r\nDate: Mon, 16 Nov 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\n{more}{content}",
            self.account.person, self.account.address,
        );
        self.deliver(mail.as_bytes());
        *self.last.lock().unwrap() = mail.into_bytes();
        MessageId::from(id)
    }

    pub(super) fn deliver(&self, mail: &[u8]) {
        self.server
            .deliver(&self.account.person, &self.account.address, mail);
    }

    /// What is in the person's mailbox.
    pub(super) fn answers(&self) -> Vec<Seen> {
        let mails = self.server.mails(&self.account.person);
        mails.iter().map(|mail| seen(mail)).collect()
    }
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for (at, chunk) in bytes.chunks(3).enumerate() {
        if at % 19 == 0 && at > 0 {
            text.push_str("\r\n");
        }
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() {
                char::from(sign)
            } else {
                '='
            });
        }
    }
    text
}

fn text_part(text: &str) -> String {
    format!(
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n",
        base64(text.as_bytes())
    )
}

fn file_part(file: &SaidFile) -> String {
    let mime = match file.kind {
        AttachmentKind::Picture | AttachmentKind::Sticker => "image/png",
        AttachmentKind::Voice => "audio/ogg",
        AttachmentKind::Audio => "audio/mpeg",
        AttachmentKind::Video => "video/mp4",
        AttachmentKind::Document => "application/octet-stream",
    };
    format!(
        "Content-Type: {mime}\r\nContent-Disposition: attachment; filename=\"{}\"\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n",
        file.name,
        base64(&file.bytes)
    )
}

fn content(said: &Said) -> String {
    let Some(file) = &said.file else {
        return text_part(&said.text);
    };
    let text = match said.text.as_str() {
        "" => String::new(),
        text => format!("--part\r\n{}", text_part(text)),
    };
    format!(
        "Content-Type: multipart/mixed; boundary=part\r\n\r\n{text}--part\r\n{}--part--\r\n",
        file_part(file)
    )
}

fn seen(mail: &[u8]) -> Seen {
    let message = MessageParser::default().parse(mail).expect("a mail");
    let text = message
        .body_text(0)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    let file = message.attachment(0).map(|part| {
        let name = part.attachment_name().unwrap_or_default().to_owned();
        (name, part.contents().to_vec())
    });
    let replies_to = message.in_reply_to().as_text_list().unwrap_or_default();
    Seen {
        id: message.message_id().unwrap_or_default().to_owned(),
        text: text.trim_end_matches('\n').to_owned(),
        buttons: Vec::new(),
        file,
        replies_to: replies_to.first().map(ToString::to_string),
        is_silent: false,
    }
}

impl PlatformSide for Mailbox {
    fn open(&self) -> Arc<dyn Channel> {
        super::open(&self.settings()).expect("settings that are right")
    }

    fn place(&self, place: Place) -> Option<Address> {
        let address = format!("email:{}", self.account.person);
        (place == Place::Direct).then(|| Address::parse(&address).expect("an address"))
    }

    async fn say(&self, _place: Place, said: Said) -> Option<MessageId> {
        if said.mentions_us || said.album.is_some() {
            return None;
        }
        let mut more = "Subject: Re: our talk\r\n".to_owned();
        if let Some(id) = &said.replies_to {
            more.push_str(&format!("In-Reply-To: <{id}>\r\nReferences: <{id}>\r\n"));
        }
        Some(self.write(&more, &content(&said)))
    }

    async fn edit(&self, _place: Place, _id: &MessageId, _text: &str) -> bool {
        false
    }

    async fn press(&self, _place: Place, _message: &MessageId, _data: &str) -> bool {
        false
    }

    async fn seen(&self, _place: Place) -> Vec<Seen> {
        self.answers()
    }

    async fn marks(&self, _place: Place, _id: &MessageId) -> Option<usize> {
        None
    }

    async fn typing(&self, _place: Place) -> Option<usize> {
        None
    }

    async fn waiting(&self) -> Option<usize> {
        Some(self.server.unread_count(&self.account.address))
    }

    async fn fault(&self, fault: Fault) -> bool {
        match fault {
            Fault::Duplicate => {
                let last = self.last.lock().unwrap().clone();
                self.deliver(&last);
            }
            Fault::Disconnect => self.wire.cut_imap(),
            Fault::Malformed => {
                self.deliver(b"\xff\xfe no headers here \x80");
                self.deliver(b"Content-Type: multipart/mixed; boundary=\r\n\r\n--\r\n--\r\n");
                self.deliver(b"From: <<<>>>, \"\r\nAuthentication-Results: ;;;(((\r\n\r\nhello");
            }
            Fault::UnknownKind => {
                let report = b"From: MAILER-DAEMON@example.org\r\nContent-Type: multipart/report; boundary=x\r\n\r\n--x\r\n\r\nlost\r\n--x--\r\n";
                self.server.deliver("", &self.account.address, report);
                let away = format!(
                    "Authentication-Results: {SERVER}; dmarc=pass header.from=example.org\r\nFrom: {}\r\nAuto-Submitted: auto-replied\r\n\r\nI am away.\r\n",
                    self.account.person
                );
                self.deliver(away.as_bytes());
            }
            Fault::WrongPassword => self.server.change_password(&self.account),
            Fault::LoseAnswer => self.wire.fail_next(SmtpFault::LoseAnswer),
            Fault::LoseCall => self.wire.fail_next(SmtpFault::LoseCall),
            Fault::Garbage => self.wire.fail_next(SmtpFault::Garbage),
            Fault::Block => self.wire.block(&self.account.person),
            // Mail has no order but that of the mailbox, lets several programs read, and says "later" without saying when.
            Fault::Reorder | Fault::Conflict | Fault::Throttle(_) | Fault::BadFormat => {
                return false;
            }
        }
        true
    }

    fn secret(&self) -> String {
        self.account.password.clone()
    }
}
