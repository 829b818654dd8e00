//! Prepares calls, and decides which calls of a reply run side by side.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use hermes_core::{
    Agreement, CancellationToken, Effect, Parallel, Plan, PlanContext, Tool, ToolCall, ToolError,
};
use serde_json::Value;

use super::Ready;
use crate::turn::TurnContext;

/// Calls that run at once, at most: enough to hide waiting, few enough not to swamp the machine.
const SEGMENT_CALLS_MAX: usize = 8;

/// A call that passed its checks: the tool that is really meant, and arguments that fit it.
pub(super) struct Checked {
    pub(super) call: ToolCall,
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: Arc<Value>,
}

/// The calls of a reply that have not run yet.
pub(super) struct Queue {
    calls: VecDeque<Checked>,
    /// The first of them, where it was prepared already and nothing can have changed since.
    prepared: Option<Ready>,
}

impl Queue {
    pub(super) fn of(calls: Vec<Checked>) -> Self {
        Self {
            calls: calls.into(),
            prepared: None,
        }
    }

    /// Takes the calls that run together next, prepared; none when all have run. The order is kept.
    pub(super) async fn next_segment(&mut self, cx: &TurnContext<'_>) -> Vec<Ready> {
        let mut segment: Vec<Ready> = Vec::new();
        while may_be_joined(segment.iter().map(|ready| &ready.plan.parallel)) {
            let ready = match self.prepared.take() {
                Some(ready) => ready,
                None => match self.calls.pop_front() {
                    Some(call) => prepare(cx, call, &cx.stop).await,
                    None => break,
                },
            };
            if !may_join(
                segment.iter().map(|ready| &ready.plan.parallel),
                &ready.plan.parallel,
            ) {
                self.put_back(ready, &segment);
                break;
            }
            segment.push(ready);
        }
        segment
    }

    /// Keeps the plan of a call that has to wait, unless those that run before it may change what it was made of.
    fn put_back(&mut self, ready: Ready, segment: &[Ready]) {
        if segment
            .iter()
            .all(|before| before.plan.effect == Effect::Read)
        {
            self.prepared = Some(ready);
        } else {
            self.calls.push_front(ready.unprepared());
        }
    }
}

/// Prepares a call on a thread that may wait for the disk. A tool that breaks down over it, or a stop, leave a plan that
/// does nothing and says so.
pub(super) async fn prepare(
    cx: &TurnContext<'_>,
    checked: Checked,
    stop: &CancellationToken,
) -> Ready {
    let Checked {
        call,
        tool,
        arguments,
    } = checked;
    let (session, cwd) = (cx.recorder.session().clone(), cx.settings.cwd.clone());
    let (named, given) = (Arc::clone(&tool), Arc::clone(&arguments));
    let work = move || {
        let place = PlanContext {
            session: &session,
            cwd: &cwd,
        };
        catch_unwind(AssertUnwindSafe(|| named.prepare(&given, place)))
    };
    let plan = tokio::select! {
        biased;
        () = stop.cancelled() => not_to_run(ToolError::Stopped("stopped before it began".into())),
        planned = tokio::task::spawn_blocking(work) => match planned {
            Ok(Ok(plan)) => plan,
            // It panicked, or the runtime is shutting down.
            Ok(Err(_)) | Err(_) => not_to_run(ToolError::Answer(format!(
                "`{}` crashed; this is a bug in it.",
                call.name
            ))),
        },
    };
    Ready {
        call,
        tool,
        arguments,
        plan,
        agreement: Agreement::default(),
    }
}

fn not_to_run(why: ToolError) -> Plan {
    Plan::doing(Effect::Read, Parallel::Never, |_| {
        Box::pin(async { Err(why) })
    })
}

/// Returns whether anything may run beside calls that run already.
pub(super) fn may_be_joined<'a>(mut running: impl ExactSizeIterator<Item = &'a Parallel>) -> bool {
    running.len() < SEGMENT_CALLS_MAX && running.all(|rule| *rule != Parallel::Never)
}

/// Returns whether a call may run beside those that run already.
pub(super) fn may_join<'a>(
    mut running: impl ExactSizeIterator<Item = &'a Parallel>,
    rule: &Parallel,
) -> bool {
    running.len() < SEGMENT_CALLS_MAX && running.all(|other| may_share(other, rule))
}

fn may_share(left: &Parallel, right: &Parallel) -> bool {
    match (left, right) {
        (Parallel::Never, _) | (_, Parallel::Never) => false,
        (Parallel::Always, _) | (_, Parallel::Always) => true,
        (Parallel::Reads(_), Parallel::Reads(_)) => true,
        (
            Parallel::Reads(left) | Parallel::Writes(left),
            Parallel::Reads(right) | Parallel::Writes(right),
        ) => left
            .iter()
            .all(|left| right.iter().all(|right| !overlap(left, right))),
    }
}

/// Returns whether one path is the other or lies inside it.
fn overlap(left: &Path, right: &Path) -> bool {
    left.starts_with(right) || right.starts_with(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Parallel {
        match text.split_once(' ') {
            Some(("read", path)) => Parallel::Reads(vec![path.into()]),
            Some(("write", path)) => Parallel::Writes(vec![path.into()]),
            _ if text == "any" => Parallel::Always,
            _ => Parallel::Never,
        }
    }

    /// Splits calls into those that run together, as a queue does.
    fn segments<'a>(calls: &[&'a str]) -> Vec<Vec<&'a str>> {
        let mut segments: Vec<Vec<&str>> = Vec::new();
        let mut open: Vec<Parallel> = Vec::new();
        for call in calls {
            if !may_be_joined(open.iter()) || !may_join(open.iter(), &rule(call)) {
                open.clear();
            }
            if open.is_empty() {
                segments.push(Vec::new());
            }
            open.push(rule(call));
            segments.last_mut().unwrap().push(call);
        }
        segments
    }

    fn check(calls: &[&str], expected: &[&[&str]]) {
        assert_eq!(segments(calls), expected, "{calls:?}");
    }

    #[test]
    fn safe_neighbours_run_together_and_the_rest_are_barriers() {
        check(
            &["any", "any", "alone", "any"],
            &[&["any", "any"], &["alone"], &["any"]],
        );
        check(&["alone", "alone"], &[&["alone"], &["alone"]]);
        check(&[], &[]);
    }

    #[test]
    fn readers_share_a_path_and_writers_do_not() {
        check(&["read /a", "read /a"], &[&["read /a", "read /a"]]);
        check(&["read /a", "write /a"], &[&["read /a"], &["write /a"]]);
        check(&["write /a", "write /b"], &[&["write /a", "write /b"]]);
        check(&["write /a/b", "read /a"], &[&["write /a/b"], &["read /a"]]);
        check(&["write /ab", "read /a"], &[&["write /ab", "read /a"]]);
    }

    #[test]
    fn a_segment_has_a_limit() {
        let planned = segments(&["any"; 20]);
        assert_eq!(planned.iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 4]);
    }
}
