//! Hundreds of losses over real sockets and pipes: nothing piles up.

use std::time::Duration;

use hermes_testkit::mcp::{FaultyMcp, StdioMcp};
use serde_json::json;

use crate::client::{Client, eventually};
use crate::stdio;

const ROUNDS: usize = 120;
/// Enough that everything that is made once has been made.
const ROUNDS_BEFORE: usize = 10;

/// What this process holds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    descriptors: usize,
    tasks: usize,
    children: usize,
}

impl Held {
    fn now() -> Self {
        let entries = |folder: &str| std::fs::read_dir(folder).unwrap().flatten();
        let is_ours = |stat: String| {
            let after_name = stat.rsplit(')').next().unwrap().to_owned();
            let parent = after_name.split_whitespace().nth(1).unwrap().to_owned();
            parent == std::process::id().to_string()
        };
        Self {
            descriptors: entries("/proc/self/fd").count(),
            tasks: tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
            children: entries("/proc")
                .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
                .filter(|stat| is_ours(stat.clone()))
                .count(),
        }
    }

    fn is_within(self, other: Self) -> bool {
        self.descriptors <= other.descriptors
            && self.tasks <= other.tasks
            && self.children <= other.children
    }
}

/// In a process of its own: other tests open and close things as they like.
#[test]
fn descriptors_tasks_and_children_stay_flat() {
    let ended = stdio::command()
        .args(["--exact", "soak::be_soaked", "--ignored", "--nocapture"])
        .status()
        .unwrap();
    assert!(ended.success(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "another test runs it alone"]
async fn be_soaked() {
    // Without the pauses that protect a server from us.
    let hurried = json!({
        "breaker": { "threshold": 0 }, "backoff": { "base": 0.01, "cap": 0.05 },
    });
    let (server, program) = (FaultyMcp::start().await, StdioMcp::new());
    let over_http = Client::of(&server, hurried).await;
    let over_stdio = Client::new(&stdio::section(&program));
    over_stdio.until_ready().await;
    for round in 0..ROUNDS_BEFORE {
        lose_everything(round, &server, &over_http, &over_stdio).await;
    }
    let before = quiet().await;
    for round in 0..ROUNDS {
        lose_everything(round, &server, &over_http, &over_stdio).await;
    }
    eventually(&format!("as before: {before:?}"), || {
        Held::now().is_within(before)
    })
    .await;
    println!("before {before:?}, after {:?}", Held::now());
    assert!(server.count("initialize") > ROUNDS);
    assert!(program.process_ids().len() > ROUNDS / 10);
}

async fn lose_everything(round: usize, server: &FaultyMcp, http: &Client, stdio: &Client) {
    server.drop_sessions();
    http.append("word").await.unwrap();
    server.notify_list_changed(200);
    if round.is_multiple_of(5) {
        server.stop_listening();
        server.listen_again();
        // A call that crosses the end of its connection may rightly be of unknown outcome.
        http.append("crossing").await.ok();
        let reconnects = stdio.status().reconnects;
        stdio.mcp.reconnect("test").await.unwrap();
        stdio
            .until("a new program", |status| status.reconnects > reconnects)
            .await;
        stdio.append("word").await.unwrap();
    }
}

/// Returns what is held once idle connections have been closed and old programs have ended.
async fn quiet() -> Held {
    let mut last = Held::now();
    loop {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let now = Held::now();
        if now == last {
            return now;
        }
        last = now;
    }
}
