//! Mail that no person wrote: answering it would begin a conversation between machines.

use mail_parser::{HeaderName, Message};

/// Says why a mail is not a person's.
pub(super) fn reason(message: &Message<'_>, from: &str, us: &str) -> Option<&'static str> {
    if from == us {
        return Some("it is our own");
    }
    if is_nobody(from) {
        return Some("nobody reads answers there");
    }
    if is_report(message) {
        return Some("it is a report of a mail server");
    }
    header_reason(message)
}

fn header_reason(message: &Message<'_>) -> Option<&'static str> {
    message.headers_raw().find_map(|(name, value)| {
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().to_ascii_lowercase();
        match name.as_str() {
            "auto-submitted" if value.split([';', ' ']).next() != Some("no") => {
                Some("it was sent automatically")
            }
            "precedence" if ["bulk", "junk", "list", "auto_reply"].contains(&value.as_str()) => {
                Some("it was sent to many")
            }
            "list-id" | "list-unsubscribe" | "list-post" | "list-help" => Some("it is of a list"),
            "x-auto-response-suppress" if value != "none" => Some("it wants no automatic answer"),
            "x-autoreply" | "x-autorespond" | "x-autoresponder" => {
                Some("it is an automatic answer")
            }
            "return-path" if value == "<>" => Some("it is a report of a mail server"),
            _ => None,
        }
    })
}

/// `no-reply@…`, `MAILER-DAEMON@…` and their kin.
fn is_nobody(from: &str) -> bool {
    let local = from.split('@').next().unwrap_or_default();
    let plain: String = local.chars().filter(|c| c.is_alphanumeric()).collect();
    let says_so = ["noreply", "donotreply", "noresponse"];
    let servers = ["mailerdaemon", "postmaster", "bounce", "bounces"];
    says_so.iter().any(|word| plain.contains(word)) || servers.contains(&plain.as_str())
}

fn is_report(message: &Message<'_>) -> bool {
    let kind = message
        .header(HeaderName::ContentType)
        .and_then(|value| value.as_content_type());
    kind.is_some_and(|kind| {
        kind.ctype().eq_ignore_ascii_case("multipart")
            && kind
                .subtype()
                .is_some_and(|kind| kind.eq_ignore_ascii_case("report"))
    })
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;

    use super::*;

    fn is_a_persons(from: &str, headers: &str) -> bool {
        let mail = format!("{headers}From: {from}\r\nSubject: hello\r\n\r\nhello\r\n");
        let message = MessageParser::default()
            .parse(mail.as_bytes())
            .expect("a mail");
        reason(&message, from, "hermes@example.org").is_none()
    }

    #[test]
    fn what_people_write_is_theirs() {
        assert!(is_a_persons("alice@example.org", ""));
        assert!(is_a_persons("alice@example.org", "Auto-Submitted: no\r\n"));
        assert!(is_a_persons("alice@example.org", "Precedence: normal\r\n"));
        assert!(is_a_persons(
            "alice@example.org",
            "Return-Path: <alice@example.org>\r\n"
        ));
        assert!(is_a_persons("norep@example.org", ""));
    }

    #[test]
    fn what_machines_write_is_not() {
        for from in [
            "noreply@example.org",
            "no-reply@example.org",
            "no_reply+x@example.org",
            "do-not-reply@example.org",
            "alerts-noreply@example.org",
            "mailer-daemon@example.org",
            "postmaster@example.org",
            "bounces@example.org",
            "hermes@example.org",
        ] {
            assert!(!is_a_persons(from, ""), "{from}");
        }
        for header in [
            "Auto-Submitted: auto-replied\r\n",
            "auto-submitted: auto-generated; owner-email=\"x\"\r\n",
            "Precedence: Bulk\r\n",
            "Precedence: list\r\n",
            "List-Unsubscribe: <https://example.org/u>\r\n",
            "List-Id: <news.example.org>\r\n",
            "X-Auto-Response-Suppress: All\r\n",
            "X-Autoreply: yes\r\n",
            "Return-Path: <>\r\n",
            "Content-Type: multipart/report; report-type=delivery-status; boundary=x\r\n",
        ] {
            assert!(!is_a_persons("alice@example.org", header), "{header}");
        }
    }
}
