//! Decides whether a call may run: what the tool says about it, what the policy makes of that, and what those in `safety`
//! think. Asking a person is in `approvals`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{
    Agreement, Consent, Effect, Event, Mode, Need, Notice, Pass, PreviewContext, Review, Settled,
    Settlement, StoreError, Verdict,
};
use serde_json::Value;

use crate::approvals::{Asker, ConsentRequest, ask_person, said_before};
use crate::calls::Ready;
use crate::reviewer::Opinion;
use crate::safety;
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
    /// With what was agreed to, which is nothing for most calls.
    Run(Agreement),
    /// Why not, in words for the model.
    NotRun(String),
}

/// What a model is told that is to plan, and wants to do more than read.
const PLANNING: &str = "Not run: the user has switched to plan mode, in which nothing is changed. Read what you need to, then \
                        tell the user what you would do, step by step; they leave plan mode when it may be done.";

/// What a model is told whose call would leave the fence for somebody who is not the owner.
const NOT_THE_OWNER: &str = "Not run: this reaches beyond the project, which only the owner of this Hermes could allow, and \
                             whoever you talk to is somebody else. Find a way inside the project, or tell them so.";

/// Decides about a call.
pub(crate) async fn decide(
    cx: &TurnContext<'_>,
    ready: &Ready,
    asker: Asker<'_>,
) -> Result<Decision, StoreError> {
    if cx.settings.mode.now() == Mode::Plan && ready.plan.effect != Effect::Read {
        return Ok(Decision::NotRun(PLANNING.to_owned()));
    }
    let need = match &ready.plan.consent {
        Consent::NotNeeded => {
            let place = PreviewContext {
                session: cx.recorder.session(),
                cwd: &cx.settings.cwd,
                stop: asker.stop,
            };
            match ready.plan.action.review(place).await {
                Ok(Some(review)) => return decide_change(cx, ready, asker, review).await,
                Ok(None) => None,
                Err(error) => return Ok(Decision::NotRun(error.to_string())),
            }
        }
        Consent::Needed(need) => Some(need.clone()),
        Consent::Review(review) => {
            return decide_change(cx, ready, asker, review.clone()).await;
        }
        Consent::Forbidden { reason } => {
            return Ok(Decision::NotRun(format!(
                "Refused: {reason}. Nobody can allow this. Find another way, or tell the user."
            )));
        }
    };
    let leaves = need.as_ref().is_some_and(|need| !need.pass.is_inside());
    if leaves && cx.ports.safety.keeps_inside {
        return Ok(Decision::NotRun(NOT_THE_OWNER.to_owned()));
    }
    let agreement = Agreement {
        pass: need
            .as_ref()
            .map_or(Pass::default(), |need| need.pass.clone()),
        ..Agreement::default()
    };
    if cx.settings.consent == ConsentPolicy::Allow {
        return Ok(Decision::Run(agreement));
    }
    let Some(request) = consent_request(cx, ready, asker, need).await else {
        return Ok(Decision::Run(agreement));
    };
    if cx.approvals.is_allowed(&request) {
        return Ok(Decision::Run(agreement));
    }
    let refused = consult(cx, request, Judges::ModelFirst).await?;
    Ok(refused.map_or_else(|| Decision::Run(agreement), Decision::NotRun))
}

/// Decides about a call that changes what somebody wants to look at first. They are shown the change as it would be made
/// now, and the call is told which one that was.
async fn decide_change(
    cx: &TurnContext<'_>,
    ready: &Ready,
    asker: Asker<'_>,
    review: Review,
) -> Result<Decision, StoreError> {
    let mut agreement = Agreement {
        covers: review.covers.clone(),
        ..Agreement::default()
    };
    let is_asked = matches!(cx.settings.consent, ConsentPolicy::Ask { .. });
    if review.may_wait && !is_asked {
        return Ok(Decision::Run(Agreement::default()));
    }
    if cx.settings.consent == ConsentPolicy::Allow || cx.approvals.is_covered(&review.covers) {
        return Ok(Decision::Run(agreement));
    }
    let place = PreviewContext {
        session: cx.recorder.session(),
        cwd: &cx.settings.cwd,
        stop: asker.stop,
    };
    let preview = match ready.plan.action.preview(place).await {
        Ok(preview) => preview.map(|preview| safety::without_keys(cx, preview)),
        // Nobody is asked about what would not work.
        Err(error) => return Ok(Decision::NotRun(error.to_string())),
    };
    agreement.basis = preview.as_ref().map(|preview| preview.basis.clone());
    let is_shown = preview.as_ref().is_some_and(|preview| preview.is_whole);
    let judges = if review.is_for_person || !is_shown {
        Judges::PersonOnly
    } else {
        Judges::ModelFirst
    };
    let request = ConsentRequest {
        asker,
        tool: ready.tool_name(),
        what: review.what,
        folder: None,
        patterns: Vec::new(),
        preview,
        covers: review.covers,
        reason: review.reason,
        choices: vec![Verdict::Once, Verdict::Session, Verdict::Deny],
    };
    let refused = consult(cx, request, judges).await?;
    Ok(refused.map_or_else(|| Decision::Run(agreement), Decision::NotRun))
}

/// Who may let a call run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judges {
    /// The model that judges, if there is one, and a person where it is not sure.
    ModelFirst,
    PersonOnly,
}

/// Puts a request to those who decide. Returns why it is not granted, in words for the model.
async fn consult(
    cx: &TurnContext<'_>,
    mut request: ConsentRequest<'_>,
    judges: Judges,
) -> Result<Option<String>, StoreError> {
    let opinion = match judges {
        Judges::ModelFirst => safety::reviewed(cx, &request).await,
        Judges::PersonOnly => Opinion::Unsure,
    };
    match opinion {
        Opinion::Safe => return Ok(None),
        Opinion::Dangerous => {
            request
                .reason
                .push_str(", and the model that was asked advises against it");
            request.choices = vec![Verdict::Once, Verdict::Deny];
            request.patterns.clear();
        }
        Opinion::Unsure => {}
    }
    let ConsentPolicy::Ask { timeout } = cx.settings.consent else {
        return match said_before(cx, &request).await? {
            Some(settlement) => Ok(why_not(&settlement)),
            None => Ok(Some(refuse_unattended(cx, &request).await)),
        };
    };
    let settlement = ask_person(cx, &request, timeout).await?;
    if let Settled::Answered {
        verdict: Verdict::Always,
        ..
    } = settlement.how
    {
        safety::allow_for_good(cx, &request, settlement.said.pattern.as_deref()).await;
    }
    Ok(why_not(&settlement))
}

/// Refuses what nobody is here to allow. The user is told too: only they can change that.
async fn refuse_unattended(cx: &TurnContext<'_>, request: &ConsentRequest<'_>) -> String {
    let notice = Notice::NotAllowed {
        tool: request.tool.to_owned(),
        reason: request.reason.clone(),
    };
    cx.tell(Event::Notice { notice });
    format!(
        "Refused: {}, and nobody is here to allow it. Find a safer way, or tell the user what to run. (They can let such \
         calls run without a person, with `--yolo` or `approvals.headless: allow`; you cannot.)",
        request.reason
    )
}

/// Returns what a person must agree to, if anything: what the tool says, and what the scanner found.
async fn consent_request<'a>(
    cx: &TurnContext<'_>,
    ready: &'a Ready,
    asker: Asker<'a>,
    need: Option<Need>,
) -> Option<ConsentRequest<'a>> {
    let arguments = ready.arguments.as_ref();
    let command = command(arguments);
    let folder = folder(arguments, need.as_ref(), &cx.settings.cwd);
    let need = need.filter(|need| !need.is_allowed);
    let found = safety::scanned(cx, command).await;
    let mut choices = vec![Verdict::Once, Verdict::Session];
    // A command can be written into a list. What a scanner found is never settled for good.
    if command.is_some() && found.is_none() && cx.ports.safety.allow_list.is_some() {
        choices.push(Verdict::Always);
    }
    choices.push(Verdict::Deny);
    let Need {
        reason,
        patterns,
        what,
        ..
    } = match (need, &found) {
        (None, None) => return None,
        (need, _) => need.unwrap_or_default(),
    };
    let reasons = [reason, found.clone().unwrap_or_default()];
    let reasons = reasons.into_iter().filter(|reason| !reason.is_empty());
    Some(ConsentRequest {
        asker,
        tool: ready.tool_name(),
        what: what.unwrap_or_else(|| describe(arguments)),
        folder,
        patterns: if found.is_none() {
            patterns
        } else {
            Vec::new()
        },
        preview: None,
        covers: Vec::new(),
        reason: reasons.collect::<Vec<_>>().join(", and "),
        choices,
    })
}

/// Says why an answer is not a yes, if so.
fn why_not(settlement: &Settlement) -> Option<String> {
    let words = match settlement.how {
        Settled::Answered {
            verdict: Verdict::Once | Verdict::Session | Verdict::Always,
            ..
        } => return None,
        Settled::Answered {
            verdict: Verdict::Deny,
            ..
        } => match &settlement.said.words {
            Some(words) => return Some(format!("The user did not allow this, and says: {words}")),
            None => "The user did not allow this. Do not try it another way; ask what they want.",
        },
        Settled::Expired => {
            "Not run: nobody answered in time whether this is allowed. Do what does not need it, or stop and say what \
             waits for an answer."
        }
        Settled::Withdrawn => "Not run: it was stopped before anybody allowed it.",
    };
    Some(words.to_owned())
}

/// What would run, as a person would write it: a command, a script, the arguments of any other call.
fn describe(arguments: &Value) -> String {
    match command(arguments).or(code(arguments)) {
        Some(text) => text.to_owned(),
        None => arguments.to_string(),
    }
}

/// Returns where a command or a script would run: where it runs decides what it does. Other calls run nowhere.
fn folder(arguments: &Value, need: Option<&Need>, cwd: &Path) -> Option<PathBuf> {
    let known = need.and_then(|need| need.folder.clone());
    let runs_somewhere = command(arguments).or(code(arguments)).is_some();
    let named = arguments.get("workdir").and_then(Value::as_str);
    let place = || named.map_or(cwd.to_owned(), |named| cwd.join(named));
    known.or(runs_somewhere.then(place))
}

/// Returns the script of a call.
fn code(arguments: &Value) -> Option<&str> {
    arguments.get("code").and_then(Value::as_str)
}

/// Returns the command of a terminal call.
fn command(arguments: &Value) -> Option<&str> {
    arguments.get("command").and_then(Value::as_str)
}
