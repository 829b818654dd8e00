//! How long a checkpoint takes of a project with 5,000 files that did not change. Prints one JSON object per figure;
//! `scripts/bench` reads them.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "its figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{Change, Checkpoints};
use hermes_exec::{CheckpointLimits, CheckpointSettings, CheckpointStore};
use hermes_testkit::TestClock;
use serde_json::json;

const FILES: usize = 5_000;
const FILES_PER_FOLDER: usize = 100;
const ROUNDS: usize = 9;

/// Longer would be felt before the first change of a turn, in milliseconds.
const BUDGET_MS: f64 = 100.0;

#[tokio::main]
async fn main() {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().join("project");
    for file in 0..FILES {
        let folder = project.join(format!("part{}", file / FILES_PER_FOLDER));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{file}.txt")), format!("file {file}")).unwrap();
    }
    let store = store(place.path());
    let first = kept(&store, &project).await;
    let mut again = Vec::new();
    for _ in 0..ROUNDS {
        again.push(kept(&store, &project).await);
    }
    again.sort();
    print("first checkpoint of 5,000 files", first, None);
    print(
        "checkpoint of 5,000 unchanged files",
        again[ROUNDS / 2],
        Some(BUDGET_MS),
    );
}

fn store(home: &Path) -> CheckpointStore {
    let settings = CheckpointSettings {
        home: home.join("home"),
        user_home: None,
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        limits: CheckpointLimits::default(),
    };
    CheckpointStore::new(settings, Arc::new(TestClock::default()))
}

async fn kept(store: &CheckpointStore, project: &Path) -> Duration {
    let change = Change {
        session: "bench".into(),
        reason: "a benchmark".to_owned(),
        paths: Vec::new(),
    };
    let started = Instant::now();
    Checkpoints::keep(store, project, &change).await.unwrap();
    started.elapsed()
}

fn print(what: &str, took: Duration, budget: Option<f64>) {
    let millis = took.as_secs_f64() * 1e3;
    let figure = json!({ "what": what, "value": millis, "unit": "ms", "budget": budget });
    println!("{figure}");
}
