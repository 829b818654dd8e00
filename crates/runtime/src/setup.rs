//! What one conversation works with, put together from what the process has and what its options say.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_agent::prompt::{self, EnvironmentFacts, PromptInputs, PromptSources, Wording};
use hermes_agent::{AgentSettings, CompactionSettings, ConsentPolicy, Limits, Ports, SessionStart};
use hermes_config::DEFAULT_SOUL;
use hermes_core::{
    Audience, Checkpoints, Clock, Import, ModeSwitch, Model, ModelName, Prefix, ProcessName,
    ProcessState, Processes, SessionId, SessionOptions, Terminal, Tool,
};
use hermes_learning::asking::Books;
use hermes_learning::notes::Notes;
use hermes_learning::skills::{Happened, Inline, Preloaded, Skills, Sources};
use hermes_learning::titles::Titles;

use serde_json::Value;

use crate::base::Base;
use crate::clock::SystemClock;
use crate::curating::CuratingPlan;
use crate::delegation;
use crate::error::Result;
use crate::mcp::tool_source::{McpToolSource, Patience, server_tools, version};
use crate::mcp::{McpContext, Servers, discovery_time};
use crate::models::small::ModelSize;
use crate::models::{Found, Purpose};
use crate::notes;
use crate::personality::Personalities;
use crate::recall;
use crate::reviews::ReviewPlan;
use crate::runtime::Runtime;
use crate::safety;
use crate::skills;
use crate::terminals::{self, forwarded};
use crate::toolkit::{Toolkit, built_in_tools};
use crate::tools::offer::{Disclosure, Length, Offer};
use crate::tools::toolsets::Toolsets;
use crate::user_model;
use crate::zones::{zone_or_system, zone_problem};

/// How a conversation begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    New {
        title: Option<String>,
    },
    /// Has a name already, or was begun elsewhere.
    Imported {
        import: Import,
        title: Option<String>,
    },
    Resume(SessionId),
    /// A copy that goes its own way.
    Branch {
        of: SessionId,
        title: Option<String>,
    },
}

/// What one conversation works with. It shares nothing with another that either could change.
pub struct Setup {
    pub ports: Ports,
    pub settings: AgentSettings,
    pub inputs: Arc<PromptInputs>,
    /// Things the user should know before the first answer.
    pub warnings: Vec<String>,
    /// Which of the skills that were asked for are not there, in words.
    pub missing_skills: Option<String>,
    /// Skills that its conversations go by from their beginning.
    preloaded: Vec<String>,
    skills: Skills,
    /// How skills are looked after when it rests; `None`: they are not.
    pub(crate) curating: Option<CuratingPlan>,
    /// Those of the warnings that are about MCP servers.
    pub server_warnings: Vec<String>,
    /// What names the conversation; nothing: nobody does.
    pub(crate) titles: Option<Titles>,
    source: String,
    /// What is remembered of whoever talks; `None` where nothing is.
    pub memory: Option<Notes>,
    /// How it is looked through when it rests; `None`: it is not.
    pub(crate) review: Option<ReviewPlan>,
    /// What is known of whoever talks, and how that hears of what they say; `None` where nothing is.
    pub(crate) user_model: Option<user_model::OfSession>,
    offer: Offer,
    servers: Arc<Servers>,
    /// The names of those that it wanted.
    pub(crate) wanted_servers: Vec<String>,
    /// Which tools of servers a session took last.
    taken: Arc<AtomicU64>,
    /// How long a person waits for a server that nobody has seen.
    discovery_time: Duration,
    toolkit: Arc<Toolkit>,
}

impl Setup {
    /// Puts together what a conversation with these options works with. `base` has the settings that count for it.
    pub(crate) async fn new(
        runtime: &Runtime,
        base: &Base,
        options: &SessionOptions,
    ) -> Result<Self> {
        let cwd = base.cwd.clone();
        let Found {
            model,
            mut warnings,
        } = runtime.models().main(base, options.audience).await?;
        let chosen = Toolsets::chosen(base, options)?;
        let context = McpContext {
            model: Arc::clone(&model),
            cwd: cwd.clone(),
            is_attended: options.audience == Audience::Person,
        };
        let servers = runtime.servers();
        let wanted = servers.want(base, &chosen, context).await;
        let toolkit = runtime.toolkit(base)?;
        let mode = ModeSwitch::new(options.mode.unwrap_or_else(|| safety::mode(base)));
        let memory = notes::of(base, options, runtime.store().clone(), runtime.clock())?;
        let mut built_in = toolkit.tools(&mode);
        if !toolkit.may_run_commands() {
            built_in.retain(|tool| !hermes_tools::runs_commands(tool.exposure()));
        }
        // Where nobody can be asked, and in reviews, what needs consent waits for it.
        let store = runtime.store();
        let staging = memory
            .iter()
            .map(|memory| notes::staging_tool(memory, store));
        let staging: Vec<Arc<dyn Tool>> = staging.collect();
        let of_notes = match safety::consent_policy(base, options)? {
            ConsentPolicy::Refuse => staging.clone(),
            _ => memory
                .iter()
                .map(|memory| notes::tool(memory, store))
                .collect(),
        };
        // Somebody who is not the owner of the home has no business in its other conversations, schedules, chats and skills.
        let is_owner = options.person.is_none();
        let of_skills = toolkit.for_reviews_of_skills.iter().filter(|_| is_owner);
        let review = ReviewPlan::of(
            runtime,
            base,
            options,
            &model,
            memory.as_ref(),
            staging.iter().chain(of_skills).cloned().collect(),
        )?;
        built_in.extend(of_notes);
        let may_have = |tool: &&Arc<dyn Tool>| {
            is_owner || tool.spec().name != hermes_learning::skills::tools::WRITER
        };
        built_in.extend(toolkit.for_skills.iter().filter(may_have).cloned());
        let archive = runtime.store();
        let books = Books {
            ledger: archive.clone(),
            clock: Arc::clone(runtime.clock()),
        };
        if is_owner {
            let books = Some(books.clone());
            let asking = recall::asking(base, runtime.models(), Purpose::Recall, &model, books)?;
            built_in.push(recall::recall_tool(base, archive.clone(), Some(asking)));
            built_in.push(hermes_tools::cronjob(Some(runtime.desk())));
            let chats = runtime.chats();
            built_in.extend(chats.map(|chats| hermes_tools::send_message(Some(Arc::clone(chats)))));
        }
        let user_model = user_model::of(runtime, base, options, &model)?;
        built_in.extend(user_model.iter().flat_map(|known| known.model.tools()));
        let titles = recall::titles(
            base,
            runtime.models(),
            options,
            &model,
            archive.clone(),
            books,
        )?;
        let length = Length::read(base, options)?;
        let mut offer = Offer::new(built_in, chosen, Disclosure::read(base)?, length);
        offer.set_of_servers(server_tools(&servers.shared(), offer.chosen()));
        let PromptNotes {
            notes,
            preloaded,
            missing,
        } = Box::pin(prompt_notes(base, options, toolkit.inline_in(&base.cwd))).await?;
        let size = ModelSize::of(model.as_ref());
        let inputs = prompt_inputs(base, options, notes, size.context_window)?;
        let mut inputs = worded(inputs, length.wording(&size));
        inputs.skills = toolkit.shared_index(inputs.skills);
        warnings.extend(base.settings.problems().iter().map(ToString::to_string));
        warnings.extend(forwarded::warnings(base)?);
        warnings.extend(user_model::Provider::chosen(base)?.warning(base));
        warnings.extend(wanted.warnings.iter().cloned());
        warnings.extend(inputs.warnings.iter().cloned());
        let mut settings = AgentSettings {
            mode,
            ..agent_settings(base, options, cwd)?
        };
        let subagent_model = runtime.models().get(base, Purpose::Subagent)?;
        let size_of_subagents = subagent_model
            .as_ref()
            .map(|model| ModelSize::of(model.as_ref()));
        settings.delegation.wording = length.wording(size_of_subagents.as_ref().unwrap_or(&size));
        let tools = offer.tools(&size);
        let commands = Arc::clone(&toolkit.commands);
        let checkpoints = runtime.checkpoints(base, &toolkit)?;
        let ports = Ports {
            safety: safety::safety(base, runtime.models(), &model, commands)?,
            model,
            store: runtime.store().clone(),
            clock: Arc::clone(runtime.clock()),
            random: Arc::clone(runtime.random()),
            tools: tools.listed,
            unlisted: tools.unlisted,
            // Each session has its own.
            tool_source: None,
            checkpoints: checkpoints.map(|store| Arc::new(store) as Arc<dyn Checkpoints>),
            subagent_model,
            compression_model: runtime.models().get(base, Purpose::Compression)?,
            references: Some(Arc::clone(&toolkit.references)),
        };
        Ok(Self {
            ports,
            settings,
            inputs: Arc::new(inputs),
            warnings,
            missing_skills: missing,
            preloaded,
            skills: skills::skills(base, None)?,
            curating: CuratingPlan::of(runtime, base, options)?,
            server_warnings: wanted.warnings,
            wanted_servers: wanted.names,
            titles,
            source: options.source.clone(),
            memory,
            review,
            user_model,
            offer,
            servers: Arc::clone(servers),
            taken: Arc::default(),
            discovery_time: discovery_time(base)?,
            toolkit,
        })
    }

    pub fn terminal(&self) -> &Arc<dyn Terminal> {
        &self.toolkit.ports.terminal
    }

    pub fn processes(&self) -> &Arc<dyn Processes> {
        &self.toolkit.ports.processes
    }

    /// Ends the processes that a session left running, unless they are to outlive us. Returns how many ended.
    pub(crate) async fn end_processes(&self, session: &SessionId) -> u64 {
        if self.toolkit.processes_run_on {
            return 0;
        }
        let processes = self.processes();
        let mut ended = 0;
        for process in processes.list(session).await.unwrap_or_default() {
            let id = process.id.as_str();
            if process.state == ProcessState::Running {
                let killed = processes.kill(ProcessName { session, id }).await;
                ended += u64::from(killed.is_ok());
            }
        }
        ended
    }

    /// Whether whoever talks is not the owner of the home.
    pub fn is_for_guest(&self) -> bool {
        self.toolkit.ports.private.is_some()
    }

    /// What runs the commands in skills, if the settings still want it.
    pub(crate) fn inline(&self, now: &Base) -> Result<Option<Inline>> {
        let is_on = skills::runs_commands(now)?;
        Ok(self.toolkit.inline_in(&now.cwd).filter(|_| is_on))
    }

    /// Which fence holds commands, in a short word.
    pub fn fence(&self) -> Option<&'static str> {
        self.toolkit.fence
    }

    /// Whether everything runs without a question.
    pub fn is_unasked(&self) -> bool {
        self.settings.consent == ConsentPolicy::Allow
    }

    /// Returns whether the tools of servers have changed since a session last took them.
    pub fn has_news(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        taken != 0 && taken != version(&self.servers.shared())
    }

    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Chooses other toolsets for the next session.
    pub fn choose_tools(&mut self, chosen: Toolsets) {
        self.offer.choose(chosen);
    }

    /// Takes the tools that are chosen, and that servers offer by now, for the next session.
    pub fn refresh_tools(&mut self) {
        let server_tools = server_tools(&self.servers.shared(), self.offer.chosen());
        self.offer.set_of_servers(server_tools);
        let tools = self.offer.tools(&ModelSize::of(self.ports.model.as_ref()));
        self.ports.tools = tools.listed;
        self.ports.unlisted = tools.unlisted;
    }

    /// Says this in the prompts of new sessions.
    pub fn set_notes(&mut self, notes: Vec<String>) {
        let inputs = PromptInputs {
            notes,
            ..PromptInputs::clone(&self.inputs)
        };
        self.inputs = Arc::new(inputs);
    }

    /// What a session would say before its first message if that came now, but for what is known of the user.
    pub fn prefix(&self) -> Prefix {
        let Ports {
            tools,
            model,
            clock,
            ..
        } = &self.ports;
        let inputs = notes::with_notes(&self.inputs, self.memory.as_ref());
        prefix(&inputs, tools, model.as_ref(), clock.as_ref())
    }

    /// Counts the use of the skills that a new session goes by, whoever named them: a person, a job or a webhook.
    pub(crate) async fn count_preloaded(&self, start: &Start) {
        if matches!(start, Start::New { .. } | Start::Imported { .. }) {
            self.skills.count(&self.preloaded, Happened::Used).await;
        }
    }

    /// What the agent is told of how a session begins.
    pub(crate) fn start(&self, start: Start) -> SessionStart {
        let source = self.source.clone();
        match start {
            Start::New { title } => SessionStart::New {
                source,
                title,
                // Its tool source has it before the first message; until then an idle session does without.
                prefix: Prefix::default(),
            },
            Start::Imported { import, title } => SessionStart::Imported {
                import,
                source,
                title,
            },
            Start::Resume(session) => SessionStart::Resume(session),
            Start::Branch { of, title } => SessionStart::Branch { of, source, title },
        }
    }

    /// What a session works with that is opened now. One that goes on has its prefix already.
    pub(crate) fn session_ports(&self, start: &Start) -> Ports {
        let is_new = matches!(start, Start::New { .. });
        let user_model = self.user_model.as_ref();
        let tool_source = McpToolSource {
            servers: self.servers.shared(),
            offer: self.offer.clone(),
            inputs: Arc::clone(&self.inputs),
            notes: self.memory.clone(),
            user_model: user_model.map(|known| Arc::clone(&known.model)),
            is_new,
            user_block: OnceLock::new(),
            toolkit: Arc::clone(&self.toolkit),
            model: Arc::clone(&self.ports.model),
            clock: Arc::clone(&self.ports.clock),
            patience: if self.settings.is_attended {
                Patience::OfAPerson {
                    unless_it_starts: self.discovery_time,
                }
            } else {
                Patience::OfAScript
            },
            taken: Arc::clone(&self.taken),
        };
        Ports {
            tool_source: Some(Arc::new(tool_source)),
            ..self.ports.clone()
        }
    }
}

struct PromptNotes {
    notes: Vec<String>,
    /// The skills that the conversation goes by.
    preloaded: Vec<String>,
    /// Those that it should go by, and that are not there.
    missing: Option<String>,
}

/// What the prompt says besides, and what the user should know of it.
async fn prompt_notes(
    base: &Base,
    options: &SessionOptions,
    inline: Option<Inline>,
) -> Result<PromptNotes> {
    let mut notes = options.notes.clone();
    let hint = PlatformHint::read(base, &options.source);
    notes.extend(hint.replacing.or_else(|| options.hint.clone()));
    let personalities = Personalities::of(base);
    notes.extend(match &options.personality {
        Some(name) => personalities.note(name)?,
        None => personalities.chosen(base)?,
    });
    let skills = if options.leaves_out.rules {
        Preloaded::default()
    } else {
        let sources = Sources {
            shell: inline,
            ..skills::sources(base)?
        };
        sources.preloaded(&options.skills).await?
    };
    notes.extend(skills.notes);
    notes.extend(terminals::note(base)?);
    notes.extend(hint.added);
    Ok(PromptNotes {
        notes,
        preloaded: skills.names,
        missing: skills.warning,
    })
}

/// `platform_hints`: what models are told of where a conversation is held. A text is said besides what the surface says, and so is
/// `append` of a section; `replace` is said in its place.
#[derive(Debug, Default)]
struct PlatformHint {
    replacing: Option<String>,
    added: Option<String>,
}

impl PlatformHint {
    fn read(base: &Base, source: &str) -> Self {
        let hints = base.settings.get("platform_hints");
        let Some(hint) = hints.and_then(|hints| hints.get(source)) else {
            return Self::default();
        };
        let text = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str)?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        match hint {
            Value::String(_) => Self {
                added: text(Some(hint)),
                replacing: None,
            },
            section => Self {
                replacing: text(section.get("replace")),
                added: text(section.get("append")),
            },
        }
    }
}

/// What a session says before its first message.
pub fn prefix(
    inputs: &PromptInputs,
    tools: &[Arc<dyn Tool>],
    model: &dyn Model,
    clock: &dyn Clock,
) -> Prefix {
    prompt::prefix(inputs, tools, &model.name(), clock.now())
}

/// What a session with a model of this name would say before its first message, but for notes and tools of servers.
pub fn prefix_without_servers(
    base: &Base,
    options: &SessionOptions,
    model: &ModelName,
) -> Result<(Prefix, PromptInputs)> {
    let size = ModelSize {
        name: model.model.clone(),
        context_window: None,
    };
    let length = Length::read(base, options)?;
    let offer = Offer::new(
        built_in_tools(base, options)?,
        Toolsets::chosen(base, options)?,
        Disclosure::read(base)?,
        length,
    );
    let inputs = prompt_inputs(base, options, Vec::new(), None)?;
    let inputs = worded(inputs, length.wording(&size));
    let tools = offer.tools(&size).listed;
    let prefix = prompt::prefix(&inputs, &tools, model, SystemClock.now());
    Ok((prefix, inputs))
}

/// Says things in so many words. What is in `SOUL.md` until its owner changes it is ours to say in fewer.
pub(crate) fn worded(mut inputs: PromptInputs, wording: Wording) -> PromptInputs {
    inputs.wording = wording;
    if wording == Wording::Brief {
        inputs.soul = inputs
            .soul
            .filter(|soul| soul.trim() != DEFAULT_SOUL.trim());
    }
    inputs
}

fn prompt_inputs(
    base: &Base,
    options: &SessionOptions,
    notes: Vec<String>,
    window: Option<u64>,
) -> Result<PromptInputs> {
    let cwd = &base.cwd;
    let facts = EnvironmentFacts {
        os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        shell: base
            .environment
            .get("SHELL")
            .unwrap_or("/bin/sh")
            .to_owned(),
        cwd: cwd.to_owned(),
        git_branch: match base.person {
            // A `.git` of theirs may name any folder.
            Some(_) => None,
            None => git_branch(cwd),
        },
        zone: zone_or_system(base),
    };
    let soul_file = base.home.soul_md();
    let mut inputs = PromptInputs::gather(
        &PromptSources {
            soul_file: &soul_file,
            cwd,
            context_chars_max: context_chars_max(base, window)?,
            ignore_rules: options.leaves_out.rules,
            ignore_context: base.person.is_some(),
        },
        facts,
        notes,
    );
    inputs.window = window;
    inputs.warnings.extend(zone_problem(&base.settings));
    if !options.leaves_out.rules {
        match skills::index(base) {
            Ok(index) => inputs.skills = Arc::new(index),
            Err(error) => inputs
                .warnings
                .push(format!("the prompt tells of no skills: {error}")),
        }
    }
    Ok(inputs)
}

/// `context_file_max_chars`: else the usual, more where a model holds much, less where it holds little.
fn context_chars_max(base: &Base, window: Option<u64>) -> Result<usize> {
    /// Characters of English in a token.
    const CHARS: u64 = 4;
    const PERCENT: u64 = 6;
    const CHARS_MAX: u64 = 500_000;
    if let Some(chars) = base.settings.optional_u64("context_file_max_chars")? {
        return Ok(chars.clamp(1, CHARS_MAX) as usize);
    }
    let usual = prompt::CONTEXT_CHARS_MAX as u64;
    Ok(match window {
        // A quarter of a small window.
        Some(window) if window < usual => window,
        Some(window) => (window.saturating_mul(CHARS * PERCENT) / 100).clamp(usual, CHARS_MAX),
        None => usual,
    } as usize)
}

/// Reads the branch from the repository's own files: starting git would cost more than the answer is worth.
fn git_branch(cwd: &Path) -> Option<String> {
    let repository = cwd
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|folder| folder.exists())?;
    let folder = match std::fs::read_to_string(&repository) {
        Ok(link) => PathBuf::from(link.strip_prefix("gitdir:")?.trim()),
        Err(_) => repository,
    };
    let head = std::fs::read_to_string(folder.join("HEAD")).ok()?;
    head.trim()
        .strip_prefix("ref: refs/heads/")
        .map(str::to_owned)
}

/// `compression`, and how long the model of `auxiliary.compression` may take.
fn compaction_settings(base: &Base) -> Result<CompactionSettings> {
    /// A summary that takes longer keeps a person waiting for nothing.
    const TIMEOUT_S_MAX: u64 = 3_600;
    let settings = &base.settings;
    let timeout = settings.u64("auxiliary.compression.timeout")?;
    Ok(CompactionSettings {
        is_automatic: settings.bool("compression.enabled")?,
        threshold: settings.f64("compression.threshold")?.clamp(0.1, 0.95),
        target_ratio: settings.f64("compression.target_ratio")?.clamp(0.05, 0.8),
        protect_last: settings.u64("compression.protect_last_n")?.min(1_000) as usize,
        needs_model: settings.bool("compression.abort_on_summary_failure")?,
        summary_timeout: Duration::from_secs(timeout.clamp(1, TIMEOUT_S_MAX)),
    })
}

fn agent_settings(base: &Base, options: &SessionOptions, cwd: PathBuf) -> Result<AgentSettings> {
    let steps_max = base.settings.u64("agent.max_turns")?.clamp(1, 10_000) as u32;
    Ok(AgentSettings {
        cwd,
        results_folder: base.results(),
        consent: safety::consent_policy(base, options)?,
        mode: ModeSwitch::new(safety::mode(base)),
        is_attended: options.audience == Audience::Person,
        limits: Limits {
            steps_max,
            ..Limits::default()
        },
        nested_context: !options.leaves_out.rules && base.person.is_none(),
        delegation: delegation::settings(base)?,
        compaction: compaction_settings(base)?,
    })
}
