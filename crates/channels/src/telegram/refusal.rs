//! What Telegram refuses, and what that means.

use std::time::Duration;

use hermes_core::{ChannelError, Trouble};
use serde::Deserialize;

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
    /// The text is not the MarkdownV2 we thought it was.
    Markup,
    /// The message says that already.
    NotModified,
    NoThread,
    NoReplyTarget,
    /// The message is not there, or no longer.
    NoMessage,
    /// The button was pressed too long ago to answer.
    TooLate,
    /// The file is not what the method is for.
    WrongFile,
    /// The group has another id now.
    Moved(i64),
    TooManyCommands,
    /// Something in particular may not be done in a chat.
    NoRights,
    Other,
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        Self {
            cause: Cause::Other,
            error,
        }
    }
}

/// How Telegram answers everything.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) ok: bool,
    pub(super) result: Option<serde_json::Value>,
    pub(super) error_code: Option<u16>,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Parameters>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Parameters {
    pub(super) retry_after: Option<f64>,
    pub(super) migrate_to_chat_id: Option<i64>,
}

/// When Telegram says "later" and not when.
const WAIT_UNSAID: Duration = Duration::from_secs(5);
/// A wait longer than a day is a mistake of whoever says it.
const WAIT_SECS_MAX: f64 = 86_400.0;

/// Words of refusals with the status 400, in lower case, and what they mean. The first that fits counts.
const WORDS: &[(&str, Cause, Trouble)] = &[
    (
        "message is not modified",
        Cause::NotModified,
        Trouble::Refused,
    ),
    ("can't parse", Cause::Markup, Trouble::BadFormat),
    ("entity_bounds_invalid", Cause::Markup, Trouble::BadFormat),
    (
        "message thread not found",
        Cause::NoThread,
        Trouble::NotFound,
    ),
    ("topic_deleted", Cause::NoThread, Trouble::NotFound),
    ("topic_id_invalid", Cause::NoThread, Trouble::NotFound),
    ("topic_closed", Cause::Other, Trouble::Forbidden),
    (
        "message to be replied not found",
        Cause::NoReplyTarget,
        Trouble::NotFound,
    ),
    (
        "replied message not found",
        Cause::NoReplyTarget,
        Trouble::NotFound,
    ),
    (
        "message to edit not found",
        Cause::NoMessage,
        Trouble::NotFound,
    ),
    (
        "message to delete not found",
        Cause::NoMessage,
        Trouble::NotFound,
    ),
    (
        "message to react not found",
        Cause::NoMessage,
        Trouble::NotFound,
    ),
    ("message not found", Cause::NoMessage, Trouble::NotFound),
    ("message_id_invalid", Cause::NoMessage, Trouble::NotFound),
    ("query is too old", Cause::TooLate, Trouble::NotFound),
    ("query id is invalid", Cause::TooLate, Trouble::NotFound),
    ("chat not found", Cause::Other, Trouble::NotFound),
    ("user not found", Cause::Other, Trouble::NotFound),
    ("peer_id_invalid", Cause::Other, Trouble::NotFound),
    ("chat_id_invalid", Cause::Other, Trouble::NotFound),
    ("caption is too long", Cause::Other, Trouble::TooLong),
    ("message_too_long", Cause::Other, Trouble::TooLong),
    ("message is too long", Cause::Other, Trouble::TooLong),
    ("caption_too_long", Cause::Other, Trouble::TooLong),
    ("text is too long", Cause::Other, Trouble::TooLong),
    ("not enough rights", Cause::NoRights, Trouble::Forbidden),
    ("have no rights", Cause::NoRights, Trouble::Forbidden),
    (
        "need administrator rights",
        Cause::Other,
        Trouble::Forbidden,
    ),
    ("chat_write_forbidden", Cause::Other, Trouble::Forbidden),
    ("chat_send_", Cause::NoRights, Trouble::Forbidden),
    ("chat_admin_required", Cause::Other, Trouble::Forbidden),
    ("chat_restricted", Cause::Other, Trouble::Forbidden),
    ("user_is_blocked", Cause::Other, Trouble::Forbidden),
    (
        "bot_commands_too_much",
        Cause::TooManyCommands,
        Trouble::Refused,
    ),
    ("photo_", Cause::WrongFile, Trouble::Refused),
    ("image_process_failed", Cause::WrongFile, Trouble::Refused),
    (
        "voice_messages_forbidden",
        Cause::WrongFile,
        Trouble::Refused,
    ),
    ("wrong file type", Cause::WrongFile, Trouble::Refused),
    ("wrong type of the", Cause::WrongFile, Trouble::Refused),
    ("wrong file identifier", Cause::WrongFile, Trouble::Refused),
    ("file_part", Cause::WrongFile, Trouble::Refused),
    ("sticker_", Cause::WrongFile, Trouble::Refused),
    ("video_", Cause::WrongFile, Trouble::Refused),
];

/// Says what a refusal means. `method` is one of ours, the words are Telegram's.
pub(super) fn classify(method: &str, status: u16, answer: &Answer) -> Failure {
    let code = answer.error_code.unwrap_or(status);
    let words = answer.description.as_deref().unwrap_or("it gave no reason");
    let parameters = answer.parameters.as_ref();
    let (cause, trouble) = match code {
        400 => match of_words(words, parameters) {
            // Where files are not welcome, words may be.
            (Cause::NoRights, _) if sends_file(method) => (Cause::NoRights, Trouble::Refused),
            known => known,
        },
        401 => (Cause::Other, Trouble::NotAuthorised),
        // A token that never was one is no address at all; behind one that is, it is the method.
        404 if method == "getMe" => (Cause::Other, Trouble::NotAuthorised),
        403 => (Cause::Other, Trouble::Forbidden),
        404 => (Cause::Other, Trouble::Unsupported),
        409 => (Cause::Other, Trouble::Conflict),
        413 => (Cause::Other, Trouble::TooLong),
        429 => (
            Cause::Other,
            Trouble::Throttled {
                wait: wait(parameters),
            },
        ),
        500.. => (Cause::Other, in_doubt(method)),
        _ => (Cause::Other, Trouble::Refused),
    };
    let error = ChannelError::new(
        trouble,
        format!("Telegram refused `{method}` ({code}): {words}"),
    );
    Failure {
        cause,
        error: match hint(trouble, code, words) {
            Some(hint) => error.with_hint(hint),
            None => error,
        },
    }
}

fn of_words(words: &str, parameters: Option<&Parameters>) -> (Cause, Trouble) {
    if let Some(moved) = parameters.and_then(|parameters| parameters.migrate_to_chat_id) {
        return (Cause::Moved(moved), Trouble::NotFound);
    }
    let lower = words.to_lowercase();
    let known = WORDS.iter().find(|(words, ..)| lower.contains(words));
    known.map_or((Cause::Other, Trouble::Refused), |(_, cause, trouble)| {
        (*cause, *trouble)
    })
}

fn wait(parameters: Option<&Parameters>) -> Duration {
    let said = parameters.and_then(|parameters| parameters.retry_after);
    said.filter(|secs| secs.is_finite() && *secs >= 0.0)
        .map_or(WAIT_UNSAID, |secs| {
            Duration::from_secs_f64(secs.min(WAIT_SECS_MAX))
        })
}

fn hint(trouble: Trouble, code: u16, words: &str) -> Option<String> {
    match trouble {
        Trouble::NotAuthorised => Some(format!(
            "the bot token is not valid any more: ask @BotFather (`/mybots`, API Token) for the one that is, put it into `{TOKEN_VARIABLE}` and start the gateway again"
        )),
        Trouble::Conflict if words.contains("webhook") => Some(
            "something has set a webhook for this bot: stop the other program, or give Hermes a bot of its own".to_owned(),
        ),
        Trouble::Conflict => Some(
            "another program receives with this token: stop it, or give Hermes a bot of its own (@BotFather, `/newbot`)".to_owned(),
        ),
        Trouble::Forbidden if code == 403 => {
            Some("the person must write to the bot first, or the bot be let into the chat again".to_owned())
        }
        _ => None,
    }
}

/// What it means when nobody knows whether a call was done.
pub(super) fn in_doubt(method: &str) -> Trouble {
    if is_new_every_time(method) {
        Trouble::Ambiguous
    } else {
        Trouble::Passing
    }
}

/// Whether doing it twice is something else than doing it once.
fn is_new_every_time(method: &str) -> bool {
    let sends = method.starts_with("send") && method != "sendChatAction";
    sends || method == "createForumTopic"
}

fn sends_file(method: &str) -> bool {
    let words = ["sendMessage", "sendMessageDraft", "sendChatAction"];
    method.starts_with("send") && !words.contains(&method)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(method: &str, answer: serde_json::Value) -> Failure {
        let answer: Answer = serde_json::from_value(answer).expect("an answer");
        classify(method, 400, &answer)
    }

    fn check(code: u16, words: &str, trouble: Trouble, cause: Cause) {
        let failure = refusal(
            "sendMessage",
            json!({"error_code": code, "description": words}),
        );
        assert_eq!(failure.error.trouble, trouble, "{words}");
        assert_eq!(failure.cause, cause, "{words}");
        assert!(failure.error.message.contains(words));
    }

    #[test]
    fn refusals_are_what_telegram_means_by_them() {
        use Cause::{
            Markup, NoMessage, NoReplyTarget, NoRights, NoThread, NotModified, Other, WrongFile,
        };
        check(401, "Unauthorized", Trouble::NotAuthorised, Other);
        check(404, "Not Found", Trouble::Unsupported, Other);
        check(
            403,
            "Forbidden: bot was blocked by the user",
            Trouble::Forbidden,
            Other,
        );
        check(400, "Bad Request: chat not found", Trouble::NotFound, Other);
        check(
            400,
            "Bad Request: message to edit not found",
            Trouble::NotFound,
            NoMessage,
        );
        check(
            400,
            "Bad Request: message is not modified: specified new",
            Trouble::Refused,
            NotModified,
        );
        check(
            400,
            "Bad Request: message thread not found",
            Trouble::NotFound,
            NoThread,
        );
        check(
            400,
            "Bad Request: message to be replied not found",
            Trouble::NotFound,
            NoReplyTarget,
        );
        check(
            400,
            "Bad Request: can't parse entities: Character '.' is",
            Trouble::BadFormat,
            Markup,
        );
        check(
            400,
            "Bad Request: message is too long",
            Trouble::TooLong,
            Other,
        );
        check(
            400,
            "Bad Request: PHOTO_INVALID_DIMENSIONS",
            Trouble::Refused,
            WrongFile,
        );
        check(
            400,
            "Bad Request: not enough rights to send text messages",
            Trouble::Forbidden,
            NoRights,
        );
        check(400, "Bad Request: something new", Trouble::Refused, Other);
        check(
            409,
            "Conflict: terminated by other getUpdates request",
            Trouble::Conflict,
            Other,
        );
        check(500, "Internal Server Error", Trouble::Ambiguous, Other);
    }

    #[test]
    fn a_chat_that_takes_no_files_may_take_words() {
        for words in [
            "Bad Request: not enough rights to send documents to the chat",
            "Bad Request: CHAT_SEND_DOCS_FORBIDDEN",
        ] {
            let answer = json!({"error_code": 400, "description": words});
            let refused = refusal("sendDocument", answer).error;
            assert_eq!(refused.trouble, Trouble::Refused, "{words}");
        }
        let blocked =
            json!({"error_code": 403, "description": "Forbidden: bot was blocked by the user"});
        let refused = refusal("sendDocument", blocked).error;
        assert_eq!(refused.trouble, Trouble::Forbidden);
    }

    #[test]
    fn what_can_be_repeated_is_never_in_doubt() {
        for method in ["getUpdates", "editMessageText", "sendChatAction", "getMe"] {
            let failure = refusal(
                method,
                json!({"error_code": 502, "description": "Bad Gateway"}),
            );
            assert_eq!(failure.error.trouble, Trouble::Passing, "{method}");
        }
    }

    #[test]
    fn a_token_that_never_was_one_is_not_accepted() {
        let answer = json!({"error_code": 404, "description": "Not Found"});
        let trouble = refusal("getMe", answer).error.trouble;
        assert_eq!(trouble, Trouble::NotAuthorised);
    }

    #[test]
    fn throttles_say_how_long_also_when_telegram_does_not() {
        let wait_of = |parameters| {
            let answer = json!({"error_code": 429, "description": "Too Many Requests", "parameters": parameters});
            match refusal("sendMessage", answer).error.trouble {
                Trouble::Throttled { wait } => wait,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wait_of(json!({"retry_after": 7})), Duration::from_secs(7));
        assert_eq!(wait_of(json!({"retry_after": -1})), WAIT_UNSAID);
        assert_eq!(
            wait_of(json!({"retry_after": 1e300})),
            Duration::from_secs(86_400)
        );
        assert_eq!(wait_of(json!(null)), WAIT_UNSAID);
    }

    #[test]
    fn a_group_that_moved_says_where() {
        let answer = json!({"error_code": 400, "description": "Bad Request: group chat was upgraded", "parameters": {"migrate_to_chat_id": -1001}});
        assert_eq!(refusal("sendMessage", answer).cause, Cause::Moved(-1001));
    }

    #[test]
    fn both_conflicts_and_a_wrong_token_say_what_to_do() {
        let hint = |code, words: &str| {
            let failure = refusal(
                "getUpdates",
                json!({"error_code": code, "description": words}),
            );
            failure.error.hint.expect("a hint")
        };
        assert!(hint(401, "Unauthorized").contains(TOKEN_VARIABLE));
        assert!(hint(409, "Conflict: terminated by other getUpdates request").contains("stop it"));
        let webhook = "Conflict: can't use getUpdates method while webhook is active";
        assert!(hint(409, webhook).contains("webhook"));
    }
}
