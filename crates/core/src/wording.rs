//! What happens in a session, put into words: the same on every surface. None of it is made safe for a terminal here.

use serde_json::Value;

use crate::approval::{Door, Settled, Verdict};
use crate::model::ModelNotice;
use crate::session::{Notice, TurnEnd};
use crate::text;

/// A call's arguments in one short line: the values people look for, without their names.
pub fn brief(arguments: &Value) -> String {
    const LINE_CHARS_MAX: usize = 100;
    let Value::Object(fields) = arguments else {
        return text::shorten(&arguments.to_string(), LINE_CHARS_MAX);
    };
    let values = fields.iter().map(|(name, value)| match value {
        Value::String(text) if name == "content" => format!("({} bytes)", text.len()),
        Value::String(text) => text::escaped(&text.replace('\n', "⏎")),
        other => format!("{name}={other}"),
    });
    text::shorten(&values.collect::<Vec<_>>().join(" "), LINE_CHARS_MAX)
}

/// Says how many pictures there are: `1 picture`. Nothing when there is none.
pub fn pictures(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 picture".to_owned()),
        count => Some(format!("{count} pictures")),
    }
}

/// What a notice says to the person.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Model {
            notice:
                ModelNotice::Retrying {
                    reason,
                    attempt,
                    wait_ms,
                },
        } => {
            format!(
                "{reason}; trying again in {:.1} s (attempt {attempt})",
                *wait_ms as f64 / 1000.0
            )
        }
        Notice::Model {
            notice: ModelNotice::CredentialRotated { provider, reason },
        } => {
            format!("{reason}; using another key of {provider}")
        }
        Notice::Model {
            notice: ModelNotice::FellBack { from, to, reason },
        } => {
            format!("{from} cannot answer ({reason}); {to} takes over for this turn")
        }
        Notice::Model {
            notice: ModelNotice::NoAdvice { model, reason },
        } => format!("{model} gives no advice ({reason})"),
        Notice::Model {
            notice: ModelNotice::PicturesLeftOut { model, reason },
        } => format!("{model} does not take the pictures ({reason}); asking again without them"),
        Notice::AskedAgain { reason } => format!("{reason}; asking again"),
        Notice::Context { text } => text.clone(),
        Notice::NotTaken { reason } => format!("not taken: {reason}"),
        Notice::NotEnquired { asker, message } => {
            format!("{asker} asked, and nobody is here to answer: {message}")
        }
        Notice::NoCheckpoint { reason } => {
            format!("no checkpoint, so /rollback cannot take this turn back: {reason}")
        }
        Notice::SubagentsDone { subagents } => {
            let who = match subagents {
                1 => "a subagent has".to_owned(),
                count => format!("{count} subagents have"),
            };
            format!("{who} finished in the background")
        }
        Notice::Forgotten { messages } => format!("{messages} waiting messages were dropped"),
        Notice::SteeringQueued => {
            "your words came too late for this turn; they are the next one".into()
        }
    }
}

pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Once => "allowed once",
        Verdict::Session => "allowed for this session",
        Verdict::Always => "allowed from now on",
        Verdict::Deny => "refused",
    }
}

/// How a question ended, for those who did not answer it themselves.
pub fn question_closed(how: Settled) -> Option<String> {
    match how {
        Settled::Answered { by: Door::Chat, .. } | Settled::Withdrawn => None,
        Settled::Answered { verdict: said, by } => Some(format!(
            "answered elsewhere ({}): {}",
            door(by),
            verdict(said)
        )),
        Settled::Expired => Some("nobody answered in time: refused".to_owned()),
    }
}

pub fn door(door: Door) -> &'static str {
    match door {
        Door::Chat => "in its chat",
        Door::Command => "with `hermes approvals`",
        Door::Mcp => "over MCP",
    }
}

/// Why a turn did not end with an answer.
pub fn turn_end(end: &TurnEnd) -> Option<String> {
    Some(match end {
        TurnEnd::Finished => return None,
        TurnEnd::Interrupted => "interrupted".into(),
        TurnEnd::OutOfSteps { steps } => {
            format!("stopped after {steps} steps; say `go on`, or raise agent.max_turns")
        }
        TurnEnd::Stuck { reason } => format!("stopped: {reason}"),
        TurnEnd::Failed { error } => format!("error: {error}\n hint: {}", error.hint),
        TurnEnd::Broken { error, hint } => format!("error: {error}\n hint: {hint}"),
        TurnEnd::Abandoned { crashes } => {
            format!("given up: this turn crashed hermes {crashes} times")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_shown_short() {
        assert_eq!(
            brief(&json!({"command": "ls\n-l", "timeout": 5})),
            "ls⏎-l timeout=5"
        );
        assert_eq!(
            brief(&json!({"path": "a", "content": "0123"})),
            "a (4 bytes)"
        );
        assert!(brief(&json!({"command": "x".repeat(500)})).chars().count() <= 100);
    }
}
