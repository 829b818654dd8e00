//! The MCP server while nothing fails.

use std::{net::TcpStream, thread};

use hermes_testkit::mcp::{Answers, Era};
use serde_json::{Value, json};

use crate::{
    client::{End, request_with},
    mcp_client::{ACCEPT, McpClient, events, initialize, post, start, wait_until},
};

const MODERN: &str = "2026-07-28";

#[test]
fn a_handshake_opens_a_session() {
    let server = start();
    let response = initialize(server.address());
    let result = &response.json()["result"];
    assert_eq!(result["protocolVersion"], "2025-11-25");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(response.header("mcp-session-id"), Some("session-1"));
    assert_eq!((server.count("initialize"), server.session_count()), (1, 1));
}

#[test]
fn every_tool_does_what_it_says() {
    let server = start();
    let client = McpClient::connect(server.address());
    let result = |tool, arguments| client.call(tool, arguments).json()["result"].clone();
    assert_eq!(
        result("echo", json!({"text": "hi"}))["content"][0]["text"],
        "hi"
    );
    assert_eq!(
        result("add", json!({"a": 1, "b": 2}))["structuredContent"]["sum"],
        3.0
    );
    assert_eq!(
        result("slow", json!({"ms": 1}))["content"][0]["text"],
        "took 1 ms"
    );
    assert_eq!(result("fail", json!({}))["isError"], true);
    let error = client
        .call("app_error", json!({"code": -7, "message": "no"}))
        .json();
    assert_eq!(error["error"], json!({"code": -7, "message": "no"}));
    let unknown = client.call("nothing", json!({})).json();
    assert_eq!(unknown["error"]["code"], -32602);
    let tools: Vec<_> = server
        .requests()
        .iter()
        .filter_map(|seen| seen.tool().map(str::to_owned))
        .collect();
    assert_eq!(
        tools,
        ["echo", "add", "slow", "fail", "app_error", "nothing"]
    );
}

#[test]
fn each_execution_of_append_is_counted() {
    let server = start();
    let client = McpClient::connect(server.address());
    for word in ["a", "b", "a"] {
        assert_eq!(client.call("append", json!({"word": word})).status, 200);
    }
    let counts = ["a", "b", "c"].map(|word| server.executions(word));
    assert_eq!(counts, [2, 1, 0]);
}

#[test]
fn tools_are_listed_in_pages_and_can_change() {
    let server = start();
    let client = McpClient::connect(server.address());
    let first = client.ask("tools/list", json!({})).json();
    assert_eq!(first["result"]["tools"].as_array().unwrap().len(), 4);
    let cursor = &first["result"]["nextCursor"];
    let second = client.ask("tools/list", json!({"cursor": cursor})).json();
    assert_eq!(second["result"]["tools"].as_array().unwrap().len(), 2);
    assert_eq!(second["result"].get("nextCursor"), None);

    server.change(|settings| {
        settings.is_echo_changed = true;
        settings.removed_tools = vec!["add".to_owned()];
        settings.page_size = 100;
        settings.extra_tools = 1;
    });
    let list = client.ask("tools/list", json!({})).json();
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["echo", "append", "slow", "fail", "app_error", "extra_1"]
    );
    assert!(tools[0]["inputSchema"]["properties"].get("times").is_some());
    assert_eq!(
        client.call("add", json!({"a": 1, "b": 2})).json()["error"]["code"],
        -32602
    );
}

#[test]
fn resources_prompts_and_ping_are_answered() {
    let server = start();
    let client = McpClient::connect(server.address());
    let ask = |method, params| client.ask(method, params).json();
    assert_eq!(
        ask("resources/list", json!({}))["result"]["resources"][0]["uri"],
        "test://greeting"
    );
    let read = ask("resources/read", json!({"uri": "test://greeting"}));
    assert_eq!(read["result"]["contents"][0]["text"], "hello");
    assert_eq!(
        ask("resources/read", json!({"uri": "test://x"}))["error"]["code"],
        -32002
    );
    assert_eq!(
        ask("prompts/list", json!({}))["result"]["prompts"][0]["name"],
        "greet"
    );
    let prompt = ask(
        "prompts/get",
        json!({"name": "greet", "arguments": {"name": "Ada"}}),
    );
    assert_eq!(
        prompt["result"]["messages"][0]["content"]["text"],
        "Greet Ada."
    );
    assert_eq!(ask("ping", json!({}))["result"], json!({}));
    server.change(|settings| settings.has_ping = false);
    assert_eq!(ask("ping", json!({}))["error"]["code"], -32601);
}

#[test]
fn answers_can_be_event_streams() {
    let server = start();
    server.change(|settings| settings.answers = Answers::Sse);
    let client = McpClient::connect(server.address());
    let response = client.call("echo", json!({"text": "hi"}));
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(events(&response)[0]["result"]["content"][0]["text"], "hi");
    assert_eq!(response.end, End::Complete);
}

#[test]
fn a_slow_call_tells_its_progress_before_its_answer() {
    let server = start();
    let client = McpClient::connect(server.address());
    let response = client.ask(
        "tools/call",
        json!({"name": "slow", "arguments": {"ms": 120},
        "_meta": {"progressToken": "p"}}),
    );
    let events = events(&response);
    let progress: Vec<&Value> = events
        .iter()
        .map(|event| &event["params"]["progress"])
        .collect();
    assert_eq!(
        progress,
        [&json!(50), &json!(100), &json!(120), &Value::Null]
    );
    assert_eq!(events[0]["params"]["progressToken"], "p");
    assert_eq!(events[3]["id"], 1);
}

#[test]
fn a_cancelled_call_ends_without_an_answer() {
    let server = start();
    let client = McpClient::connect(server.address());
    let response = thread::scope(|scope| {
        let call = scope.spawn(|| client.call("slow", json!({"ms": 60_000})));
        wait_until(|| server.count("tools/call") == 1);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}});
        assert_eq!(client.send(&cancel).status, 202);
        call.join().unwrap()
    });
    assert_eq!((response.status, response.end), (0, End::Truncated));
    assert_eq!(server.cancelled(), [json!(1)]);
}

#[test]
fn an_open_stream_is_told_of_every_change() {
    let server = start();
    let client = McpClient::connect(server.address());
    let response = thread::scope(|scope| {
        let stream = scope.spawn(|| client.http("GET", &[], ""));
        wait_until(|| server.notify_list_changed(0) == 1);
        assert_eq!(server.notify_list_changed(200), 1);
        stream.join().unwrap()
    });
    let events = events(&response);
    assert_eq!(events.len(), 200);
    assert_eq!(events[0]["method"], "notifications/tools/list_changed");
    assert_eq!(response.end, End::Silence);
}

#[test]
fn a_forgotten_session_ends_its_stream_and_is_not_found() {
    let server = start();
    let client = McpClient::connect(server.address());
    client.call("append", json!({"word": "kept"}));
    let stream = thread::scope(|scope| {
        let stream = scope.spawn(|| client.http("GET", &[], ""));
        wait_until(|| server.notify_list_changed(0) == 1);
        server.drop_sessions();
        stream.join().unwrap()
    });
    assert_eq!(stream.end, End::Complete);
    assert_eq!(client.ask("ping", json!({})).status, 404);
    assert_eq!(client.http("GET", &[], "").status, 404);
    assert_eq!(server.executions("kept"), 1);
}

#[test]
fn a_client_can_end_its_session() {
    let server = start();
    let client = McpClient::connect(server.address());
    assert_eq!(client.http("DELETE", &[], "").status, 200);
    assert_eq!(server.session_count(), 0);
    assert_eq!(client.http("DELETE", &[], "").status, 404);
}

#[test]
fn a_client_that_breaks_the_rules_is_refused() {
    let server = start();
    let address = server.address();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let status = |headers: &[_], body| request_with(address, "POST", "/mcp", headers, body).status;
    assert_eq!(status(&[ACCEPT], &ping), 400, "no session");
    assert_eq!(status(&[("Accept", "application/json")], &ping), 406);
    assert_eq!(status(&[ACCEPT], "{"), 400);
    let client = McpClient::connect(address);
    let session = ("Mcp-Session-Id", client.session.as_str());
    let version = ("MCP-Protocol-Version", "1999-01-01");
    assert_eq!(status(&[ACCEPT, session, version], &ping), 400);
    server.change(|settings| settings.has_get_stream = false);
    assert_eq!(client.http("GET", &[], "").status, 405);
}

#[test]
fn a_server_can_go_down_and_come_back_on_the_same_port() {
    let server = start();
    let client = McpClient::connect(server.address());
    server.stop_listening();
    assert!(TcpStream::connect(server.address()).is_err());
    server.listen_again();
    server.listen_again();
    assert_eq!(
        client.ask("ping", json!({})).status,
        200,
        "sessions are kept"
    );
}

#[test]
fn the_modern_era_needs_no_session() {
    let server = start();
    server.change(|settings| settings.era = Era::Modern);
    let ask = |method: &str, header: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params":
            {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}});
        let headers = [
            ACCEPT,
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", header),
        ];
        request_with(
            server.address(),
            "POST",
            "/mcp",
            &headers,
            &message.to_string(),
        )
    };
    let discovered = ask("server/discover", "server/discover").json()["result"].clone();
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
    assert_eq!(discovered["resultType"], "complete");
    let list = ask("tools/list", "tools/list").json()["result"].clone();
    assert_eq!(
        (&list["ttlMs"], &list["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let unknown = ask("ping", "ping");
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    let mismatch = ask("tools/list", "tools/call");
    assert_eq!(
        (mismatch.status, &mismatch.json()["error"]["code"]),
        (400, &json!(-32020))
    );
    let legacy = initialize(server.address());
    assert_eq!(legacy.status, 400);
    assert_eq!(legacy.json()["error"]["data"]["supported"], json!([MODERN]));
}

#[test]
fn a_legacy_server_does_not_know_discover() {
    let server = start();
    let discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params":
        {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}});
    let response = post(server.address(), &discover);
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["error"]["code"], -32000);
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_does_not_stop_the_server() {
    let server = hermes_testkit::mcp::FaultyMcp::start().await;
    assert!(server.url().ends_with("/mcp"));
    let client = McpClient::connect(server.address());
    assert_eq!(client.call("slow", json!({"ms": 20})).status, 200);
}
