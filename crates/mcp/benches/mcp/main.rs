//! What the supervisor costs and how fast it heals. Prints one JSON object per figure; `scripts/bench` reads them.
//!
//! `--quick` takes fewer samples and a shorter outage. Needs `hermes-faulty-mcp` of the same profile beside it.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "its figures")]

mod idle;
mod overhead;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hermes_core::{Random, Tool, ToolError};
use hermes_mcp::{Mcp, McpPorts, ServerSettings, ServerState};
use hermes_testkit::TestClock;
use hermes_testkit::contract::tool as tool_contract;
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss};
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    overhead::over_stdio(is_quick).await;
    overhead::over_http(is_quick).await;
    four_at_once().await;
    every_lost_session().await;
    after_an_outage(Duration::from_secs(if is_quick { 5 } else { 45 })).await;
    a_storm().await;
    idle::twenty_servers(Duration::from_secs(if is_quick { 5 } else { 60 })).await;
}

/// Tells one figure; `budget` is the most it may be.
fn figure(what: &str, value: f64, unit: &str, budget: Option<f64>) {
    println!(
        "{}",
        json!({ "what": what, "value": value, "unit": unit, "budget": budget })
    );
}

async fn four_at_once() {
    let server = FaultyMcp::start().await;
    let mcp = connected(&server.url()).await;
    let slow = tool(&mcp, "slow").await;
    let started = Instant::now();
    for answer in join_all((0..4).map(|_| run(&slow, json!({ "ms": 1000 })))).await {
        answer.unwrap();
    }
    let took = started.elapsed().as_secs_f64();
    figure("MCP: four calls of 1 s at once", took, "s", Some(1.2));
}

async fn every_lost_session() {
    let mut slowest = Duration::ZERO;
    for loss in SessionLoss::ALL {
        let server = FaultyMcp::start().await;
        let mcp = connected(&server.url()).await;
        let append = tool(&mcp, "append").await;
        server.fail(Rule::once(Fault::SessionLost(loss)).on("tools/call"));
        let started = Instant::now();
        run(&append, json!({ "word": "word" })).await.unwrap();
        slowest = slowest.max(started.elapsed());
        assert_eq!(server.executions("word"), 1, "{loss:?}");
    }
    let what = format!(
        "MCP: call over a lost session, slowest of {} shapes",
        SessionLoss::ALL.len()
    );
    figure(&what, slowest.as_secs_f64() * 1e3, "ms", Some(1000.0));
}

/// Somebody asks every two seconds while the server is away, and all the time when it is back.
async fn after_an_outage(outage: Duration) {
    let server = FaultyMcp::start().await;
    let mcp = connected(&server.url()).await;
    let append = tool(&mcp, "append").await;
    server.stop_listening();
    let down = Instant::now();
    while down.elapsed() < outage {
        let call = run(&append, json!({ "word": "down" }));
        let _ = tokio::time::timeout(Duration::from_secs(1), call).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    server.listen_again();
    let back = Instant::now();
    while run(&append, json!({ "word": "back" })).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let what = format!("MCP: usable after an outage of {} s", outage.as_secs());
    figure(&what, back.elapsed().as_secs_f64(), "s", Some(2.0));
}

async fn a_storm() {
    let server = FaultyMcp::start().await;
    let _mcp = connected(&server.url()).await;
    while server.notify_list_changed(0) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let pages = server.count("tools/list");
    server.notify_list_changed(200);
    // Longer than the gap that is kept between two lists.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let lists = (server.count("tools/list") - pages) / 2;
    let what = "MCP: lists after 200 `list_changed`";
    figure(what, lists as f64, "", Some(2.0));
}

/// Connects to a server at an address, as a user would who wrote nothing else.
async fn connected(url: &str) -> Mcp {
    start(&[("test".to_owned(), json!({ "url": url }))]).await
}

async fn start(sections: &[(String, Value)]) -> Mcp {
    let parse = |(name, section): &(String, Value)| ServerSettings::parse(name, section).unwrap();
    let folder = std::env::temp_dir();
    let (random, clock) = (Random::seeded(1), TestClock::default());
    let ports = McpPorts::alone_in(&folder, Arc::new(random), Arc::new(clock));
    let mcp = Mcp::start(sections.iter().map(parse).collect(), ports);
    mcp.tools(Duration::from_secs(30)).await;
    for status in mcp.status() {
        assert_eq!(status.state, ServerState::Ready, "{status:?}");
    }
    mcp
}

async fn tool(mcp: &Mcp, name: &str) -> Arc<dyn Tool> {
    let name = format!("mcp__test__{name}");
    let tools = mcp.tools(Duration::from_secs(30)).await;
    let found = tools.into_iter().find(|tool| tool.spec().name == name);
    found.unwrap_or_else(|| panic!("no tool {name}"))
}

async fn run(tool: &Arc<dyn Tool>, arguments: Value) -> Result<String, ToolError> {
    let context = tool_contract::context(Path::new("/"));
    tool.run(arguments, &context)
        .await
        .map(|output| output.text)
}

/// Returns the server as a program of its own.
fn program() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let profile = here.ancestors().nth(2).unwrap();
    profile.join("hermes-faulty-mcp")
}
