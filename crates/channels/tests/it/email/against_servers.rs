//! What is particular to mail, and the contract.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use hermes_core::{
    Address, Arrival, Body, Channel, ChannelError, Incoming, IncomingMessage, MessageId, Outgoing,
    Trouble,
};
use hermes_testkit::contract::channel::{HeldInlet, Kept, PlatformSide as _, channel_contract};
use hermes_testkit::mail::{MailServer, SERVER, SmtpFault};
use mail_parser::MessageParser;
use serde_json::{Value, json};

use super::open;
use super::side::Mailbox;

#[tokio::test]
async fn email_keeps_the_contract_with_postfix_and_dovecot() {
    let Some(server) = MailServer::start().map(Arc::new) else {
        return;
    };
    let report = channel_contract(async || Mailbox::new(Arc::clone(&server)).await).await;
    println!(
        "played {}, left out {:#?}",
        report.played.len(),
        report.left_out
    );
    assert!(report.played.len() >= 60, "{}", report.played.len());
}

/// Receives as long as something is looked for.
async fn receiving<T>(
    channel: &Arc<dyn Channel>,
    inlet: &HeldInlet,
    looking: impl Future<Output = T>,
) -> T {
    tokio::select! {
        error = channel.receive(inlet) => panic!("receiving ended: {error:?}"),
        found = looking => found,
    }
}

/// Connects once, so that what comes from now on is new.
async fn introduce(channel: &Arc<dyn Channel>, inlet: &HeldInlet) {
    let before = inlet.kept().connected.len();
    let is_connected = |kept: &Kept| kept.connected.len() > before;
    receiving(channel, inlet, inlet.wait_for("connected", is_connected)).await;
}

async fn heard(channel: &Arc<dyn Channel>, inlet: &HeldInlet, id: &MessageId) -> IncomingMessage {
    let is_there = |kept: &Kept| message(kept, id).is_some();
    let kept = receiving(channel, inlet, inlet.wait_for("a mail", is_there)).await;
    message(&kept, id).expect("it is there")
}

fn message(kept: &Kept, id: &MessageId) -> Option<IncomingMessage> {
    kept.updates
        .iter()
        .find_map(|update| match &update.incoming {
            Incoming::Message(message) if message.id == *id => Some(message.clone()),
            _ => None,
        })
}

fn answer(mailbox: &Mailbox, key: &str, replies_to: Option<MessageId>) -> Outgoing {
    Outgoing {
        to: Address::parse(&format!("email:{}", mailbox.account.person)).expect("an address"),
        key: key.to_owned(),
        body: Body::Text {
            markdown: "an **answer**".to_owned(),
            is_preview: false,
        },
        replies_to,
        follows: None,
        buttons: Vec::new(),
        is_silent: false,
    }
}

const TEXT: &str = "\r\nhello\r\n";

/// Each of these needs the servers, which take seconds to start: they share them.
#[tokio::test]
async fn mail_against_postfix_and_dovecot() {
    let Some(server) = MailServer::start().map(Arc::new) else {
        return;
    };
    let mailbox = async || Mailbox::new(Arc::clone(&server)).await;
    what_lay_there_before_is_not_answered(&mailbox().await).await;
    a_mailbox_that_is_numbered_anew_loses_and_doubles_nothing(&mailbox().await).await;
    an_answer_is_in_its_thread_also_after_a_restart(&mailbox().await).await;
    a_copy_of_what_was_sent_proves_it(&mailbox().await).await;
    a_text_that_broke_off_leaves_doubt(&mailbox().await).await;
    who_is_not_proven_is_not_heard_and_stays_unread(&mailbox().await).await;
    large_mails_arrive_with_their_files(&mailbox().await).await;
    a_mail_that_cannot_be_fetched_holds_up_the_others_for_a_while_only(&mailbox().await).await;
    a_server_without_idle_is_asked_again_and_again(&mailbox().await).await;
    connections_are_secured(&server, &mailbox().await).await;
    a_certificate_that_is_not_trusted_is_said_with_what_to_do(&server, &mailbox().await).await;
}

async fn a_mail_that_cannot_be_fetched_holds_up_the_others_for_a_while_only(mailbox: &Mailbox) {
    let (channel, inlet) = (mailbox.open(), HeldInlet::default());
    introduce(&channel, &inlet).await;
    // The first mail of a mailbox.
    mailbox.wire.poison(1);
    let poisoned = mailbox.write("Subject: Re: one\r\n", TEXT);
    let next = mailbox.write("Subject: Re: two\r\n", TEXT);
    let mut connections = 0;
    while inlet.kept().passed_over.is_empty() {
        connections += 1;
        assert!(connections < 20, "it is tried for ever");
        channel.receive(&inlet).await;
    }
    assert!(connections > 2, "one loss says nothing of a mail");
    let told = inlet.kept().passed_over.join("");
    assert!(told.contains("mail 1 of the mailbox"), "{told}");
    // A process that starts anew goes on behind it.
    let channel = mailbox.open();
    heard(&channel, &inlet, &next).await;
    assert!(message(&inlet.kept(), &poisoned).is_none());
}

async fn what_lay_there_before_is_not_answered(mailbox: &Mailbox) {
    mailbox.write("Subject: years ago\r\n", TEXT);
    let (channel, inlet) = (mailbox.open(), HeldInlet::default());
    introduce(&channel, &inlet).await;
    let id = mailbox.write("Subject: now\r\n", TEXT);
    let message = heard(&channel, &inlet, &id).await;
    assert_eq!(message.text, "[Subject: now]\n\nhello");
    // What is taken is marked as read, and what is not is left as it was.
    let second = mailbox.write("Subject: Re: now\r\n", TEXT);
    let is_read = async {
        inlet
            .wait_for("the second", |kept| self::message(kept, &second).is_some())
            .await;
        while mailbox.server.unread_count(&mailbox.account.address) > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    receiving(&channel, &inlet, is_read).await;
    assert_eq!(inlet.kept().numbers.len(), 2);
}

async fn a_mailbox_that_is_numbered_anew_loses_and_doubles_nothing(mailbox: &Mailbox) {
    let a_second = || tokio::time::sleep(std::time::Duration::from_millis(1100));
    mailbox.write("Subject: years ago\r\n", TEXT);
    // Mailboxes know seconds, and nothing shorter.
    a_second().await;
    let (channel, inlet) = (mailbox.open(), HeldInlet::default());
    introduce(&channel, &inlet).await;
    let first = mailbox.write("Subject: one\r\n", TEXT);
    heard(&channel, &inlet, &first).await;
    let before = inlet.cursor_validity();
    a_second().await;
    mailbox.server.renumber(&mailbox.account.address);
    let meanwhile = mailbox.write("Subject: two\r\n", TEXT);
    heard(&channel, &inlet, &meanwhile).await;
    assert_ne!(inlet.cursor_validity(), before);
    let after = mailbox.write("Subject: three\r\n", TEXT);
    heard(&channel, &inlet, &after).await;
    let kept = inlet.kept();
    assert_eq!(kept.updates.len(), 3, "{:#?}", kept.numbers);
}

trait CursorValidity {
    fn cursor_validity(&self) -> String;
}

impl CursorValidity for HeldInlet {
    fn cursor_validity(&self) -> String {
        let cursor = self.kept().cursor.expect("a cursor");
        cursor.split(':').next().unwrap_or_default().to_owned()
    }
}

async fn an_answer_is_in_its_thread_also_after_a_restart(mailbox: &Mailbox) {
    let headers = "Subject: plans\r\nReferences: <root@example.org>\r\n";
    let id = mailbox.write(headers, TEXT);
    // A channel that never received the mail, as after a restart.
    let sent = mailbox
        .open()
        .send(&answer(mailbox, "k1", Some(id.clone())))
        .await
        .unwrap();
    let mails = mailbox.server.mails(&mailbox.account.person);
    let mail = MessageParser::default().parse(&mails[0]).expect("a mail");
    assert_eq!(mail.subject(), Some("Re: plans"));
    assert_eq!(mail.message_id(), Some(sent.as_str()));
    let references = mail.references().as_text_list().expect("references");
    assert_eq!(references, ["root@example.org", id.as_str()]);
    assert_eq!(
        mail.header_raw("Auto-Submitted").map(str::trim),
        Some("auto-replied")
    );
    assert_eq!(mail.body_text(0).as_deref(), Some("an answer"));
    assert!(
        mail.body_html(0)
            .is_some_and(|html| html.contains("<strong>answer</strong>"))
    );
}

async fn a_copy_of_what_was_sent_proves_it(mailbox: &Mailbox) {
    let channel = mailbox.open();
    let message = answer(mailbox, "k2", None);
    assert_eq!(channel.find_sent(&message).await.unwrap(), Arrival::Unknown);
    let id = channel.send(&message).await.unwrap();
    let found = mailbox.open().find_sent(&message).await.unwrap();
    assert_eq!(found, Arrival::Arrived(id.clone()));
    // Sent again it is the same mail, and one copy is enough.
    assert_eq!(channel.send(&message).await.unwrap(), id);
    assert_eq!(mailbox.server.sent_count(&mailbox.account.address), 1);
}

async fn a_text_that_broke_off_leaves_doubt(mailbox: &Mailbox) {
    let channel = mailbox.open();
    mailbox.wire.fail_next(SmtpFault::LoseText);
    let message = answer(mailbox, "k3", None);
    let error = channel.send(&message).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Ambiguous, "{error:?}");
    assert!(mailbox.answers().is_empty());
}

async fn who_is_not_proven_is_not_heard_and_stays_unread(mailbox: &Mailbox) {
    let (channel, inlet) = (mailbox.open(), HeldInlet::default());
    introduce(&channel, &inlet).await;
    let person = &mailbox.account.person;
    mailbox.deliver(format!("From: {person}\r\nSubject: no proof\r\n\r\nhello").as_bytes());
    mailbox.deliver(format!("Authentication-Results: elsewhere.example; dmarc=pass header.from=example.org\r\nFrom: {person}\r\n\r\nhello").as_bytes());
    mailbox.deliver(format!("Authentication-Results: {SERVER}; dmarc=pass header.from=elsewhere.example\r\nFrom: {person}\r\n\r\nhello").as_bytes());
    let id = mailbox.write("Subject: Re: proof\r\n", TEXT);
    heard(&channel, &inlet, &id).await;
    assert_eq!(inlet.kept().numbers.len(), 1);
    let mut settings = mailbox.settings();
    settings["trust_from_header"] = json!(true);
    let (trusting, inlet) = (open(&settings).unwrap(), HeldInlet::default());
    introduce(&trusting, &inlet).await;
    mailbox.deliver(format!("From: {person}\r\nMessage-ID: <x@y>\r\n\r\nhello").as_bytes());
    heard(&trusting, &inlet, &MessageId::from("x@y")).await;
}

async fn large_mails_arrive_with_their_files(mailbox: &Mailbox) {
    let (channel, inlet) = (mailbox.open(), HeldInlet::default());
    introduce(&channel, &inlet).await;
    let line = "0123456789".repeat(7);
    let lines = vec![line.as_str(); 150_000].join("\r\n");
    let content = format!(
        "Content-Type: multipart/mixed; boundary=part\r\n\r\n--part\r\nContent-Type: text/plain\r\n\r\nlook\r\n--part\r\n\
         Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=large.bin\r\n\r\n{lines}\r\n--part--\r\n"
    );
    let id = mailbox.write("Subject: Re: large\r\n", &content);
    let message = heard(&channel, &inlet, &id).await;
    assert_eq!(message.text, "look");
    let [file] = message.attachments.as_slice() else {
        panic!("one file: {message:?}");
    };
    let bytes: Vec<Vec<u8>> = channel
        .download(&file.file)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(bytes.concat(), lines.as_bytes());
    // Larger than what is fetched: its beginning, and a word about the rest.
    let lines = vec![line.as_str(); 540_000].join("\r\n");
    let content = format!(
        "Content-Type: multipart/mixed; boundary=part\r\n\r\n--part\r\nContent-Type: text/plain\r\n\r\nlook again\r\n--part\r\n\
         Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=huge.bin\r\n\r\n{lines}\r\n--part--\r\n"
    );
    let id = mailbox.write("Subject: Re: huge\r\n", &content);
    let message = heard(&channel, &inlet, &id).await;
    assert!(
        message
            .text
            .starts_with("look again\n\n[This mail has 39 MB"),
        "{}",
        message.text
    );
    assert!(message.attachments.is_empty());
}

async fn a_server_without_idle_is_asked_again_and_again(mailbox: &Mailbox) {
    mailbox.wire.hide_idle();
    let mut settings = mailbox.settings();
    settings["poll_interval"] = json!(1);
    let (channel, inlet) = (open(&settings).unwrap(), HeldInlet::default());
    introduce(&channel, &inlet).await;
    let said = async {
        inlet
            .wait_for("connected", |kept| kept.connected.len() == 2)
            .await;
        let first = mailbox.write("Subject: Re: one\r\n", TEXT);
        inlet
            .wait_for("the first", |kept| message(kept, &first).is_some())
            .await;
        let second = mailbox.write("Subject: Re: two\r\n", TEXT);
        inlet
            .wait_for("the second", |kept| message(kept, &second).is_some())
            .await;
    };
    receiving(&channel, &inlet, said).await;
}

fn secured(server: &MailServer, mailbox: &Mailbox, security: &str) -> Value {
    let (imap, smtp) = match security {
        "tls" => (server.imaps_port, server.smtps_port),
        _ => (server.imap_port, server.smtp_port),
    };
    let mut settings = mailbox.settings();
    settings["imap_port"] = imap.into();
    settings["smtp_port"] = smtp.into();
    settings["imap_security"] = security.into();
    settings["smtp_security"] = security.into();
    settings["imap_host"] = "localhost".into();
    settings["smtp_host"] = "localhost".into();
    settings
}

async fn connections_are_secured(server: &MailServer, mailbox: &Mailbox) {
    for security in ["tls", "starttls"] {
        let mut settings = secured(server, mailbox, security);
        settings["ca_file"] = server.ca_file().to_string_lossy().into();
        let (channel, inlet) = (open(&settings).unwrap(), HeldInlet::default());
        channel.probe().await.unwrap();
        introduce(&channel, &inlet).await;
        let id = mailbox.write("Subject: Re: secret\r\n", TEXT);
        heard(&channel, &inlet, &id).await;
        channel
            .send(&answer(mailbox, security, Some(id)))
            .await
            .unwrap();
    }
    assert_eq!(mailbox.answers().len(), 2);
}

async fn a_certificate_that_is_not_trusted_is_said_with_what_to_do(
    server: &MailServer,
    mailbox: &Mailbox,
) {
    let check = |error: ChannelError| {
        assert_eq!(error.trouble, Trouble::NotAuthorised, "{error:?}");
        assert!(
            error
                .hint
                .is_some_and(|hint| hint.contains("EMAIL_CA_FILE"))
        );
    };
    for security in ["tls", "starttls"] {
        let channel = open(&secured(server, mailbox, security)).unwrap();
        check(channel.receive(&HeldInlet::default()).await);
        check(
            channel
                .send(&answer(mailbox, "k4", None))
                .await
                .unwrap_err(),
        );
    }
    assert!(mailbox.answers().is_empty());
}
