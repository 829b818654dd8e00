//! Subagents: sessions that do tasks for a call of another session.
//!
//! [`delegate`] is where a call's tasks arrive. `subagent` runs one of them, `watch` tells the parent what it does,
//! `report` says what became of it, and `background` keeps those that outlive the turn that sent them. What survives a
//! crash is what any session leaves: the name of a subagent's session follows from the call that sent it, so the call,
//! when it runs again, finds those that have ended and takes up the others.

mod background;
mod report;
mod subagent;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    CallId, CancellationToken, Delegated, Delegation, Dispatched, Manner, Person, SessionId,
    SubagentReport, SubagentTask, TurnId,
};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::consent::ConsentPolicy;
use crate::events::EventLog;
use crate::prompt::Wording;
use crate::session::{AgentSettings, Limits, Ports};
use crate::turn::TurnContext;
pub(crate) use background::{Background, Launch, Report, with_dispatched, without_delivered};
use subagent::Subagent;
use watch::Watch;

/// What subagents may do, and how many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegationSettings {
    /// Sessions above this one: none above one that a person talks to.
    pub depth: u32,
    /// A session this deep does not delegate.
    pub depth_max: u32,
    /// Subagents of one session that work at the same time.
    pub subagents_max: usize,
    /// Model requests of one subagent.
    pub steps_max: u32,
    pub time_max: Option<Duration>,
    /// Characters of a subagent's last words that reach its parent.
    pub summary_chars_max: usize,
    /// Whether a subagent may have subagents, where the depth allows it.
    pub may_orchestrate: bool,
    pub inherits_mcp_tools: bool,
    /// Whether whatever needs consent is allowed without asking.
    pub allows_everything: bool,
    /// How many words their model is told things in.
    pub wording: Wording,
}

impl Default for DelegationSettings {
    fn default() -> Self {
        Self {
            depth: 0,
            depth_max: 1,
            subagents_max: 3,
            steps_max: 50,
            time_max: None,
            summary_chars_max: 24_000,
            may_orchestrate: true,
            inherits_mcp_tools: true,
            allows_everything: false,
            wording: Wording::Full,
        }
    }
}

/// The call that delegates.
pub(crate) struct Caller {
    pub(crate) call: CallId,
    pub(crate) place: CallPlace,
    pub(crate) person: Person,
}

/// Where a call stands in its turn. Ids of calls come again in later replies; places do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallPlace {
    /// The number of its reply in the turn, as the store counts them.
    pub(crate) reply: usize,
    /// Its number in the reply.
    pub(crate) call: usize,
}

/// Has a call's tasks done, and answers the tool that waits.
pub(crate) async fn delegate(cx: &TurnContext<'_>, caller: Caller, delegation: Delegation) {
    let Delegation {
        tasks,
        manner,
        answer,
    } = delegation;
    let settings = &cx.settings.delegation;
    let delegated = match refusal(settings, tasks.len()) {
        Some(refusal) => Err(refusal),
        None => {
            let name = name_of(&cx.turn, caller.place);
            let may_report_later = cx.settings.is_attended && settings.depth == 0;
            match manner {
                Manner::Background if may_report_later => {
                    let context = SubagentContext::of_turn(cx, &caller.call, Person::default());
                    dispatch(cx, context, name, tasks).await
                }
                _ => {
                    let context = SubagentContext::of_turn(cx, &caller.call, caller.person);
                    let subagents = context.subagents(&name, tasks);
                    Ok(Delegated::Done(
                        work_all(subagents, cx.stop.child_token()).await,
                    ))
                }
            }
        }
    };
    // A call that was given up meanwhile has no use for it.
    let _ = answer.send(delegated);
}

/// Why a session may not delegate so much, in words for the model.
fn refusal(settings: &DelegationSettings, tasks: usize) -> Option<String> {
    if settings.depth >= settings.depth_max {
        return Some("a subagent this deep may not delegate; do the work yourself".to_owned());
    }
    (tasks > settings.subagents_max).then(|| {
        format!(
            "{tasks} tasks are more than the {} subagents that may work at the same time; send fewer at once \
             (the user can raise delegation.max_concurrent_children)",
            settings.subagents_max
        )
    })
}

/// Starts subagents that outlive the turn. Returns once each has its session on disk: from there a restart finds it.
async fn dispatch(
    cx: &TurnContext<'_>,
    context: SubagentContext,
    name: String,
    tasks: Vec<SubagentTask>,
) -> Result<Delegated, String> {
    let mut subagents = context.subagents(&name, tasks);
    let sessions = subagents.iter().map(|subagent| subagent.id.clone());
    let dispatched = Dispatched {
        delegation_id: name.clone(),
        sessions: sessions.collect(),
    };
    let started: Vec<oneshot::Receiver<()>> =
        subagents.iter_mut().map(Subagent::when_started).collect();
    let launch = Launch { name, subagents };
    if cx.launcher.send(launch).await.is_err() {
        return Err("the session is closing; nothing was started".to_owned());
    }
    for started in started {
        // One that could not be started has a report that says so.
        let _ = started.await;
    }
    Ok(Delegated::Dispatched(dispatched))
}

/// Runs subagents side by side until all have come to rest. Their reports stand in the order of their tasks.
async fn work_all(subagents: Vec<Subagent>, stop: CancellationToken) -> Vec<SubagentReport> {
    let mut lost: Vec<SubagentReport> = subagents.iter().map(Subagent::lost).collect();
    let mut tasks = JoinSet::new();
    for subagent in subagents {
        tasks.spawn(subagent.work(stop.clone()));
    }
    while let Some(joined) = tasks.join_next().await {
        if let Ok(report) = joined {
            let index = report.task_index;
            lost[index] = report;
        }
    }
    lost
}

/// The name of a delegation: the same when its call runs again, and no other's.
fn name_of(turn: &TurnId, place: CallPlace) -> String {
    format!("{turn}-{}-{}", place.reply, place.call)
}

fn session_of(delegation: &str, index: usize) -> SessionId {
    SessionId::from(format!("sub-{delegation}-{}", index + 1))
}

/// What the subagents of one delegation have in common.
pub(crate) struct SubagentContext {
    pub(crate) parent: SessionId,
    /// Those of the parent.
    pub(crate) ports: Ports,
    pub(crate) settings: AgentSettings,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) events: EventLog,
    pub(crate) call: CallId,
    /// Whoever answers their questions; a default one answers none.
    pub(crate) person: Person,
}

impl SubagentContext {
    fn of_turn(cx: &TurnContext<'_>, call: &CallId, person: Person) -> Self {
        Self {
            parent: cx.recorder.session().clone(),
            ports: cx.ports.clone(),
            settings: cx.settings.clone(),
            permits: Arc::clone(cx.permits),
            events: cx.events.clone(),
            call: call.clone(),
            person,
        }
    }

    fn subagents(&self, delegation: &str, tasks: Vec<SubagentTask>) -> Vec<Subagent> {
        let numbered = tasks.into_iter().enumerate();
        numbered
            .map(|(index, task)| self.subagent(session_of(delegation, index), index, Some(task)))
            .collect()
    }

    /// Makes a subagent; without a task it goes on with the one it has.
    fn subagent(&self, id: SessionId, index: usize, task: Option<SubagentTask>) -> Subagent {
        let ports = Ports {
            model: self
                .ports
                .subagent_model
                .clone()
                .unwrap_or_else(|| Arc::clone(&self.ports.model)),
            ..self.ports.clone()
        };
        let watch = Watch::new(
            self.events.clone(),
            self.call.clone(),
            index + 1,
            self.person.clone(),
        );
        Subagent {
            id,
            index,
            task,
            parent: self.parent.clone(),
            ports,
            settings: child_settings(&self.settings, self.person.is_reachable()),
            permits: Arc::clone(&self.permits),
            watch,
            starting: None,
        }
    }
}

/// The settings of a subagent: those of its parent, narrowed.
fn child_settings(parent: &AgentSettings, can_ask: bool) -> AgentSettings {
    let delegation = DelegationSettings {
        depth: parent.delegation.depth + 1,
        ..parent.delegation
    };
    let can_ask = can_ask && parent.is_attended;
    let consent = match parent.consent {
        _ if delegation.allows_everything => ConsentPolicy::Allow,
        ConsentPolicy::Ask { .. } if !can_ask => ConsentPolicy::Refuse,
        decided => decided,
    };
    AgentSettings {
        consent,
        is_attended: can_ask,
        limits: Limits {
            steps_max: delegation.steps_max,
            ..parent.limits
        },
        nested_context: false,
        delegation,
        ..parent.clone()
    }
}
