//! Asks a person before a call runs. The question is in the store before it is shown: any process can answer it, and
//! after a crash it is still there.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{
    Approval, ApprovalId, CallId, CancellationToken, Door, Event, Preview, Question, Settled,
    Settlement, StoreError, Timestamp, Verdict,
};
use tokio::sync::oneshot;

use crate::turn::TurnContext;

/// How often an open question is looked up for an answer from elsewhere: soon enough for a person, and a look costs a
/// fraction of a millisecond.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The questions of a session that wait for an answer, and what was allowed for the whole of it.
#[derive(Default)]
pub(crate) struct Questions {
    waiting: Mutex<HashMap<ApprovalId, Waiting>>,
    allowed: Mutex<HashSet<Allowed>>,
}

/// Something that was allowed for the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Allowed {
    /// The same call again.
    Call { tool: String, what: String },
    /// A name that a review covers.
    Covered(String),
}

struct Waiting {
    choices: Vec<Verdict>,
    answer: oneshot::Sender<Verdict>,
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

/// What a call would do, and why a person must agree.
pub(crate) struct Wish<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) tool: &'a str,
    /// As the person would write it.
    pub(crate) what: String,
    /// The change, where it is one; without keys.
    pub(crate) preview: Option<Preview>,
    /// What else a yes for the session covers, where that is not just the same call again.
    pub(crate) covers: Vec<String>,
    pub(crate) reason: String,
    /// The answers a person may give.
    pub(crate) choices: Vec<Verdict>,
}

impl Questions {
    /// Hands a person's answer to the call that waits for it, or says why it is not taken.
    pub(crate) fn answer(&self, id: &ApprovalId, verdict: Verdict) -> Result<(), String> {
        let mut waiting = lock(&self.waiting);
        match waiting.get(id) {
            None => Err("nobody waits for this answer any more".to_owned()),
            Some(question) if !question.choices.contains(&verdict) => {
                Err("this question does not offer that answer".to_owned())
            }
            Some(_) => {
                if let Some(question) = waiting.remove(id) {
                    // A call that was stopped in this moment needs no answer.
                    let _ = question.answer.send(verdict);
                }
                Ok(())
            }
        }
    }

    fn wait_for(&self, approval: &Approval) -> (Listening<'_>, oneshot::Receiver<Verdict>) {
        let (answer, answered) = oneshot::channel();
        let choices = approval.choices.clone();
        let id = approval.id.clone();
        lock(&self.waiting).insert(id.clone(), Waiting { choices, answer });
        let questions = self;
        (Listening { questions, id }, answered)
    }

    /// Returns whether the same was allowed for the session.
    pub(crate) fn is_allowed(&self, wish: &Wish<'_>) -> bool {
        let allowed = lock(&self.allowed);
        wish.keys().iter().all(|key| allowed.contains(key))
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
    questions: &'a Questions,
    id: ApprovalId,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        lock(&self.questions.waiting).remove(&self.id);
    }
}

impl Wish<'_> {
    /// What a yes for the session allows; never empty.
    fn keys(&self) -> Vec<Allowed> {
        let covers = self.covers.iter().cloned();
        match self.covers.is_empty() {
            false => covers.map(Allowed::Covered).collect(),
            true => vec![Allowed::Call {
                tool: self.tool.to_owned(),
                what: self.what.clone(),
            }],
        }
    }
}

/// Asks, and returns what came of it. Silence is [`Settled::Expired`], an interrupt [`Settled::Withdrawn`].
pub(crate) async fn ask_person(
    cx: &TurnContext<'_>,
    wish: &Wish<'_>,
    timeout: Duration,
) -> Result<Settled, StoreError> {
    // The call must be in the store before the question that belongs to it.
    cx.recorder.commit().await?;
    let approval = match left_behind(cx, wish).await? {
        Some(approval) => approval,
        None => write_down(cx, wish, timeout).await?,
    };
    let how = match approval.settled {
        Some(settlement) => settlement.how,
        None => answer(cx, approval, wish.asker.stop).await?,
    };
    if let Settled::Answered { verdict, .. } = how
        && matches!(verdict, Verdict::Session | Verdict::Always)
    {
        lock(&cx.questions.allowed).extend(wish.keys());
    }
    Ok(how)
}

/// Returns what a person said before a crash, for where nobody can be asked any more.
pub(crate) async fn said_before(
    cx: &TurnContext<'_>,
    wish: &Wish<'_>,
) -> Result<Option<Settled>, StoreError> {
    let approval = left_behind(cx, wish).await?;
    let settlement = approval.and_then(|approval| approval.settled);
    Ok(settlement.map(|settlement| settlement.how))
}

/// Finds the same question from before a crash, if it still waits or was answered. What expired meanwhile is asked anew.
///
/// A call that makes others may make the same one twice, so each of theirs is a new question. The name of the tool is not
/// compared: of questions from before schema 4 the store has it as the model wrote it.
async fn left_behind(
    cx: &TurnContext<'_>,
    wish: &Wish<'_>,
) -> Result<Option<Approval>, StoreError> {
    if wish.asker.is_inner {
        return Ok(None);
    }
    let (store, now) = (&cx.ports.store, cx.ports.clock.now());
    let session = cx.recorder.session();
    let found = store.approval_of_call(session, wish.asker.call).await?;
    Ok(found.filter(|approval| {
        let settled = approval.settled.map(|settlement| settlement.how);
        let is_answered = matches!(settled, Some(Settled::Answered { .. }));
        let is_same =
            approval.what == wish.what && basis(&approval.preview) == basis(&wish.preview);
        is_same && (is_answered || approval.is_open(now))
    }))
}

/// What a person was shown must be what would be done now.
fn basis(preview: &Option<Preview>) -> Option<&str> {
    preview.as_ref().map(|preview| preview.basis.as_str())
}

async fn write_down(
    cx: &TurnContext<'_>,
    wish: &Wish<'_>,
    timeout: Duration,
) -> Result<Approval, StoreError> {
    let now = cx.ports.clock.now();
    let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
    let approval = Approval {
        id: ApprovalId::generate(&cx.ports.random),
        session: cx.recorder.session().clone(),
        call: wish.asker.call.clone(),
        tool: wish.tool.to_owned(),
        what: wish.what.clone(),
        reason: wish.reason.clone(),
        preview: wish.preview.clone(),
        choices: wish.choices.clone(),
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
) -> Result<Settled, StoreError> {
    let (_listening, said) = cx.questions.wait_for(&approval);
    let left_ms = approval.expires.as_millis() - cx.ports.clock.now().as_millis();
    let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or_default());
    let id = approval.id.clone();
    cx.tell(Event::Asked(question(approval, left))).await;
    let how = tokio::select! {
        biased;
        () = stop.cancelled() => Settled::Withdrawn,
        Ok(verdict) = said => Settled::Answered { verdict, by: Door::Chat },
        settled = settled_elsewhere(cx, &id) => settled?,
        () = tokio::time::sleep(left) => Settled::Expired,
    };
    let at = cx.ports.clock.now();
    let settlement = Settlement { at, how };
    let settling = cx.ports.store.settle(&id, settlement).await?;
    let how = settling.settlement.how;
    cx.tell(Event::QuestionClosed { approval: id, how }).await;
    Ok(how)
}

/// Waits until somebody else has settled a question. Also notices a deadline that passed while the machine slept.
async fn settled_elsewhere(cx: &TurnContext<'_>, id: &ApprovalId) -> Result<Settled, StoreError> {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let approval = cx.ports.store.approval(id).await?;
        match approval.settled {
            Some(settlement) => return Ok(settlement.how),
            None if approval.is_open(cx.ports.clock.now()) => {}
            None => return Ok(Settled::Expired),
        }
    }
}

fn question(approval: Approval, left: Duration) -> Question {
    Question {
        approval: approval.id,
        call: approval.call,
        tool: approval.tool,
        what: approval.what,
        diff: approval.preview.map(|preview| preview.diff),
        reason: approval.reason,
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
        let questions = Questions::default();
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        lock(&questions.allowed).insert(Allowed::Covered("a".to_owned()));
        assert!(questions.is_covered(&names(&["a"])));
        assert!(!questions.is_covered(&names(&["a", "b"])));
        assert!(!questions.is_covered(&[]), "whoever names nothing is asked");
    }
}
