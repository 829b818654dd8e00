//! What every tool must do.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{
    CallMessage, Delegated, Delegates, Plan, PlanContext, Tool, ToolContext, ToolError, ToolOutput,
    call_channel,
};
use serde_json::{Value, json};

/// A turn reacts to an interrupt within this time, and so must each of its calls.
const STOP_LATENCY_MAX: Duration = Duration::from_millis(100);

/// Longest a call with nonsense for arguments may take.
const JUNK_TIME_MAX: Duration = Duration::from_secs(5);

/// Every schema is in every request: together the default tools must stay below 20 KB.
const SPEC_BYTES_MAX: usize = 1500;

/// What most providers accept as a name.
const NAME_CHARS_MAX: usize = 64;

/// Checks all of the contract. `valid` are arguments of a harmless call that can succeed in `cwd`.
pub async fn check(tool: &Arc<dyn Tool>, valid: Value, cwd: &Path) {
    its_spec_is_lean(tool);
    its_schema_is_documented(&tool.spec().name, &tool.spec().parameters);
    check_foreign(tool, valid, cwd).await;
}

/// Checks what a tool must do whose schema somebody else wrote.
pub async fn check_foreign(tool: &Arc<dyn Tool>, valid: Value, cwd: &Path) {
    its_spec_is_sound(tool);
    plans_survive_junk(tool, cwd);
    junk_gets_an_answer(tool, cwd).await;
    a_stopped_call_returns_at_once(tool, valid.clone(), cwd).await;
    a_valid_call_succeeds_with_text(tool, valid, cwd).await;
}

/// Makes the context of a call that nobody watches.
pub fn context(cwd: &Path) -> ToolContext {
    ToolContext::alone("session", "call", cwd)
}

/// Prepares a call of the session that [`context`] is of, and runs nothing.
pub fn plan(tool: &Arc<dyn Tool>, arguments: &Value, cwd: &Path) -> Plan {
    let session = "session".into();
    let cx = PlanContext {
        session: &session,
        cwd,
    };
    Arc::clone(tool).prepare(arguments, cx)
}

fn its_spec_is_sound(tool: &Arc<dyn Tool>) {
    let spec = tool.spec();
    let name = &spec.name;
    let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!((1..=NAME_CHARS_MAX).contains(&name.len()), "{name}: length");
    assert!(name.chars().all(in_name), "{name}: characters");
    assert!(
        !spec.description.trim().is_empty(),
        "{name}: no description"
    );
    assert_eq!(spec.parameters["type"], "object", "{name}: its schema");
    let properties = &spec.parameters["properties"];
    assert!(properties.is_object(), "{name}: no properties");
}

fn its_spec_is_lean(tool: &Arc<dyn Tool>) {
    let spec = tool.spec();
    let bytes = serde_json::to_string(spec).map_or(usize::MAX, |text| text.len());
    assert!(
        bytes <= SPEC_BYTES_MAX,
        "{}: {bytes} bytes of schema",
        spec.name
    );
}

/// Checks an object schema, and those inside it: every property is described, every required one exists.
fn its_schema_is_documented(at: &str, schema: &Value) {
    assert_eq!(schema["type"], "object", "{at}: not an object schema");
    let properties = schema["properties"].as_object();
    let properties = properties.unwrap_or_else(|| panic!("{at}: no properties"));
    for required in schema["required"].as_array().into_iter().flatten() {
        let is_known = required
            .as_str()
            .is_some_and(|name| properties.contains_key(name));
        assert!(is_known, "{at}: {required} is required but no property");
    }
    for (name, property) in properties {
        let at = format!("{at}.{name}");
        assert!(property["type"].is_string(), "{at}: no type");
        let description = property["description"].as_str().unwrap_or_default();
        assert!(!description.trim().is_empty(), "{at}: no description");
        for inner in [property, &property["items"]] {
            if inner["type"] == "object" {
                its_schema_is_documented(&at, inner);
            }
        }
    }
}

/// Arguments no tool expects.
fn junk(tool: &Arc<dyn Tool>) -> Vec<Value> {
    let wrong_types = [
        json!(null),
        json!(7),
        json!("x"),
        json!([{}]),
        json!({"a": []}),
    ];
    let properties = tool.spec().parameters["properties"].as_object();
    let names = properties
        .into_iter()
        .flat_map(|properties| properties.keys());
    let per_property = names.flat_map(|name| {
        let with = |value: &Value| json!({ name.as_str(): value });
        wrong_types.iter().map(with).collect::<Vec<_>>()
    });
    let whole = [
        json!({}),
        json!(null),
        json!([]),
        json!("text"),
        json!({"unknown": 1}),
    ];
    whole.into_iter().chain(per_property).collect()
}

fn plans_survive_junk(tool: &Arc<dyn Tool>, cwd: &Path) {
    for arguments in junk(tool) {
        plan(tool, &arguments, cwd);
    }
}

async fn junk_gets_an_answer(tool: &Arc<dyn Tool>, cwd: &Path) {
    let name = &tool.spec().name;
    let required = tool.spec().parameters["required"].as_array();
    let needs_arguments = required.is_some_and(|required| !required.is_empty());
    for arguments in junk(tool) {
        let cx = context(cwd);
        let call = tool.run(arguments.clone(), &cx);
        let result = tokio::time::timeout(JUNK_TIME_MAX, call).await;
        let result = result.unwrap_or_else(|_| panic!("{name}: hangs on {arguments}"));
        match result {
            Err(ToolError::Answer(answer)) => {
                assert!(
                    !answer.trim().is_empty(),
                    "{name}: empty answer to {arguments}"
                );
            }
            Ok(_) => {
                let is_empty = arguments == json!({});
                assert!(
                    !(is_empty && needs_arguments),
                    "{name}: accepts {arguments}"
                );
            }
            Err(error) => panic!("{name}: {arguments} is not answered but {error:?}"),
        }
    }
}

async fn a_stopped_call_returns_at_once(tool: &Arc<dyn Tool>, valid: Value, cwd: &Path) {
    let name = &tool.spec().name;
    let cx = context(cwd);
    cx.stop.cancel();
    let started = Instant::now();
    let result = tool.run(valid, &cx).await;
    let elapsed = started.elapsed();
    assert!(
        elapsed < STOP_LATENCY_MAX,
        "{name}: stopped after {elapsed:?}"
    );
    match result {
        Ok(_) => {}
        Err(ToolError::Stopped(text)) => assert!(!text.trim().is_empty(), "{name}: empty"),
        Err(error) => panic!("{name}: stopped, yet {error:?}"),
    }
}

async fn a_valid_call_succeeds_with_text(tool: &Arc<dyn Tool>, valid: Value, cwd: &Path) {
    let name = &tool.spec().name;
    let (sender, mut messages) = call_channel();
    let cx = ToolContext {
        delegates: Delegates::to(&sender),
        ..context(cwd)
    };
    let nothing_to_do = async {
        while let Some(message) = messages.recv().await {
            if let CallMessage::Delegated(delegation) = message {
                let _ = delegation.answer.send(Ok(Delegated::Done(Vec::new())));
            }
        }
    };
    let call = async {
        tokio::select! {
            result = tool.run(valid.clone(), &cx) => result,
            () = nothing_to_do => panic!("{name}: the context is gone"),
        }
    };
    match call.await {
        Ok(ToolOutput { text, .. }) => assert!(!text.is_empty(), "{name}: says nothing"),
        Err(error) => panic!("{name}: {valid} failed: {error:?}"),
    }
}
