//! What commands left running, as far as it matters to those who look after them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::fence::{Fences, Round};
use crate::mark::{alive_of, is_any_fenced_without};

/// How long after a command it is looked for what it left. Several commands in a row are looked at together.
const QUIET_AFTER: Duration = Duration::from_millis(200);

/// How often guarded files are looked at while something runs.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Looks between which it is found out again whether anything runs.
const LOOKS_MAX: usize = 8;

/// Watches over the guarded files of projects as long as anything runs that a command left.
#[derive(Debug)]
pub(crate) struct Leftovers {
    fences: Arc<Fences>,
    watched: Arc<Mutex<Watched>>,
}

#[derive(Debug, Default)]
struct Watched {
    /// Commands that may have left something.
    left: Vec<Left>,
    rounds: Vec<Round>,
    /// At most one, which looks again and again.
    task: JoinSet<()>,
}

#[derive(Debug)]
struct Left {
    mark: String,
    /// What it may change, until its end.
    agreed: Option<Round>,
}

impl Leftovers {
    pub(crate) fn new(fences: Arc<Fences>) -> Self {
        Self {
            fences,
            watched: Arc::default(),
        }
    }

    /// Returns whether nothing runs that a command left, as far as it is known.
    pub(crate) fn are_none(&self) -> bool {
        lock(&self.watched).left.is_empty()
    }

    /// Ends the round of a command. `runs_on`: something of it surely runs, and may change what the command might.
    pub(crate) fn watch(&self, mark: &str, round: Round, runs_on: bool) {
        let mut watched = lock(&self.watched);
        let kept = round.without_agreement();
        if !watched.rounds.contains(&kept) {
            watched.rounds.push(kept);
        }
        if runs_on {
            self.fences.look(&round);
        } else {
            self.fences.end(&round);
        }
        watched.left.push(Left {
            mark: mark.to_owned(),
            agreed: runs_on.then_some(round),
        });
        while watched.task.try_join_next().is_some() {}
        if watched.task.is_empty() {
            let (fences, state) = (Arc::clone(&self.fences), Arc::clone(&self.watched));
            watched.task.spawn(watch(fences, state));
        }
    }

    /// Looks once more, at the end of everything.
    pub(crate) fn look(&self) {
        for round in &lock(&self.watched).rounds {
            self.fences.look(round);
        }
    }
}

async fn watch(fences: Arc<Fences>, watched: Arc<Mutex<Watched>>) {
    sleep(QUIET_AFTER).await;
    loop {
        let (fences_here, watched_here) = (Arc::clone(&fences), Arc::clone(&watched));
        let is_over = tokio::task::spawn_blocking(move || {
            forget_ended(&fences_here, &watched_here);
            let watched = lock(&watched_here);
            watched
                .rounds
                .iter()
                .for_each(|round| fences_here.look(round));
            watched.left.is_empty()
        });
        if is_over.await.unwrap_or(true) {
            return;
        }
        for _ in 0..LOOKS_MAX {
            sleep(LOOK_INTERVAL).await;
            let (fences, watched) = (Arc::clone(&fences), Arc::clone(&watched));
            let looked = tokio::task::spawn_blocking(move || {
                lock(&watched)
                    .rounds
                    .iter()
                    .for_each(|round| fences.look(round));
            });
            let _ = looked.await;
        }
    }
}

/// Forgets commands of which nothing runs any more.
fn forget_ended(fences: &Fences, watched: &Mutex<Watched>) {
    let marks: Vec<String> = {
        let watched = lock(watched);
        watched.left.iter().map(|left| left.mark.clone()).collect()
    };
    if is_any_fenced_without(&marks) {
        // Nobody knows which of them left it.
        return;
    }
    let alive = alive_of(&marks);
    let is_ended = |left: &mut Left| marks.contains(&left.mark) && !alive.contains(&left.mark);
    let ended: Vec<Left> = lock(watched).left.extract_if(.., is_ended).collect();
    for round in ended.iter().filter_map(|left| left.agreed.as_ref()) {
        fences.end(round);
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        lock(&self.watched).task.abort_all();
    }
}
