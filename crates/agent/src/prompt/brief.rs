//! What small models are told: little, and what a call looks like. With the usual prompt a model of 1.5 billion parameters
//! answers without a call, and makes up what a file says (`scripts/real-model tools`).

use std::sync::Arc;

use hermes_core::text::head;
use hermes_core::{Example, Timestamp, Tool, ToolSpec};

use super::PromptInputs;
use super::skills::{self, Order};

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

/// What is remembered gets this part of a window, and at most so many bytes where that is larger: the request is to stand out.
const REMEMBERED_PART: u64 = 8;
const REMEMBERED_BYTES_MAX: u64 = 8_000;
/// Of English. Other scripts have more in a token, which keeps the part.
const BYTES_PER_TOKEN: u64 = 4;

const MORE: &str = "[There is more, and no room for it here.]";

/// `specs` are what the model is told of the tools.
pub(super) fn assemble(
    inputs: &PromptInputs,
    tools: &[Arc<dyn Tool>],
    specs: &[ToolSpec],
    today: Timestamp,
) -> String {
    let mut fragments = vec![inputs.soul.as_deref().unwrap_or(IDENTITY).trim().to_owned()];
    fragments.extend(rules(tools));
    let facts = &inputs.environment;
    fragments.push(format!(
        "Working directory: {}\nToday is {}.",
        facts.cwd.display(),
        facts.zone.date_text(today.as_millis())
    ));
    fragments.extend(inputs.notes_and_context());
    fragments.extend(skills::fragment(
        &inputs.skills,
        specs,
        inputs.wording,
        Order::ByUse,
    ));
    fragments.extend(remembered(inputs));
    fragments.join("\n\n")
}

/// What is remembered, as far as there is room: each paragraph gives up the same part of itself.
pub(super) fn remembered(inputs: &PromptInputs) -> Vec<String> {
    let room = inputs.window.map_or(REMEMBERED_BYTES_MAX, |tokens| {
        (tokens.saturating_mul(BYTES_PER_TOKEN) / REMEMBERED_PART).min(REMEMBERED_BYTES_MAX)
    });
    let all: usize = inputs.remembered.iter().map(String::len).sum();
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if all <= room {
        return inputs.remembered.clone();
    }
    let paragraphs = inputs.remembered.iter();
    let cut = paragraphs.map(|paragraph| cut(paragraph, paragraph.len() * room / all));
    cut.collect()
}

/// Cuts a paragraph behind a line, where that keeps something of it. What stands above the first empty line stays.
fn cut(paragraph: &str, bytes_max: usize) -> String {
    let top = paragraph.find("\n\n").map_or(0, |end| end + 2);
    let kept = head(paragraph, bytes_max.saturating_sub(MORE.len()).max(top));
    let lines = kept.rfind('\n').filter(|end| *end > top);
    let kept = lines.map_or(kept, |end| &kept[..end]);
    let kept = kept.trim_end_matches(|c: char| c == '§' || c.is_whitespace());
    format!("{kept}\n{MORE}")
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
