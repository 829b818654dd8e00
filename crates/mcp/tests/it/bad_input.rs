//! Everything that is not a server, or not a good one: named clearly, while the others go on.

use std::time::{Duration, Instant};

use hermes_mcp::ServerStatus;
use hermes_testkit::mcp::{Endless, Fault, FaultyMcp, Rule};
use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, eventually};

/// Connects to something bad beside something good, and returns what is told about the bad one.
async fn error_beside_a_good_server(bad: &Value) -> String {
    let good = FaultyMcp::start().await;
    let section = json!({ "url": good.url(), "keepalive_interval": 0 });
    let client = Client::with(&[("bad", bad), ("good", &section)]);
    let error = || client.mcp.status()[0].last_error.clone();
    eventually("an error", || error().is_some()).await;
    let tools = client.mcp.tools(Duration::from_secs(2)).await;
    assert_eq!(tools.len(), 10, "those of the good server");
    let is_well = |status: &ServerStatus| status.name == "good" && status.last_error.is_none();
    assert!(client.mcp.status().iter().any(is_well));
    error().unwrap()
}

/// Returns what is told about a server that answers everything like this.
async fn error_of(fault: Fault) -> String {
    let server = FaultyMcp::start().await;
    server.fail(Rule::once(fault).on_everything().until_cleared());
    let section = json!({ "url": server.url(), "connect_timeout": 3 });
    error_beside_a_good_server(&section).await
}

fn assert_says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_address_says_what_is_wrong_with_it() {
    let server = FaultyMcp::start().await;
    let elsewhere = format!("http://{}/nothing-here", server.address());
    for (url, parts) in [
        ("http://127.0.0.1:9/mcp", ["onnection refused", ""]),
        (
            "http://no-such-host.invalid/mcp",
            ["error sending request", "dns"],
        ),
        (elsewhere.as_str(), ["HTTP 404", "no such route"]),
        ("htps://example.com", ["`htps:`", "`https:`"]),
        ("example.com/mcp", ["not an address", ""]),
    ] {
        let error = error_beside_a_good_server(&json!({ "url": url })).await;
        assert_says(&error, &parts);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_not_a_server() {
    assert_says(
        &error_of(Fault::Html).await,
        &["`text/html", "instead of an MCP message"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captive_portal_is_not_followed_and_its_page_is_named() {
    let error = error_of(Fault::CaptivePortal).await;
    assert_says(
        &error,
        &["HTTP 302", "`http://portal.example/login`", "sign in"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decompression_bomb_is_not_unpacked() {
    let error = error_of(Fault::DecompressionBomb).await;
    assert_says(&error, &["compressed (gzip)"]);
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::DecompressionBomb).on("tools/call"));
    let error = client.append("word").await.unwrap_err().to_string();
    assert_says(&error, &["`test`", "compressed (gzip)"]);
    client.append("next").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_ends_at_its_limit() {
    // The size is met long before the time, and the time where the size never is.
    for (endless, timeout, cause) in [
        (Endless::Json, 60, "larger than 32 MiB"),
        (Endless::Event, 60, "larger than 32 MiB"),
        (Endless::Comments, 2, "no answer within 2 s"),
    ] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({ "timeout": timeout })).await;
        server.fail(Rule::once(Fault::Endless(endless)).on("tools/call"));
        let started = Instant::now();
        let error = client.append("word").await.unwrap_err().to_string();
        assert!(started.elapsed() < PATIENCE, "{endless:?}");
        assert_says(&error, &["`test`", cause]);
        assert_eq!(server.count("tools/call"), 1, "{endless:?}: not repeated");
        client.append("next").await.unwrap();
        assert_eq!(server.executions("next"), 1, "{endless:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_to_the_handshake_is_given_up_too() {
    assert_says(
        &error_of(Fault::Endless(Endless::Json)).await,
        &["larger than 32 MiB"],
    );
    assert_says(
        &error_of(Fault::Endless(Endless::Comments)).await,
        &["no answer within 3 s"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_no_server_is_quoted() {
    let yes = json!({ "command": "yes", "args": ["I am no server"], "connect_timeout": 3 });
    let error = error_beside_a_good_server(&yes).await;
    assert_says(
        &error,
        &["no answer within 3 s", "it printed: I am no server"],
    );
    let script = "echo 'usage: tool FILE'; read -r line; echo 'no such file' >&2; exit 1";
    let usage = json!({ "command": "sh", "args": ["-c", script], "connect_timeout": 30 });
    let error = error_beside_a_good_server(&usage).await;
    assert_says(
        &error,
        &["it printed: usage: tool FILE", "it wrote: no such file"],
    );
    let line_without_end = json!({ "command": "cat", "args": ["/dev/zero"], "connect_timeout": 1 });
    let error = error_beside_a_good_server(&line_without_end).await;
    assert_says(&error, &["no answer within 1 s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_refers_to_itself_is_offered_and_hurts_nobody() {
    let server = FaultyMcp::start().await;
    let node = json!({
        "type": "object",
        "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } },
    });
    let tree = json!({
        "name": "tree",
        "inputSchema": {
            "type": "object",
            "properties": { "root": { "$ref": "#/$defs/node" }, "self": { "$ref": "#" } },
            "$defs": { "node": node, "loop": { "$ref": "#/$defs/loop" } },
        },
    });
    server.change(|settings| settings.odd_tools = vec![tree]);
    let client = Client::of(&server, json!({})).await;
    let parameters = client.tool("tree").await.spec().parameters.clone();
    assert_eq!(parameters["properties"]["self"]["$ref"], "#");
    assert!(
        parameters.to_string().len() < 1000,
        "not unrolled: {parameters}"
    );
    client.append("word").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_may_have_tools_of_the_same_name() {
    let (one, two) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let sections = [json!({ "url": one.url() }), json!({ "url": two.url() })];
    let client = Client::with(&[("test", &sections[0]), ("other", &sections[1])]);
    client.append("word").await.unwrap();
    assert_eq!((one.executions("word"), two.executions("word")), (1, 0));
    let names = client.names().await;
    for name in ["mcp__test__append", "mcp__other__append"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_listed_twice_is_offered_once_under_each_name() {
    let server = FaultyMcp::start().await;
    let twin = json!({ "name": "echo", "inputSchema": { "type": "object" } });
    server.change(|settings| settings.odd_tools = vec![twin.clone(), twin]);
    let client = Client::of(&server, json!({})).await;
    let names = client.names().await;
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(names.len(), distinct.len(), "{names:?}");
}
