//! Finds the tool a call means and makes its arguments fit, or says what is wrong in words the model can act on.

use std::sync::Arc;

use hermes_core::{Arguments, Tool, ToolCall, text};
use serde_json::Value;

use super::plan::Checked;
use super::{coerce::coerce, schema};
use crate::session::Ports;

/// Returns what is wrong with a call in the error.
pub(super) fn check(call: &ToolCall, ports: &Ports) -> Result<Checked, String> {
    let found = find(&call.name, &ports.tools).or_else(|| find(&call.name, &ports.unlisted));
    let Some(tool) = found.cloned().or_else(|| find_late(&call.name, ports)) else {
        return Err(unknown_tool(&call.name, &ports.tools));
    };
    let arguments = match &call.arguments {
        Arguments::Json(arguments) => arguments.clone(),
        Arguments::Malformed(text) => return Err(malformed(text)),
    };
    if let Some(refusal) = ports.safety.refuse_label(&arguments) {
        return Err(refusal);
    }
    let arguments = fitted(tool.as_ref(), arguments)?;
    let (tool, arguments) = match tool.stands_for(&arguments) {
        Some((real, arguments)) => {
            let arguments = fitted(real.as_ref(), arguments)?;
            (real, arguments)
        }
        None => (tool, arguments),
    };
    Ok(Checked {
        call: call.clone(),
        tool,
        arguments: Arc::new(arguments),
    })
}

/// Finds a tool that has come since the turn began.
fn find_late(name: &str, ports: &Ports) -> Option<Arc<dyn Tool>> {
    let late = ports.tool_source.as_ref()?.late();
    find(name, &late).cloned()
}

fn fitted(tool: &dyn Tool, arguments: Value) -> Result<Value, String> {
    let schema = &tool.spec().parameters;
    let arguments = coerce(arguments, schema);
    let problems = schema::problems(&arguments, schema);
    if problems.is_empty() {
        return Ok(arguments);
    }
    Err(format!(
        "The arguments of `{}` do not fit: {}. Call it again.",
        tool.spec().name,
        problems.join("; ")
    ))
}

/// Finds a tool by its name, or by what models commonly make of it: `ReadFile`, `read-file`, `read_file_tool`.
fn find<'a>(name: &str, tools: &'a [Arc<dyn Tool>]) -> Option<&'a Arc<dyn Tool>> {
    let exact = |wanted: &str| tools.iter().find(|tool| tool.spec().name == wanted);
    let snake = snake_case(name);
    exact(name)
        .or_else(|| exact(&snake))
        .or_else(|| exact(snake.strip_suffix("_tool")?))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for c in name.trim().chars() {
        if c.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        snake.push(if c == '-' || c == ' ' {
            '_'
        } else {
            c.to_ascii_lowercase()
        });
    }
    snake
}

fn unknown_tool(name: &str, tools: &[Arc<dyn Tool>]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let near = text::nearest(name, names.iter().copied());
    if near.is_empty() {
        format!(
            "There is no tool `{name}`. There are: {}.",
            names.join(", ")
        )
    } else {
        format!(
            "There is no tool `{name}`. Did you mean `{}`?",
            near.join("` or `")
        )
    }
}

fn malformed(text: &str) -> String {
    const AROUND_BYTES: usize = 40;
    let Err(error) = serde_json::from_str::<Value>(text) else {
        return "The arguments must be one JSON object, as in {\"name\": \"value\"}. Call the tool again.".into();
    };
    if error.is_eof() {
        return format!(
            "The arguments are not complete JSON: they break off after `{}`. If they were too long for one reply, do \
             the work in smaller pieces. Call the tool again.",
            text::tail(text, AROUND_BYTES)
        );
    }
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let at = text.floor_char_boundary((line_start + error.column()).min(text.len()));
    format!(
        "The arguments are not valid JSON: {error}, near `{}`. Escape quotes and line breaks inside strings, and call \
         the tool again.",
        text::tail(&text[..at], AROUND_BYTES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_brought_to_our_spelling() {
        for name in [
            "ReadFile",
            "read-file",
            "readFile",
            "READ_FILE",
            "Read File",
        ] {
            assert_eq!(snake_case(name), "read_file", "{name}");
        }
    }

    #[test]
    fn malformed_arguments_say_where_they_broke() {
        assert!(malformed(r#"{"path": "a"#).contains("break off after"));
        let message = malformed(r#"{"path": "say "hi""}"#);
        assert!(
            message.contains("not valid JSON") && message.contains("say "),
            "{message}"
        );
        assert!(malformed("[1, 2]").contains("one JSON object"));
        malformed("{\"é\n\n: ü");
    }
}
