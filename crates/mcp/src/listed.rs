//! Makes a list of tools readable that is not quite what the protocol says: what is odd about one tool must not hide the
//! others.
//!
//! Works on what comes over the wire, before the library reads it, because the library takes a list as a whole or not at
//! all. What was done is told in the list's `_meta`, where [`notes_of`] finds it.

use std::borrow::Cow;

use rmcp::model::{ListToolsResult, Tool};
use serde_json::{Map, Value, json};

/// Deeper than any arguments that a model could fill in, and less than the library can read.
const DEPTH_MAX: usize = 100;
/// Stands where something was cut.
const CUT: &str = r#"{"$comment":"hermes: nested too deeply"}"#;
/// Where the notes are.
const NOTES: &str = "hermes/notes";
/// Of a server that has nothing but faults, this many are told.
const NOTES_MAX: usize = 50;
/// What may stand beside the tools.
const BESIDE: &[&str] = &["tools", "nextCursor", "_meta", "resultType"];

/// Returns a message with its tools made readable; the same message if there is nothing to do.
pub(crate) fn mended(bytes: &[u8]) -> Cow<'_, [u8]> {
    // Looking for the word is much cheaper than parsing every message twice.
    let is_candidate = bytes.windows(7).any(|window| window == b"\"tools\"");
    if !is_candidate {
        return Cow::Borrowed(bytes);
    }
    let shallow = shallow(bytes);
    let Ok(mut message) = serde_json::from_slice::<Value>(&shallow) else {
        return Cow::Borrowed(bytes);
    };
    let Some(list) = message.get_mut("result").and_then(Value::as_object_mut) else {
        return Cow::Borrowed(bytes);
    };
    let is_readable = matches!(shallow, Cow::Borrowed(_))
        && serde_json::from_value::<ListToolsResult>(Value::Object(list.clone())).is_ok();
    if is_readable || !list.get("tools").is_some_and(Value::is_array) {
        return Cow::Borrowed(bytes);
    }
    mend(list);
    serde_json::to_vec(&message).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Returns what was done to a list.
pub(crate) fn notes_of(list: &ListToolsResult) -> Vec<String> {
    let notes = list.meta.as_ref().and_then(|meta| meta.get(NOTES));
    let notes = notes.and_then(Value::as_array).into_iter().flatten();
    notes.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn mend(list: &mut Map<String, Value>) {
    let mut notes = Vec::new();
    let mut tools = Vec::new();
    let Some(Value::Array(entries)) = list.remove("tools") else {
        return;
    };
    for (at, entry) in entries.into_iter().enumerate() {
        match tool(entry, &mut notes) {
            Ok(tool) => tools.push(tool),
            Err(reason) => notes.push(format!(
                "entry {} of its tools is left out: {reason}",
                at + 1
            )),
        }
    }
    list.insert("tools".to_owned(), Value::Array(tools));
    if list
        .get("nextCursor")
        .is_some_and(|cursor| !cursor.is_string())
    {
        list.remove("nextCursor");
    }
    list.remove("_meta");
    if serde_json::from_value::<ListToolsResult>(Value::Object(list.clone())).is_err() {
        list.retain(|key, _| BESIDE.contains(&key.as_str()));
    }
    notes.truncate(NOTES_MAX);
    list.insert("_meta".to_owned(), json!({ NOTES: notes }));
}

/// Makes one tool readable, or says why it cannot be.
fn tool(entry: Value, notes: &mut Vec<String>) -> Result<Value, String> {
    let is_cut = entry.to_string().contains("hermes: nested too deeply");
    if !is_cut
        && serde_json::from_value::<Tool>(entry.clone()).is_ok_and(|tool| !tool.name.is_empty())
    {
        return Ok(entry);
    }
    let Value::Object(mut entry) = entry else {
        return Err(format!("it is {}", kind(&entry)));
    };
    let name = match entry.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        _ => return Err("it has no name".to_owned()),
    };
    let mut note = |what: &str| notes.push(format!("tool `{name}`: {what}"));
    if is_cut {
        note("its schema is nested too deeply, and was cut");
    }
    let schema = entry
        .get("inputSchema")
        .filter(|schema| !schema.is_object());
    if schema.is_some() || !entry.contains_key("inputSchema") {
        let what = schema.map_or("missing", |schema| kind(schema));
        note(&format!(
            "its `inputSchema` is {what}; it is taken to have no arguments"
        ));
        entry.insert("inputSchema".to_owned(), json!({ "type": "object" }));
    }
    for key in ["title", "description"] {
        if entry
            .get(key)
            .is_some_and(|text| !text.is_string() && !text.is_null())
        {
            note(&format!("its `{key}` is no text"));
            entry.remove(key);
        }
    }
    if let Some(annotations) = entry.remove("annotations") {
        let kept = sound_hints(&annotations);
        if annotations
            .as_object()
            .is_none_or(|all| all.len() != kept.len())
            && !annotations.is_null()
        {
            note("some of its `annotations` make no sense, and are ignored");
        }
        entry.insert("annotations".to_owned(), Value::Object(kept));
    }
    for key in ["outputSchema", "icons", "_meta", "execution"] {
        let alone = json!({ "name": "n", "inputSchema": {}, key: entry.get(key) });
        if entry.contains_key(key) && serde_json::from_value::<Tool>(alone).is_err() {
            note(&format!("its `{key}` makes no sense, and is ignored"));
            entry.remove(key);
        }
    }
    let entry = Value::Object(entry);
    match serde_json::from_value::<Tool>(entry.clone()) {
        Ok(_) => Ok(entry),
        Err(error) => Err(format!("tool `{name}` cannot be read: {error}")),
    }
}

/// The annotations that are of the right kind.
fn sound_hints(annotations: &Value) -> Map<String, Value> {
    let all = annotations.as_object().cloned().unwrap_or_default();
    let is_sound = |(key, value): &(String, Value)| match key.as_str() {
        "title" => value.is_string(),
        key if key.ends_with("Hint") => value.is_boolean(),
        _ => true,
    };
    all.into_iter().filter(is_sound).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Cuts what is nested too deeply to be read.
fn shallow(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut kept = Vec::new();
    let mut from = 0;
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        if is_text {
            (is_text, is_escaped) = match byte {
                _ if is_escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'{' | b'[' => {
                depth += 1;
                if depth == DEPTH_MAX + 1 {
                    kept.extend_from_slice(&bytes[from..at]);
                    kept.extend_from_slice(CUT.as_bytes());
                }
            }
            b'}' | b']' => {
                if depth == DEPTH_MAX + 1 {
                    from = at + 1;
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    if kept.is_empty() {
        return Cow::Borrowed(bytes);
    }
    if depth <= DEPTH_MAX {
        kept.extend_from_slice(&bytes[from..]);
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &Value) -> ListToolsResult {
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools } }).to_string();
        read(&message)
    }

    fn read(message: &str) -> ListToolsResult {
        let mended = mended(message.as_bytes());
        let message: Value = serde_json::from_slice(&mended).unwrap();
        serde_json::from_value(message["result"].clone()).unwrap()
    }

    #[test]
    fn a_list_that_is_right_is_left_alone() {
        let message =
            r#"{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}"#;
        assert!(matches!(mended(message.as_bytes()), Cow::Borrowed(_)));
        let other = r#"{"id":1,"result":{"content":[{"type":"text","text":"\"tools\""}]}}"#;
        assert!(matches!(mended(other.as_bytes()), Cow::Borrowed(_)));
    }

    #[test]
    fn odd_tools_are_mended_or_left_out_and_named() {
        let found = list(&json!([
            { "name": "good", "inputSchema": { "type": "object" } },
            { "name": "missing" },
            { "name": "null", "inputSchema": null },
            { "name": "true", "inputSchema": true },
            { "name": "odd", "inputSchema": {}, "annotations": { "readOnlyHint": "yes", "title": 3 } },
            { "name": "text", "inputSchema": {}, "annotations": "none", "outputSchema": false, "description": 7 },
            "not a tool",
            { "inputSchema": {} },
            { "name": 3, "inputSchema": {} },
            null,
        ]));
        let names: Vec<&str> = found.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "missing", "null", "true", "odd", "text"]);
        let notes = notes_of(&found).join("\n");
        for words in [
            "tool `missing`: its `inputSchema` is missing",
            "tool `null`: its `inputSchema` is null",
            "tool `true`: its `inputSchema` is a boolean",
            "tool `odd`: some of its `annotations`",
            "tool `text`: its `outputSchema` makes no sense",
            "entry 7 of its tools is left out: it is text",
            "entry 8 of its tools is left out: it has no name",
            "entry 9 of its tools is left out: it has no name",
            "entry 10 of its tools is left out: it is null",
        ] {
            assert!(notes.contains(words), "{words} in\n{notes}");
        }
    }

    #[test]
    fn what_is_nested_too_deeply_is_cut() {
        let deep =
            |levels: usize| format!("{}1{}", r#"{"a":["#.repeat(levels), "]}".repeat(levels));
        let message = format!(
            r#"{{"id":1,"result":{{"tools":[{{"name":"deep","inputSchema":{}}},{{"name":"b","inputSchema":{{}}}}]}}}}"#,
            deep(5_000)
        );
        let found = read(&message);
        assert_eq!(found.tools.len(), 2);
        let notes = notes_of(&found);
        assert_eq!(
            notes,
            ["tool `deep`: its schema is nested too deeply, and was cut"]
        );
    }
}
