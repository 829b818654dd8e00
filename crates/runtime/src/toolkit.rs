//! The built-in tools with everything they work with: the terminal, its processes, the rules for commands and files.
//!
//! Conversations whose settings say the same about tools share a toolkit. What differs between them all the same is how
//! freely they may change files, so that a conversation gets its own view of the tools that ask about it.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hermes_core::skill::SkillIndex;
use hermes_core::{
    Author, Exposure, LearningLog, Mode, ModeSwitch, Plan, PlanContext, References, SessionOptions,
    Tool, ToolSpec,
};
use hermes_exec::CheckpointStore;
use hermes_learning::skills::{Inline, Sources};
use hermes_policy::CommandLists;
use hermes_tools::{
    CodePlace, EditReview, FileLedger, FilePlace, ToolFence, ToolLimits, ToolPorts,
};
use serde_json::Value;

use crate::base::Base;
use crate::delegation;
use crate::error::Result;
use crate::guests::GuestPlaces;
use crate::notes;
use crate::recall;
use crate::safety;
use crate::skills::inline::SkillCommands;
use crate::skills::{self, grants};
use crate::terminals::{self, Terminals};
use crate::tools::references::SessionReferences;
use crate::tools::toolsets::Toolsets;
use crate::tools::web;
use crate::user_model;

/// The sections of the settings that tools are made of.
const SECTIONS: &[&str] = &[
    "agent.clarify_timeout",
    "approvals.allow",
    "approvals.deny",
    "checkpoints.max_file_size_mb",
    "checkpoints.max_snapshots",
    "checkpoints.max_total_size_mb",
    "checkpoints.retention_days",
    "code_execution",
    "command_allowlist",
    "delegation",
    "file_read_max_chars",
    "security",
    "skills",
    "terminal",
    "tool_output",
    "web",
];

pub struct Toolkit {
    pub ports: ToolPorts,
    pub references: Arc<dyn References>,
    /// Which commands the user refused or allowed for good.
    pub commands: Arc<CommandLists>,
    /// Which fence holds commands, in a short word.
    pub fence: Option<&'static str>,
    /// Whether background processes outlive us.
    pub processes_run_on: bool,
    /// Made when the first conversation wants them kept.
    pub(crate) checkpoints: OnceLock<CheckpointStore>,
    tools: Vec<Modal>,
    /// Those of `hermes-learning`, for conversations and for the reviews of them.
    pub(crate) for_skills: Vec<Arc<dyn Tool>>,
    pub(crate) for_reviews_of_skills: Vec<Arc<dyn Tool>>,
    skill_sources: Sources,
    /// What runs the commands in skills, where that is switched on.
    inline: Option<Inline>,
    /// What prompts were last told of skills: most sessions are told the same.
    index: Mutex<Arc<SkillIndex>>,
    /// And what models were last told of tools.
    told: Mutex<Told>,
}

/// Tools, and what models are told of them.
struct Told {
    tools: Vec<Arc<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
}

impl Told {
    /// A tool's specification stays where it is for as long as the tool lives, and these live.
    fn is_of(&self, tools: &[Arc<dyn Tool>]) -> bool {
        let mut pairs = self.tools.iter().zip(tools);
        self.tools.len() == tools.len()
            && pairs.all(|(one, other)| std::ptr::eq(one.spec(), other.spec()))
    }
}

/// A tool as it is where every change of a file is shown first, and as it is elsewhere: for most the same.
struct Modal {
    every: Arc<dyn Tool>,
    sensitive: Arc<dyn Tool>,
}

impl Modal {
    fn of((every, sensitive): (Arc<dyn Tool>, Arc<dyn Tool>)) -> Self {
        let every = if sensitive.reviews_changes() {
            every
        } else {
            Arc::clone(&sensitive)
        };
        Self { every, sensitive }
    }
}

impl Toolkit {
    pub fn new(base: &Base, log: Arc<dyn LearningLog>) -> Result<Self> {
        if let Some(guest) = GuestPlaces::of(base) {
            guest.make()?;
        }
        let commands = Arc::new(safety::command_lists(base)?);
        let ports = ToolPorts {
            commands: commands.clone(),
            ..tool_ports(base)?
        };
        let with = |edit_review: EditReview| {
            let ports = ToolPorts {
                edit_review,
                ..ports.clone()
            };
            hermes_tools::built_in(&ports)
        };
        let every = with(EditReview::Every).into_iter();
        let sensitive = with(EditReview::Sensitive);
        let tools: Vec<Modal> = every.zip(sensitive).map(Modal::of).collect();
        let inline = inline(base, &tools, &ports)?;
        let of_agent = skills::tools(base, Some(Arc::clone(&log)), Author::Agent, inline.clone())?;
        Ok(Self {
            commands,
            for_skills: of_agent,
            // What a review reads runs nothing.
            for_reviews_of_skills: skills::tools(base, Some(log), Author::Review, None)?,
            inline,
            skill_sources: skills::sources(base)?,
            index: Mutex::default(),
            told: Mutex::new(Told {
                tools: Vec::new(),
                specs: Arc::new([]),
            }),
            references: Arc::new(SessionReferences::new(base, &ports)),
            fence: terminals::fence_word(base, &ports.fence)?,
            processes_run_on: base.settings.bool("terminal.background_persist")?,
            checkpoints: OnceLock::new(),
            tools,
            ports,
        })
    }

    /// What tells one toolkit from another.
    pub fn key(base: &Base) -> String {
        let said = SECTIONS
            .iter()
            .map(|section| match base.settings.get(section) {
                Some(value) => format!("{section}: {value}\n"),
                None => format!("{section}\n"),
            });
        // Guests have places of their own, and see nothing of others'.
        let person = base.person.iter().map(|person| format!("{person:?}\n"));
        // Surfaces may leave skills out.
        let disabled = skills::disabled(base).unwrap_or_default();
        let disabled = disabled.iter().map(|name| format!("without {name:?}\n"));
        // The fence and other machines are told of files once.
        let granted = grants::granted_files(base).into_iter();
        let granted = granted.map(|file| format!("with {file}\n"));
        said.chain(person).chain(disabled).chain(granted).collect()
    }

    /// Whether commands of whoever talks are held: those of a guest never run without a fence.
    pub(crate) fn may_run_commands(&self) -> bool {
        self.ports.private.is_none() || !matches!(self.ports.fence, ToolFence::Missing { .. })
    }

    /// The tools as they are for a conversation in this mode.
    pub fn tools(&self, mode: &ModeSwitch) -> Vec<Arc<dyn Tool>> {
        let tools = self.tools.iter().map(|tool| {
            if !tool.every.reviews_changes() {
                return Arc::clone(&tool.sensitive);
            }
            Arc::new(InMode {
                mode: mode.clone(),
                every: Arc::clone(&tool.every),
                sensitive: Arc::clone(&tool.sensitive),
            }) as Arc<dyn Tool>
        });
        tools.collect()
    }

    /// What runs the commands in skills for a conversation that works in this folder.
    pub(crate) fn inline_in(&self, cwd: &Path) -> Option<Inline> {
        let shell = Arc::clone(&self.inline.as_ref()?.shell);
        let cwd = cwd.to_owned();
        Some(Inline { shell, cwd })
    }

    /// What a prompt says of the skills there are now. Reads files.
    pub(crate) fn skill_index(&self) -> Arc<SkillIndex> {
        self.shared_index(Arc::new(skills::index_of(&self.skill_sources)))
    }

    /// What models are told of these tools, held once for all who are told the same.
    pub(crate) fn specs_of(&self, tools: &[Arc<dyn Tool>]) -> Arc<[ToolSpec]> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.is_of(tools) {
            *told = Told {
                tools: tools.to_vec(),
                specs: hermes_agent::prompt::specs_of(tools),
            };
        }
        Arc::clone(&told.specs)
    }

    /// The same skills, held once for all who are told of them.
    pub(crate) fn shared_index(&self, index: Arc<SkillIndex>) -> Arc<SkillIndex> {
        let mut last = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != index {
            *last = index;
        }
        Arc::clone(&last)
    }

    /// Ends what runs beside the conversations. Returns what the user should know of it.
    pub async fn stop(&self) -> Vec<String> {
        if !self.processes_run_on {
            self.ports.processes.leave().await;
        }
        self.ports.terminal.leave().await;
        self.ports.terminal.notices()
    }
}

/// A tool of one conversation, which goes by the conversation's mode.
struct InMode {
    mode: ModeSwitch,
    every: Arc<dyn Tool>,
    sensitive: Arc<dyn Tool>,
}

impl InMode {
    fn now(&self) -> Arc<dyn Tool> {
        match self.mode.now() {
            Mode::Ask => Arc::clone(&self.every),
            Mode::AcceptEdits | Mode::Plan => Arc::clone(&self.sensitive),
        }
    }
}

impl Tool for InMode {
    fn spec(&self) -> &ToolSpec {
        self.sensitive.spec()
    }

    fn exposure(&self) -> &Exposure {
        self.sensitive.exposure()
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        self.now().prepare(arguments, cx)
    }

    fn stands_for(&self, arguments: &Value) -> Option<(Arc<dyn Tool>, Value)> {
        self.now().stands_for(arguments)
    }
}

/// What runs the commands in skills, for the owner who switched that on.
fn inline(base: &Base, tools: &[Modal], ports: &ToolPorts) -> Result<Option<Inline>> {
    if base.person.is_some() || !skills::runs_commands(base)? {
        return Ok(None);
    }
    let mut judges = tools.iter().map(|tool| &tool.sensitive);
    let judge = judges.find(|tool| tool.spec().name == TERMINAL_TOOL);
    let timeout = base.settings.seconds("skills.inline_shell_timeout")?;
    Ok(judge.map(|judge| Inline {
        shell: Arc::new(SkillCommands {
            judge: Arc::clone(judge),
            terminal: Arc::clone(&ports.terminal),
            timeout,
            is_here: matches!(ports.code.place, CodePlace::Here { .. }),
        }),
        cwd: base.cwd.clone(),
    }))
}

/// The tool that judges commands.
const TERMINAL_TOOL: &str = "terminal";

pub fn tool_ports(base: &Base) -> Result<ToolPorts> {
    let Terminals {
        terminal,
        processes,
        code,
        fence,
    } = Terminals::chosen(base)?;
    let limit = |key: &str| base.settings.u64(key).map(|value| value as usize);
    let home = &base.home;
    let file_place = match code.place {
        CodePlace::Here { .. } => FilePlace::here(),
        CodePlace::Elsewhere => {
            FilePlace::where_commands_run(vec![base.results(), base.web_pages()])
        }
    };
    Ok(ToolPorts {
        terminal,
        processes,
        limits: ToolLimits {
            read_chars_max: limit("file_read_max_chars")?,
            read_lines_max: limit("tool_output.max_lines")?,
            line_chars_max: limit("tool_output.max_line_length")?,
            output_bytes_max: limit("tool_output.max_bytes")?,
            command_timeout: base.settings.seconds("terminal.timeout")?,
            subagents_max: delegation::settings(base)?.subagents_max,
            clarify_timeout: base.settings.seconds("agent.clarify_timeout")?,
            ..ToolLimits::default()
        },
        code,
        home: base.environment.user_home(),
        secret: home.key_files(),
        private: GuestPlaces::of(base).map(|guest| guest.private()),
        protected: home.own_files(),
        settings: home.settings_files(),
        edit_review: EditReview::default(),
        commands: Arc::new(safety::command_lists(base)?),
        file_place,
        fence,
        files: FileLedger::default(),
        web: web::settings(base)?,
    })
}

/// The built-in tools that a conversation with these options is offered.
pub fn built_in_tools(base: &Base, options: &SessionOptions) -> Result<Vec<Arc<dyn Tool>>> {
    let mut every = hermes_tools::built_in(&tool_ports(base)?);
    every.extend(notes::to_look_at(base, options)?.iter().map(notes::tool));
    // Nobody calls these: they are only looked at.
    every.extend(skills::tools(base, None, Author::Agent, None)?);
    every.push(recall::to_look_at(base));
    every.extend(user_model::to_look_at(base, options)?);
    every.push(hermes_tools::cronjob(None));
    Ok(Toolsets::chosen(base, options)?.of(&every))
}
