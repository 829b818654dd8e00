//! What Discord refuses, and what that means.

use std::time::Duration;

use hermes_core::{ChannelError, Trouble};
use serde_json::Value;

use super::settings::TOKEN_VARIABLE;

/// A call that came to nothing.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) error: ChannelError,
}

/// Why, where it makes a difference to what we try next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// What was to be replied to cannot be replied to.
    NoReplyTarget,
    /// The message is not there, or no longer.
    NoMessage,
    NoChannel,
    /// Messages cannot be sent there as they are: it may be a forum.
    WrongChannel,
    /// The message has a thread already.
    HasThread,
    /// The interaction was answered already, or is too old to answer.
    Answered,
    NoReaction,
    Other,
}

impl Failure {
    pub(super) fn is(&self, cause: Cause) -> bool {
        self.cause == cause
    }
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        Self {
            cause: Cause::Other,
            error,
        }
    }
}

/// When Discord says "later" and not when: it is then something in front of Discord that bans for long.
const WAIT_UNSAID: Duration = Duration::from_secs(60);
/// A wait longer than a day is a mistake of whoever says it.
const WAIT_SECS_MAX: f64 = 86_400.0;
/// How much of what was wrong with a request is told.
const DETAILS_CHARS_MAX: usize = 300;

/// Discord's own numbers for what is wrong.
const CODES: &[(u64, Cause, Trouble)] = &[
    (10003, Cause::NoChannel, Trouble::NotFound),
    (10008, Cause::NoMessage, Trouble::NotFound),
    (10014, Cause::NoReaction, Trouble::NotFound),
    (10015, Cause::Answered, Trouble::NotFound),
    (10062, Cause::Answered, Trouble::NotFound),
    (40005, Cause::Other, Trouble::TooLong),
    (40060, Cause::Answered, Trouble::Refused),
    (50001, Cause::Other, Trouble::Forbidden),
    (50005, Cause::NoMessage, Trouble::NotFound),
    (50006, Cause::Other, Trouble::Refused),
    (50007, Cause::Other, Trouble::Forbidden),
    (50008, Cause::WrongChannel, Trouble::Refused),
    (50013, Cause::Other, Trouble::Forbidden),
    (50024, Cause::WrongChannel, Trouble::Refused),
    (50027, Cause::Answered, Trouble::NotFound),
    (160_004, Cause::HasThread, Trouble::Refused),
    (160_005, Cause::Other, Trouble::Forbidden),
];

/// Says what a refusal means. `call` is one of ours, the rest is Discord's.
pub(super) fn classify(call: &str, status: u16, answer: &Value, is_doubtful: bool) -> Failure {
    let code = answer["code"].as_u64().unwrap_or(0);
    let words = answer["message"].as_str().unwrap_or("it gave no reason");
    let details = details(&answer["errors"]);
    let known = CODES.iter().find(|(known, ..)| *known == code);
    let (cause, trouble) = match (status, known) {
        (401, _) => (Cause::Other, Trouble::NotAuthorised),
        (429, _) => (Cause::Other, throttled(&answer["retry_after"])),
        (500.., _) if is_doubtful => (Cause::Other, Trouble::Ambiguous),
        (500.., _) => (Cause::Other, Trouble::Passing),
        (_, Some((_, cause, trouble))) => (*cause, *trouble),
        _ if code == 50035 => of_form(&details),
        (403, _) => (Cause::Other, Trouble::Forbidden),
        (404, _) => (Cause::Other, Trouble::NotFound),
        (413, _) => (Cause::Other, Trouble::TooLong),
        _ => (Cause::Other, Trouble::Refused),
    };
    let details = match details.as_str() {
        "" => String::new(),
        told => format!(" ({})", hermes_core::text::shorten(told, DETAILS_CHARS_MAX)),
    };
    let error = ChannelError::new(
        trouble,
        format!("Discord refused `{call}` ({status}, {code}): {words}{details}"),
    );
    Failure {
        cause,
        error: match hint(trouble, code) {
            Some(hint) => error.with_hint(hint),
            None => error,
        },
    }
}

/// What is wrong with a form, by which of its fields it is about.
fn of_form(details: &str) -> (Cause, Trouble) {
    if details.contains("message_reference") {
        (Cause::NoReplyTarget, Trouble::NotFound)
    } else if details.contains("BASE_TYPE_MAX_LENGTH") && details.contains("content") {
        (Cause::Other, Trouble::TooLong)
    } else if details.contains("NUMBER_TYPE_COERCE") {
        // What should be an id is none.
        (Cause::NoMessage, Trouble::NotFound)
    } else {
        (Cause::Other, Trouble::Refused)
    }
}

/// The fields that a form was refused for, each with why: `content: BASE_TYPE_MAX_LENGTH, must be 2000 or fewer`.
fn details(errors: &Value) -> String {
    let mut told = Vec::new();
    collect(errors, "", &mut told);
    told.join("; ")
}

fn collect(errors: &Value, place: &str, told: &mut Vec<String>) {
    let Value::Object(fields) = errors else {
        return;
    };
    for (name, inner) in fields {
        if name == "_errors" {
            for error in inner.as_array().into_iter().flatten() {
                let code = error["code"].as_str().unwrap_or_default();
                let words = error["message"].as_str().unwrap_or_default();
                told.push(format!("{place}: {code}, {words}"));
            }
        } else {
            let deeper = match place {
                "" => name.clone(),
                place => format!("{place}.{name}"),
            };
            collect(inner, &deeper, told);
        }
    }
}

pub(super) fn throttled(retry_after: &Value) -> Trouble {
    let said = retry_after
        .as_f64()
        .or_else(|| retry_after.as_str()?.parse().ok());
    let said = said.filter(|secs| secs.is_finite() && *secs >= 0.0);
    let wait = said.map_or(WAIT_UNSAID, |secs| {
        Duration::from_secs_f64(secs.min(WAIT_SECS_MAX))
    });
    Trouble::Throttled { wait }
}

fn hint(trouble: Trouble, code: u64) -> Option<String> {
    match (trouble, code) {
        (Trouble::NotAuthorised, _) => Some(wrong_token()),
        (_, 50007) => Some(
            "the person must share a server with the bot and allow messages from its members".to_owned(),
        ),
        (_, 50001 | 50013) => Some(
            "give the bot's role the permissions View Channel, Send Messages, Send Messages in Threads, Create Public Threads, Attach Files, Add Reactions and Read Message History there".to_owned(),
        ),
        _ => None,
    }
}

pub(super) fn wrong_token() -> String {
    format!(
        "the token is not valid any more: https://discord.com/developers/applications, your application, Bot, Reset Token; put the new one into `{TOKEN_VARIABLE}` and start the gateway again"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: u16, answer: Value, trouble: Trouble, cause: Cause) {
        let failure = classify("POST /channels/1/messages", status, &answer, true);
        assert_eq!(failure.error.trouble, trouble, "{answer}");
        assert_eq!(failure.cause, cause, "{answer}");
    }

    #[test]
    fn refusals_are_what_discord_means_by_them() {
        use Cause::{
            Answered, HasThread, NoChannel, NoMessage, NoReplyTarget, Other, WrongChannel,
        };
        let code = |code: u64| json!({"code": code, "message": "words"});
        check(401, code(0), Trouble::NotAuthorised, Other);
        check(403, code(50007), Trouble::Forbidden, Other);
        check(403, code(1), Trouble::Forbidden, Other);
        check(404, code(10003), Trouble::NotFound, NoChannel);
        check(404, code(10008), Trouble::NotFound, NoMessage);
        check(400, code(50008), Trouble::Refused, WrongChannel);
        check(400, code(160_004), Trouble::Refused, HasThread);
        check(400, code(40060), Trouble::Refused, Answered);
        check(413, code(40005), Trouble::TooLong, Other);
        check(400, code(1), Trouble::Refused, Other);
        check(502, json!({}), Trouble::Ambiguous, Other);
        let form = |field: &str, code: &str| {
            let errors = json!({field: {"_errors": [{"code": code, "message": "why"}]}});
            json!({"code": 50035, "message": "Invalid Form Body", "errors": errors})
        };
        check(
            400,
            form("message_reference", "REPLIES_UNKNOWN_MESSAGE"),
            Trouble::NotFound,
            NoReplyTarget,
        );
        check(
            400,
            form("content", "BASE_TYPE_MAX_LENGTH"),
            Trouble::TooLong,
            Other,
        );
        check(400, form("embeds", "OTHER"), Trouble::Refused, Other);
    }

    #[test]
    fn throttles_say_how_long_also_when_discord_does_not() {
        let wait_of = |answer: Value| match classify("x", 429, &answer, true).error.trouble {
            Trouble::Throttled { wait } => wait,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            wait_of(json!({"retry_after": 0.5})),
            Duration::from_millis(500)
        );
        assert_eq!(
            wait_of(json!({"retry_after": 1e300})),
            Duration::from_secs(86_400)
        );
        assert_eq!(wait_of(json!({"retry_after": -1})), WAIT_UNSAID);
        assert_eq!(wait_of(json!({})), WAIT_UNSAID);
    }

    #[test]
    fn forms_say_which_field_was_wrong() {
        let errors =
            json!({"embeds": {"0": {"title": {"_errors": [{"code": "TOO", "message": "long"}]}}}});
        let answer = json!({"code": 50035, "message": "Invalid Form Body", "errors": errors});
        let failure = classify("x", 400, &answer, false);
        assert!(failure.error.message.contains("embeds.0.title: TOO, long"));
    }
}
