//! What waits for a person's consent: shown, and answered.

use hermes_core::exact::exact;
use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{
    AnswerSource, Approval, ApprovalAnswer, ApprovalId, Settled, Settlement, Verdict, wording,
};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::Served;
use super::answer::{CallOutcome, Refused};
use super::arguments::Arguments;
use super::catalogue::DECISIONS;

/// A command that is longer is shown in part, and can only be refused: its own conversation shows all of it.
const WHAT_CHARS_MAX: usize = 10_000;

/// The same for a change.
const DIFF_CHARS_MAX: usize = 20_000;

pub(super) async fn list(served: &Served) -> CallOutcome {
    let open = served.approvals.open_approvals(served.clock.now()).await?;
    let may_answer = served.no_answers.is_none();
    let approvals = open.iter().map(|one| described(one, may_answer));
    let approvals: Vec<Value> = approvals.collect();
    Ok(CallToolResult::structured(json!({
        "count": approvals.len(),
        "approvals": approvals,
    })))
}

pub(super) async fn respond(served: &Served, arguments: &Arguments) -> CallOutcome {
    if let Some(why) = served.no_answers {
        return Err(Refused(why.to_owned()));
    }
    let id = ApprovalId::from(arguments.text("id")?);
    let word = arguments.word("decision", DECISIONS)?;
    let chosen = Verdict::ALL.into_iter().find(|&one| decision(one) == word);
    let verdict = chosen.unwrap_or(Verdict::Deny);
    let answer = ApprovalAnswer {
        verdict,
        pattern: arguments.optional_text("pattern")?,
        words: arguments.optional_text("reason")?,
    };
    let approval = served.approvals.approval(&id).await?;
    if verdict != Verdict::Deny && !is_shown_whole(&approval) {
        return Err(Refused(
            "only a part of it was shown here, so it cannot be allowed here; its own conversation shows all of it"
                .to_owned(),
        ));
    }
    // A code of another question is a wrong one.
    let code = arguments.text("code")?;
    let code = if approval.code.is(&code) {
        code
    } else {
        String::new()
    };
    let settlement = Settlement::answered(served.clock.now(), answer, AnswerSource::Mcp);
    let (_, settling) = served.approvals.settle_by_code(&code, settlement).await?;
    if !settling.is_ours {
        let ended = match settling.settlement.how {
            Settled::Answered { verdict, by } => {
                format!(
                    "{} {}",
                    wording::verdict(verdict),
                    wording::answer_source(by)
                )
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

fn is_shown_whole(approval: &Approval) -> bool {
    let diff = approval
        .preview
        .as_ref()
        .map_or("", |preview| &preview.diff);
    exact(&approval.what).chars().count() <= WHAT_CHARS_MAX
        && exact(diff).chars().count() <= DIFF_CHARS_MAX
}

/// Secrets stay here: what waits is for a person to recognise, not for a program to run. The code is for those who may
/// answer.
fn described(approval: &Approval, may_answer: bool) -> Value {
    let offered = approval.choices.iter();
    let offered = offered.filter(|&&one| one == Verdict::Deny || is_shown_whole(approval));
    let mut decisions: Vec<_> = offered.map(|&one| decision(one)).collect();
    decisions.dedup();
    let mut described = json!({
        "id": approval.id,
        "session_key": approval.session,
        "tool": approval.tool,
        "what": shorten(&exact(&redact(&approval.what)), WHAT_CHARS_MAX),
        "folder": approval.folder,
        "reason": approval.reason,
        "patterns": approval.patterns,
        "decisions": decisions,
        "created_at": approval.created.to_iso(),
        "expires_at": approval.expires.to_iso(),
    });
    if let Some(preview) = &approval.preview {
        described["diff"] = shorten(&exact(&redact(&preview.diff)), DIFF_CHARS_MAX).into();
    }
    if may_answer {
        described["code"] = approval.code.shown().into();
    }
    described
}
