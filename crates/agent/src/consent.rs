//! Decides whether a call may run: what the tool says about it, and what the policy makes of that. Asking a person is in
//! `approvals`.

use std::time::Duration;

use hermes_core::{Consent, Settled, StoreError, Tool, Verdict};
use serde_json::Value;

use crate::approvals::{Asker, Wish, ask_person, said_before};
use crate::turn::TurnContext;

/// What happens when a call needs a person's consent. What is forbidden stays forbidden under every policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentPolicy {
    /// Ask, and take silence for "no".
    Ask { timeout: Duration },
    /// Nobody is there to ask: refuse, unless the answer was given before a crash.
    Refuse,
    /// The user said yes to everything (`--yolo`).
    Allow,
}

pub(crate) enum Decision {
    Run,
    /// Why not, in words for the model.
    NotRun(String),
}

/// Decides about a call of a tool.
pub(crate) async fn decide(
    cx: &TurnContext<'_>,
    tool: &dyn Tool,
    arguments: &Value,
    asker: Asker<'_>,
) -> Result<Decision, StoreError> {
    let reason = match tool.consent(arguments) {
        Consent::NotNeeded => return Ok(Decision::Run),
        Consent::Forbidden { reason } => {
            return Ok(Decision::NotRun(format!(
                "Refused: {reason}. Nobody can allow this. Find another way, or tell the user."
            )));
        }
        Consent::Needed { reason } => reason,
    };
    let wish = Wish {
        asker,
        tool: &tool.spec().name,
        what: describe(arguments),
        reason,
    };
    match cx.settings.consent {
        ConsentPolicy::Allow => Ok(Decision::Run),
        ConsentPolicy::Refuse => match said_before(cx, &wish).await? {
            Some(how) => Ok(heard(how)),
            None => Ok(Decision::NotRun(format!(
                "Refused: {}, and nobody is here to allow it. Find a safer way, or tell the user what to run.",
                wish.reason
            ))),
        },
        ConsentPolicy::Ask { timeout } => Ok(heard(ask_person(cx, &wish, timeout).await?)),
    }
}

fn heard(how: Settled) -> Decision {
    let words = match how {
        Settled::Answered {
            verdict: Verdict::Once | Verdict::Session,
            ..
        } => return Decision::Run,
        Settled::Answered {
            verdict: Verdict::Deny,
            ..
        } => "The user did not allow this. Do not try it another way; ask what they want.",
        Settled::Expired => {
            "Not run: nobody answered in time whether this is allowed. Do what does not need it, or stop and say what \
             waits for an answer."
        }
        Settled::Withdrawn => "Not run: it was stopped before anybody allowed it.",
    };
    Decision::NotRun(words.to_owned())
}

/// What would run, as a person would write it: a command, a script, the arguments of any other call.
fn describe(arguments: &Value) -> String {
    let text = ["command", "code"]
        .iter()
        .find_map(|name| arguments.get(name)?.as_str());
    text.map_or_else(|| arguments.to_string(), str::to_owned)
}
