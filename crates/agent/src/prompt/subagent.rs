//! What a subagent is told before its task. The task itself is a message, so that all subagents share this prefix.

use std::path::Path;

use hermes_core::ToolSpec;

use super::guidance;

const IDENTITY: &str = "You are a subagent of Hermes: another agent has given you one task, and you see nothing else of \
     its conversation. Nobody answers questions, so decide with what the task says and what you find. Do the task and \
     nothing beyond it. Your last message is all that the other agent gets: say what you did, what you found, which \
     files you changed and what is still open, in as few words as that takes.";

/// Puts the prompt of a subagent together: no soul, no context files, no notes.
pub(crate) fn for_subagent(cwd: &Path, tools: &[ToolSpec]) -> String {
    let mut fragments = vec![IDENTITY.to_owned()];
    fragments.extend(guidance::for_tools(tools));
    fragments.push(format!("Working directory: {}", cwd.display()));
    fragments.join("\n\n")
}
