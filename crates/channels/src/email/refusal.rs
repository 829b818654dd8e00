//! What mail servers refuse, and what that means.

use std::error::Error;

use hermes_core::{ChannelError, Trouble};

use super::imap::wrong_password;
use super::tls::CERTIFICATE_HINT;

/// How far a mail was when something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Connect,
    LogIn,
    Sender,
    Recipient,
    /// The text is on its way: it may have arrived.
    Text,
}

/// What an SMTP server answered, if it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Option<u16>,
    pub(super) words: String,
}

/// Says what a failure means.
pub(super) fn classify(stage: Stage, answer: &Answer) -> ChannelError {
    let words = hermes_core::text::shorten(&answer.words, 300);
    let trouble = match (answer.code, stage) {
        (None, Stage::Text) => Trouble::Ambiguous,
        (None | Some(..=499), _) => Trouble::Passing,
        (Some(_), Stage::LogIn) => return wrong_password(&words),
        (Some(code), _) => of_code(code, stage, &words),
    };
    let what = match stage {
        Stage::Connect => "the mail server cannot be reached",
        Stage::LogIn => "the mail server does not let us in for now",
        Stage::Sender => "the mail server does not take mail of ours",
        Stage::Recipient => "the mail server does not take mail for this address",
        Stage::Text if trouble == Trouble::Ambiguous => {
            "the mail server did not say whether it took the mail"
        }
        Stage::Text => "the mail server did not take the mail",
    };
    let error = ChannelError::new(trouble, format!("{what}: {words}"));
    match stage {
        Stage::Connect => {
            error.with_hint("check `EMAIL_SMTP_HOST` and `EMAIL_SMTP_PORT`, and the network")
        }
        _ => error,
    }
}

/// By the status, and by the more exact one that most servers put before their words: `550 5.1.1 no such user`.
fn of_code(code: u16, stage: Stage, words: &str) -> Trouble {
    let exact = words.split([' ', ':']).find_map(subject_of);
    match (code, exact, stage) {
        (552, _, _) | (_, Some("2.3" | "3.4"), _) => Trouble::TooLong,
        (_, Some(subject), Stage::Recipient) if subject.starts_with("7.") => Trouble::Forbidden,
        (_, Some(subject), Stage::Recipient) if subject.starts_with("1.") || subject == "2.1" => {
            Trouble::NotFound
        }
        (550 | 551 | 553, None, Stage::Recipient) => Trouble::NotFound,
        (530 | 534 | 535, ..) => Trouble::NotAuthorised,
        _ => Trouble::Refused,
    }
}

/// `1.1` of `5.1.1`.
fn subject_of(word: &str) -> Option<&str> {
    let rest = word.strip_prefix("5.")?;
    let is_right =
        rest.split('.').count() == 2 && rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_right.then_some(rest)
}

/// Why TLS was not agreed on.
pub(super) fn of_tls(host: &str, error: &(dyn Error + 'static)) -> ChannelError {
    let words = format!("no secure connection to `{host}`: {error}");
    if is_of_certificate(error) {
        return ChannelError::new(Trouble::NotAuthorised, words).with_hint(CERTIFICATE_HINT);
    }
    ChannelError::new(Trouble::Passing, words)
}

/// Whether the server's certificate was the reason, however deep.
pub(super) fn is_of_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref());
        let tls = inner
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
            .or_else(|| error.downcast_ref::<rustls::Error>());
        if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_what_servers_mean_by_them() {
        use Stage::{Connect, LogIn, Recipient, Sender, Text};
        let check = |stage, code: u16, words: &str, trouble| {
            let answer = Answer {
                code: (code > 0).then_some(code),
                words: words.to_owned(),
            };
            assert_eq!(
                classify(stage, &answer).trouble,
                trouble,
                "{stage:?} {code} {words}"
            );
        };
        check(Connect, 0, "refused", Trouble::Passing);
        check(Connect, 421, "busy", Trouble::Passing);
        check(Connect, 554, "no", Trouble::Refused);
        check(LogIn, 535, "5.7.8 no", Trouble::NotAuthorised);
        check(LogIn, 454, "4.7.0 later", Trouble::Passing);
        check(LogIn, 0, "lost", Trouble::Passing);
        check(Sender, 530, "5.7.0 log in first", Trouble::NotAuthorised);
        check(Sender, 550, "5.7.1 not yours", Trouble::Refused);
        check(Recipient, 450, "4.7.1 greylisted", Trouble::Passing);
        check(
            Recipient,
            550,
            "5.1.1 <a@b>: no such user",
            Trouble::NotFound,
        );
        check(Recipient, 550, "no such user", Trouble::NotFound);
        check(
            Recipient,
            554,
            "5.7.1 <a@b>: access denied",
            Trouble::Forbidden,
        );
        check(Recipient, 552, "5.2.2 full", Trouble::TooLong);
        check(Recipient, 0, "lost", Trouble::Passing);
        check(Text, 552, "5.3.4 too big", Trouble::TooLong);
        check(Text, 554, "5.7.1 spam", Trouble::Refused);
        check(Text, 451, "later", Trouble::Passing);
        check(Text, 0, "lost", Trouble::Ambiguous);
    }
}
