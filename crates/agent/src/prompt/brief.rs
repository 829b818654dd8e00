//! What small models are told: little, and what a call looks like. With the usual prompt a model of 1.5 billion parameters
//! answers without a call, and makes up what a file says (`scripts/real-model tools`).

use std::sync::Arc;

use hermes_core::{Example, Timestamp, Tool, ToolSpec};

use super::PromptInputs;

const IDENTITY: &str = "You are Hermes. You work on the user's computer with tools.";

const RULES: &str = "# Rules\n\
- You do not know what is in a file or what a command prints. Call a tool to find out; never guess.\n\
- One call is usually enough. After its result, answer the user in one plain sentence, or make the next call if the \
task has another step.";

/// What the model is told of a tool: in few words, where the tool has them.
pub(super) fn spec(tool: &dyn Tool) -> ToolSpec {
    let brief = tool.exposure().for_small_models.as_ref();
    brief.map_or_else(|| tool.spec().clone(), |brief| brief.of(tool.spec()))
}

pub(super) fn assemble(inputs: &PromptInputs, tools: &[Arc<dyn Tool>], today: Timestamp) -> String {
    let mut fragments = vec![inputs.soul.as_deref().unwrap_or(IDENTITY).trim().to_owned()];
    fragments.extend(rules(tools));
    let facts = &inputs.environment;
    fragments.push(format!(
        "Working directory: {}\nToday is {}.",
        facts.cwd.display(),
        facts.zone.date_text(today.as_millis())
    ));
    fragments.extend(inputs.notes_and_context());
    fragments.join("\n\n")
}

/// How tools are used, where there are any.
pub(super) fn rules(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    if tools.is_empty() {
        return Vec::new();
    }
    let rules = std::iter::once(RULES.to_owned());
    rules.chain(examples(tools)).collect()
}

fn examples(tools: &[Arc<dyn Tool>]) -> Option<String> {
    let shown = |tool: &Arc<dyn Tool>| {
        let example = tool
            .exposure()
            .for_small_models
            .as_ref()?
            .example
            .as_ref()?;
        Some(worked(&tool.spec().name, example))
    };
    let shown: Vec<String> = tools.iter().filter_map(shown).collect();
    (!shown.is_empty()).then(|| format!("# Examples\n{}", shown.join("\n\n")))
}

/// A call is written as the object that nearly all servers make calls of; one that stays text is found in it
/// (`salvage.rs`). Described in words, it would be copied in words; written as a dialogue, the model would go on with both
/// sides of it.
fn worked(name: &str, example: &Example) -> String {
    let Example {
        question,
        arguments,
        result,
        answer,
    } = example;
    format!(
        "Asked \"{question}\", you write only this call:\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n\
         When its result is \"{result}\", you answer: {answer}"
    )
}
