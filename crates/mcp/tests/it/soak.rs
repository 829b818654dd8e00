//! Hundreds of losses over real sockets and pipes: nothing piles up.

use std::time::{Duration, Instant};

use hermes_testkit::mcp::{FaultyMcp, StdioMcp};
use serde_json::json;

use crate::client::Client;
use crate::stdio;

const ROUNDS: usize = 120;
/// Enough that everything that is made once has been made.
const ROUNDS_BEFORE: usize = 10;
/// The end of an old connection may take some seconds, and of many at once some more.
const QUIET_WITHIN: Duration = Duration::from_secs(60);

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
    let before = quiet(&server).await;
    for round in 0..ROUNDS {
        lose_everything(round, &server, &over_http, &over_stdio).await;
    }
    let after = quiet(&server).await;
    println!("before {before:?}, after {after:?}");
    assert_eq!(after, before);
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

/// Returns what is held once nothing changes any more: old connections have ended, and the server's stream is open.
async fn quiet(server: &FaultyMcp) -> Held {
    const STILL: Duration = Duration::from_secs(5);
    let started = Instant::now();
    let mut last = Held::now();
    loop {
        tokio::time::sleep(STILL).await;
        let now = Held::now();
        if now == last && server.notify_list_changed(0) == 1 {
            return now;
        }
        assert!(started.elapsed() < QUIET_WITHIN, "never quiet: {now:?}");
        last = now;
    }
}
