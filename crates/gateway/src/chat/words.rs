//! What the gateway itself says in chats: short, and with what to do next.

use hermes_core::{ApprovalRequest, Body, Button, Verdict};

pub(super) const PAIRING_FULL: &str =
    "I do not know you yet, and too many people wait to be let in. Please try again in an hour.";
pub(super) const EXPIRED: &str = "I was away for a long time, and what you wrote before now is too old to act on. Please send it again if it still matters.";
pub(super) const NOT_NOW: &str = "I cannot take that now: ";
pub(super) const CUT_SHORT: &str = "I could not go on with what you asked: it was cut short before anything was said. Please ask again if it still matters.";
pub(super) const NOTHING_SAID: &str = "Nothing was said here yet.";
pub(super) const WAITS: &str =
    "I am still at work; this comes next. /stop ends what I do and forgets what waits.";
pub(super) const WAITS_FOR_ROOM: &str =
    "Many people ask me things right now; this comes as soon as there is room.";
pub(super) const OVERRULED: &str = "I stopped what was asked before: an admin wanted something else first. Please ask again if it still matters.";
pub(super) const COMPACTING: &str = "Our conversation has become long: I am making it shorter before I go on. That may take a minute.";
pub(super) const GIVEN_UP: &str =
    "Nothing has happened for so long that I gave this up. Please ask again if it still matters.";
/// Of a change that is asked about.
const DIFF_BYTES_MAX: usize = 1_500;
pub(super) const STOPPED: &str = "\n\n_(stopped)_";

pub(super) fn body(text: impl Into<String>) -> Body {
    Body::Text {
        markdown: text.into(),
        is_preview: false,
    }
}

pub(super) fn pairing_code(platform: &str, code: &str) -> String {
    format!(
        "I do not know you yet. If I am yours, let yourself in on the machine I run on:\n\n\
         `hermes pairing approve {platform} {code}`\n\nOr whoever I belong to writes `/pairing approve {platform} {code}` in \
         their own chat with me. The code is good for an hour."
    )
}

/// Somebody else wants what only the owner may have. Where there is no owner, this says how there comes to be one.
pub(super) fn for_the_owner(command: &str, account: &str, has_owner: bool) -> String {
    let words = format!("/{command} is for the owner of this Hermes.");
    if has_owner {
        return words;
    }
    format!(
        "{words} It has none yet: who is, is said on the machine I run on, with `hermes pairing owner {account}`, or with \
         `allow_admin_from` in the settings of the platform."
    )
}

/// How a question for consent reads in a chat.
pub(super) fn approval(request: &ApprovalRequest, has_buttons: bool) -> String {
    let by_button = if has_buttons {
        "a button, or with "
    } else {
        ""
    };
    let place = match &request.folder {
        Some(folder) => format!("\nin `{}`", folder.display()),
        None => String::new(),
    };
    let diff = match &request.diff {
        Some(diff) => format!("\n\n{}", shown_change(diff)),
        None => String::new(),
    };
    let what = inside_fence(&hermes_core::text::escaped(&request.what));
    format!(
        "**May I run this?**\n\n```\n{what}\n```{place}{diff}\n\nWhy I ask: {}\n\n\
         Answer with {by_button}{}. From another chat: `/approve {}`",
        request.reason,
        offered(request),
        request.code.shown()
    )
}

/// As much of a change as a chat has room for, and how much it does not show.
fn shown_change(diff: &str) -> String {
    let shown = hermes_core::text::head(diff, DIFF_BYTES_MAX);
    let hidden = diff[shown.len()..].lines().count();
    let more = match hidden {
        0 => String::new(),
        1 => "\n**1 more line of this change is not shown here.**".to_owned(),
        hidden => format!("\n**{hidden} more lines of this change are not shown here.**"),
    };
    format!("```diff\n{}\n```{more}", inside_fence(shown))
}

/// Text that does not end the fence it stands in, in any platform's markdown: what comes behind the fence is our word.
fn inside_fence(text: &str) -> String {
    text.replace("```", "`\u{200b}`\u{200b}`")
}

/// The answers that a question takes, as commands.
pub(super) fn offered(request: &ApprovalRequest) -> String {
    let command = |verdict: &Verdict| match verdict {
        Verdict::Once => "/approve",
        Verdict::Session => "/approve session",
        Verdict::Always => "/approve always",
        Verdict::Deny => "/deny",
    };
    let commands: Vec<&str> = request.choices.iter().map(command).collect();
    match commands.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => commands.concat(),
    }
}

/// What `/stop` came to.
pub(super) fn stopped(is_working: bool, forgotten: usize) -> String {
    let waiting = match forgotten {
        0 => String::new(),
        1 => "One message that waited is forgotten.".to_owned(),
        many => format!("{many} messages that waited are forgotten."),
    };
    match (is_working, forgotten) {
        (true, 0) => "Stopped.".to_owned(),
        (true, _) => format!("Stopped. {waiting}"),
        (false, 0) => "Nothing runs, and nothing waits.".to_owned(),
        (false, _) => waiting,
    }
}

pub(super) fn approval_buttons(request: &ApprovalRequest) -> Vec<Vec<Button>> {
    let button = |verdict: &Verdict| Button {
        label: match verdict {
            Verdict::Once => "Once",
            Verdict::Session => "This conversation",
            Verdict::Always => "Always",
            Verdict::Deny => "No",
        }
        .into(),
        data: format!("ea:{}:{}", verdict_name(*verdict), request.approval),
    };
    let buttons: Vec<Button> = request.choices.iter().map(button).collect();
    buttons.chunks(2).map(<[Button]>::to_vec).collect()
}

pub(super) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Once => "once",
        Verdict::Session => "session",
        Verdict::Always => "always",
        Verdict::Deny => "deny",
    }
}

pub(super) fn verdict(name: &str) -> Option<Verdict> {
    Verdict::ALL
        .into_iter()
        .find(|one| verdict_name(*one) == name)
}

/// What somebody means who answers a question with a word or two.
pub(super) fn spoken_verdict(text: &str) -> Option<Verdict> {
    Some(match text.trim().to_lowercase().as_str() {
        "approve" | "yes" | "ok" | "okay" | "confirm" | "y" | "👍" => Verdict::Once,
        "session" => Verdict::Session,
        "always" => Verdict::Always,
        "deny" | "no" | "reject" | "cancel" | "n" | "👎" => Verdict::Deny,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_ends_no_fence_and_says_what_of_it_is_not_shown() {
        let diff = format!(" ```sh\n+ls\n ```\n{}", "+more of it\n".repeat(500));
        let shown = shown_change(&diff);
        let fences = shown.matches("```").count();
        assert_eq!(fences, 2, "{shown}");
        assert!(shown.ends_with("more lines of this change are not shown here.**"));
        assert!(!shown_change("+one\n").contains("not shown"));
    }
}
