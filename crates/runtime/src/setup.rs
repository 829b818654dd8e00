//! What one conversation works with, put together from what the process has and what its options say.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hermes_agent::prompt::{self, EnvironmentFacts, PromptInputs, PromptSources, Wording};
use hermes_agent::{AgentSettings, CompactionSettings, ConsentPolicy, Limits, Ports, SessionStart};
use hermes_config::DEFAULT_SOUL;
use hermes_core::{
    Audience, Checkpoints, Clock, ModeSwitch, Model, ModelName, Prefix, ProcessName, ProcessState,
    Processes, SessionId, SessionOptions, Terminal, Tool,
};
use hermes_learning::notes::Notes;
use hermes_learning::skills::Preloaded;
use hermes_learning::titles::Titles;
use hermes_os::calendar::{UnknownZone, Zone};

use crate::base::Base;
use crate::clock::SystemClock;
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

/// How a conversation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    New {
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
    /// Those of the warnings that are about MCP servers.
    pub server_warnings: Vec<String>,
    /// What names the conversation; nothing: nobody does.
    pub(crate) titles: Option<Titles>,
    source: String,
    /// What is remembered of whoever talks; `None` where nothing is.
    pub memory: Option<Notes>,
    /// How it is looked through when it rests; `None`: it is not.
    pub(crate) review: Option<ReviewPlan>,
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
        let of_notes: Vec<Arc<dyn Tool>> = memory.iter().map(notes::tool).collect();
        let review = ReviewPlan::of(
            runtime,
            base,
            options,
            &model,
            memory.as_ref(),
            of_notes
                .iter()
                .chain(&toolkit.for_reviews_of_skills)
                .cloned()
                .collect(),
        )?;
        built_in.extend(of_notes);
        built_in.extend(toolkit.for_skills.iter().cloned());
        let archive = runtime.store();
        let asking = recall::asking(base, runtime.models(), Purpose::Recall, &model)?;
        built_in.push(recall::recall_tool(base, archive.clone(), Some(asking)));
        let titles = recall::titles(base, runtime.models(), options, &model, archive.clone())?;
        let length = Length::read(base, options)?;
        let mut offer = Offer::new(built_in, chosen, Disclosure::read(base)?, length);
        offer.set_of_servers(server_tools(&servers.shared(), offer.chosen()));
        let (notes, missing) = prompt_notes(base, options)?;
        let size = ModelSize::of(model.as_ref());
        let inputs = prompt_inputs(base, options, notes, &cwd);
        let mut inputs = worded(inputs, length.wording(&size));
        inputs.skills = toolkit.shared_index(inputs.skills);
        warnings.extend(base.settings.problems().iter().map(ToString::to_string));
        warnings.extend(forwarded::warnings(base)?);
        warnings.extend(wanted.warnings.iter().cloned());
        warnings.extend(inputs.warnings.iter().cloned());
        let settings = AgentSettings {
            mode,
            ..agent_settings(base, options, cwd)?
        };
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
            subagent_model: runtime.models().get(base, Purpose::Subagent)?,
            compression_model: runtime.models().get(base, Purpose::Compression)?,
            references: Some(Arc::clone(&toolkit.references)),
        };
        Ok(Self {
            ports,
            settings,
            inputs: Arc::new(inputs),
            warnings,
            missing_skills: missing,
            server_warnings: wanted.warnings,
            wanted_servers: wanted.names,
            titles,
            source: options.source.clone(),
            memory,
            review,
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

    /// What a session would say before its first message if that came now.
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
            Start::Resume(session) => SessionStart::Resume(session),
            Start::Branch { of, title } => SessionStart::Branch { of, source, title },
        }
    }

    /// What a session works with that is opened now.
    pub(crate) fn session_ports(&self) -> Ports {
        let tool_source = McpToolSource {
            servers: self.servers.shared(),
            offer: self.offer.clone(),
            inputs: Arc::clone(&self.inputs),
            notes: self.memory.clone(),
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

/// What the prompt says besides, and what the user should know of it.
fn prompt_notes(base: &Base, options: &SessionOptions) -> Result<(Vec<String>, Option<String>)> {
    let mut notes = options.notes.clone();
    let personalities = Personalities::of(base);
    notes.extend(match &options.personality {
        Some(name) => personalities.note(name)?,
        None => personalities.chosen(base)?,
    });
    let skills = if options.leaves_out.rules {
        Preloaded::default()
    } else {
        skills::sources(base)?.preloaded(&options.skills)?
    };
    notes.extend(skills.notes);
    notes.extend(terminals::note(base)?);
    Ok((notes, skills.warning))
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
    let inputs = prompt_inputs(base, options, Vec::new(), &base.cwd);
    let inputs = worded(inputs, length.wording(&size));
    let tools = offer.tools(&size).listed;
    let prefix = prompt::prefix(&inputs, &tools, model, SystemClock.now());
    Ok((prefix, inputs))
}

/// Says things in so many words. What is in `SOUL.md` until its owner changes it is ours to say in fewer.
fn worded(mut inputs: PromptInputs, wording: Wording) -> PromptInputs {
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
    cwd: &Path,
) -> PromptInputs {
    let zone = zone(base);
    let unknown = zone.as_ref().err();
    let unknown = unknown.map(|error| format!("timezone: {error}; the machine's is used"));
    let facts = EnvironmentFacts {
        os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        shell: base
            .environment
            .get("SHELL")
            .unwrap_or("/bin/sh")
            .to_owned(),
        cwd: cwd.to_owned(),
        git_branch: git_branch(cwd),
        zone: zone.unwrap_or_else(|_| Zone::of_system()),
    };
    let soul_file = base.home.soul_md();
    let mut inputs = PromptInputs::gather(
        &PromptSources {
            soul_file: &soul_file,
            cwd,
            ignore_rules: options.leaves_out.rules,
        },
        facts,
        notes,
    );
    inputs.warnings.extend(unknown);
    if !options.leaves_out.rules {
        match skills::index(base) {
            Ok(index) => inputs.skills = Arc::new(index),
            Err(error) => inputs
                .warnings
                .push(format!("the prompt tells of no skills: {error}")),
        }
    }
    inputs
}

/// `timezone`: a name of the IANA database; empty for the machine's.
fn zone(base: &Base) -> Result<Zone, UnknownZone> {
    match base.settings.optional_string("timezone") {
        Ok(Some(name)) if !name.trim().is_empty() => Zone::named(name.trim()),
        _ => Ok(Zone::of_system()),
    }
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
        results_folder: base.home.results(),
        consent: safety::consent_policy(base, options)?,
        mode: ModeSwitch::new(safety::mode(base)),
        is_attended: options.audience == Audience::Person,
        limits: Limits {
            steps_max,
            ..Limits::default()
        },
        nested_context: !options.leaves_out.rules,
        delegation: delegation::settings(base)?,
        compaction: compaction_settings(base)?,
    })
}
