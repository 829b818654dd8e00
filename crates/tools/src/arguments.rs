//! From a model's arguments to a tool's own type.

use hermes_core::ToolError;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the arguments of a call, or tells the model what is wrong with them.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| {
        ToolError::Answer(format!(
            "the arguments of `{tool}` do not fit its schema: {error}; call it again with all required arguments"
        ))
    })
}

/// Returns a text argument for decisions made before the call is checked; junk is as good as nothing.
pub(crate) fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name)?.as_str()
}
