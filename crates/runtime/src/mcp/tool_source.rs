//! The tools of servers, for a session that runs: which there are, and which are worth waiting for.
//!
//! A server that was seen before is never waited for: what it offered last is what a session begins with. One that
//! nobody has seen is, with a line that says so.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_agent::prompt::{self, PromptInputs, Wording};
use hermes_agent::{EventLog, SessionTools, ToolSource};
use hermes_core::{BoxFuture, Clock, Event, Model, Notice, Prefix, Tool, UserBlock, UserModel};
use hermes_learning::notes::Notes;
use hermes_mcp::{Mcp, ServerState, Unseen};
use tokio::time::timeout;

use crate::models::small::ModelSize;
use crate::notes::with_notes;
use crate::setup::{prefix, worded};
use crate::toolkit::Toolkit;
use crate::tools::offer::{Offer, ServerTools, Tools};
use crate::tools::toolsets::Toolsets;

/// Most servers are there within it, and need no word.
const UNREMARKED_WAIT: Duration = Duration::from_millis(400);
/// How long a person waits for a server that is being started for the first time.
const FIRST_START_WAIT: Duration = Duration::from_secs(15);
/// A script has no later message to learn of new tools with, so quick servers may say what is new.
const FRESH_WAIT: Duration = Duration::from_millis(300);

/// The longest that what is known of the user holds up a first answer, whoever keeps it. Providers have shorter deadlines.
const USER_BLOCK_WAIT: Duration = Duration::from_secs(8);

/// How long somebody waits for a server that nobody has seen.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// As long as its first attempt is under way, but not for ever; this long when it has failed already.
    OfAPerson { unless_it_starts: Duration },
    /// As long as it may take to connect.
    OfAScript,
}

impl Patience {
    fn with(self, server: &Unseen) -> Duration {
        match self {
            // One that is connected is about to list what it has.
            Self::OfAPerson { unless_it_starts }
                if matches!(server.state, ServerState::Connecting | ServerState::Ready) =>
            {
                unless_it_starts.max(FIRST_START_WAIT)
            }
            Self::OfAPerson { unless_it_starts } => unless_it_starts,
            Self::OfAScript => server.connect_timeout,
        }
    }
}

/// The tools of the process's MCP servers, for one session.
pub struct McpToolSource {
    pub servers: Arc<OnceLock<Mcp>>,
    pub offer: Offer,
    pub inputs: Arc<PromptInputs>,
    /// Read when a session begins.
    pub notes: Option<Notes>,
    /// Asked before the first message of a new session, and when a compaction makes the prompt anew.
    pub user_model: Option<Arc<dyn UserModel>>,
    /// Nothing was said yet.
    pub is_new: bool,
    /// What the model of the user said before the first message.
    pub user_block: OnceLock<String>,
    pub toolkit: Arc<Toolkit>,
    pub model: Arc<dyn Model>,
    pub clock: Arc<dyn Clock>,
    pub patience: Patience,
    /// Where the version is kept that a session took last.
    pub taken: Arc<AtomicU64>,
}

/// Changes with the tools of the servers; 0 where there are none.
pub fn version(servers: &OnceLock<Mcp>) -> u64 {
    servers.get().map_or(0, Mcp::tools_version)
}

/// What the servers supply that a conversation has chosen.
pub fn server_tools(servers: &OnceLock<Mcp>, chosen: &Toolsets) -> ServerTools {
    servers
        .get()
        .map_or_else(ServerTools::default, |mcp| ServerTools {
            tools: mcp.tools_of(|name| chosen.has_server(name)),
            has_unseen: !unseen(mcp, chosen).is_empty(),
        })
}

fn unseen(mcp: &Mcp, chosen: &Toolsets) -> Vec<Unseen> {
    let mut unseen = mcp.unseen();
    unseen.retain(|server| chosen.has_server(&server.name));
    unseen
}

impl McpToolSource {
    async fn wait(&self, mcp: &Mcp, events: &EventLog) {
        if let Patience::OfAScript = self.patience {
            mcp.wait_for_fresh(FRESH_WAIT).await;
        }
        let chosen = self.offer.chosen();
        if unseen(mcp, chosen).is_empty() {
            return;
        }
        let wait = || {
            mcp.wait_for_unseen(|server| {
                if chosen.has_server(&server.name) {
                    self.patience.with(server)
                } else {
                    // Another conversation waits for it.
                    Duration::ZERO
                }
            })
        };
        if timeout(UNREMARKED_WAIT, wait()).await.is_err() {
            let names = named(&unseen(mcp, chosen));
            let hint = match self.patience {
                Patience::OfAPerson { .. } => "; Ctrl-C goes on without",
                Patience::OfAScript => "",
            };
            let text = format!("waiting for {names}, whose tools were never seen before{hint}");
            tell(events, text);
            wait().await;
        }
        for server in unseen(mcp, chosen) {
            tell(events, self.missing(&server));
        }
    }

    /// Asks what is known of the user, for as long as a first answer may be held up by it.
    async fn read_user_block(&self, events: &EventLog) {
        let Some(user_model) = self.user_model.as_ref().filter(|_| self.is_new) else {
            return;
        };
        let Ok(UserBlock { text, notice }) = timeout(USER_BLOCK_WAIT, user_model.block()).await
        else {
            let text = "what is known of you was not there in time; going on without".to_owned();
            let notice = Notice::Context { text };
            return events.tell(Event::Notice { notice });
        };
        if let Some(text) = text {
            _ = self.user_block.set(text);
        }
        if let Some(text) = notice {
            let notice = Notice::Context { text };
            events.tell(Event::Notice { notice });
        }
    }

    /// What is known of the user now; what was known at the beginning, where nobody answers in time.
    async fn user_block_now(&self) -> Option<String> {
        let user_model = self.user_model.as_ref()?;
        match timeout(USER_BLOCK_WAIT, user_model.block()).await {
            Ok(block) => block.text,
            Err(_) => self.user_block.get().cloned(),
        }
    }

    /// The tools for the model that answers now, and those of them that come from servers.
    fn offered(&self) -> (Tools, Vec<Arc<dyn Tool>>) {
        let mut offer = self.offer.clone();
        offer.set_of_servers(server_tools(&self.servers, offer.chosen()));
        let tools = offer.tools(&ModelSize::of(self.model.as_ref()));
        (tools, offer.of_servers().to_vec())
    }

    /// The same inputs for the model that answers now: `/model` may have chosen another one.
    fn for_model(&self, inputs: PromptInputs) -> PromptInputs {
        let size = ModelSize::of(self.model.as_ref());
        let inputs = worded(inputs, self.offer.wording(&size));
        PromptInputs {
            window: size.context_window,
            ..inputs
        }
    }

    fn prefix_of(&self, inputs: &PromptInputs, listed: &[Arc<dyn Tool>]) -> Prefix {
        let (model, clock) = (self.model.as_ref(), self.clock.as_ref());
        match inputs.wording {
            Wording::Full => {
                let specs = self.toolkit.specs_of(listed);
                prompt::prefix_with(inputs, specs, &model.name(), clock.now())
            }
            Wording::Brief => prefix(inputs, listed, model, clock),
        }
    }

    fn missing(&self, server: &Unseen) -> String {
        let name = &server.name;
        let why = match (&server.state, &server.last_error) {
            (state @ (ServerState::NeedsAuth { .. } | ServerState::Misconfigured { .. }), _) => {
                return format!("MCP server `{name}` cannot be used: {state}");
            }
            (_, Some(error)) => error.clone(),
            (state, None) => state.to_string(),
        };
        match self.patience {
            Patience::OfAPerson { .. } => {
                format!("MCP server `{name}` is not there yet ({why}); its tools come when it does")
            }
            Patience::OfAScript if server.is_paused() => format!(
                "MCP server `{name}` does not start ({why}), and is tried again in {} s only; going on without its tools",
                server.next_attempt.unwrap_or_default().as_secs()
            ),
            Patience::OfAScript => format!(
                "MCP server `{name}` was not there within {} s ({why}); going on without its tools",
                server.connect_timeout.as_secs()
            ),
        }
    }
}

fn named(servers: &[Unseen]) -> String {
    let names: Vec<String> = servers
        .iter()
        .map(|server| format!("`{}`", server.name))
        .collect();
    match names.as_slice() {
        [name] => format!("MCP server {name}"),
        names => format!("MCP servers {}", names.join(", ")),
    }
}

fn tell(events: &EventLog, text: String) {
    let notice = Notice::Tools { text };
    events.tell(Event::Notice { notice });
}

impl ToolSource for McpToolSource {
    fn ready<'a>(&'a self, events: &'a EventLog) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let servers = async {
                if let Some(mcp) = self.servers.get() {
                    self.wait(mcp, events).await;
                }
            };
            tokio::join!(servers, self.read_user_block(events));
        })
    }

    fn version(&self) -> u64 {
        version(&self.servers)
    }

    fn session_tools(&self) -> SessionTools {
        self.taken.store(self.version(), Ordering::Relaxed);
        let (tools, late) = self.offered();
        let mut inputs = with_notes(&self.inputs, self.notes.as_ref());
        inputs.remembered.extend(self.user_block.get().cloned());
        SessionTools {
            prefix: self.prefix_of(&self.for_model(inputs), &tools.listed),
            tools: tools.listed,
            unlisted: tools.unlisted,
            late,
        }
    }

    fn prefix_now(&self) -> BoxFuture<'_, Prefix> {
        Box::pin(async move {
            let inputs = self.prompt_inputs().await;
            let (tools, _) = self.offered();
            self.prefix_of(&inputs, &tools.listed)
        })
    }

    fn prompt_inputs(&self) -> BoxFuture<'_, PromptInputs> {
        Box::pin(async move {
            let (inputs, notes) = (Arc::clone(&self.inputs), self.notes.clone());
            let toolkit = Arc::clone(&self.toolkit);
            let read = tokio::task::spawn_blocking(move || {
                let mut inputs = with_notes(&inputs, notes.as_ref());
                // Without a tool for them none are told.
                if !inputs.skills.viewer.is_empty() {
                    inputs.skills = toolkit.skill_index();
                }
                inputs
            });
            let user_block = self.user_block_now().await;
            match read.await {
                Ok(mut inputs) => {
                    inputs.remembered.extend(user_block);
                    self.for_model(inputs)
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        })
    }

    fn late(&self) -> Vec<Arc<dyn Tool>> {
        server_tools(&self.servers, self.offer.chosen()).tools
    }
}
