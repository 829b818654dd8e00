//! Has a checkpoint kept before the first call of a turn that may change a project.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::{Change, Checkpoints, Event, Notice, StoreError, TurnId, text, wording};
use tokio::sync::OnceCell;

use super::Ready;
use crate::turn::TurnContext;

/// Enough to tell checkpoints apart in a list.
const REASON_CHARS_MAX: usize = 120;

/// What a session remembers of its checkpoints.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    turn: Option<TurnId>,
    /// Projects of this turn. Set once copied, or not to be tried again; whoever comes meanwhile waits.
    projects: HashMap<PathBuf, Arc<OnceCell<()>>>,
    /// What the user was told; once is enough.
    told: HashSet<String>,
}

impl Kept {
    /// Returns where it is noted that this turn has had the project copied.
    fn once(&self, turn: &TurnId, project: &Path) -> Arc<OnceCell<()>> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.turn.as_ref() != Some(turn) {
            memory.turn = Some(turn.clone());
            memory.projects.clear();
        }
        Arc::clone(memory.projects.entry(project.to_owned()).or_default())
    }

    fn is_news(&self, reason: &str) -> bool {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.told.insert(reason.to_owned())
    }
}

/// Keeps the projects that these calls may change. Work goes on without a copy when there can be none.
pub(super) async fn keep_before(cx: &TurnContext<'_>, calls: &[Ready]) -> Result<(), StoreError> {
    let Some(checkpoints) = &cx.ports.checkpoints else {
        return Ok(());
    };
    let mut changes: BTreeMap<PathBuf, Change> = BTreeMap::new();
    for (call, path, project) in projects(checkpoints, calls, &cx.settings.cwd).await {
        let change = changes.entry(project).or_insert_with(|| Change {
            session: cx.recorder.session().clone(),
            reason: reason(&calls[call]),
            paths: Vec::new(),
        });
        change.paths.push(path);
    }
    for (project, change) in changes {
        let once = cx.kept.once(&cx.turn, &project);
        if once.initialized() {
            continue;
        }
        let keep = || keep(cx, checkpoints.as_ref(), &project, &change);
        let copied = async {
            tokio::select! {
                _ = once.get_or_init(keep) => {}
                () = cx.stop.cancelled() => {}
            }
        };
        // A copy takes its time, and what the model said is not to be lost meanwhile: it is written beside it.
        let ((), written) = tokio::join!(copied, cx.recorder.commit());
        written?;
        if cx.stop.is_cancelled() {
            return Ok(());
        }
    }
    Ok(())
}

/// Finds the projects that calls may change: for each change the call, the path, and the folder to copy. Looks at folders,
/// which a slow disk keeps waiting.
async fn projects(
    checkpoints: &Arc<dyn Checkpoints>,
    calls: &[Ready],
    cwd: &Path,
) -> Vec<(usize, PathBuf, PathBuf)> {
    let changes = calls.iter().enumerate();
    let changes = changes.flat_map(|(call, ready)| {
        let paths = ready.plan.changes.iter();
        paths.map(move |path| (call, path.clone()))
    });
    let changes: Vec<(usize, PathBuf)> = changes.collect();
    if changes.is_empty() {
        return Vec::new();
    }
    let (checkpoints, cwd) = (Arc::clone(checkpoints), cwd.to_owned());
    let find = move || {
        let found = changes.into_iter().filter_map(|(call, path)| {
            let project = checkpoints.project(&path, &cwd)?;
            Some((call, path, project))
        });
        found.collect()
    };
    tokio::task::spawn_blocking(find).await.unwrap_or_default()
}

async fn keep(
    cx: &TurnContext<'_>,
    checkpoints: &dyn Checkpoints,
    project: &Path,
    change: &Change,
) {
    let Err(error) = checkpoints.keep(project, change).await else {
        return;
    };
    let reason = format!("{error}; {}", error.hint());
    if cx.kept.is_news(&reason) {
        let notice = Notice::NoCheckpoint { reason };
        cx.tell(Event::Notice { notice });
    }
}

fn reason(ready: &Ready) -> String {
    let call = format!("{} {}", ready.call.name, wording::brief(&ready.arguments));
    text::shorten(call.trim(), REASON_CHARS_MAX)
}
