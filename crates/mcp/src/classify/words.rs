//! The words with which servers say that they have forgotten a session.
//!
//! Tools have sessions of their own (browsers, banks), and speak of them. So a text counts only when it is about nothing
//! else: the whole of it, or all that follows a prefix of the protocol. What it means is for a ping to decide.

/// The texts of the first reports. Where there is no session that could be asked, only these count.
const REPORTED: &[&str] = &[
    "invalid or expired session",
    "session expired",
    "expired session",
    "session not found",
    "unknown session",
];

/// What else servers say.
const PHRASES: &[&str] = &[
    "session not found or expired",
    "session not found or has expired",
    "session expired or not found",
    "session has expired",
    "session is expired",
    "session has timed out",
    "session timed out",
    "session no longer exists",
    "session not recognized",
    "session was terminated",
    "session has been closed",
    "session invalid or expired",
    "session is invalid or expired",
    "session is invalid",
    "invalid or expired session id",
    "invalid or missing session id",
    "invalid or missing session",
    "invalid or unknown session",
    "could not find session",
    "session was not found",
    "session does not exist",
    "session has been terminated",
    "session terminated",
    "session closed",
    "session id not found",
    "invalid session id",
    "invalid session",
    "unknown session id",
    "no such session",
    "no valid session id provided",
    "missing session id",
];

/// What follows the id in "session 4711 not found".
const AFTER_AN_ID: &[&str] = &[
    "not found",
    "was not found",
    "expired",
    "has expired",
    "is expired",
    "is unknown",
    "does not exist",
    "terminated",
    "has been terminated",
];

/// What may follow a phrase: what the client should do about it, or where.
const AFTER_A_PHRASE: &[&str] = &[
    "reconnect",
    "please reconnect",
    "initialize again",
    "please initialize again",
    "reinitialize",
    "please reinitialize",
    "please re-initialize",
    "reconnect and try again",
    "please reconnect and try again",
    "please retry",
    "start a new session",
    "please start a new session",
    "please create a new session",
    "please initialize a new one",
    "please start a new one",
    "please initialize a new session",
    "on this instance",
    "on this node",
    "on this server",
];

/// What libraries put before the words of a server, each with or without a number behind it.
const PREFIXES: &[&str] = &[
    "bad request",
    "conflict",
    "error",
    "gone",
    "http",
    "http error",
    "internal error",
    "invalid params",
    "invalid request",
    "json-rpc error",
    "mcp error",
    "not found",
    "rpc error",
    "server error",
    "streamable http error",
    "unauthorized",
];

const ARTICLES: &[&str] = &["your ", "the ", "this ", "mcp "];

/// A longer text is about something else.
const TEXT_CHARS_MAX: usize = 200;

/// Returns whether a text is one of the first reports, and nothing else.
pub(super) fn is_reported_loss(text: &str) -> bool {
    substance(text).is_some_and(|text| REPORTED.contains(&text.as_str()))
}

/// Returns whether a text says that a session is gone, and nothing else.
pub(super) fn says_session_lost(text: &str) -> bool {
    let Some(text) = substance(text) else {
        return false;
    };
    let mut text = text.as_str();
    while let Some(rest) = ARTICLES.iter().find_map(|word| text.strip_prefix(word)) {
        text = rest.trim_start();
    }
    let phrases = REPORTED.iter().chain(PHRASES);
    let mut ends = phrases.filter_map(|phrase| text.strip_prefix(phrase));
    ends.any(adds_nothing) || names_a_session(text)
}

/// Returns whether what follows a phrase is only the session's name, or what to do.
fn adds_nothing(rest: &str) -> bool {
    const MARKS: &[char] = &[':', ',', ';', '.', '(', ')', '-', ' ', '"', '\'', '`', '!'];
    if rest.starts_with(|c: char| !MARKS.contains(&c)) {
        return false;
    }
    let rest = rest.trim_matches(MARKS);
    !rest.contains(char::is_whitespace) || AFTER_A_PHRASE.contains(&rest)
}

/// Returns whether this is "session 4711 not found", in any of its forms.
fn names_a_session(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (id, after) = match words.as_slice() {
        ["session", "with", "id", id, after @ ..] => (id, after),
        ["session", "id", id, after @ ..] => (id, after),
        ["session", id, after @ ..] => (id, after),
        _ => return false,
    };
    let is_id = id.contains(|c: char| c.is_ascii_digit());
    is_id && AFTER_AN_ID.contains(&after.join(" ").as_str())
}

/// Returns what a text says, in lower case and without the prefixes of the protocol; `None` if it is long.
fn substance(text: &str) -> Option<String> {
    let text = text.trim();
    if text.chars().count() > TEXT_CHARS_MAX {
        return None;
    }
    let text = text.to_lowercase();
    let mut rest = text.as_str();
    while let Some((head, tail)) = rest.split_once(':') {
        if !is_prefix(head) {
            break;
        }
        rest = tail.trim_start();
    }
    Some(rest.trim_end_matches(['.', '!']).trim().to_owned())
}

fn is_prefix(head: &str) -> bool {
    let number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '(' | ')' | '[' | ']' | ' ');
    PREFIXES.contains(&head.trim().trim_end_matches(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_text_or_what_follows_a_prefix_counts() {
        for text in [
            "Session not found",
            "session expired.",
            "Invalid params: Invalid or expired session",
            "MCP error -32602: Invalid params: Invalid or expired session",
            "Error (404): Unknown session",
        ] {
            assert!(is_reported_loss(text), "{text}");
            assert!(says_session_lost(text), "{text}");
        }
    }

    #[test]
    fn what_a_tool_says_of_sessions_of_its_own_does_not() {
        for text in [
            "browser session not found",
            "Session expired: log in to the bank",
            "Error: browser session not found",
            "Playwright: session not found",
            "Session not found for user 7, try list_sessions",
            "no tmux session not found here",
            "session expiredness",
            "the session of the court has expired today",
            "invalid session type: expected one of a, b",
        ] {
            assert!(!says_session_lost(text), "{text}");
            assert!(!is_reported_loss(text), "{text}");
        }
    }

    #[test]
    fn a_name_and_what_to_do_add_nothing_but_are_no_first_report() {
        for text in [
            "Unknown session: abc",
            "Session not found (a1b2-c3)",
            "Session a1b2-c3 not found",
            "Session with id a1b2 does not exist",
            "Your session expired, please reconnect",
            "Unknown session on this instance",
            "Session terminated",
            "Session has expired. Please re-initialize.",
            "MCP session not found or expired",
        ] {
            assert!(says_session_lost(text), "{text}");
            assert!(!is_reported_loss(text), "{text}");
        }
    }

    #[test]
    fn nothing_and_a_long_text_say_nothing() {
        for text in [
            "",
            "  ",
            ":",
            &format!("session expired {}", "x".repeat(300)),
        ] {
            assert!(
                !says_session_lost(text) && !is_reported_loss(text),
                "{text}"
            );
        }
    }
}
