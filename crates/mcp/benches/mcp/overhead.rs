//! A call through the supervisor beside the same call through the bare protocol library.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use hermes_core::Tool;
use hermes_testkit::contract::tool as tool_contract;
use hermes_testkit::mcp::FaultyMcp;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};

use crate::{connected, figure, program, start, tool};

/// Calls in one block; blocks of both kinds take turns, so that both meet the same machine.
const BLOCK: usize = 100;

type Bare = RunningService<RoleClient, ()>;

pub(crate) async fn over_stdio(is_quick: bool) {
    let mut child = command()
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", program().display()));
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let bare = ().serve(pipes).await.unwrap();
    let section = json!({ "command": program(), "args": ["--stdio"] });
    let mcp = start(&[("test".to_owned(), section)]).await;
    compare("stdio", &bare, &tool(&mcp, "add").await, is_quick).await;
    mcp.shutdown().await;
}

pub(crate) async fn over_http(is_quick: bool) {
    // An error means that it was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = FaultyMcp::start().await;
    let config = StreamableHttpClientTransportConfig::with_uri(server.url());
    let client = reqwest::Client::new();
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let bare = ().serve(transport).await.unwrap();
    let mcp = connected(&server.url()).await;
    compare("HTTP", &bare, &tool(&mcp, "add").await, is_quick).await;
    mcp.shutdown().await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the bare library has nobody who starts programs"
)]
fn command() -> tokio::process::Command {
    tokio::process::Command::new(program())
}

async fn compare(wire: &str, bare: &Bare, ours: &Arc<dyn Tool>, is_quick: bool) {
    let blocks = if is_quick { 6 } else { 30 };
    let (mut bare_us, mut our_us) = (Vec::new(), Vec::new());
    // Whoever calls has it already, and the bare library takes none.
    let context = tool_contract::context(Path::new("/"));
    for _ in 0..blocks {
        for _ in 0..BLOCK {
            let started = Instant::now();
            bare.call_tool(request()).await.unwrap();
            bare_us.push(started.elapsed().as_secs_f64() * 1e6);
        }
        for _ in 0..BLOCK {
            let started = Instant::now();
            ours.run(arguments(), &context).await.unwrap();
            our_us.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    let (bare_us, our_us) = (median(bare_us), median(our_us));
    figure(&format!("MCP: a call over {wire}"), our_us, "µs", None);
    figure(
        &format!("MCP: the same with the bare library, {wire}"),
        bare_us,
        "µs",
        None,
    );
    let overhead = (our_us / bare_us - 1.0) * 100.0;
    figure(
        &format!("MCP: overhead over {wire}"),
        overhead,
        "%",
        Some(10.0),
    );
}

fn arguments() -> Value {
    json!({ "a": 1, "b": 2 })
}

fn request() -> CallToolRequestParams {
    let arguments = arguments().as_object().unwrap().clone();
    CallToolRequestParams::new("add").with_arguments(arguments)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
