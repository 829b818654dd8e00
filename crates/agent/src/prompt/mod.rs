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

use skills::Order;

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
    /// Tokens that fit into the model, where that is known.
    pub window: Option<u64>,
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
        Wording::Brief => {
            let specs = tools.iter().map(|tool| brief::spec(tool.as_ref()));
            let specs: Arc<[ToolSpec]> = specs.collect();
            let system = brief::assemble(inputs, tools, &specs, today);
            Prefix {
                system,
                tools: specs,
            }
        }
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
    fragments.extend(skills::fragment(
        &inputs.skills,
        tools,
        inputs.wording,
        Order::ByUse,
    ));
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
/// it can stay as it is. Its tools stay in any case; `tools` are those that can be called.
pub(crate) fn renewed<'a>(
    told: &Prefix,
    inputs: &PromptInputs,
    tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
    model: &ModelName,
    today: Timestamp,
) -> Option<Prefix> {
    if is_as_told(&told.system, inputs, &told.tools) {
        return None;
    }
    let system = match inputs.wording {
        Wording::Full => assemble(inputs, &told.tools, model, today),
        Wording::Brief => {
            let is_told = |tool: &&Arc<dyn Tool>| {
                let name = &tool.spec().name;
                told.tools.iter().any(|told| told.name == *name)
            };
            let tools: Vec<_> = tools.filter(is_told).cloned().collect();
            brief::assemble(inputs, &tools, &told.tools, today)
        }
    };
    Some(Prefix {
        system,
        tools: told.tools.clone(),
    })
}

/// Whether a prompt tells what is learned now, and no more. How often skills were used is no reason to tell of others.
fn is_as_told(system: &str, inputs: &PromptInputs, tools: &[ToolSpec]) -> bool {
    let marks = |text: &str| text.matches(LEARNED_MARK).count();
    let skills = skills::fragment(&inputs.skills, tools, inputs.wording, Order::AsIn(system));
    let tells_of_skills = match &skills {
        // A longer list would go on.
        Some(skills) => system.contains(&format!("{skills}\n\n")) || system.ends_with(skills),
        None => !system.contains(&format!("\n\n{}\n", skills::HEADING)),
    };
    let (remembered, is_remembered) = match inputs.wording {
        Wording::Full => {
            let remembered = inputs.remembered.join("\n\n");
            let is_remembered = system.contains(&format!("{remembered}\n\n{TODAY}"));
            (remembered, is_remembered)
        }
        Wording::Brief => {
            let remembered = brief::remembered(inputs).join("\n\n");
            let is_remembered = system.ends_with(&remembered);
            (remembered, is_remembered)
        }
    };
    tells_of_skills && is_remembered && marks(system) == marks(&remembered)
}

/// The file a context came from, for `prompt-size` and the status line.
pub fn context_path(inputs: &PromptInputs) -> Option<PathBuf> {
    inputs.context.as_ref().map(|context| context.path.clone())
}

#[cfg(test)]
mod tests {
    use hermes_core::skill::SkillLine;

    use super::*;

    fn model() -> ModelName {
        ModelName {
            provider: "p".into(),
            model: "m".into(),
        }
    }

    fn brief(window: Option<u64>, remembered: &[String]) -> PromptInputs {
        PromptInputs {
            wording: Wording::Brief,
            window,
            remembered: remembered.to_vec(),
            ..PromptInputs::default()
        }
    }

    fn told(inputs: &PromptInputs) -> Prefix {
        prefix(inputs, &[], &model(), Timestamp::from_millis(0))
    }

    fn renewed(prefix: &Prefix, inputs: &PromptInputs) -> Option<Prefix> {
        let none: [Arc<dyn Tool>; 0] = [];
        super::renewed(
            prefix,
            inputs,
            none.iter(),
            &model(),
            Timestamp::from_millis(0),
        )
    }

    fn notes(title: &str, entries: usize) -> String {
        let entry = |number| format!("{title} has entry {number}, which is of a usual length");
        let entries: Vec<_> = (0..entries).map(entry).collect();
        format!("# {title}\n{LEARNED_MARK}.\n\n{}", entries.join("\n§\n"))
    }

    #[test]
    fn a_small_window_keeps_a_part_of_what_is_remembered() {
        let remembered = [notes("Notes", 200), notes("The user", 100)];
        for window in [1_024, 4_096, 8_192, 16_384] {
            let inputs = brief(Some(window), &remembered);
            let kept = brief::remembered(&inputs).join("\n\n");
            assert!(kept.len() as u64 <= window / 2, "{window}: {}", kept.len());
            assert_eq!(kept.matches(LEARNED_MARK).count(), 2, "{kept}");
            assert_eq!(kept.matches("no room for it").count(), 2, "{kept}");
            if window > 1_024 {
                assert!(kept.contains("Notes has entry 0, which is of a usual length\n"));
                assert!(kept.contains("The user has entry 0, which is of a usual length\n"));
            }
            assert!(!kept.contains("§\n["), "{kept}");
            let prefix = told(&inputs);
            assert!(prefix.system.ends_with(&kept));
            assert_eq!(renewed(&prefix, &inputs), None, "nothing was learned");
        }
        let few = [notes("Notes", 3), notes("The user", 2)];
        let inputs = brief(Some(4_096), &few);
        assert!(told(&inputs).system.ends_with(&few.join("\n\n")));
        let inputs = brief(None, &[notes("Notes", 1_000)]);
        assert!(told(&inputs).system.len() < 9_000);
    }

    #[test]
    fn a_prompt_with_a_long_list_of_skills_stays_when_one_was_used() {
        let skills = |used: usize| {
            let line = |number| SkillLine {
                name: format!("way-{number:02}"),
                category: "dev".to_owned(),
                description: "long ".repeat(30),
                uses: u64::from(number == used),
                ..SkillLine::default()
            };
            PromptInputs {
                skills: Arc::new(SkillIndex {
                    viewer: "view",
                    writer: "write",
                    finder: "find",
                    lines: (0..90).map(line).collect(),
                }),
                ..PromptInputs::default()
            }
        };
        let tools: Arc<[ToolSpec]> = Arc::new([ToolSpec {
            name: "view".to_owned(),
            description: String::new(),
            parameters: serde_json::json!({}),
        }]);
        let now = Timestamp::from_millis(0);
        let with = |used| prefix_with(&skills(used), tools.clone(), &model(), now);
        assert_ne!(with(0), with(80), "a new conversation is told of it");
        assert_eq!(renewed(&with(0), &skills(80)), None);
    }

    #[test]
    fn a_brief_prompt_is_renewed_when_something_was_learned_or_forgotten() {
        let (one, two) = ([notes("Notes", 1)], [notes("Notes", 2)]);
        for (before, after) in [(&[][..], &one[..]), (&one, &two), (&two, &one), (&one, &[])] {
            let prefix = told(&brief(None, before));
            let inputs = brief(None, after);
            let renewed = renewed(&prefix, &inputs);
            assert_eq!(renewed, Some(told(&inputs)), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_full_prompt_becomes_a_brief_one_where_something_was_learned() {
        let full = PromptInputs {
            wording: Wording::Full,
            ..brief(None, &[notes("Notes", 1)])
        };
        let inputs = brief(None, &[notes("Notes", 2)]);
        assert_eq!(renewed(&told(&full), &inputs), Some(told(&inputs)));
    }
}
