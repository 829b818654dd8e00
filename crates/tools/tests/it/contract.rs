//! Every built-in tool keeps the contract, and the list of them is in order.

use hermes_testkit::contract::tool;
use hermes_testkit::site::{Reaction, Site};
use hermes_tools::{BUILT_IN, built_in};
use serde_json::json;

use crate::Place;

#[tokio::test]
async fn every_tool_keeps_the_contract() {
    let site = Site::open(|_| Reaction::html("<p>hello</p>")).await;
    for name in BUILT_IN.iter().map(|tool| tool.name) {
        let place = Place::new();
        place.write("a.txt", "hello\n");
        let valid = match name {
            "clarify" => json!({"question": "Which colour?"}),
            "delegate_task" => json!({"goal": "look around"}),
            "execute_code" => json!({"code": "print(1)"}),
            "patch" => json!({"path": "a.txt", "old_string": "hello", "new_string": "bye"}),
            "process" => json!({"action": "list"}),
            "read_file" => json!({"path": "a.txt"}),
            "search_files" => json!({"pattern": "hello"}),
            "web_extract" => json!({"urls": [site.url("/")]}),
            "write_file" => json!({"path": "b.txt", "content": "hello\n"}),
            "terminal" => json!({"command": "echo hello"}),
            "todo" => json!({"todos": [{"id": "1", "content": "x", "status": "pending"}]}),
            name => panic!("`{name}` has no example of a valid call here"),
        };
        tool::check(&place.tool(name), valid, place.root()).await;
    }
}

#[test]
fn the_list_names_each_tool_as_it_names_itself_in_order() {
    let place = Place::new();
    let tools = built_in(&place.ports());
    let listed: Vec<&str> = BUILT_IN.iter().map(|tool| tool.name).collect();
    let named: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(listed, named);
    assert!(named.is_sorted());
}
