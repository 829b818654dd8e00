//! All servers together: start, look, change, stop.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hermes_core::{CancellationToken, Clock, Random, Tool};
use tokio::sync::{Mutex, Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use crate::known::Remembered;
use crate::respond::{Models, RespondentOptions};
use crate::roster::{McpShared, Reloaded, Roster};
use crate::server::Server;
use crate::settings::ServerSettings;
use crate::status::{ServerEvent, ServerState, ServerStatus};
use crate::supervisor::wake::Wake;
use crate::tool::tools_of;
use crate::view::View;

/// After a network outage every server is lost at once; so many may be dialled at the same time.
const CONNECTING_MAX: usize = 4;

/// For renewals of tokens that are under way when we stop.
const RENEWALS_WAIT: Duration = Duration::from_secs(10);

/// A server takes this long to start: an attempt that has less comes too late.
const START_TIME: Duration = Duration::from_secs(2);

/// Between attempts that are further apart, waiting for the next one is worth a second look.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// Events that a slow listener may leave unread before it misses some.
const EVENTS_MAX: usize = 64;

/// What the servers need from the world.
#[derive(Clone)]
pub struct McpPorts {
    /// Where the servers' standard error and log messages go, one file each.
    pub log_folder: PathBuf,
    /// Where the tokens of servers with OAuth are kept. Shared with other processes.
    pub token_folder: PathBuf,
    /// Where what can be found out again is kept.
    pub cache_folder: PathBuf,
    /// Where pictures, sound and other bytes go that servers send.
    pub media_folder: PathBuf,
    /// The models that servers may ask. Without them none is told that it may.
    pub models: Option<Models>,
    /// The folders that sessions work in, as far as they are known.
    pub folders: Vec<PathBuf>,
    /// Whether there are persons whom servers may ask.
    pub is_attended: bool,
    pub random: Arc<Random>,
    /// Tells that the machine has slept, and when tokens expire.
    pub clock: Arc<dyn Clock>,
    /// Our own environment; servers get the few harmless variables of it.
    pub environment: Vec<(String, String)>,
    /// What servers offered last. Without it, each has to be waited for.
    pub remembered: Option<Arc<Remembered>>,
    /// Programs are started one after the other.
    pub starts: Arc<Semaphore>,
}

impl McpPorts {
    /// Ports of a process that has nobody to ask, neither a person nor a model, and keeps its files below one folder.
    pub fn alone_in(folder: &Path, random: Arc<Random>, clock: Arc<dyn Clock>) -> Self {
        Self {
            log_folder: folder.join("logs"),
            token_folder: folder.join("mcp-tokens"),
            cache_folder: folder.join("cache"),
            media_folder: folder.join("cache/media"),
            models: None,
            folders: Vec::new(),
            is_attended: false,
            random,
            clock,
            environment: Vec::new(),
            remembered: None,
            starts: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) fn respondent_options(&self) -> RespondentOptions {
        RespondentOptions {
            models: self.models.clone(),
            folders: self.folders.clone(),
            is_attended: self.is_attended,
        }
    }
}

/// The MCP servers of this process. Dropping it stops them at once; [`Mcp::shutdown`] stops them properly.
pub struct Mcp {
    roster: RwLock<Roster>,
    shared: McpShared,
    tasks: Mutex<JoinSet<()>>,
}

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// What the server calls it.
    pub name: String,
    pub description: String,
    /// Whether the settings let models see it.
    pub is_wanted: bool,
}

/// A server that is to be used, and that nobody has ever seen the tools of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    pub name: String,
    pub state: ServerState,
    /// How long it may take to connect.
    pub connect_timeout: Duration,
    /// Why it is not there, as far as that is known.
    pub last_error: Option<String>,
    /// How long until it is tried again.
    pub next_attempt: Option<Duration>,
}

impl Unseen {
    /// Returns whether it is some time until it is tried again.
    pub fn is_paused(&self) -> bool {
        self.next_attempt.is_some_and(|next| next >= LONG_PAUSE)
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no MCP server `{name}`; there are: {known}")]
pub struct UnknownServer {
    pub name: String,
    pub known: String,
}

impl Mcp {
    /// Starts to connect to every server, and returns without waiting for any.
    pub fn start(settings: Vec<ServerSettings>, ports: McpPorts) -> Self {
        let shared = McpShared {
            gate: Arc::new(Semaphore::new(CONNECTING_MAX)),
            events: broadcast::Sender::new(EVENTS_MAX),
            wake: Arc::new(Wake::new(Arc::clone(&ports.clock))),
            renewals: TaskTracker::new(),
            branches: TaskTracker::new(),
            stop: CancellationToken::new(),
            ports,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(watch_for_sleep(
            Arc::clone(&shared.wake),
            shared.stop.clone(),
        ));
        let mut roster = Roster::default();
        roster.replace(settings, &shared, &mut tasks);
        Self {
            roster: RwLock::new(roster),
            shared,
            tasks: Mutex::new(tasks),
        }
    }

    /// Makes the servers those of `settings`, and returns without waiting for any.
    ///
    /// Servers whose settings are the same keep their connections. Sessions that are running keep the tools they have:
    /// those of a server with new settings reach it as it is now, those of a removed one say so.
    pub async fn reload(&self, settings: Vec<ServerSettings>) -> Reloaded {
        let mut tasks = self.tasks.lock().await;
        // Tasks of earlier reloads have ended by now, or go on.
        while tasks.try_join_next().is_some() {}
        let mut roster = self.roster.write().unwrap_or_else(PoisonError::into_inner);
        let reloaded = roster.replace(settings, &self.shared, &mut tasks);
        // Whoever changed the settings may have mended more than them: those that are away are tried at once.
        for server in roster.servers() {
            server.hasten();
        }
        reloaded
    }

    /// Returns the tools of all servers, waiting at most `wait_max` for those that have not been listed yet.
    ///
    /// A server that is away keeps the tools it had; one that was never reached has none.
    pub async fn tools(&self, wait_max: Duration) -> Vec<Arc<dyn Tool>> {
        self.wait_for_unseen(|_| wait_max).await;
        self.tools_now()
    }

    /// Returns the tools of all servers as far as they are known, from an earlier run if need be.
    pub fn tools_now(&self) -> Vec<Arc<dyn Tool>> {
        self.tools_of(|_| true)
    }

    /// The same of some servers only, told by their names.
    pub fn tools_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<dyn Tool>> {
        let mut taken = HashSet::new();
        let mut tools = Vec::new();
        let servers = self.servers();
        for server in servers
            .iter()
            .filter(|server| is_wanted(&server.settings.name))
        {
            let offer = server.view().offer.clone();
            if let Some(offer) = offer {
                tools.extend(tools_of(server, &offer, &mut taken));
            }
        }
        tools
    }

    /// Returns a number that changes with [`Mcp::tools_now`].
    pub fn tools_version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for server in &self.servers() {
            Arc::as_ptr(server).hash(&mut hasher);
            server
                .view()
                .offer
                .as_ref()
                .map(Arc::as_ptr)
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Waits for each server whose tools nobody has ever seen, as long as `patience` allows and there is hope.
    pub async fn wait_for_unseen(&self, patience: impl Fn(&Unseen) -> Duration) {
        let started = Instant::now();
        for server in &self.servers() {
            let mut views = server.watch();
            while let Some(unseen) = unseen(server).filter(|server| !server.state.is_hopeless()) {
                // Patience may end with the first attempt, so each change is looked at.
                let deadline = started + patience(&unseen);
                let next = unseen.next_attempt.unwrap_or_default() + START_TIME;
                let is_in_vain = unseen.is_paused() && Instant::now() + next > deadline;
                let changed = timeout_at(deadline, views.changed());
                if is_in_vain || !matches!(changed.await, Ok(Ok(()))) {
                    break;
                }
            }
        }
    }

    /// Waits at most `wait_max` for lists that are newer than those of an earlier run.
    pub async fn wait_for_fresh(&self, wait_max: Duration) {
        let deadline = Instant::now() + wait_max;
        for server in &self.servers() {
            let mut view = server.watch();
            let is_fresh = |view: &View| view.is_listed || view.state.is_hopeless();
            // What was known before will do.
            let _ = timeout_at(deadline, view.wait_for(is_fresh)).await;
        }
    }

    /// Returns the servers that are to be used, but whose tools nobody has ever seen.
    pub fn unseen(&self) -> Vec<Unseen> {
        self.servers().iter().filter_map(unseen).collect()
    }

    /// Returns every tool a server listed last, also those the user does not want; none before it was reached.
    pub fn offered(&self, server: &str) -> Vec<OfferedTool> {
        let servers = self.servers();
        let Some(server) = servers.iter().find(|known| known.settings.name == server) else {
            return Vec::new();
        };
        let offer = server.view().offer.clone().unwrap_or_default();
        let offered = offer.tools.iter().map(|tool| OfferedTool {
            name: tool.name.to_string(),
            description: tool.description.as_deref().unwrap_or_default().to_owned(),
            is_wanted: server.settings.offers(&tool.name),
        });
        offered.collect()
    }

    pub fn status(&self) -> Vec<ServerStatus> {
        let status = |server: &Arc<Server>| server.view().status(&server.settings.name);
        self.servers().iter().map(status).collect()
    }

    /// Follows the states of all servers from now on. A listener that is too slow misses some.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.shared.events.subscribe()
    }

    /// Gives up a server's connection, if it has one, and makes a new one now.
    pub async fn reconnect(&self, name: &str) -> Result<(), UnknownServer> {
        let servers = self.servers();
        let names = || servers.iter().map(|server| server.settings.name.as_str());
        match servers.iter().find(|server| server.settings.name == name) {
            Some(server) => {
                server.reconnect().await;
                Ok(())
            }
            None => Err(UnknownServer {
                name: name.to_owned(),
                known: names().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        let roster = self.roster.read().unwrap_or_else(PoisonError::into_inner);
        roster.servers()
    }

    /// Ends all connections and processes. Calls that are under way fail.
    pub async fn shutdown(&self) {
        self.shared.stop.cancel();
        let mut tasks = self.tasks.lock().await;
        while tasks.join_next().await.is_some() {}
        let McpShared {
            branches, renewals, ..
        } = &self.shared;
        branches.close();
        branches.wait().await;
        renewals.close();
        // One that still hangs after this has lost its token, if it had been given one, in any case.
        let _ = timeout(RENEWALS_WAIT, renewals.wait()).await;
    }
}

fn unseen(server: &Arc<Server>) -> Option<Unseen> {
    let view = server.view();
    (server.settings.enabled && view.offer.is_none()).then(|| Unseen {
        name: server.settings.name.clone(),
        state: view.state.clone(),
        connect_timeout: server.settings.connect_timeout,
        last_error: view.last_error.clone(),
        next_attempt: view
            .next_attempt
            .map(|at| at.saturating_duration_since(Instant::now())),
    })
}

async fn watch_for_sleep(wake: Arc<Wake>, stop: CancellationToken) {
    tokio::select! {
        () = wake.keep_looking() => {}
        () = stop.cancelled() => {}
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
