//! What a fence costs a command: the same command with it and without, in a project with guarded files. Prints one JSON
//! object per figure; `scripts/bench` reads them.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "its figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, Pass, Progress, ShellCommand, Terminal};
use hermes_exec::{FenceKind, FencePlaces, Fences, Local, Network};
use serde_json::json;

const ROUNDS: usize = 200;

/// What the fence may add to one command, in milliseconds.
const BUDGET_MS: f64 = 2.0;

#[tokio::main]
async fn main() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = place.path().canonicalize().unwrap();
    prepare(&home);
    let environment = || vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    let places = FencePlaces {
        kind: FenceKind::Project,
        user_home: std::env::home_dir(),
        hermes_home: home.join("hermes"),
        own: vec![home.join("hermes/shells")],
        apart: home.join("hermes/apart"),
        shown: Vec::new(),
        variables: environment(),
        guest: None,
    };
    let Ok(fences) = Fences::new(places, Network::Open, &environment()) else {
        panic!("nothing here can hold a fence");
    };
    let free = Local::new(environment(), home.join("shells"));
    let fenced = Local::new(environment(), home.join("hermes/shells")).fenced(Arc::new(fences));
    // The first of each makes its shell, and puts the fence up.
    let first = took(&fenced, &home).await;
    took(&free, &home).await;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        with.push(took(&fenced, &home).await);
        without.push(took(&free, &home).await);
    }
    let (with, without) = (median(with), median(without));
    print("the first command behind the fence", first, None);
    print("a command without the fence", without, None);
    let added = with.saturating_sub(without);
    print("what the fence adds to a command", added, Some(BUDGET_MS));
}

/// A repository with hooks, as guarded files have to be looked at.
fn prepare(home: &Path) {
    for name in [
        "hermes/shells",
        "hermes/apart",
        "project/.git/hooks",
        "project/.vscode",
    ] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    for name in ["config", "hooks/pre-commit.sample", "hooks/pre-push.sample"] {
        std::fs::write(home.join("project/.git").join(name), "[core]\n").unwrap();
    }
    std::fs::write(home.join("project/AGENTS.md"), "words\n").unwrap();
}

async fn took(local: &Local, home: &Path) -> Duration {
    let command = ShellCommand {
        session: "bench".into(),
        line: "true".to_owned(),
        cwd: home.join("project"),
        workdir: None,
        stdin: Vec::new(),
        pty: false,
        timeout: Duration::from_secs(30),
        output_bytes_max: 1000,
        pass: Pass::default(),
        mark: None,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    };
    let started = Instant::now();
    Terminal::run(local, command).await.unwrap();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn print(what: &str, took: Duration, budget: Option<f64>) {
    let millis = took.as_secs_f64() * 1e3;
    let figure = json!({ "what": what, "value": millis, "unit": "ms", "budget": budget });
    println!("{figure}");
}
