//! Asks a person before a call runs. The question is in the store before it is shown: any process can answer it, and
//! after a crash it is still there.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    AnswerSource, Approval, ApprovalAnswer, ApprovalCode, ApprovalId, ApprovalRequest, CallId,
    CancellationToken, Event, Preview, Said, Settled, Settlement, StoreError, Timestamp, Verdict,
};
use tokio::sync::oneshot;

use crate::turn::TurnContext;

/// How often an open question is looked up for an answer from elsewhere: soon enough for a person, and a look costs a
/// fraction of a millisecond.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The questions of a session that wait for an answer, and what was allowed for the whole of it.
#[derive(Default)]
pub(crate) struct OpenApprovals {
    waiting: Mutex<HashMap<ApprovalId, Waiting>>,
    allowed: Mutex<HashSet<Allowed>>,
}

/// Something that was allowed for the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Allowed {
    /// The same call again, in the same folder.
    Call {
        tool: String,
        what: String,
        folder: Option<PathBuf>,
    },
    /// Every call of a pattern, in the same folder.
    Pattern {
        tool: String,
        pattern: String,
        folder: Option<PathBuf>,
    },
    /// A name that a review covers.
    Covered(String),
}

struct Waiting {
    approval: Approval,
    answer: oneshot::Sender<ApprovalAnswer>,
}

/// Who asks, and until when.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The call that the model made: it is in the store.
    pub(crate) call: &'a CallId,
    /// Whether another call asks, which this one makes.
    pub(crate) is_inner: bool,
    /// Takes the question back.
    pub(crate) stop: &'a CancellationToken,
}

/// What a call would do, and why it needs consent. A person is shown it as an [`ApprovalRequest`].
pub(crate) struct ConsentRequest<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) tool: &'a str,
    /// As the person would write it.
    pub(crate) what: String,
    /// Where it would run, if that matters.
    pub(crate) folder: Option<PathBuf>,
    /// Of which a person may allow one for longer.
    pub(crate) patterns: Vec<String>,
    /// The change, where it is one; without keys.
    pub(crate) preview: Option<Preview>,
    /// What else a yes for the session covers, where that is not just the same call again.
    pub(crate) covers: Vec<String>,
    pub(crate) reason: String,
    /// The answers a person may give.
    pub(crate) choices: Vec<Verdict>,
}

impl OpenApprovals {
    /// Hands a person's answer to the call that waits for it, or says why it is not taken.
    pub(crate) fn answer(&self, id: &ApprovalId, answer: ApprovalAnswer) -> Result<(), String> {
        let mut waiting = lock(&self.waiting);
        let said = Said {
            pattern: answer.pattern.clone(),
            words: None,
        };
        match waiting.get(id) {
            None => Err("nobody waits for this answer any more".to_owned()),
            Some(question) if !question.approval.offers(answer.verdict, &said) => {
                Err("this question does not offer that answer".to_owned())
            }
            Some(_) => {
                if let Some(question) = waiting.remove(id) {
                    // A call that was stopped in this moment needs no answer.
                    let _ = question.answer.send(answer);
                }
                Ok(())
            }
        }
    }

    fn wait_for(&self, approval: &Approval) -> (Listening<'_>, oneshot::Receiver<ApprovalAnswer>) {
        let (answer, answered) = oneshot::channel();
        let id = approval.id.clone();
        let approval = approval.clone();
        lock(&self.waiting).insert(id.clone(), Waiting { approval, answer });
        let approvals = self;
        (Listening { approvals, id }, answered)
    }

    /// Returns whether the same, or a pattern of it, was allowed for the session in its folder.
    pub(crate) fn is_allowed(&self, request: &ConsentRequest<'_>) -> bool {
        let allowed = lock(&self.allowed);
        let mut patterns = request.patterns.iter();
        let is_of_pattern = patterns.any(|pattern| allowed.contains(&request.pattern_key(pattern)));
        is_of_pattern || request.keys().iter().all(|key| allowed.contains(key))
    }

    /// Takes note of what is allowed for the session: a pattern, if one was picked.
    fn remember(&self, request: &ConsentRequest<'_>, said: &Said) {
        let keys = match &said.pattern {
            Some(pattern) => vec![request.pattern_key(pattern)],
            None => request.keys(),
        };
        lock(&self.allowed).extend(keys);
    }

    /// Returns whether all of these names were covered for the session. Without a name, nothing was.
    pub(crate) fn is_covered(&self, names: &[String]) -> bool {
        let allowed = lock(&self.allowed);
        let is_named = !names.is_empty();
        let mut names = names.iter();
        is_named && names.all(|name| allowed.contains(&Allowed::Covered(name.clone())))
    }
}

/// Keeps a question answerable; nobody in this process can answer it afterwards.
struct Listening<'a> {
    approvals: &'a OpenApprovals,
    id: ApprovalId,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        lock(&self.approvals.waiting).remove(&self.id);
    }
}

impl ConsentRequest<'_> {
    fn pattern_key(&self, pattern: &str) -> Allowed {
        Allowed::Pattern {
            tool: self.tool.to_owned(),
            pattern: pattern.to_owned(),
            folder: self.folder.clone(),
        }
    }

    /// What a yes for the session to exactly this allows; never empty.
    fn keys(&self) -> Vec<Allowed> {
        let covers = self.covers.iter().cloned();
        if self.covers.is_empty() {
            vec![Allowed::Call {
                tool: self.tool.to_owned(),
                what: self.what.clone(),
                folder: self.folder.clone(),
            }]
        } else {
            covers.map(Allowed::Covered).collect()
        }
    }
}

/// Asks, and returns what came of it. Silence is [`Settled::Expired`], an interrupt [`Settled::Withdrawn`].
pub(crate) async fn ask_person(
    cx: &TurnContext<'_>,
    request: &ConsentRequest<'_>,
    timeout: Duration,
) -> Result<Settlement, StoreError> {
    // The call must be in the store before the question that belongs to it.
    cx.recorder.commit().await?;
    let approval = match left_behind(cx, request).await? {
        Some(approval) => approval,
        None => write_down(cx, request, timeout).await?,
    };
    let settlement = match approval.settled {
        Some(settlement) => settlement,
        None => answer(cx, approval, request.asker.stop).await?,
    };
    if let Settled::Answered { verdict, .. } = settlement.how
        && matches!(verdict, Verdict::Session | Verdict::Always)
    {
        cx.approvals.remember(request, &settlement.said);
    }
    Ok(settlement)
}

/// Returns what a person said before a crash, for where nobody can be asked any more.
pub(crate) async fn said_before(
    cx: &TurnContext<'_>,
    request: &ConsentRequest<'_>,
) -> Result<Option<Settlement>, StoreError> {
    let approval = left_behind(cx, request).await?;
    Ok(approval.and_then(|approval| approval.settled))
}

/// Finds the same question from before a crash, if it still waits or was answered. What expired meanwhile is asked anew.
///
/// A call that makes others may make the same one twice, so each of theirs is a new question. The name of the tool is not
/// compared: of questions from before schema 4 the store has it as the model wrote it.
async fn left_behind(
    cx: &TurnContext<'_>,
    request: &ConsentRequest<'_>,
) -> Result<Option<Approval>, StoreError> {
    if request.asker.is_inner {
        return Ok(None);
    }
    let (store, now) = (&cx.ports.store, cx.ports.clock.now());
    let session = cx.recorder.session();
    let found = store.approval_of_call(session, request.asker.call).await?;
    Ok(found.filter(|approval| {
        let settled = approval.settled.as_ref();
        let is_answered =
            settled.is_some_and(|settlement| matches!(settlement.how, Settled::Answered { .. }));
        let is_same = approval.what == request.what
            && approval.folder == request.folder
            && basis(&approval.preview) == basis(&request.preview);
        is_same && (is_answered || approval.is_open(now))
    }))
}

/// What a person was shown must be what would be done now.
fn basis(preview: &Option<Preview>) -> Option<&str> {
    preview.as_ref().map(|preview| preview.basis.as_str())
}

async fn write_down(
    cx: &TurnContext<'_>,
    request: &ConsentRequest<'_>,
    timeout: Duration,
) -> Result<Approval, StoreError> {
    let now = cx.ports.clock.now();
    let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
    let approval = Approval {
        id: ApprovalId::generate(&cx.ports.random),
        code: ApprovalCode::generate(),
        session: cx.recorder.session().clone(),
        call: request.asker.call.clone(),
        tool: request.tool.to_owned(),
        what: request.what.clone(),
        folder: request.folder.clone(),
        reason: request.reason.clone(),
        patterns: request.patterns.clone(),
        preview: request.preview.clone(),
        choices: request.choices.clone(),
        created: now,
        expires: Timestamp::from_millis(now.as_millis().saturating_add(timeout_ms)),
        settled: None,
    };
    cx.ports.store.open_approval(approval.clone()).await?;
    Ok(approval)
}

/// Shows a question and waits for its end. What the store says in the end is what counts: another process may have been
/// first.
async fn answer(
    cx: &TurnContext<'_>,
    approval: Approval,
    stop: &CancellationToken,
) -> Result<Settlement, StoreError> {
    let (_listening, said) = cx.approvals.wait_for(&approval);
    let left_ms = approval.expires.as_millis() - cx.ports.clock.now().as_millis();
    let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or_default());
    let id = approval.id.clone();
    cx.tell(Event::ApprovalRequested(question(approval, left)));
    let now = || cx.ports.clock.now();
    let settlement = tokio::select! {
        biased;
        () = stop.cancelled() => Settlement::new(now(), Settled::Withdrawn),
        Ok(answer) = said => Settlement::answered(now(), answer, AnswerSource::Chat),
        settled = settled_elsewhere(cx, &id) => settled?,
        () = tokio::time::sleep(left) => Settlement::new(now(), Settled::Expired),
    };
    let settling = cx.ports.store.settle(&id, settlement).await?;
    let how = settling.settlement.how;
    cx.tell(Event::ApprovalClosed { approval: id, how });
    Ok(settling.settlement)
}

/// Waits until somebody else has settled a question. Also notices a deadline that passed while the machine slept.
async fn settled_elsewhere(
    cx: &TurnContext<'_>,
    id: &ApprovalId,
) -> Result<Settlement, StoreError> {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let approval = cx.ports.store.approval(id).await?;
        match approval.settled {
            Some(settlement) => return Ok(settlement),
            None if approval.is_open(cx.ports.clock.now()) => {}
            None => return Ok(Settlement::new(cx.ports.clock.now(), Settled::Expired)),
        }
    }
}

fn question(approval: Approval, left: Duration) -> ApprovalRequest {
    ApprovalRequest {
        approval: approval.id,
        code: approval.code,
        call: approval.call,
        tool: approval.tool,
        what: approval.what,
        diff: approval.preview.map(|preview| preview.diff),
        folder: approval.folder,
        reason: approval.reason,
        patterns: approval.patterns,
        choices: approval.choices,
        expires_in_ms: left.as_millis() as u64,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_name_is_covered() {
        let approvals = OpenApprovals::default();
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        lock(&approvals.allowed).insert(Allowed::Covered("a".to_owned()));
        assert!(approvals.is_covered(&names(&["a"])));
        assert!(!approvals.is_covered(&names(&["a", "b"])));
        assert!(!approvals.is_covered(&[]), "whoever names nothing is asked");
    }
}
