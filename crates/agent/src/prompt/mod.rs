//! The system prompt: put together once per session, stored, and sent as the same bytes ever after.
//!
//! One file per fragment. To see the whole, run `hermes prompt-size --text`.

mod brief;
pub mod context_files;
mod environment;
mod guidance;
mod skills;
mod subagent;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::skill::SkillIndex;
use hermes_core::{LEARNED_MARK, ModelName, Prefix, Timestamp, Tool, ToolSpec};

pub use context_files::ContextFile;
pub use environment::EnvironmentFacts;
pub(crate) use subagent::for_subagent;

/// Characters of the project's context file, where nothing else is said.
pub const CONTEXT_CHARS_MAX: usize = 20_000;
/// Characters of `SOUL.md`.
const SOUL_CHARS_MAX: usize = 20_000;

const IDENTITY: &str = "You are Hermes, a capable and honest assistant that works for one person through tools. You do \
     the work rather than describe it, say plainly what you did and did not do, and ask only when the answer changes \
     what you would do.";

/// What the last line begins with, right behind what is remembered.
const TODAY: &str = "Today is ";

/// Everything the prompt is made of. Gathering it reads files; assembling it does not.
#[derive(Debug, Clone, Default)]
pub struct PromptInputs {
    /// The user's `SOUL.md`, which replaces our own first paragraph.
    pub soul: Option<String>,
    pub environment: EnvironmentFacts,
    pub context: Option<ContextFile>,
    /// The skills there are when the session begins; those that begin with the same ones share them.
    pub skills: Arc<SkillIndex>,
    /// Notes from the caller: worktree, personality, the caller's own system prompt.
    pub notes: Vec<String>,
    /// What is remembered from earlier conversations, a paragraph each.
    pub remembered: Vec<String>,
    /// Things the user should know about: a context file that was cut.
    pub warnings: Vec<String>,
    pub wording: Wording,
}

/// How many words a model is told things in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wording {
    #[default]
    Full,
    /// For small models: what they are told does not hide what they are asked.
    Brief,
}

/// Where the prompt's files are, and which of them count.
pub struct PromptSources<'a> {
    pub soul_file: &'a Path,
    pub cwd: &'a Path,
    /// Characters of the project's context file.
    pub context_chars_max: usize,
    /// `--ignore-rules`: neither `SOUL.md` nor context files.
    pub ignore_rules: bool,
    /// A guest works there: what lies there tells nobody what to do.
    pub ignore_context: bool,
}

impl PromptInputs {
    /// Reads the files a prompt is made of. A file that cannot be read is left out with a warning.
    pub fn gather(
        sources: &PromptSources<'_>,
        environment: EnvironmentFacts,
        notes: Vec<String>,
    ) -> Self {
        let mut inputs = Self {
            environment,
            notes,
            ..Self::default()
        };
        if sources.ignore_rules {
            return inputs;
        }
        inputs.soul = match context_files::read_limited(sources.soul_file, SOUL_CHARS_MAX) {
            Ok(soul) => match context_files::blocked(sources.soul_file, &soul) {
                Some(blocked) => {
                    inputs.warnings.push(blocked.clone());
                    Some(format!("{}\n\n{blocked}", IDENTITY.trim()))
                }
                None => Some(soul).filter(|soul| !soul.trim().is_empty()),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                inputs.warnings.push(format!(
                    "cannot read `{}`: {error}",
                    sources.soul_file.display()
                ));
                None
            }
        };
        if !sources.ignore_context {
            let (context, warning) = context_files::find(sources.cwd, sources.context_chars_max);
            inputs.context = context;
            inputs.warnings.extend(warning);
        }
        inputs
    }

    fn notes_and_context(&self) -> impl Iterator<Item = String> {
        let context = self.context.as_ref().map(ContextFile::to_text);
        self.notes.iter().cloned().chain(context)
    }
}

/// Puts together what a session says before its first message.
pub fn prefix(
    inputs: &PromptInputs,
    tools: &[Arc<dyn Tool>],
    model: &ModelName,
    today: Timestamp,
) -> Prefix {
    match inputs.wording {
        Wording::Full => prefix_with(inputs, specs_of(tools), model, today),
        Wording::Brief => Prefix {
            system: brief::assemble(inputs, tools, today),
            tools: tools
                .iter()
                .map(|tool| brief::spec(tool.as_ref()))
                .collect(),
        },
    }
}

/// What models are told of tools.
pub fn specs_of(tools: &[Arc<dyn Tool>]) -> Arc<[ToolSpec]> {
    tools.iter().map(|tool| tool.spec().clone()).collect()
}

/// [`prefix`] in full, where the specifications of the tools are there already.
pub fn prefix_with(
    inputs: &PromptInputs,
    tools: Arc<[ToolSpec]>,
    model: &ModelName,
    today: Timestamp,
) -> Prefix {
    let system = assemble(inputs, &tools, model, today);
    Prefix { system, tools }
}

/// Puts the prompt together. What changes least comes first, so that providers can cache across sessions.
fn assemble(
    inputs: &PromptInputs,
    tools: &[ToolSpec],
    model: &ModelName,
    today: Timestamp,
) -> String {
    let mut fragments = vec![inputs.soul.as_deref().unwrap_or(IDENTITY).trim().to_owned()];
    fragments.extend(guidance::for_tools(tools));
    fragments.extend(skills::fragment(&inputs.skills, tools));
    fragments.push(inputs.environment.to_text());
    fragments.extend(inputs.notes_and_context());
    fragments.extend(inputs.remembered.iter().cloned());
    fragments.push(format!(
        "{TODAY}{}. Model: {}. Provider: {}.",
        inputs.environment.zone.date_text(today.as_millis()),
        model.model,
        model.provider
    ));
    fragments.join("\n\n")
}

/// The prefix of a new epoch, where notes, skills or what is known of the user are not what a prefix tells of them; `None` where
/// it can stay as it is. Its tools stay in any case.
pub(crate) fn renewed(
    told: &Prefix,
    inputs: &PromptInputs,
    model: &ModelName,
    today: Timestamp,
) -> Option<Prefix> {
    // Small models are told of neither.
    if inputs.wording == Wording::Brief || is_as_told(&told.system, inputs, &told.tools) {
        return None;
    }
    Some(Prefix {
        system: assemble(inputs, &told.tools, model, today),
        tools: told.tools.clone(),
    })
}

/// Whether a prompt tells what is learned now, and no more.
fn is_as_told(system: &str, inputs: &PromptInputs, tools: &[ToolSpec]) -> bool {
    let remembered = inputs.remembered.join("\n\n");
    let marks = |text: &str| text.matches(LEARNED_MARK).count();
    let skills = skills::fragment(&inputs.skills, tools);
    let tells_of_skills = match &skills {
        // A longer list would go on.
        Some(skills) => system.contains(&format!("{skills}\n\n")),
        None => !system.contains(&format!("\n\n{}\n", skills::HEADING)),
    };
    let is_remembered = system.contains(&format!("{remembered}\n\n{TODAY}"));
    tells_of_skills && is_remembered && marks(system) == marks(&remembered)
}

/// The file a context came from, for `prompt-size` and the status line.
pub fn context_path(inputs: &PromptInputs) -> Option<PathBuf> {
    inputs.context.as_ref().map(|context| context.path.clone())
}
