//! What a subagent is told before its task. The task itself is a message, so that all subagents share this prefix.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Prefix, Tool, ToolSpec};

use super::{Wording, brief, guidance};

const IDENTITY: &str = "You are a subagent of Hermes: another agent has given you one task, and you see nothing else of \
     its conversation. Nobody answers questions, so decide with what the task says and what you find. Do the task and \
     nothing beyond it. Your last message is all that the other agent gets: say what you did, what you found, which \
     files you changed and what is still open, in as few words as that takes.";

const BRIEF_IDENTITY: &str = "You are a subagent of Hermes. You have one task, and nobody answers questions. Do it with tools. \
     Your last message is all that is read of you: say what you did and what you found.";

/// Puts the prompt of a subagent together: no soul, no context files, no notes.
pub(crate) fn for_subagent(cwd: &Path, tools: &[Arc<dyn Tool>], wording: Wording) -> Prefix {
    let folder = format!("Working directory: {}", cwd.display());
    let (mut fragments, specs): (_, Vec<ToolSpec>) = match wording {
        Wording::Full => {
            let specs: Vec<_> = tools.iter().map(|tool| tool.spec().clone()).collect();
            let mut fragments = vec![IDENTITY.to_owned()];
            fragments.extend(guidance::for_tools(&specs));
            (fragments, specs)
        }
        Wording::Brief => {
            let mut fragments = vec![BRIEF_IDENTITY.to_owned()];
            fragments.extend(brief::rules(tools));
            let specs = tools.iter().map(|tool| brief::spec(tool.as_ref()));
            (fragments, specs.collect())
        }
    };
    fragments.push(folder);
    Prefix {
        system: fragments.join("\n\n"),
        tools: specs.into(),
    }
}
