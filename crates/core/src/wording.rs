//! What happens in a session, put into words: the same on every surface. None of it is made safe for a terminal here.

use serde_json::Value;

use crate::approval::{AnswerSource, ApprovalAnswer, Settled, Verdict};
use crate::compaction::{CompactionEnd, CompactionReason};
use crate::exact::exact;
use crate::model::ModelNotice;
use crate::session::{ApprovalRequest, Notice, TurnEnd};
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

/// Why a call failed, as its result tells it: the last thing that was said, with how it ended behind it where that stands
/// in a line of its own (`[exit code 1, 0.1 s]`).
pub fn reason(result: &str) -> Vec<&str> {
    let mut lines = result.lines().map(str::trim).rev();
    let mut lines = lines.by_ref().filter(|line| !line.is_empty());
    let last: Vec<&str> = lines.next().into_iter().collect();
    let is_end = last
        .first()
        .is_some_and(|last| last.starts_with('[') && last.ends_with(']'));
    match lines.next() {
        Some(said) if is_end => [&[said], &last[..]].concat(),
        _ => last,
    }
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
/// What somebody is told who could not read along fast enough.
pub fn missed(events: u64) -> String {
    match events {
        1 => "one event went by unseen; the session has everything".to_owned(),
        events => format!("{events} events went by unseen; the session has everything"),
    }
}

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
        Notice::Model {
            notice: ModelNotice::OtherWire { model },
        } => format!("the server of {model} has no Responses API; asking over chat completions"),
        Notice::AskedAgain { reason } => format!("{reason}; asking again"),
        Notice::Context { text } | Notice::Tools { text } => text.clone(),
        Notice::NotTaken { reason } | Notice::NotQueued { reason, .. } => {
            format!("not taken: {reason}")
        }
        Notice::ElicitationDeclined { asker, message } => {
            format!("{asker} asked, and nobody is here to answer: {message}")
        }
        Notice::NotAllowed { tool, reason } => {
            format!("{tool} was not run: it {reason}, and nobody is here to allow it")
        }
        Notice::NoCheckpoint { reason } => {
            format!("no checkpoint, so /rollback cannot take this turn back: {reason}")
        }
        Notice::Learned { text } => format!("learned: {text}"),
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

/// Why a conversation is being made shorter.
pub fn compaction_started(reason: CompactionReason, tokens: u64, window: Option<u64>) -> String {
    let size = match window {
        Some(window) if window > 0 => {
            let percent = tokens.saturating_mul(100) / window;
            format!(
                "{} of {} tokens ({percent} %)",
                thousands(tokens),
                thousands(window)
            )
        }
        _ => format!("{} tokens", thousands(tokens)),
    };
    match reason {
        CompactionReason::Full => format!("the conversation fills {size}; making it shorter"),
        CompactionReason::TooLong => {
            format!("the conversation is too long for the model ({size}); making it shorter")
        }
        CompactionReason::Asked => format!("making the conversation shorter: {size}"),
    }
}

/// What came of a compaction, a line for each thing to know.
pub fn compaction_ended(end: &CompactionEnd) -> Vec<String> {
    let report = match end {
        CompactionEnd::Stopped => {
            return vec!["stopped; the conversation is as it was".to_owned()];
        }
        CompactionEnd::Unchanged { reason } => return vec![reason.clone()],
        CompactionEnd::Done { report } => report,
    };
    let mut done = Vec::new();
    if report.summarised > 0 {
        done.push(format!("{} messages summarised", report.summarised));
    }
    if report.shortened > 0 {
        done.push(format!("{} shortened", report.shortened));
    }
    done.push(format!("{} kept as they are", report.kept));
    let first = format!(
        "made shorter in {:.1} s: {} tokens before, {} after; {}; nothing is deleted",
        report.elapsed_ms as f64 / 1000.0,
        thousands(report.tokens_before),
        thousands(report.tokens_after),
        done.join(", "),
    );
    std::iter::once(first)
        .chain(report.notes.iter().cloned())
        .collect()
}

/// `950`, `12.3k`, `200k`, `1.0M`.
pub fn thousands(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 => format!("{:.1}k", count as f64 / 1e3),
        100_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{:.1}M", count as f64 / 1e6),
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

/// What a person's answer came to, for the person.
pub fn answer(answer: &ApprovalAnswer) -> String {
    let verdict = verdict(answer.verdict);
    match (&answer.pattern, &answer.words) {
        (Some(pattern), _) => format!("{verdict}: {}", exact(pattern)),
        (None, Some(words)) => format!("{verdict}: {words}"),
        (None, None) => verdict.to_owned(),
    }
}

/// What a question is about: completes "the tool …".
pub fn wants(question: &ApprovalRequest) -> &'static str {
    match question.diff {
        Some(_) => "wants to change",
        None => "wants to run",
    }
}

/// The lines of a change for a person to judge: what cannot be seen is spelt out, and each stands behind a bar, so that
/// none passes for a line of the program. Returns them with the number of lines left out.
pub fn change_lines(diff: &str, lines_max: usize) -> (Vec<String>, usize) {
    let escaped = text::escaped(diff).replace('\t', "    ");
    let shown = escaped.lines().take(lines_max);
    let lines = shown.map(|line| format!("│ {line}")).collect();
    (lines, escaped.lines().count().saturating_sub(lines_max))
}

/// How many lines a change adds and removes, in short: `+3 -1`.
pub fn change_size(diff: &str) -> String {
    let begins = |mark: char| {
        let lines = diff.lines().filter(|line| line.starts_with(mark));
        // The names of the files begin the same way.
        let header = mark.to_string().repeat(3) + " ";
        lines.filter(|line| !line.starts_with(&header)).count()
    };
    format!("+{} -{}", begins('+'), begins('-'))
}

/// How a question ended, for those who did not answer it themselves.
pub fn approval_closed(how: Settled) -> Option<String> {
    match how {
        Settled::Answered {
            by: AnswerSource::Chat,
            ..
        }
        | Settled::Withdrawn => None,
        Settled::Answered { verdict: said, by } => Some(format!(
            "answered elsewhere ({}): {}",
            answer_source(by),
            verdict(said)
        )),
        Settled::Expired => Some("nobody answered in time: refused".to_owned()),
    }
}

pub fn answer_source(answer_source: AnswerSource) -> &'static str {
    match answer_source {
        AnswerSource::Chat => "in its chat",
        AnswerSource::Command => "with `hermes approvals`",
        AnswerSource::Mcp => "over MCP",
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
    fn a_change_is_shown_behind_a_bar_and_counted() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\u{1b}[2K\n+\tc\n";
        let (lines, more) = change_lines(diff, 5);
        assert_eq!(lines[3..], ["│ -a", "│ +b\\x1b[2K"]);
        assert_eq!(more, 1);
        assert_eq!(change_lines(diff, 10).1, 0);
        assert_eq!(change_size(diff), "+2 -1");
    }

    #[test]
    fn a_failed_call_tells_its_reason_and_not_only_how_it_ended() {
        for (result, expected) in [
            ("", &[][..]),
            ("no such file", &["no such file"]),
            ("a\nb\n\n", &["b"]),
            ("[exit code 1, 0.1 s]", &["[exit code 1, 0.1 s]"]),
            (
                "a\nls: x: No such file\n\n[exit code 2, 0.1 s]",
                &["ls: x: No such file", "[exit code 2, 0.1 s]"],
            ),
        ] {
            assert_eq!(reason(result), expected, "{result}");
        }
    }

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
