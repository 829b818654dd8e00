//! What the server lists: its tools, resources and prompts.

use serde_json::{Value, json};

use super::{
    ask,
    rpc::{INVALID_PARAMS, Outcome, RpcError},
    settings::Settings,
};

pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// Returns every tool as it is listed.
pub(crate) fn tools(settings: &Settings) -> Vec<Value> {
    let mut echo = json!({"text": {"type": "string"}});
    if settings.is_echo_changed {
        echo["times"] = json!({"type": "integer", "minimum": 1});
    }
    let sum = json!({"type": "object", "properties": {"sum": {"type": "number"}},
        "required": ["sum"]});
    let number = json!({"type": "number"});
    let mut tools = vec![
        tool("echo", "Returns the text.", &echo, &["text"]),
        with(
            tool(
                "add",
                "Adds two numbers.",
                &json!({"a": number, "b": number}),
                &["a", "b"],
            ),
            &json!({"annotations": {"readOnlyHint": true}, "outputSchema": sum}),
        ),
        with(
            tool(
                "append",
                "Appends a word to the ledger. Doing it twice is a mistake.",
                &json!({"word": {"type": "string"}}),
                &["word"],
            ),
            &json!({"annotations": {"readOnlyHint": false, "idempotentHint": false}}),
        ),
        tool(
            "slow",
            "Answers after some time, with progress.",
            &json!({"ms": {"type": "integer", "minimum": 0}}),
            &["ms"],
        ),
        tool("fail", "Always fails.", &json!({}), &[]),
        tool(
            "app_error",
            "Answers with this JSON-RPC error, or without a code with a result that is an error.",
            &json!({"code": {"type": "integer"}, "message": {"type": "string"},
                "word": {"type": "string", "description": "Is appended to the ledger first."}}),
            &["message"],
        ),
    ];
    tools.extend((1..=settings.extra_tools).map(|number| {
        let name = format!("extra_{number}");
        tool(&name, "Returns the text, like `echo`.", &echo, &["text"])
    }));
    tools.extend(settings.odd_tools.iter().cloned());
    if settings.has_asking_tools {
        tools.extend(ask::tools(tool));
    }
    tools.retain(|tool| !is_removed(settings, tool["name"].as_str().unwrap_or_default()));
    tools
}

pub(crate) fn is_removed(settings: &Settings, name: &str) -> bool {
    settings.removed_tools.iter().any(|removed| removed == name)
}

/// Returns the page of the list of tools that the cursor points to.
pub(crate) fn tools_page(settings: &Settings, cursor: &Value) -> Outcome {
    let start = match cursor {
        Value::Null => Some(0),
        cursor => cursor.as_str().and_then(|cursor| cursor.parse().ok()),
    };
    let tools = tools(settings);
    let start: usize = start
        .filter(|start| *start <= tools.len())
        .ok_or_else(|| RpcError::new(INVALID_PARAMS, "Invalid cursor"))?;
    let end = tools.len().min(start + settings.page_size.max(1));
    let mut page = json!({"tools": tools[start..end]});
    if end < tools.len() {
        page["nextCursor"] = end.to_string().into();
    }
    Ok(page)
}

pub(crate) fn resources() -> Value {
    json!({"resources": [
        {"uri": "test://greeting", "name": "greeting", "mimeType": "text/plain"},
        {"uri": "test://bytes", "name": "bytes", "mimeType": "application/octet-stream"},
    ]})
}

pub(crate) fn read_resource(uri: &Value) -> Outcome {
    let content = match uri.as_str() {
        Some("test://greeting") => json!({"mimeType": "text/plain", "text": "hello"}),
        Some("test://bytes") => {
            json!({"mimeType": "application/octet-stream", "blob": "AAECAw=="})
        }
        _ => {
            let message = format!("Resource not found: {uri}");
            return Err(RpcError::new(RESOURCE_NOT_FOUND, message));
        }
    };
    Ok(json!({"contents": [with(json!({"uri": uri}), &content)]}))
}

pub(crate) fn prompts() -> Value {
    let name = json!({"name": "name", "description": "Whom to greet", "required": true});
    json!({"prompts": [
        {"name": "greet", "description": "Greets someone.", "arguments": [name]},
    ]})
}

pub(crate) fn get_prompt(params: &Value) -> Outcome {
    if params["name"] != "greet" {
        let message = format!("Unknown prompt: {}", params["name"]);
        return Err(RpcError::new(INVALID_PARAMS, message));
    }
    let name = params["arguments"]["name"].as_str().unwrap_or("you");
    let text = format!("Greet {name}.");
    Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
}

fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({"name": name, "description": description, "inputSchema":
        {"type": "object", "properties": properties, "required": required}})
}

/// Adds the members of one object to another.
fn with(mut object: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_every_tool_once() {
        let settings = Settings {
            extra_tools: 3,
            page_size: 2,
            ..Settings::default()
        };
        let mut names = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page = tools_page(&settings, &cursor).unwrap();
            let tools = page["tools"].as_array().unwrap().clone();
            names.extend(tools.into_iter().map(|tool| tool["name"].clone()));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(names.len(), 9);
        assert_eq!(names[8], "extra_3");
        assert!(tools_page(&settings, &json!("99")).is_err());
    }
}
