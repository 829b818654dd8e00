//! What waits for a person's consent: shown, and answered.

use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{Approval, ApprovalId, Door, Settled, Settlement, Verdict, wording};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::Served;
use super::answer::{Answer, Refused, time};
use super::arguments::Arguments;
use super::catalogue::DECISIONS;

/// A command that is longer is shown in part; its own conversation shows all of it.
const WHAT_CHARS_MAX: usize = 10_000;

/// A change that is longer is shown in part, for the same reason.
const DIFF_CHARS_MAX: usize = 20_000;

pub(super) async fn list(served: &Served) -> Answer {
    let open = served.approvals.open_approvals(served.clock.now()).await?;
    let approvals: Vec<Value> = open.iter().map(described).collect();
    Ok(CallToolResult::structured(json!({
        "count": approvals.len(),
        "approvals": approvals,
    })))
}

pub(super) async fn respond(served: &Served, arguments: &Arguments) -> Answer {
    if !served.may_answer {
        return Err(Refused(
            "this server has no token, so anybody on this machine could be asking: answer with `hermes approvals`, or \
             start it with HERMES_MCP_SERVE_TOKEN set"
                .to_owned(),
        ));
    }
    let id = ApprovalId::from(arguments.text("id")?);
    let word = arguments.word("decision", DECISIONS)?;
    let chosen = Verdict::ALL.into_iter().find(|&one| decision(one) == word);
    let verdict = chosen.unwrap_or(Verdict::Deny);
    let by = Door::Mcp;
    let at = served.clock.now();
    let how = Settled::Answered { verdict, by };
    let settling = served.approvals.settle(&id, Settlement { at, how }).await?;
    if !settling.is_ours {
        let ended = match settling.settlement.how {
            Settled::Answered { verdict, by } => {
                format!("{} {}", wording::verdict(verdict), wording::door(by))
            }
            Settled::Expired => "nobody answered in time, which means no".to_owned(),
            Settled::Withdrawn => "it was taken back".to_owned(),
        };
        return Err(Refused(format!(
            "question `{id}` is over: {ended}; your answer changes nothing"
        )));
    }
    Ok(CallToolResult::structured(json!({
        "id": id,
        "resolved": true,
        "outcome": wording::verdict(verdict),
    })))
}

/// The word of [`DECISIONS`] for a verdict.
fn decision(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Once => "allow-once",
        // Clients may open a session, not change the settings: the first of [`Verdict::ALL`] with this word counts.
        Verdict::Session | Verdict::Always => "allow-always",
        Verdict::Deny => "deny",
    }
}

/// Secrets stay here: what waits is for a person to recognise, not for a program to run.
fn described(approval: &Approval) -> Value {
    let mut decisions: Vec<_> = approval.choices.iter().map(|&one| decision(one)).collect();
    decisions.dedup();
    let mut described = json!({
        "id": approval.id,
        "session_key": approval.session,
        "tool": approval.tool,
        "what": shorten(&redact(&approval.what), WHAT_CHARS_MAX),
        "reason": approval.reason,
        "decisions": decisions,
        "created_at": time(approval.created),
        "expires_at": time(approval.expires),
    });
    if let Some(preview) = &approval.preview {
        described["diff"] = shorten(&redact(&preview.diff), DIFF_CHARS_MAX).into();
    }
    described
}
