//! What a server offers keeps the contract of a tool, like those that are built in.

use std::path::Path;

use hermes_testkit::contract::tool;
use hermes_testkit::mcp::FaultyMcp;
use serde_json::{Value, json};

use crate::client::Client;

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_of_a_server_keeps_the_contract() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    for tool in client.tools().await {
        let name = tool.spec().name.strip_prefix("mcp__test__").unwrap();
        match valid_call(name) {
            Call::Ours(valid) => tool::check(&tool, valid, Path::new("/")).await,
            Call::Theirs(valid) => tool::check_foreign(&tool, valid, Path::new("/")).await,
            Call::AlwaysFails => {}
        }
    }
}

enum Call {
    /// The schema is ours.
    Ours(Value),
    Theirs(Value),
    AlwaysFails,
}

fn valid_call(name: &str) -> Call {
    match name {
        "echo" => Call::Theirs(json!({"text": "hello"})),
        "add" => Call::Theirs(json!({"a": 1, "b": 2})),
        "append" => Call::Theirs(json!({"word": "hello"})),
        "slow" => Call::Theirs(json!({"ms": 1})),
        "fail" | "app_error" => Call::AlwaysFails,
        "list_resources" | "list_prompts" => Call::Ours(json!({})),
        "read_resource" => Call::Ours(json!({"uri": "test://greeting"})),
        "get_prompt" => Call::Ours(json!({"name": "greet", "arguments": {"name": "you"}})),
        name => panic!("`{name}` has no example of a valid call here"),
    }
}
