//! A project is kept before the first call of a turn that may change it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{
    BoxFuture, Change, CheckpointError, Checkpoints, Event, Notice, Op, Parallel, TurnEnd,
};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, start};

/// Keeps nothing, and notes what it was asked and how often the tool had run when it was done.
struct Noting {
    asked: Mutex<Vec<(PathBuf, String, usize)>>,
    runs: Arc<AtomicUsize>,
    manner: Manner,
}

enum Manner {
    Keep,
    /// As others do, after a while.
    Slow,
    Fail,
    Hang,
}

impl Checkpoints for Noting {
    fn project(&self, path: &Path, _cwd: &Path) -> Option<PathBuf> {
        path.parent().map(Path::to_owned)
    }

    fn keep<'a>(
        &'a self,
        project: &'a Path,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        Box::pin(async move {
            if matches!(self.manner, Manner::Slow) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let runs = self.runs.load(Ordering::SeqCst);
            let asked = (project.to_owned(), change.reason.clone(), runs);
            self.asked.lock().expect("the notes").push(asked);
            match self.manner {
                Manner::Keep | Manner::Slow => Ok(()),
                Manner::Fail => Err(CheckpointError::NoGit {
                    detail: "not found".into(),
                }),
                Manner::Hang => std::future::pending().await,
            }
        })
    }
}

/// A world whose model calls `change` twice in each of two turns.
fn world(manner: Manner) -> (World, Arc<Noting>) {
    let tool = TestTool::new("change").changes("/one/a").changes("/two/b");
    let call = |id: &str| Step::call(id, "change", &json!({"text": id}));
    let steps = [
        call("c1"),
        call("c2"),
        Step::text("done"),
        call("c3"),
        Step::text("done"),
    ];
    let noting = Arc::new(Noting {
        asked: Mutex::default(),
        runs: tool.runs(),
        manner,
    });
    let mut world = World::new(steps).tool(tool);
    world.checkpoints = Some(noting.clone());
    (world, noting)
}

async fn two_turns(world: &World) -> Running {
    let mut running = start(world).await;
    for _ in 0..2 {
        running.session.say("go").await;
        assert_eq!(running.turn_end().await, TurnEnd::Finished);
    }
    running
}

#[tokio::test]
async fn each_project_is_kept_once_a_turn_and_before_the_call_runs() {
    let (world, noting) = world(Manner::Keep);
    two_turns(&world).await;
    let asked = noting.asked.lock().unwrap().clone();
    let kept: Vec<_> = asked
        .iter()
        .map(|(project, _, runs)| (project.to_str().unwrap(), *runs))
        .collect();
    assert_eq!(kept, [("/one", 0), ("/two", 0), ("/one", 2), ("/two", 2)]);
    assert_eq!(asked[0].1, "change c1");
}

#[tokio::test]
async fn work_goes_on_without_a_checkpoint_and_that_is_said_once() {
    let (world, noting) = world(Manner::Fail);
    let running = two_turns(&world).await;
    assert_eq!(noting.runs.load(Ordering::SeqCst), 3);
    let is_told = |event: &&Event| {
        let no_checkpoint = |notice: &Notice| matches!(notice, Notice::NoCheckpoint { .. });
        matches!(event, Event::Notice { notice } if no_checkpoint(notice))
    };
    assert_eq!(running.events.iter().filter(is_told).count(), 1);
}

#[tokio::test]
async fn an_interrupt_does_not_wait_for_a_checkpoint() {
    let (world, noting) = world(Manner::Hang);
    let mut running = start(&world).await;
    running.session.say("go").await;
    while noting.asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    running.session.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    let runs = noting.runs.load(Ordering::SeqCst);
    assert_eq!(runs, 0, "nothing starts after an interrupt");
}

#[tokio::test]
async fn calls_that_a_call_makes_side_by_side_wait_for_the_same_copy() {
    let change = TestTool::new("change")
        .changes("/one/a")
        .parallel(Parallel::Always);
    let runs = change.runs();
    let calls = vec![("change", json!({})); 3];
    let steps = [Step::call("c1", "outer", &json!({})), Step::text("done")];
    let mut world = World::new(steps)
        .tool(TestTool::new("outer").does(Behaviour::Use(calls)))
        .tool(change);
    let (manner, asked) = (Manner::Slow, Mutex::default());
    let noting = Arc::new(Noting {
        asked,
        runs: Arc::clone(&runs),
        manner,
    });
    world.checkpoints = Some(noting.clone());
    let mut running = start(&world).await;
    running.session.say("go").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let asked = noting.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].2, 0, "no call ran before the copy was made");
}

#[tokio::test]
async fn what_changes_nothing_is_not_kept() {
    let (mut world, noting) = world(Manner::Keep);
    world.tools = vec![Arc::new(TestTool::new("change"))];
    two_turns(&world).await;
    assert!(noting.asked.lock().unwrap().is_empty());
}
