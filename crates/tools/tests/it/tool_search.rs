//! Tools that are found instead of listed.

use std::sync::Arc;

use hermes_core::{Effect, Tool};
use hermes_testkit::TestTool;
use hermes_testkit::contract::tool::{check, context, plan};
use hermes_tools::{SearchLimits, tool_search};
use serde_json::{Value, json};

use crate::Place;

fn tools() -> Vec<Arc<dyn Tool>> {
    let hidden: Vec<Arc<dyn Tool>> = vec![
        Arc::new(TestTool::new("mcp__hub__create_issue").effect(Effect::Effect)),
        Arc::new(TestTool::new("mcp__mail__send")),
    ];
    let limits = SearchLimits {
        matches_usual: 1,
        matches_max: 5,
    };
    tool_search(hidden, limits)
}

async fn called(position: usize, arguments: Value) -> Result<Value, String> {
    let place = Place::new();
    let result = tools()[position]
        .run(arguments, &context(place.root()))
        .await;
    let output = result.map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(&output.text).unwrap_or(Value::String(output.text)))
}

#[tokio::test]
async fn the_three_keep_the_contract() {
    let place = Place::new();
    let valid = [
        json!({"query": "issue"}),
        json!({"name": "mcp__mail__send"}),
        json!({"name": "mcp__mail__send", "arguments": {"text": "hi"}}),
    ];
    for (tool, valid) in tools().iter().zip(valid) {
        check(tool, valid, place.root()).await;
    }
}

#[tokio::test]
async fn a_search_tells_names_and_where_they_come_from() {
    let found = called(0, json!({"query": "create"})).await.unwrap();
    assert_eq!(found["total_available"], 2);
    assert_eq!(found["matches"][0]["name"], "mcp__hub__create_issue");
    assert_eq!(found["matches"][0]["source"], "mcp");
    assert_eq!(found["matches"][0]["source_name"], "hub");
    assert_eq!(found["matches"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_description_holds_the_schema() {
    let described = called(1, json!({"name": "mcp__mail__send"})).await.unwrap();
    assert_eq!(described["parameters"]["type"], "object");
    let unknown = called(1, json!({"name": "mcp__mail__sent"})).await;
    assert!(
        unknown
            .unwrap_err()
            .contains("Did you mean `mcp__mail__send`?")
    );
}

#[tokio::test]
async fn a_call_is_what_the_tool_behind_it_is() {
    let call = &tools()[2];
    let of = |name: &str| json!({"name": name, "arguments": {}});
    assert_eq!(
        plan(call, &of("mcp__hub__create_issue"), "/".as_ref()).effect,
        Effect::Effect
    );
    let (real, arguments) = call.stands_for(&of("mcp__mail__send")).unwrap();
    assert_eq!(real.spec().name, "mcp__mail__send");
    assert_eq!(arguments, json!({}));
    assert!(
        call.stands_for(&of("terminal")).is_none(),
        "only what can be found"
    );
    let unknown = called(2, of("tool_call")).await;
    assert!(unknown.unwrap_err().contains("`tool_search` finds"));
}
