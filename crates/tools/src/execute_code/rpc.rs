//! Decides what becomes of a call that a script makes, whichever way it came. The script is not trusted.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use hermes_core::{ToolError, ToolSpec, Toolbox};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ALLOWED;

/// Longest call, with everything in it: a file of this size can still be written.
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Parameters that a script does not get: what they start would outlive it, or talk to somebody else.
const WITHHELD: &[(&str, &[&str])] = &[(
    "terminal",
    &["background", "pty", "notify_on_complete", "watch_patterns"],
)];

/// Answers the calls that one run of a script makes.
pub(super) struct ToolRpc {
    toolbox: Toolbox,
    tools: Vec<ToolSpec>,
    /// Only the script and what it starts know it.
    token: String,
    /// Known to the shell that starts the script, to say what went wrong.
    mark: String,
    calls_max: usize,
    calls: AtomicUsize,
}

#[derive(Deserialize)]
struct Call {
    token: String,
    tool: String,
    arguments: Map<String, Value>,
}

impl ToolRpc {
    pub(super) async fn open(toolbox: Toolbox, calls_max: usize) -> Result<Self, ToolError> {
        let random = || random_hex().map_err(|error| ToolError::Answer(no_random(&error)));
        let mut tools = toolbox.look().await;
        tools.retain(|tool| ALLOWED.contains(&tool.name.as_str()));
        tools.iter_mut().for_each(withhold);
        Ok(Self {
            toolbox,
            tools,
            token: random()?,
            mark: random()?,
            calls_max,
            calls: AtomicUsize::new(0),
        })
    }

    /// The tools as a script sees them.
    pub(super) fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// How many calls were let through.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed).min(self.calls_max)
    }

    /// Returns the answer to a call: a JSON object with `result` or `error`.
    pub(super) async fn answer(&self, call: &[u8]) -> Vec<u8> {
        match self.result(call).await {
            Ok(text) => json!({ "result": text }),
            Err(text) => json!({ "error": text }),
        }
        .to_string()
        .into_bytes()
    }

    async fn result(&self, call: &[u8]) -> Result<String, String> {
        if call.len() > CALL_BYTES_MAX {
            return Err(format!(
                "the call is longer than {CALL_BYTES_MAX} bytes; do it in smaller pieces"
            ));
        }
        let Call {
            token,
            tool,
            arguments,
        } = serde_json::from_slice(call).map_err(|error| format!("not a call: {error}"))?;
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Err("the token is wrong".to_owned());
        }
        self.check(&tool, &arguments)?;
        if self.calls.fetch_add(1, Ordering::Relaxed) >= self.calls_max {
            return Err(format!(
                "this script has made its {} tool calls; do the rest in another",
                self.calls_max
            ));
        }
        let result = self.toolbox.call(&tool, Value::Object(arguments)).await;
        result
            .map(|output| output.text)
            .map_err(|error| error.to_string())
    }

    /// The tool itself checks the arguments; here is only what a script may not do and a model may.
    fn check(&self, tool: &str, arguments: &Map<String, Value>) -> Result<(), String> {
        let Some(spec) = self.tools.iter().find(|spec| spec.name == tool) else {
            let names: Vec<&str> = self.tools.iter().map(|spec| spec.name.as_str()).collect();
            return Err(format!(
                "a script cannot call `{tool}`; it can call: {}",
                names.join(", ")
            ));
        };
        let withheld = withheld_from(&spec.name).find(|name| arguments.contains_key(*name));
        withheld.map_or(Ok(()), |name| {
            Err(format!("`{name}` of `{tool}` is not for scripts"))
        })
    }
}

fn withheld_from(tool: &str) -> impl Iterator<Item = &'static str> {
    let of_tool = WITHHELD.iter().filter(move |(name, _)| *name == tool);
    of_tool.flat_map(|(_, names)| names.iter().copied())
}

fn withhold(spec: &mut ToolSpec) {
    if let Some(properties) = spec.parameters["properties"].as_object_mut() {
        for name in withheld_from(&spec.name) {
            properties.shift_remove(name);
        }
    }
}

/// Compares without telling by its time how much was right.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).map(|(left, right)| left ^ right);
    left.len() == right.len() && differences.fold(0, |all, difference| all | difference) == 0
}

/// Sixteen bytes nobody can guess.
fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn no_random(error: &io::Error) -> String {
    format!("no secret can be made for the script, since `/dev/urandom` cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_the_same() {
        assert!(is_same(b"abc", b"abc"));
        for other in [&b"abd"[..], b"ab", b"abcd", b""] {
            assert!(!is_same(other, b"abc"), "{other:?}");
        }
    }

    #[test]
    fn secrets_differ() {
        let (left, right) = (random_hex().unwrap(), random_hex().unwrap());
        assert!(left.len() == 32 && left != right);
    }
}
