//! What a script is started with: the module `hermes_tools`, and the line that starts Python.

use hermes_core::ToolSpec;
use serde_json::Value;

use super::CodeMode;

/// Run by the line below, with everything else it needs.
pub(super) const START: &str = include_str!("start.py");

/// The part of the module that is always the same.
const MODULE: &str = include_str!("hermes_tools.py");

/// Reads from standard input what to do, so that neither the token nor the script is seen in a list of processes. The
/// folder it runs in is not where its own imports come from.
const READ_START: &str = "import sys; sys.path[:] = [p for p in sys.path if p]; import json; \
                          run = json.load(sys.stdin.buffer); exec(compile(run[\"start\"], \"<start>\", \"exec\"))";

pub(super) const PYTHON_MISSING: &str = "no script can run: there is no `python3` on the PATH of the place where commands \
     run. Do the steps with the other tools; the user may install Python 3.8 or newer there";

/// The line for the shell. It replaces the shell, so that a script changes nothing in it. Prints the mark when there is no
/// Python.
pub(super) fn line(mark: &str, mode: CodeMode) -> String {
    let isolated = match mode {
        CodeMode::Project => "",
        CodeMode::Strict => " -I",
    };
    format!(
        "command -v python3 >/dev/null 2>&1 || {{ echo {mark}; exit 127; }}; \
         exec python3{isolated} -X utf8 -u -c '{READ_START}'"
    )
}

/// Writes the module: helpers, and a function for each tool.
pub(super) fn text<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> String {
    let functions = tools.map(function);
    format!("{MODULE}{}", functions.collect::<String>())
}

fn function(tool: &ToolSpec) -> String {
    let name = &tool.name;
    let required: Vec<&str> = strings(&tool.parameters["required"]).collect();
    let properties = tool.parameters["properties"].as_object();
    let names = properties.into_iter().flat_map(|fields| fields.keys());
    let optional = names
        .map(String::as_str)
        .filter(|name| !required.contains(name));
    let parameters: Vec<String> = (required.iter().map(|name| (*name).to_owned()))
        .chain(optional.map(|name| format!("{name}=None")))
        .collect();
    format!(
        "\n\ndef {name}({}):\n    return _call(\"{name}\", dict(locals()))\n",
        parameters.join(", ")
    )
}

fn strings(values: &Value) -> impl Iterator<Item = &str> {
    values
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_function_takes_what_must_be_given_first() {
        let tool = ToolSpec {
            name: "find".to_owned(),
            description: String::new(),
            parameters: json!({
                "type": "object",
                "properties": {"deep": {"type": "boolean"}, "path": {"type": "string"}},
                "required": ["path"],
            }),
        };
        assert_eq!(
            function(&tool),
            "\n\ndef find(path, deep=None):\n    return _call(\"find\", dict(locals()))\n"
        );
    }

    #[test]
    fn the_start_can_be_given_in_quotes() {
        assert!(!READ_START.contains('\''));
    }
}
